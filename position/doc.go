// Package position says where a connector is in its source: a GTID set or a
// binlog file and offset, as a plain value that can be compared, advanced,
// printed and stored.
//
// A position only ever names the end of a committed transaction, never a place
// inside one (Partials are the single, explicit exception for transactions that
// are published in parts). The package does no I/O and starts no goroutines.
package position
