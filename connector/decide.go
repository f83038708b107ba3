package connector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// UnpublishedRow is a row that was skipped or dead-lettered, for the status.
type UnpublishedRow struct {
	position.Row
	Table          string
	Action         Action
	Cause, Message string
	At             time.Time
}

const (
	// maxLastUnpublished is how many rows the status lists.
	maxLastUnpublished = 20
	// Of the rows not published, so many are logged one by one within unpublishedLogWindow; the
	// others are counted.
	maxUnpublishedLines  = 20
	unpublishedLogWindow = 10 * time.Second
)

// newErrorHandler returns what skips or dead-letters rows in the session that begins.
func (c *Connector) newErrorHandler() (*errorHandler, error) {
	list, err := c.positions.RowDecisions()
	if err != nil {
		return nil, err
	}
	c.decided = make(map[position.Row]RowDecision, len(list))
	for _, d := range list {
		c.decided[d.Row] = d
	}
	return &errorHandler{
		name: c.cfg.Name, policy: c.cfg.Errors, decided: maps.Clone(c.decided), check: c.sinks.Check, enc: c.encoder,
		refused: c.refusedDeadLetter, now: time.Now,
	}, nil
}

// rowOf returns the row that an error of a session is about.
func rowOf(err error) (position.Row, bool) {
	var deadLetter *DeadLetterError
	var row *RowError
	var sent *RecordError
	switch {
	case errors.As(err, &deadLetter):
		return deadLetter.Row, true
	case errors.As(err, &row):
		return row.Commit.Row(row.Row), true
	case errors.As(err, &sent) && sent.RowKnown:
		return sent.Commit.Row(sent.Row), true
	}
	return position.Row{}, false
}

// newlyDecided reports whether the store holds a decision about the row of err that
// the last session did not know.
func (c *Connector) newlyDecided(err error) bool {
	row, ok := rowOf(err)
	if !ok {
		return false
	}
	list, e := c.positions.RowDecisions()
	if e != nil {
		return false // the next session says so
	}
	i := slices.IndexFunc(list, func(d RowDecision) bool { return d.Row == row })
	return i >= 0 && list[i] != c.decided[row]
}

// passes reports whether a session that begins at once gets past the row that ended the
// last one: since it has been decided about, or since the policy does now. The error
// is why that could not be stored, or err.
func (c *Connector) passes(ctx context.Context, err error) (bool, error) {
	if c.newlyDecided(err) {
		return true, nil
	}
	var deadLetter *DeadLetterError
	if errors.As(err, &deadLetter) {
		var sent *kafka.Error
		if deadLetter.Bare || !errors.As(deadLetter.Err, &sent) || sent.Code != kafka.RecordTooLarge {
			return false, err
		}
		c.log.Warn("a dead letter is too large for its topic; it goes without value and headers", "topic", deadLetter.Topic,
			"bytes", deadLetter.Size, "row", deadLetter.Row.String())
		c.refusedDeadLetter = deadLetter.Size // smaller than the one before, or it would have been bare
		return true, nil
	}
	var sent *RecordError
	if !errors.As(err, &sent) || !sent.Poison || !c.cfg.Errors.Record.sets() {
		return false, err
	}
	row := sent.Commit.Row(sent.Row)
	if _, known := c.decided[row]; known {
		return false, err // it was not skipped or dead-lettered although it should have been
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.SaveTimeout)
	defer cancel()
	e := c.positions.DecideRow(ctx, RowDecision{
		Row: row, Action: c.cfg.Errors.Record, Cause: code(err), Message: sent.Err.Error(),
		Reason: "the policy for refused records", By: "policy",
	})
	if e != nil {
		return false, fmt.Errorf("storing the decision about outbox row %d of %s, which Kafka refuses: %w", row.N+1,
			place(sent.Commit), e)
	}
	c.log.Warn("a record is refused; its row is skipped or dead-lettered from now on", "code", code(err), "row",
		row.String(), "action", string(c.cfg.Errors.Record), "error", sent.Err)
	return true, nil
}

// noteUnpublished tells of the rows not published in the first done groups of a batch, which
// are durable now, and returns how many of its records are dead letters.
func (t *session) noteUnpublished(b *batch, done int) (deadLetters uint64) {
	now := time.Now()
	for i := range b.unpublished {
		a := &b.unpublished[i]
		if a.group >= done {
			break
		}
		if a.record >= 0 {
			deadLetters++
		}
		t.metrics.rowsUnpublished.WithLabelValues(a.cause, string(a.action)).Inc()
		t.logUnpublished(a, now)
		t.mu.Lock()
		t.status.Unpublished++
		last := t.status.LastUnpublished
		if len(last) >= maxLastUnpublished {
			last = last[len(last)-maxLastUnpublished+1:]
		}
		// A new slice: earlier copies of the status share the old one.
		t.status.LastUnpublished = append(slices.Clone(last), UnpublishedRow{
			Row: a.row, Table: a.table, Action: a.action, Cause: a.cause, Message: a.message, At: now,
		})
		t.mu.Unlock()
	}
	return deadLetters
}

// unpublishedLog bounds the lines about rows not published. The publisher of a session owns it.
type unpublishedLog struct {
	began time.Time
	lines int
	held  int
}

func (t *session) logUnpublished(a *unpublishedRow, now time.Time) {
	l := &t.unpublishedLog
	if now.Sub(l.began) >= unpublishedLogWindow {
		t.flushUnpublished()
		l.began, l.lines = now, 0
	}
	if l.lines++; l.lines > maxUnpublishedLines {
		l.held++
		return
	}
	t.log.Warn("row not published", "row", a.row.String(), "table", a.table, "action", string(a.action), "cause", a.cause,
		"error", a.message, "without_value", a.bare)
}

// flushUnpublished tells how many were not logged by themselves.
func (t *session) flushUnpublished() {
	if t.unpublishedLog.held > 0 {
		t.log.Warn("more rows not published", "rows", t.unpublishedLog.held)
		t.unpublishedLog.held = 0
	}
}
