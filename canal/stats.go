package canal

import (
	"sync/atomic"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// stats are the numbers of one stream. The event handler writes, anybody reads.
type stats struct {
	inserts      atomic.Uint64 // rows
	updates      atomic.Uint64 // events
	deletes      atomic.Uint64 // events
	transactions atomic.Uint64
	rolledBack   atomic.Uint64
	filtered     atomic.Uint64 // transactions of origins that do not count
	unknown      atomic.Uint64 // origins not seen before
	unlogged     atomic.Uint64 // statements that changed outbox tables without row events
	first        atomic.Int64  // when the stream was ready, Unix nanoseconds
	lastEvent    atomic.Int64  // source's clock, seconds
	lag          atomic.Int64  // nanoseconds between the last commit there and its arrival here
	arrived      func() int64  // when bytes last came, Unix nanoseconds; nil for never
	// sent is up to where the server has said that it has sent everything; nil
	// before it did. Between those signs the last transaction's commit position is newer.
	sent atomic.Pointer[place]
}

// place is a point in the server's binlogs.
type place struct {
	file string
	pos  uint64
}

func (s *stats) committed(h header, m position.Commit, updates, deletes uint64) {
	s.transactions.Add(1)
	s.lastEvent.Store(int64(h.seconds))
	if s.arrived != nil && !m.Committed.IsZero() {
		s.lag.Store(max(0, s.arrived()-m.Committed.UnixNano()))
	}
	if updates > 0 {
		s.updates.Add(updates)
	}
	if deletes > 0 {
		s.deletes.Add(deletes)
	}
}
