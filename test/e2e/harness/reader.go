package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// maxFetch lets a single record of 64 MiB through.
const maxFetch = 64 << 20

func readerOptions(brokers []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(maxFetch), kgo.FetchMaxPartitionBytes(maxFetch), kgo.BrokerMaxReadBytes(4 * maxFetch),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(2 * time.Second),
		kgo.UnknownTopicRetries(-1),
	}
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
	client, err := kgo.NewClient(append(readerOptions(brokers), kgo.KeepControlRecords())...)
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := endOffsets(ctx, client, topic)
	if err != nil {
		return fmt.Errorf("asking for the end of %s: %w", topic, err)
	}
	from := make(map[int32]kgo.Offset)
	for p, end := range ends {
		if end > 0 {
			from[p] = kgo.NewOffset().At(0)
		}
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	for left := len(from); left > 0; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset >= ends[r.Partition] {
				return
			}
			if r.Offset == ends[r.Partition]-1 {
				left--
			}
			if !r.Attrs.IsControl() {
				each(r)
			}
		})
	}
	return nil
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

// endOffsets returns the end of each partition, and checks that no transaction is
// open there.
func endOffsets(ctx context.Context, client *kgo.Client, topic string) (map[int32]int64, error) {
	partitions, err := Partitions(ctx, client, topic)
	if err != nil {
		return nil, err
	}
	const committed, uncommitted = 1, 0
	stable, err := listOffsets(ctx, client, topic, partitions, committed)
	if err != nil {
		return nil, err
	}
	high, err := listOffsets(ctx, client, topic, partitions, uncommitted)
	if err != nil {
		return nil, err
	}
	for p := range high {
		if stable[p] != high[p] {
			return nil, fmt.Errorf("partition %d: a transaction is open at offset %d, the end is %d", p, stable[p], high[p])
		}
	}
	return high, nil
}

// Partitions returns how many partitions a topic has.
func Partitions(ctx context.Context, client *kgo.Client, topic string) (int32, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	req.AllowAutoTopicCreation = false
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return int32(len(resp.Topics[0].Partitions)), nil
}

func listOffsets(ctx context.Context, client *kgo.Client, topic string, partitions int32, isolation int8) (map[int32]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = isolation
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for p := range partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p, -1
		t.Partitions = append(t.Partitions, rp)
	}
	req.Topics = append(req.Topics, t)
	ends := make(map[int32]int64)
	var errs []error
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			errs = append(errs, shard.Err)
			continue
		}
		for _, rt := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, rp := range rt.Partitions {
				errs = append(errs, kerr.ErrorForCode(rp.ErrorCode))
				ends[rp.Partition] = rp.Offset
			}
		}
	}
	return ends, errors.Join(errs...)
}

// Tail reads a topic while it is written and counts the different rows in it.
type Tail struct {
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	rows    map[history.Row]struct{}
	records int
	changed time.Time
}

// StartTail begins to read; the topic need not be there yet. Stop it.
func StartTail(ctx context.Context, brokers []string, topic string) (*Tail, error) {
	client, err := kgo.NewClient(append(readerOptions(brokers), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &Tail{client: client, cancel: cancel, done: make(chan struct{}), rows: make(map[history.Row]struct{}), changed: time.Now()}
	go t.run(ctx)
	return t, nil
}

func (t *Tail) run(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		fetches := t.client.PollFetches(ctx) // errors are a broker that is away
		t.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			t.records++
			if s := see(r); s.Fault == "" {
				t.rows[s.Row] = struct{}{}
				t.changed = time.Now()
			}
		})
		t.mu.Unlock()
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
func (t *Tail) Stop() {
	t.cancel()
	<-t.done
	t.client.Close()
}
