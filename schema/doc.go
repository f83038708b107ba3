// Package schema knows tables: their columns with types, character sets,
// signedness and ENUM/SET texts, how a raw binlog value of a column becomes a
// value, and what DDL statements do to tables.
//
// It is pure: what it is told by the binlog's table map (binlog_row_metadata=FULL)
// or by information_schema it keeps; what it was not told it refuses to guess.
package schema
