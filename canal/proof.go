package canal

import (
	"errors"
	"log/slog"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// proofLimit is the size of a transaction in the binlog from which on a new dump
// is cheaper than passing over it.
const proofLimit = 8 << 20

// What ends a dump that was asked for the last published transaction and is not
// to be gone on with.
var (
	errProven = errors.New("the last transaction is the one that was published")
	errAbsent = errors.New("the last transaction is not in the server's binlogs")
)

// proof is the last published transaction, which the server is asked for once
// more: under its number it must have the transaction with the same commit time.
// A server that has lost transactions (a crash of its host without sync_binlog=1,
// a restored backup) gives their numbers to others, and a reader that knows the
// numbers would not get those.
//
// MySQL has the original commit time in microseconds, the same on all servers.
// MariaDB has nothing but the event's time in seconds and the origin's server id,
// which is part of the GTID.
type proof struct {
	gtid      position.GTID
	committed time.Time
	executed  *position.Set // all that the server had when it was asked
	proven    func()        // called when the dump can be gone on with

	// early is set when other transactions come before it: they are dropped, and
	// the server is asked anew.
	early bool
	// beat is the place of the last heartbeat. A second one at the same place means
	// that the server has sent all there is.
	beat uint32
	idle bool
}

// prove plans the comparison, if there is something to compare.
func (p *plan) prove(server *Server, cfg Config, from position.Position) {
	last := from.Last
	switch {
	case last.IsZero() || from.Committed.IsZero() || !p.from.Set.Has(last) || last.Flavor() == position.MySQL &&
		!cfg.counts(last.SID):
		return // a position that was set by hand, or nothing published yet
	case p.lost != nil && p.lost.Has(last):
		cfg.Logger.Warn("the last published transaction can't be compared with the server's: the server lacks it",
			slog.String("gtid", last.String()))
		return
	case cfg.Accepted != nil && last.Flavor() == position.MySQL && !server.Executed.Has(last):
		return // an accepted lost transaction
	case server.Purged != nil && server.Purged.Has(last):
		cfg.Logger.Warn("the last published transaction can't be compared with the server's: its binlog is purged; what "+
			"gtid_executed says must do",
			slog.String("gtid", last.String()))
		return
	}
	p.without = p.from
	p.without.Set = p.from.Set.Clone()
	p.without.Set.Remove(last)
	if p.without.Set.Has(last) { // MariaDB: the domain stands elsewhere
		return
	}
	p.proof = &proof{gtid: last, committed: from.Committed, executed: server.Executed}
}

// passing says what becomes of the group at hand.
type passing uint8

const (
	handOn   passing = iota
	passOver         // its rows are not wanted, its commit position is
	drop             // neither: it is known, or will come again
)

// prove looks at the beginning of a group while the last transaction is awaited.
func (w *eventHandler) prove(h header, e gtidEvent) error {
	p := w.proof
	w.group.pass = drop
	if e.gtid != p.gtid {
		if !p.executed.Has(e.gtid) {
			return errAbsent // younger than the question: all that is older has come
		}
		p.early = true
		return nil
	}
	switch {
	case e.committed.Equal(p.committed), e.committed.IsZero() && h.time().Equal(p.committed):
		return w.proven(e.length > proofLimit)
	case !e.committed.IsZero() && p.committed.Nanosecond() != 0:
		return w.diverged(e.committed)
	}
	return nil // its last event has the time that counts on servers that have no other
}

// proveEnd looks at the end of the group with the awaited transaction.
func (w *eventHandler) proveEnd(h header) error {
	if at := h.time(); !at.Equal(w.proof.committed) {
		return w.diverged(at)
	}
	return w.proven(false)
}

func (w *eventHandler) proven(large bool) error {
	p := w.proof
	w.proof = nil
	if p.early || large {
		return errProven
	}
	p.proven()
	return nil
}

// provenIdle notices that the awaited transaction can't come any more.
func (w *eventHandler) provenIdle(h header) error {
	p := w.proof
	if p == nil {
		return nil
	}
	if p.idle && p.beat == h.pos {
		return errAbsent
	}
	p.beat, p.idle = h.pos, true
	return nil
}

func (w *eventHandler) diverged(at time.Time) error {
	p := w.proof
	w.proof = nil
	return w.fail(Diverged, diverged(p.gtid, p.committed, at), "")
}

func diverged(g position.GTID, published, found time.Time) *Error {
	const layout = "2006-01-02 15:04:05.999999 MST"
	e := newError(Diverged, nil, "the server has another transaction under number %s: the one that was published was "+
		"committed at %s, this one at %s. "+
		"The server has lost transactions and given their numbers to others, which would be passed over unread; compare "+
		"its rows with what was published, then set a position before the lost ones",
		g, published.UTC().Format(layout), found.UTC().Format(layout))
	e.GTID, e.Difference = g, g.String()
	return e
}

// resumed compares a transaction of which the first rows are published.
func (w *eventHandler) resumed(e gtidEvent) error {
	for i := range w.partials {
		p := &w.partials[i]
		if e.gtid != p.GTID || e.gtid.IsZero() || p.Committed.Nanosecond() == 0 || e.committed.IsZero() ||
			e.committed.Equal(p.Committed) {
			continue
		}
		return w.fail(Diverged, diverged(e.gtid, p.Committed, e.committed), "")
	}
	return nil
}

// identify compares when the file was begun with what the position says of it. A position
// that does not say it gets it: the one where the stream begins, and one that goes on to
// the next file.
func (w *eventHandler) identify(h header) error {
	before := w.created
	switch {
	case w.byGTID:
		return nil
	case before == 0:
		w.created = h.seconds
	case before != h.seconds && h.seconds != 0:
		return w.fail(Behind, anotherFile(w.file, before, h.seconds), "")
	}
	if before != 0 || !w.turns || w.skipTo > 0 {
		return nil
	}
	return w.emit(txn.Transaction{Commit: position.Commit{File: w.file, Pos: w.pos, Created: w.created}, Final: true})
}

func anotherFile(file string, published, found uint32) *Error {
	at := func(seconds uint32) string {
		return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02 15:04:05 MST")
	}
	e := newError(Behind, nil, "the server's %s is another file of that name: the one that was published from was begun "+
		"at %s, this one at %s. "+
		"The server was reset or restored, and what it wrote since then is not published; compare its rows with what was "+
		"published, then set a position in one of its binlogs (offset set --file)",
		file, at(published), at(found))
	e.Difference = file
	return e
}
