package connector

import (
	"context"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Source is one open stream of committed transactions. One goroutine calls Next;
// Status and Close may be called from others.
type Source interface {
	// Next blocks until at least one transaction waits and returns all that do,
	// in commit order. The receiver owns what it gets. Any error ends the stream.
	Next(ctx context.Context) ([]txn.Transaction, error)
	Status() canal.Status
	// Close ends a blocked Next and returns when the stream's goroutines are gone.
	Close() error
}

// Sources opens streams and answers where a connector without a position begins.
type Sources interface {
	// Open begins right after from. It checks that the source continues there and
	// returns a non-retryable error when it does not.
	Open(ctx context.Context, from position.Position) (Source, error)
	// Start returns the position at which a connector begins that has none.
	Start(ctx context.Context) (position.Position, error)
}

// BeginAnew is returned by Sources.Open when the connector can't go on from the
// position and is to begin where Sources.Start says, instead of stopping.
type BeginAnew struct{ Err error } //nolint:errname // says what is to be done

func (e *BeginAnew) Error() string { return e.Err.Error() }

func (e *BeginAnew) Unwrap() error { return e.Err }

// Sink makes batches durable. It is used by one goroutine, for one session.
type Sink interface {
	// Open fences earlier writers where the sink can, and returns the position of
	// the last durable batch; found is false when the sink stores none, and the
	// replicated position counts.
	Open(ctx context.Context) (pos position.Position, found bool, err error)
	// Commit blocks until the whole batch is durable, and owns its records until then.
	// On an error, done is the number of leading groups whose records are all known to
	// be durable; the sink owns the records until Close has returned, and must not be
	// used again except for that.
	Commit(ctx context.Context, b *txn.Batch) (done int, err error)
	// Close frees the sink within ctx. Nothing unfinished is made durable by it.
	Close(ctx context.Context) error
}

// Tender is what a Sink may implement that has something to see to while nothing is
// published. Tend is called where Commit would be, about every IdleCommit; after an error
// the sink must not be used again except for Close.
type Tender interface {
	Tend(ctx context.Context) error
}

// Sinks makes the sink of a session.
type Sinks interface {
	NewSink(term uint64) (Sink, error)
	// KeepsPosition reports whether the sinks store the position with the records.
	KeepsPosition() bool
	// Check returns why rec can never be published, whatever its topic is like; nil
	// when only the sink can tell. It asks nobody.
	Check(rec *txn.Record) error
	// IdleCommit is how long commits without records may wait until they are
	// committed by themselves.
	IdleCommit() time.Duration
}

// Encoder routes and serialises rows. It is used by one goroutine at a time.
type Encoder interface {
	// Encode returns the record of row, which lives in mem until its Reset; ok is
	// false when the row is dropped by a rule that the encoder counts. An error whose
	// Retryable() is true says nothing about the row: it is tried again.
	Encode(mem *txn.Arena, row *schema.Row) (rec txn.Record, ok bool, err error)
	// RawFallback returns what can be read of a row that Encode refuses: its key and its
	// payload as they stand in the row, nil where they can't be read. They are valid
	// as long as the row is.
	RawFallback(row *schema.Row) (key, value []byte)
}

// Identifier is what an Encoder may implement so that events are found by their ids;
// see Connector.Find.
type Identifier interface {
	// AppendID appends the event id of the row that Encode was given last, whatever
	// became of it, as consumers see it: nothing when it has none.
	AppendID(dst []byte, row *schema.Row) []byte
}

// Positions is the replicated store of this connector's state.
type Positions interface {
	// Position returns the stored position; found is false when there is none.
	Position() (pos position.Position, found bool)
	// Begin starts a run of the term with the given number and returns the position
	// that it goes on from; without one, pos has the OffsetOverride and Seq of an operator's
	// wish to start over. What an earlier run still saves is refused, and so is
	// what this one saves after an operator has set the position.
	Begin(term uint64) (pos position.Position, found bool)
	// SavePosition stores pos for the run that has begun last, which it must not keep a reference to after it
	// returned. An error that wraps ErrSuperseded ends the session; a non-retryable
	// one fails the connector; after any other, the next save may succeed.
	SavePosition(ctx context.Context, pos position.Position) error
	// UnpublishedRows returns what is decided about single rows, at least about those that
	// the stored position does not cover.
	RowDecisions() ([]RowDecision, error)
	// RowDecision stores a decision, in the place of an earlier one about the same row.
	DecideRow(ctx context.Context, d RowDecision) error
	// Wanted is what an operator wants of the connector: StateRunning, StatePaused or StateStopped.
	// The last two both publish nothing; a stopped connector's position may be changed.
	Wanted() State
	// Changed is closed when the stored state has changed since this call.
	Changed() <-chan struct{}
}

// Decisions keeps what was decided about a connector's source for good. Sources
// asks it; what it does not keep is asked, or decided, anew at each opening.
type Decisions interface {
	// AcceptedLostTransactions returns the transactions whose loss by a failed primary was
	// accepted, by policy or by an operator; nil when there are none.
	AcceptedLostTransactions() (*position.Set, error)
	// AcceptLostTransactions records that lost is published, and that server (its
	// server_uuid), which is read from now, has it not. An error ends the opening.
	AcceptLostTransactions(ctx context.Context, lost *position.Set, server string) error
}

// Opening is what Sources may implement to say what a stream that is being opened
// is at. It is called from any goroutine.
type Opening interface {
	Opening() string
}

// ErrSuperseded is wrapped by an error of SavePosition when the store refuses
// because another node or an operator has taken over in the meantime.
var ErrSuperseded error = &sentinel{"superseded", "another run has taken over"}
