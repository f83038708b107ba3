package txn

import (
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Transaction is one committed transaction with its outbox rows, a run of
// consecutive committed transactions without any, or one part of a transaction
// that is too large to hold.
type Transaction struct {
	// Commit is where the source stands after the transaction. For a part that is
	// not Final it names the transaction, which is not yet published as a whole.
	Commit position.Commit
	// Rows are the inserted outbox rows, and the updated ones if canal.Config.Updates asks
	// for them, in binlog order; empty for a run.
	Rows []schema.Row
	// FirstRow is the number of outbox rows of the same transaction that were
	// handed on in earlier parts.
	FirstRow uint64
	// Final is false for all parts but the last one.
	Final bool
	// Bytes is the approximate memory that Rows hold.
	Bytes int
}
