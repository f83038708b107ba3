// Package history holds what an end-to-end run wrote and what a consumer then
// read, and checks the one against the other: one function per promise of the
// README, each returning an error whose text is the promise, with
// counter-examples.
//
// The truth is what the source kept: the writer's journal says what each
// transaction would publish, the ledger rows written by the same transactions
// say which of them committed, and in which order within each partition.
//
// The package does no I/O and depends on nothing of the product, so a fault of
// the product can't hide itself here.
package history
