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

// SetAsideRow is a row that was set aside, for the status.
type SetAsideRow struct {
	position.Row
	Table          string
	Action         Action
	Cause, Message string
	At             time.Time
}

const (
	// maxLastAside is how many rows the status lists.
	maxLastAside = 20
	// Of the rows set aside, so many are logged one by one within asideWindow; the
	// others are counted.
	maxAsideLines = 20
	asideWindow   = 10 * time.Second
)

// newSetter returns what sets rows aside in the term that begins.
func (c *Connector) newSetter() (*setter, error) {
	list, err := c.positions.SetAsides()
	if err != nil {
		return nil, err
	}
	c.decided = make(map[position.Row]SetAside, len(list))
	for _, d := range list {
		c.decided[d.Row] = d
	}
	return &setter{
		name: c.cfg.Name, policy: c.cfg.Errors, decided: maps.Clone(c.decided), check: c.sinks.Check, enc: c.encoder,
		refused: c.refusedLetter, now: time.Now,
	}, nil
}

// rowOf returns the row that an error of a term is about.
func rowOf(err error) (position.Row, bool) {
	var letter *DeadLetterError
	var row *RowError
	var sent *RecordError
	switch {
	case errors.As(err, &letter):
		return letter.Row, true
	case errors.As(err, &row):
		return row.Mark.Row(row.Row), true
	case errors.As(err, &sent) && sent.RowKnown:
		return sent.Mark.Row(sent.Row), true
	}
	return position.Row{}, false
}

// newlyDecided reports whether the store holds a decision about the row of err that
// the last term did not know.
func (c *Connector) newlyDecided(err error) bool {
	row, ok := rowOf(err)
	if !ok {
		return false
	}
	list, e := c.positions.SetAsides()
	if e != nil {
		return false // the next term says so
	}
	i := slices.IndexFunc(list, func(d SetAside) bool { return d.Row == row })
	return i >= 0 && list[i] != c.decided[row]
}

// passes reports whether a term that begins at once gets past the row that ended the
// last one: since it has been decided about, or since the policy does now. The error
// is why that could not be stored, or err.
func (c *Connector) passes(ctx context.Context, err error) (bool, error) {
	if c.newlyDecided(err) {
		return true, nil
	}
	var letter *DeadLetterError
	if errors.As(err, &letter) {
		var sent *kafka.Error
		if letter.Bare || !errors.As(letter.Err, &sent) || sent.Code != kafka.RecordTooLarge {
			return false, err
		}
		c.log.Warn("a dead letter is too large for its topic; it goes without value and headers", "topic", letter.Topic, "bytes", letter.Size, "row", letter.Row.String())
		c.refusedLetter = letter.Size // smaller than the one before, or it would have been bare
		return true, nil
	}
	var sent *RecordError
	if !errors.As(err, &sent) || !sent.Poison || !c.cfg.Errors.Record.sets() {
		return false, err
	}
	row := sent.Mark.Row(sent.Row)
	if _, known := c.decided[row]; known {
		return false, err // it was not set aside although it should have been
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.SaveTimeout)
	defer cancel()
	e := c.positions.SetAside(ctx, SetAside{
		Row: row, Action: c.cfg.Errors.Record, Cause: code(err), Message: sent.Err.Error(), Reason: "the policy for refused records", By: "policy",
	})
	if e != nil {
		return false, fmt.Errorf("storing the decision about outbox row %d of %s, which Kafka refuses: %w", row.N+1, place(sent.Mark), e)
	}
	c.log.Warn("a record is refused; its row is set aside from now on", "code", code(err), "row", row.String(), "action", string(c.cfg.Errors.Record), "error", sent.Err)
	return true, nil
}

// noteAsides tells of the rows set aside in the first done groups of a batch, which
// are durable now, and returns how many of its records are dead letters.
func (t *term) noteAsides(b *batch, done int) (letters uint64) {
	now := time.Now()
	for i := range b.asides {
		a := &b.asides[i]
		if a.group >= done {
			break
		}
		if a.record >= 0 {
			letters++
		}
		t.metrics.rowsSetAside.WithLabelValues(a.cause, string(a.action)).Inc()
		t.logAside(a, now)
		t.mu.Lock()
		t.status.SetAside++
		last := t.status.LastSetAside
		if len(last) >= maxLastAside {
			last = last[len(last)-maxLastAside+1:]
		}
		// A new slice: earlier copies of the status share the old one.
		t.status.LastSetAside = append(slices.Clone(last), SetAsideRow{
			Row: a.row, Table: a.table, Action: a.action, Cause: a.cause, Message: a.message, At: now,
		})
		t.mu.Unlock()
	}
	return letters
}

// asideLog bounds the lines about rows set aside. The publisher of a term owns it.
type asideLog struct {
	began time.Time
	lines int
	held  int
}

func (t *term) logAside(a *aside, now time.Time) {
	l := &t.asideLog
	if now.Sub(l.began) >= asideWindow {
		t.flushAsides()
		l.began, l.lines = now, 0
	}
	if l.lines++; l.lines > maxAsideLines {
		l.held++
		return
	}
	t.log.Warn("row set aside", "row", a.row.String(), "table", a.table, "action", string(a.action), "cause", a.cause, "error", a.message, "without_value", a.bare)
}

// flushAsides tells how many were not logged by themselves.
func (t *term) flushAsides() {
	if t.asideLog.held > 0 {
		t.log.Warn("more rows set aside", "rows", t.asideLog.held)
		t.asideLog.held = 0
	}
}
