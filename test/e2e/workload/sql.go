package workload

import (
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// statement builds the text of transactions. It keeps its buffers between them.
type statement struct {
	options *Options
	text    []byte
	body    []byte
}

func (b *statement) add(parts ...string) {
	for _, p := range parts {
		b.text = append(b.text, p...)
	}
}

func (b *statement) number(n uint64) { b.text = strconv.AppendUint(b.text, n, 10) }

// partitions returns the partitions that t's rows go to, in the order in which
// every transaction locks their counters: so no two wait for each other.
func (o *Options) partitions(t *history.Txn) []int32 {
	out := make([]int32, 0, len(t.Keys))
	for _, k := range t.Keys[:min(len(t.Keys), int(t.Rows))] {
		out = append(out, o.partition(k))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (o *Options) partition(key int32) int32 {
	return history.PartitionOf([]byte(history.Key(key)), o.Partitions)
}

// single is a transaction of one row and one statement, whose sequence number
// the writer knows.
func (b *statement) single(t *history.Txn, seq uint64) {
	b.add(insert)
	b.row(t, 1, strconv.FormatUint(seq, 10))
	b.add(";")
}

// begin opens t: BEGIN, the counters, the ledger.
func (b *statement) begin(t *history.Txn, partitions []int32) {
	b.add("BEGIN;")
	for _, p := range partitions {
		b.add("UPDATE counters SET n = LAST_INSERT_ID(n + 1) WHERE p = ")
		b.number(uint64(p))
		// A variable, since inserting into a table with AUTO_INCREMENT changes
		// LAST_INSERT_ID().
		b.add(";SET ", variable(p), " = LAST_INSERT_ID();")
	}
	b.add("INSERT INTO ledger VALUES ")
	for i, p := range partitions {
		if i > 0 {
			b.add(",")
		}
		b.add("(")
		b.number(t.ID)
		b.add(",")
		b.number(uint64(p))
		b.add(",", variable(p), ")")
	}
	b.add(";")
}

// variable holds the transaction's sequence number in partition p.
func variable(p int32) string { return "@seq" + strconv.Itoa(int(p)) }

// rows inserts the rows from up to and including to of t.
func (b *statement) rows(t *history.Txn, from, to uint32) {
	if from > to {
		return
	}
	b.add(insert)
	for n := from; n <= to; n++ {
		if n > from {
			b.add(",")
		}
		b.row(t, n, variable(b.options.partition(t.KeyOf(n))))
	}
	b.add(";")
}

const insert = "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES "

// row adds the values of row n of t; seq is SQL.
func (b *statement) row(t *history.Txn, n uint32, seq string) {
	row := history.Row{Txn: t.ID, Number: n}
	key := history.Key(t.KeyOf(n))
	b.body = history.AppendBody(b.body[:0], row, int(t.Size))
	before, after := history.Payload{Row: row, Key: key, CRC: history.Checksum(b.body), Size: int(t.Size)}.Head()
	b.add("('", row.ID(), "','", b.options.Aggregate, "','", key, "','", history.EventType, "',CONCAT('",
		before, "',", seq, ",'", after, mysql.Escape(string(b.body)), "'))")
}

// transaction writes the whole of t as it is to end.
func (b *statement) transaction(t *history.Txn, k kind) {
	partitions := b.options.partitions(t)
	if k.compressed {
		b.add("SET SESSION binlog_transaction_compression = ON;")
	}
	b.begin(t, partitions)
	if k.foreign {
		b.add("INSERT INTO orders (customer, total) VALUES ('somebody', 12.50);")
	}
	switch {
	case k.large:
		const each = 60
		for from := uint32(1); from <= t.Rows; from += each {
			b.rows(t, from, min(t.Rows, from+each-1))
			b.add("INSERT INTO ", Side, " (id, aggregatetype, aggregateid, type, payload) VALUES (UUID(), 'side', '1', 'T', "+
				"'beside'), (UUID(), 'side', '2', 'T', 'beside');")
		}
	case t.UndoneFrom == 0:
		b.rows(t, 1, t.Rows)
	default:
		b.rows(t, 1, t.UndoneFrom-1)
		b.add("SAVEPOINT here;")
		b.rows(t, t.UndoneFrom, t.UndoneTo)
		b.add("ROLLBACK TO SAVEPOINT here;")
		b.rows(t, t.UndoneTo+1, t.Rows)
	}
	if k.tidy {
		for n := uint32(1); n <= t.Rows; n++ {
			b.add("DELETE FROM outbox WHERE id = '", history.Row{Txn: t.ID, Number: n}.ID(), "';")
		}
	}
	if k.rollback {
		b.add("ROLLBACK;")
	} else {
		b.add("COMMIT;")
	}
	if k.compressed {
		b.add("SET SESSION binlog_transaction_compression = OFF;")
	}
}
