// Package txn has a transaction's forms on its way: as it is read from the binlog, as
// its rows are encoded, and as it is handed to the sink. It does no I/O.
package txn
