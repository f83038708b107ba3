package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/judge"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// watch is a read_committed consumer that goes past all proxies and notes what it
// sees, and when.
type watch struct {
	follower *kafkatest.Follower

	mu    sync.Mutex
	seen  [][]judge.Entry
	count int
	last  time.Time // when the newest record came
	// newest is that record's number in its transaction.
	newest uint32
	// arrivals are the times at which fetches with records came.
	arrivals []time.Time
}

func startWatch(ctx context.Context, brokers []string) (*watch, error) {
	w := &watch{seen: make([][]judge.Entry, partitions)}
	var err error
	w.follower, err = kafkatest.Reader{Brokers: brokers}.Follow(ctx, w.add, topic)
	return w, err
}

func (w *watch) add(records []kafkatest.Record, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		if int(r.Partition) < len(w.seen) {
			e := entry(r)
			w.seen[r.Partition] = append(w.seen[r.Partition], e)
			w.newest = e.Row.Number
			w.count++
		}
	}
	w.last = at
	w.arrivals = append(w.arrivals, at)
}

// entry takes from a record what the judge needs.
func entry(r *kgo.Record) judge.Entry {
	e := judge.Entry{Offset: r.Offset, Producer: r.ProducerID, Epoch: r.ProducerEpoch, Time: r.Timestamp}
	if r.Attrs.IsControl() {
		e.Control = true
		e.Commit = len(r.Key) >= 4 && r.Key[3] == 1
		return e
	}
	if p, err := history.ParsePayload(r.Value); err == nil {
		e.Row = p.Row
	}
	return e
}

func (w *watch) records() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// arrivedAfter returns when the first records came after t; zero if none did.
func (w *watch) arrivedAfter(t time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.arrivals) - 1; i >= 0; i-- {
		if !w.arrivals[i].After(t) {
			if i+1 < len(w.arrivals) {
				return w.arrivals[i+1]
			}
			return time.Time{}
		}
	}
	if len(w.arrivals) > 0 {
		return w.arrivals[0]
	}
	return time.Time{}
}

// inLarge reports whether the newest record is neither of the first nor of the last
// part of a large transaction.
func (w *watch) inLarge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest >= partRows/2 && w.newest < largeRows-partRows
}

func (w *watch) stop() [][]judge.Entry {
	w.follower.Stop()
	return w.seen
}
