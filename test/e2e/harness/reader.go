package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// Reader reads as a read_committed consumer; a single record of 64 MiB gets through.
func Reader(brokers []string) kafkatest.Reader {
	const maxFetch = 64 << 20
	return kafkatest.Reader{Brokers: brokers, Opts: []kgo.Opt{
		kgo.FetchMaxBytes(maxFetch), kgo.FetchMaxPartitionBytes(maxFetch), kgo.BrokerMaxReadBytes(4 * maxFetch),
	}}
}

// ReadAll reads a topic, as a read_committed consumer, from its start to what is
// its end when it begins. The records are in offset order within a partition. It
// is an error when a transaction is left open, since records after it can't be
// seen.
func ReadAll(ctx context.Context, brokers []string, topic string) ([]history.Seen, error) {
	var seen []history.Seen
	err := readAll(ctx, brokers, topic, func(r *kgo.Record) {
		seen = append(seen, see(r))
	})
	return seen, err
}

// ReadRecords is ReadAll for records that are none of a shop's.
func ReadRecords(ctx context.Context, brokers []string, topic string) ([]history.Record, error) {
	var out []history.Record
	err := readAll(ctx, brokers, topic, func(r *kgo.Record) { out = append(out, whole(r)) })
	return out, err
}

func readAll(ctx context.Context, brokers []string, topic string, each func(*kgo.Record)) error {
	reader := Reader(brokers)
	ends, err := reader.Ends(ctx, kafkatest.Only(topic))
	if err != nil {
		return fmt.Errorf("asking for the end of %s: %w", topic, err)
	}
	if len(ends) == 0 {
		return fmt.Errorf("topic %s is not there", topic)
	}
	for _, e := range ends {
		if e.Stable != e.High {
			return fmt.Errorf("partition %d of %s: a transaction is open at offset %d, the end is %d", e.Partition, topic,
				e.Stable, e.High)
		}
	}
	return reader.Each(ctx, ends, func(r *kgo.Record) error {
		if !r.Attrs.IsControl() {
			each(r)
		}
		return nil
	})
}

func see(r *kgo.Record) history.Seen {
	rec := whole(r)
	return history.See(&rec)
}

func whole(r *kgo.Record) history.Record {
	rec := history.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
		Headers: make([]history.Header, len(r.Headers)), Timestamp: r.Timestamp.UnixMilli(),
	}
	for i, h := range r.Headers {
		rec.Headers[i] = history.Header{Key: h.Key, Value: h.Value}
	}
	return rec
}

// Tail reads a topic while it is written and counts the different rows in it.
type Tail struct {
	follower *kafkatest.Follower

	mu      sync.Mutex
	rows    map[history.Row]struct{}
	records int
	changed time.Time
}

// StartTail begins to read; the topic need not be there yet. Stop it.
func StartTail(ctx context.Context, brokers []string, topic string) (*Tail, error) {
	t := &Tail{rows: make(map[history.Row]struct{}), changed: time.Now()}
	var err error
	t.follower, err = Reader(brokers).Follow(ctx, t.add, topic)
	return t, err
}

func (t *Tail) add(records []kafkatest.Record, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		t.records++
		if s := see(r); s.Fault == "" {
			t.rows[s.Row] = struct{}{}
			t.changed = at
		}
	}
}

// Rows returns the number of different rows, and of records, read so far.
func (t *Tail) Rows() (rows, records int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows), t.records
}

// errStalled is returned by Wait when nothing new arrives any more.
var errStalled = errors.New("nothing new arrives")

// Wait waits until rows different rows were read. It gives up when none came for
// the time stall: what is missing then is for the validators to say.
func (t *Tail) Wait(ctx context.Context, rows int, stall time.Duration) error {
	t.mu.Lock()
	t.changed = time.Now()
	t.mu.Unlock()
	return poll(ctx, nil, func() (bool, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case len(t.rows) >= rows:
			return true, nil
		case time.Since(t.changed) > stall:
			return false, fmt.Errorf("%w: %d of %d rows after %v of silence", errStalled, len(t.rows), rows, stall)
		}
		return false, nil
	})
}

// Stop ends the reading.
func (t *Tail) Stop() { t.follower.Stop() }
