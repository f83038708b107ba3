package connector

import (
	"context"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// StatusPoller is what Sources may implement to say how far the source itself has come.
// It is called by a goroutine of its own, also while no stream is open or the
// connector is paused or failed.
type StatusPoller interface {
	// SourceStatus asks the host with this address (canal.Status.Address), or with an empty
	// one the host that a stream would be opened at.
	PollStatus(ctx context.Context, address string) (*canal.SourceStatus, error)
}

// Backlog is what the source has and the connector has not yet, and how long the
// source keeps it; as JSON it is what the API tells of it. What can't be known is nil.
type Backlog struct {
	// At is when the source was asked last.
	At time.Time `json:"at"`
	// Transactions that the source has committed and the connector has not read; nil
	// without GTIDs.
	Transactions *uint64 `json:"transactions,omitempty"`
	// Bytes of binlog after the place that was read, and how much that can still be
	// read lies before what the position needs. Both are nil when the source does not
	// list its binlogs, or the place is not known in them.
	Bytes         *uint64 `json:"bytes,omitempty"`
	HeadroomBytes *uint64 `json:"headroom_bytes,omitempty"`
	// HeadroomSeconds is the least time until the source may purge what the position
	// needs, 0 when it has; nil when the source keeps binlogs for ever, or does not say
	// for how long.
	HeadroomSeconds *float64 `json:"headroom_seconds,omitempty"`
	// RetentionSeconds is how long the source keeps a binlog after its last event; nil
	// when it keeps them for ever or does not say.
	RetentionSeconds *float64 `json:"retention_seconds,omitempty"`
	// Old says that At is so long ago, and nothing heard since, that what the source has
	// now is not known: then Transactions and Bytes are nil, and the lag is the age of
	// the last sign of life.
	Old bool `json:"-"`
}

// counted reports whether anything is known of what was not read.
func (b *Backlog) counted() bool { return b.Transactions != nil || b.Bytes != nil }

// reach is up to where something has come: what a session has read, or what is durable.
type reach struct {
	set       *position.Set // nil without GTIDs
	file      string        // empty when unknown
	pos       uint64
	committed time.Time // of the last transaction
}

// polls holds the last answer, and what follows from all so far. It may be used
// from any goroutine.
type polls struct {
	mu   sync.Mutex
	last *canal.SourceStatus
	// The newest moments of which it is certain that all that was committed until then
	// has been read, that it is durable, and that what was durable then needs no
	// binlog that was closed before.
	read, durable, safe time.Time
}

// took notes an answer.
func (s *polls) took(v *canal.SourceStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = v
}

// forget is for a node that no longer runs the connector.
func (s *polls) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.read, s.durable, s.safe = nil, time.Time{}, time.Time{}, time.Time{}
}

// comparison is what is compared with an answer.
type comparison struct {
	durable reach
	// read is what the open stream has read; nil without one.
	read *reach
	// server is where their files and offsets are from.
	server string
	// waiting is the age of the oldest transaction that was read and is not durable,
	// arrival how old the last one was when it came.
	waiting, arrival time.Duration
	now              time.Time
	// heard is when the open stream last got something; after more than silent without
	// that and an answer nobody knows what the source has. Zero means never.
	heard  time.Time
	silent time.Duration
}

// backlog compares the last answer with what was read and what is durable. It
// returns nil before the first answer.
//
// The lag is the age of the oldest transaction that is not durable, or as close
// above it as can be known: one that was not read was committed after the last one
// that was, and after the newest moment until which everything was.
func (s *polls) backlog(c comparison) (_ *Backlog, lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.last
	if v == nil {
		return nil, max(c.waiting, c.arrival)
	}
	b := &Backlog{At: v.At}
	if v.Retention > 0 {
		b.RetentionSeconds = new(v.Retention.Seconds())
	}
	placed := !v.Several || v.Server != "" && v.Server == c.server
	if c.durable.has(v, placed) {
		s.durable = later(s.durable, v.At)
	}
	at, until := c.durable, s.durable
	if c.read != nil {
		at = *c.read
		if at.has(v, placed) {
			s.read = later(s.read, v.At)
		}
		until = s.read
	}
	if v.Executed != nil && at.set != nil {
		b.Transactions = new(v.Executed.Beyond(at.set))
	}
	if placed {
		if _, after, ok := v.BytesBefore(at.file, at.pos); ok {
			b.Bytes = &after
		}
	}
	if b.counted() && !at.has(v, placed) {
		lag = c.now.Sub(later(until, at.committed))
	}
	s.headroom(b, v, c, placed)
	if age := c.now.Sub(later(v.At, c.heard)); c.silent > 0 && age > c.silent {
		if b.counted() {
			lag = max(lag, age)
		}
		b.Old, b.Transactions, b.Bytes, b.HeadroomBytes = true, nil, nil, nil
	}
	return b, max(lag, c.waiting, 0)
}

// has reports whether everything that the source had is in r.
func (r reach) has(v *canal.SourceStatus, placed bool) bool {
	if v.Executed != nil && r.set != nil {
		return r.set.Contains(v.Executed)
	}
	_, after, ok := v.BytesBefore(r.file, r.pos)
	return placed && ok && after == 0
}

// headroom: a binlog is purged when its last event is older than the retention. The
// file with the first transaction that is needed ends after that one was committed;
// the newest file is never purged.
func (s *polls) headroom(b *Backlog, v *canal.SourceStatus, c comparison, placed bool) {
	var known, gone bool
	var before uint64
	if placed {
		before, _, known = v.BytesBefore(c.durable.file, c.durable.pos)
	}
	if known && b.Bytes != nil {
		b.HeadroomBytes = &before
	} else {
		b.Bytes = nil
	}
	if known && v.Binlogs[len(v.Binlogs)-1].Name == c.durable.file {
		s.safe = later(s.safe, v.At)
	}
	switch {
	case v.Purged != nil && c.durable.set != nil:
		gone = !c.durable.set.Contains(v.Purged)
	case c.durable.set == nil && placed && c.durable.file != "":
		gone = !known && len(v.Binlogs) > 0
	}
	if gone {
		b.HeadroomSeconds = new(0.0)
		return
	}
	since := later(later(s.safe, s.durable), c.durable.committed)
	if v.Retention > 0 && !since.IsZero() {
		b.HeadroomSeconds = new(max(0, v.Retention-c.now.Sub(since)).Seconds())
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// readSet is the set of what a session has read: where it began, and every whole
// transaction that came since. The reader adds, anybody asks.
type readSet struct {
	mu        sync.Mutex
	at        position.Position
	committed time.Time
}

func newReadSet(from position.Position) *readSet {
	return &readSet{at: from, committed: from.Committed}
}

func (r *readSet) add(txs []txn.Transaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var commits []position.Commit
	for i := range txs {
		m := txs[i].Commit
		if !m.Committed.IsZero() {
			r.committed = m.Committed
		}
		if txs[i].Final {
			commits = position.AppendCommit(commits, m)
		}
	}
	r.at.Advance(commits...)
}

func (r *readSet) reach() *reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &reach{set: r.at.Set, committed: r.committed}
}

// poll asks the source again and again until ctx ends.
func (c *Connector) poll(ctx context.Context) {
	s, ok := c.sources.(StatusPoller)
	if !ok {
		return
	}
	tick := time.NewTicker(c.cfg.StatusPollEvery)
	defer tick.Stop()
	for {
		v, err := s.PollStatus(ctx, c.address())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // the session says so, too, and that loudly
			c.log.Debug("the source does not say how far it is", "error", err)
		default:
			c.Status() // what the answer before this one proved by now
			c.polls.took(v)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// address is the host that the open stream reads from; empty when none is open.
func (c *Connector) address() string {
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	if stream == nil {
		return ""
	}
	return stream.source.Status().Address
}

// compare fills in what the status poll tells of s.
func (c *Connector) compare(s *Status, stream *streamState) {
	if s.State == Unassigned {
		return
	}
	p := &s.Position
	it := comparison{
		durable: reach{set: p.Set, file: p.File, pos: p.Pos, committed: p.Committed}, server: p.Server, now: time.Now(),
		silent: 3 * c.cfg.StatusPollEvery / 2,
	}
	if stream == nil {
		s.Backlog, s.Lag = c.polls.backlog(it)
		s.LagKnown = s.Backlog != nil && (s.Backlog.counted() || s.Backlog.Old)
		return
	}
	it.arrival, it.heard = s.Source.Lag, s.Source.Heard
	if oldest := stream.pipe.oldest(); !oldest.IsZero() {
		it.waiting = it.now.Sub(oldest)
	}
	if s.Source.Waiting > 0 {
		it.waiting = max(it.waiting, s.Source.Lag)
	}
	it.read = stream.read.reach()
	it.read.file, it.read.pos = s.Source.File, s.Source.Pos
	if it.read.file == "" {
		it.read.file, it.read.pos = p.File, p.Pos
	}
	s.Backlog, s.Lag = c.polls.backlog(it)
	s.LagKnown = true
}
