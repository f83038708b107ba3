package kafkatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Record is one record as a consumer sees it.
type Record = *kgo.Record

// Reader reads whole topics with franz-go, a client that shares no code with the
// one under test. It serves kfake and real brokers.
type Reader struct {
	Brokers []string
	Opts    []kgo.Opt // TLS, SASL, sizes of fetches
}

// End says where a partition begins and ends.
type End struct {
	Topic       string
	Partition   int32
	Start, High int64
	// Stable is below High while a transaction is open that began there.
	Stable int64
}

func (r Reader) client(opts ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(r.Brokers...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(50 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(2 * time.Second), kgo.UnknownTopicRetries(-1),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}, opts, r.Opts)...)
	if err != nil {
		return nil, fmt.Errorf("making a reader: %w", err)
	}
	return client, nil
}

// Read returns all records of a topic up to its end (the high watermark) at the
// time of the call, sorted by partition and offset. committed is read_committed;
// it then waits until the transactions before that end are decided, since a commit
// is answered before its markers are written.
func (r Reader) Read(ctx context.Context, topic string, committed bool) ([]Record, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	level := kgo.ReadUncommitted()
	if committed {
		level = kgo.ReadCommitted()
	}
	ends, err := r.Ends(ctx, Only(topic))
	if err != nil {
		return nil, err
	}
	if len(ends) == 0 {
		return nil, fmt.Errorf("topic %s is not there", topic)
	}
	for i := range ends {
		ends[i].Stable = ends[i].High
	}
	var recs []Record
	err = r.each(ctx, level, ends, func(rec Record) error {
		if !rec.Attrs.IsControl() {
			recs = append(recs, rec)
		}
		return nil
	})
	slices.SortFunc(recs, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return recs, err
}

// Each hands on all records from the start of each partition to its last stable
// offset in ends, as a read_committed consumer gets them, markers of transactions
// included. They are in the order of a partition's offsets. It ends at the first error.
func (r Reader) Each(ctx context.Context, ends []End, each func(Record) error) error {
	return r.each(ctx, kgo.ReadCommitted(), ends, each)
}

func (r Reader) each(ctx context.Context, level kgo.IsolationLevel, ends []End, each func(Record) error) error {
	client, err := r.client(kgo.FetchIsolationLevel(level), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	type partition struct {
		topic  string
		number int32
	}
	from, left := map[string]map[int32]kgo.Offset{}, map[partition]int64{}
	for _, e := range ends {
		if e.Stable <= e.Start {
			continue
		}
		if from[e.Topic] == nil {
			from[e.Topic] = map[int32]kgo.Offset{}
		}
		from[e.Topic][e.Partition], left[partition{e.Topic, e.Partition}] = kgo.NewOffset().At(e.Start), e.Stable
	}
	client.AddConsumePartitions(from)
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading %v: %w", left, err)
		}
		for _, rec := range fetches.Records() {
			p := partition{rec.Topic, rec.Partition}
			end, ok := left[p]
			if !ok || rec.Offset >= end {
				delete(left, p)
				continue
			}
			if err := each(rec); err != nil {
				return err
			}
			if rec.Offset == end-1 {
				delete(left, p)
			}
		}
	}
	return nil
}

// Only is true for one topic.
func Only(topic string) func(string) bool {
	return func(t string) bool { return t == topic }
}

// Ends returns the ends of all partitions of the topics for which want is true, in
// the order of topic and partition.
func (r Reader) Ends(ctx context.Context, want func(topic string) bool) ([]End, error) {
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("asking for the topics: %w", err)
	}
	var ends []End
	for _, t := range meta.Topics {
		if t.Topic == nil || !want(*t.Topic) {
			continue
		}
		for _, p := range t.Partitions {
			ends = append(ends, End{Topic: *t.Topic, Partition: p.Partition})
		}
	}
	slices.SortFunc(ends, func(a, b End) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	const latest, earliest = -1, -2
	const uncommitted, committed = 0, 1
	err = errors.Join(
		listOffsets(ctx, client, ends, uncommitted, earliest, func(e *End) *int64 { return &e.Start }),
		listOffsets(ctx, client, ends, committed, latest, func(e *End) *int64 { return &e.Stable }),
		listOffsets(ctx, client, ends, uncommitted, latest, func(e *End) *int64 { return &e.High }))
	return ends, err
}

func listOffsets(ctx context.Context, client *kgo.Client, ends []End, isolation int8, at int64,
	into func(*End) *int64) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = isolation
	for _, e := range ends {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = e.Partition, at
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != e.Topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = e.Topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	if len(ends) == 0 {
		return nil
	}
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return fmt.Errorf("asking for offsets: %w", shard.Err)
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return fmt.Errorf("asking for the offsets of %s, partition %d: %w", t.Topic, p.Partition, err)
				}
				i, ok := slices.BinarySearchFunc(ends, End{Topic: t.Topic, Partition: p.Partition}, func(a, b End) int {
					return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
				})
				if ok {
					*into(&ends[i]) = p.Offset
				}
			}
		}
	}
	return nil
}

// Follower reads topics while they are written.
type Follower struct {
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}
}

// Follow begins to read topics from their starts as a read_committed consumer; they
// need not be there yet, and brokers may be away. each gets what a fetch brought and
// the time when it came, from one goroutine. Stop it.
func (r Reader) Follow(ctx context.Context, each func(records []Record, at time.Time),
	topics ...string) (*Follower, error) {
	client, err := r.client(kgo.ConsumeTopics(topics...),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Follower{client: client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for ctx.Err() == nil {
			if records := client.PollFetches(ctx).Records(); len(records) > 0 {
				each(records, time.Now())
			}
		}
	}()
	return f, nil
}

// Stop ends the reading; after it nothing is handed on.
func (f *Follower) Stop() {
	f.cancel()
	<-f.done
	f.client.Close()
}
