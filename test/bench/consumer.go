package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// consumer reads one topic as a read_committed consumer from its start, notes when
// rows arrive, and counts each.
type consumer struct {
	follower *kafkatest.Follower
	each     func(n int, at time.Time) // called for every record; may be nil

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever records came
	seen     []bool        // by number; 0 counts for nothing
	distinct int
	repeated int
	strange  int // records that hold no number in range
	notes    []note
}

// note is when so many distinct rows had arrived.
type note struct {
	rows int
	at   time.Time
}

// consume begins to read rows numbered 1 to rows.
func consume(ctx context.Context, broker, topic string, rows int, each func(int, time.Time)) (*consumer, error) {
	c := &consumer{each: each, seen: make([]bool, rows+1), changed: make(chan struct{})}
	reader := kafkatest.Reader{Brokers: []string{broker}, Opts: []kgo.Opt{
		kgo.FetchMaxWait(500 * time.Millisecond), kgo.FetchMinBytes(1), kgo.FetchMaxPartitionBytes(8 << 20),
		kgo.FetchMaxBytes(32 << 20),
	}}
	var err error
	c.follower, err = reader.Follow(ctx, c.add, topic)
	return c, err
}

func (c *consumer) add(records []kafkatest.Record, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.distinct
	for _, r := range records {
		c.count(r.Value, now)
	}
	if c.distinct > before {
		c.notes = append(c.notes, note{c.distinct, now})
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *consumer) count(value []byte, now time.Time) {
	n, ok := number(value)
	if !ok || n >= len(c.seen) {
		c.strange++
		return
	}
	if c.each != nil {
		c.each(n, now)
	}
	switch {
	case n == 0:
	case c.seen[n]:
		c.repeated++
	default:
		c.seen[n] = true
		c.distinct++
	}
}

// number reads the number that a payload begins with. Debezium prints JSON without
// the blank that MySQL puts after a colon.
func number(value []byte) (n int, ok bool) {
	const head = `{"n":`
	if len(value) <= len(head) || string(value[:len(head)]) != head {
		return 0, false
	}
	for i, c := range value[len(head):] {
		switch {
		case c == ' ' && i == 0:
		case c >= '0' && c <= '9':
			n, ok = n*10+int(c-'0'), true
		default:
			return n, ok
		}
	}
	return n, false
}

// stall is how long nothing may arrive before a run is given up.
const stall = 60 * time.Second

// wait blocks until so many distinct rows have arrived.
func (c *consumer) wait(ctx context.Context, rows int) error {
	timer := time.NewTimer(stall)
	defer timer.Stop()
	for {
		c.mu.Lock()
		have, changed := c.distinct, c.changed
		c.mu.Unlock()
		if have >= rows {
			return nil
		}
		select {
		case <-changed:
			c.mu.Lock()
			moved := c.distinct > have
			c.mu.Unlock()
			if moved {
				timer.Reset(stall)
			}
		case <-timer.C:
			return fmt.Errorf("%d of %d rows have arrived, and none for %v", have, rows, stall)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// after is the time when at least so many rows had arrived.
func (c *consumer) after(rows int) time.Time { return c.noteOf(rows).at }

// noteOf is the first note of at least so many rows; the zero note if there is none.
func (c *consumer) noteOf(rows int) note {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.notes {
		if n.rows >= rows {
			return n
		}
	}
	return note{}
}

// settle is how long a run is watched for repetitions after its last row.
const settle = 300 * time.Millisecond

// check fails unless every row has arrived exactly once. It ends the reading.
func (c *consumer) check(ctx context.Context) error {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	c.stop()
	if missing := len(c.seen) - 1 - c.distinct; missing != 0 || c.repeated != 0 || c.strange != 0 {
		return fmt.Errorf("the run does not count: of %d rows %d are missing, %d came twice, %d records are no rows",
			len(c.seen)-1, missing, c.repeated, c.strange)
	}
	return nil
}

func (c *consumer) stop() { c.follower.Stop() }
