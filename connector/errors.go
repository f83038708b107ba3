package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// The errors of all packages say what they are in one way: Retryable() bool, whether the
// same may work later without anybody doing something, and ErrCode() string, the stable
// word in status and metrics, by which runbooks are found. In a chain the outermost answer
// counts: who wraps an error knows what it means there.

// retryable tells whether the same may work later. An error that does not say is retried,
// since an outage is more likely than a defect, and it stays visible in the status
// meanwhile.
func retryable(err error) bool {
	var says interface{ Retryable() bool }
	return !errors.As(err, &says) || says.Retryable()
}

// code returns the stable word for err.
func code(err error) string {
	var says interface{ ErrCode() string }
	switch {
	case errors.As(err, &says):
		return says.ErrCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	default:
		return "other"
	}
}

// sentinel is an error that is told by its identity, and passes.
type sentinel struct{ code, text string }

func (e *sentinel) Error() string   { return e.text }
func (e *sentinel) ErrCode() string { return e.code }

// RowError is returned when a row can't be routed or serialised. It names where
// the row is and why, never what is in it.
type RowError struct {
	Commit position.Commit
	Row    uint64 // number of the outbox row in its transaction, from 0
	Err    error
}

func (e *RowError) Error() string {
	return fmt.Sprintf("routing outbox row %d of %s: %v", e.Row+1, place(e.Commit), e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// Retryable is false, since the same row gives the same error, unless the encoder's
// error says otherwise: what it needs of another server may be away.
func (e *RowError) Retryable() bool {
	var says interface{ Retryable() bool }
	return errors.As(e.Err, &says) && says.Retryable()
}

// ErrCode is the encoder's, or says no more than that the row was refused.
func (e *RowError) ErrCode() string {
	var says interface{ ErrCode() string }
	if errors.As(e.Err, &says) {
		return says.ErrCode()
	}
	return "row_refused"
}

// RecordError is returned when Kafka refuses a record, or its topic. Index is the
// number of its transaction in the batch.
type RecordError struct {
	Commit position.Commit
	Index  int
	// Row is the number of the outbox row in its transaction, from 0, if RowKnown.
	Row      uint64
	RowKnown bool
	// Poison says that the record is refused for good and for what it is itself.
	Poison bool
	Err    error
}

func (e *RecordError) Error() string {
	if e.RowKnown {
		return fmt.Sprintf("publishing outbox row %d of %s: %v", e.Row+1, place(e.Commit), e.Err)
	}
	return fmt.Sprintf("publishing a row of %s: %v", place(e.Commit), e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// blame names the transaction that a sink's error is about, and the row, if it says
// so.
func blame(err error, b *batch) error {
	var sent *kafka.Error
	if !errors.As(err, &sent) || sent.Group < 0 {
		return err
	}
	g := &b.Groups[sent.Group]
	e := &RecordError{Commit: g.Commit, Index: sent.Group, Err: err}
	if sent.Record >= 0 {
		rec := &g.Records[sent.Record]
		e.Row, e.RowKnown, e.Poison = rec.Row, true, sent.Poison
		if a := b.deadLetterAt(sent.Group, sent.Record); a != nil && sent.Poison {
			return &DeadLetterError{
				Row: a.row, Cause: a.cause, Topic: rec.Topic, Size: a.size, Bare: a.bare, Commit: e.Commit, Index: e.Index,
				Err: err,
			}
		}
	}
	return e
}

// holdsBack returns the transaction whose record Kafka refuses, if the batch has
// others before it.
func holdsBack(err error) (commit position.Commit, holds bool) {
	var sent *RecordError
	var deadLetter *DeadLetterError
	switch {
	case errors.As(err, &deadLetter):
		return deadLetter.Commit, deadLetter.Index > 0
	case errors.As(err, &sent):
		return sent.Commit, sent.Index > 0
	}
	return commit, false
}

// place says where a transaction is, for people.
func place(m position.Commit) string {
	if in := m.Snapshot; in != nil {
		return fmt.Sprintf("the snapshot rows of table %s.%s, number %d of all snapshot rows", in.Database, in.Table, in.Rows)
	}
	return transactionOf(m.Row(0))
}

func transactionOf(r position.Row) string {
	if r.IsSnapshot() {
		return fmt.Sprintf("the snapshot rows, number %d of all", r.Snapshot.Number)
	}
	if r.GTID.IsZero() {
		return "the transaction that ends at " + r.TransactionID()
	}
	return r.TransactionID()
}

// PositionError is returned when the position in Kafka does not cover the
// replicated one: Kafka has lost a committed record (unclean election, topic
// deleted or recreated), or this is another cluster, source or connector of the
// same name. Missing is set when Kafka holds no position at all.
type PositionError struct {
	Sink, Stored position.Position
	Missing      bool
}

func (e *PositionError) Error() string {
	if e.Missing {
		return fmt.Sprintf("Kafka holds no position of this connector, and committed one at or after the replicated one "+
			"(%s): its position topic was deleted or recreated, or this is another cluster. Look for what was lost with it, "+
			"then choose where to go on with 'offset set'", e.Stored)
	}
	return fmt.Sprintf("the position in Kafka (%s) is behind or beside the replicated one (%s): Kafka lost a committed "+
		"record, or this connector name belongs to another source or cluster; choose where to go on with 'offset set'",
		e.Sink, e.Stored)
}

// Retryable is false: an operator has to choose.
func (e *PositionError) Retryable() bool { return false }

// ErrCode is the code for status and metrics.
func (e *PositionError) ErrCode() string { return "position_regression" }
