// Package canal reads a MySQL or MariaDB binlog and hands on whole committed
// transactions with the rows of the outbox tables in them.
//
// It never hands on anything of a group that ends in ROLLBACK, of a savepoint
// that was rolled back, or of an XA transaction that was not committed; and
// marks exist only at commits. Row events of other tables are passed over by
// their table id, undecoded. go-mysql's types stop here.
package canal
