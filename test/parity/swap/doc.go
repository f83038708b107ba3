// Package swap stops the real Debezium in the middle of a stream of transactions, has this
// program go on from its offset, and counts: every row must come once.
package swap
