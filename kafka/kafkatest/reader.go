package kafkatest

import (
	"cmp"
	"context"
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
	Opts    []kgo.Opt // TLS, SASL
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
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(r.Brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(), kgo.FetchMaxWait(20 * time.Millisecond),
	}, r.Opts...)...)
	if err != nil {
		return nil, fmt.Errorf("making the reader: %w", err)
	}
	defer cl.Close()
	ends, err := endOffsets(ctx, cl, topic)
	if err != nil {
		return nil, err
	}
	var recs []Record
	for len(ends) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading topic %s, %d partitions left: %w", topic, len(ends), err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			end, open := ends[rec.Partition]
			if open && rec.Offset < end && !rec.Attrs.IsControl() {
				recs = append(recs, rec)
			}
			if rec.Offset >= end-1 {
				delete(ends, rec.Partition)
			}
		})
	}
	slices.SortFunc(recs, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return recs, nil
}

// endOffsets returns the ends of the partitions that hold anything.
func endOffsets(ctx context.Context, cl *kgo.Client, topic string) (map[int32]int64, error) {
	meta := kmsg.NewPtrMetadataRequest()
	meta.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
	m, err := meta.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("looking up topic %s: %w", topic, err)
	}
	if err := kerr.ErrorForCode(m.Topics[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("looking up topic %s: %w", topic, err)
	}
	ends := map[int32]int64{}
	for _, at := range []int64{-1, -2} { // the end, then the beginning
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID = -1
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, p := range m.Topics[0].Partitions {
			q := kmsg.NewListOffsetsRequestTopicPartition()
			q.Partition, q.Timestamp = p.Partition, at
			t.Partitions = append(t.Partitions, q)
		}
		req.Topics = append(req.Topics, t)
		for _, shard := range cl.RequestSharded(ctx, req) {
			if shard.Err != nil {
				return nil, fmt.Errorf("listing offsets of %s: %w", topic, shard.Err)
			}
			for _, p := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("listing offsets of %s partition %d: %w", topic, p.Partition, err)
				}
				if at == -1 {
					ends[p.Partition] = p.Offset
				} else if ends[p.Partition] == p.Offset {
					delete(ends, p.Partition)
				}
			}
		}
	}
	return ends, nil
}
