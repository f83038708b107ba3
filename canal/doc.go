// Package canal reads a MySQL or MariaDB binlog and hands on whole committed
// transactions with the rows of the outbox tables in them.
//
// It never hands on anything of a group that ends in ROLLBACK, of a savepoint
// that was rolled back, or of an XA transaction that was not committed; and
// positions exist only at commits. Row events of other tables are passed over by
// their table id, undecoded. go-mysql's types stop here.
//
// # From packet to transaction
//
// go-mysql's BinlogSyncer reads packets (raw mode) and calls the event handler for each
// event, on the one goroutine that reads. The event handler looks at headers, GTIDs,
// table maps and ends of transactions. Rows events of outbox tables are held as
// they came, in memory or, from Config.SpoolThreshold on, in a file; at the
// commit they are decoded and put into the queue from which Stream.Next takes
// all that waits. The queue's bound in bytes is the only back-pressure: a full
// one stops the reading.
//
// # What stops a stream
//
// What cannot be read correctly ends the stream with an *Error that names the
// transaction, and nothing of that transaction is handed on (but for the parts
// of a large one that were, before). Two cases are decisions: an XA PREPARE with
// outbox rows stops the stream, since its rows would have to wait for an XA
// COMMIT that no position can wait for (XA COMMIT ... ONE PHASE is a plain
// commit, and XA transactions without outbox rows pass); and a statement that
// wrote an outbox table in statement format does, since its rows are not in the
// binlog. Whether a faulty transaction matters is decided at its commit: what is
// rolled back cannot stop anything.
//
// # Where a stream goes on
//
// Open reads only from a server that goes on where the position ends. It asks for
// the position's set without the last published transaction and compares that
// one's commit time when it comes (Diverged): a server that lost transactions and
// gave their numbers to others would pass over those without a word. The rest of
// that transaction is passed over undecoded; nothing is handed on before. When
// other transactions come before it, or it is large, they are dropped and the
// binlog is asked for anew with the whole set. MariaDB has only whole seconds to
// compare, and can't send a transaction again whose number follows one of another
// server; that is logged.
//
// What the server lacks is either its own (Behind: reset, restored, crashed), or
// others' (LostTransactions: lost with a failed primary; Lagging: yet to come). LostTransactions may
// be accepted (Config.OnLostTransactions); they stay in the position, and should the server
// have them one day after all, that stops the stream.
//
// With several hosts all are asked at the same time, and the first one in the order
// that takes writes and passes these checks is read from. While the stream lives its
// server's role is watched, and the stream ends when another host has taken over.
//
// # What cannot be seen
//
// Writes with sql_log_bin=0, and what triggers and functions write in a session
// that has chosen another binlog_format than the server's, which must be ROW. XA transactions
// prepared before the position from which a connector
// starts for the first time. Without binlog_row_metadata=FULL, columns come from
// information_schema as they are now; rows that are older than a change which
// kept number and types of the columns get today's names, and only at the change
// itself that is noticed and stops the stream.
package canal
