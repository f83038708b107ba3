package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// The places of a batch are where a consumer finds its records.
func TestPlacesAreWhereConsumersFindTheRecords(t *testing.T) {
	for _, d := range deliveries() {
		t.Run(d.name, func(t *testing.T) {
			c := kafkatest.Start(t)
			topic := c.Topic("orders", 3, nil)
			s := open(t, d.make(publisher(t, config(c.Brokers()))))
			next := newBatcher(topic)
			var sent []*txn.Record
			for range 3 { // the offsets of the second batch begin behind the first
				b := next.next(10, 3)
				commit(t, s, b)
				sent = append(sent, all(b)...)
			}
			at := map[txn.PartitionOffset]string{}
			for _, r := range c.Records(topic) {
				at[txn.PartitionOffset{Partition: r.Partition, Offset: r.Offset}] = string(r.Value)
			}
			for _, r := range sent {
				if got := at[r.PartitionOffset]; got != string(r.Value) {
					t.Errorf("record %q is said to be at %+v, where %q is", r.Value, r.PartitionOffset, got)
				}
			}
		})
	}
}

// A record that the broker has already is acknowledged without its offset, which is
// then unknown and not 0.
func TestPlaceOfARepeatedRecordIsUnknown(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	s := open(t, publisher(t, config(c.Brokers())).AtLeastOnce())
	next := newBatcher(topic)
	commit(t, s, next.next(5, 1))
	c.FailProduce(topic, 1, kerr.DuplicateSequenceNumber)
	b := next.next(1, 1)
	commit(t, s, b)
	if got := all(b)[0].PartitionOffset; got.Offset >= 0 {
		t.Errorf("the place is %+v, want an unknown offset", got)
	}
}

// What fails in the end says of its acknowledged records where they are.
func TestPlacesOfAFailedBatch(t *testing.T) {
	c := kafkatest.Start(t)
	good, bad := c.Topic("good", 1, nil), c.Topic("bad", 1, nil)
	cfg := config(c.Brokers())
	cfg.MaxRetries = 1
	s := open(t, publisher(t, cfg).AtLeastOnce())
	c.FailProduce(bad, -1, kerr.TopicAuthorizationFailed)
	b := newBatcher(good).next(5, 2)
	recs := all(b)
	recs[5].Topic = bad
	done, err := s.Commit(t.Context(), b)
	if err == nil {
		t.Fatal("the batch was published")
	}
	for i := range done * 2 {
		if recs[i].PartitionOffset.Offset != int64(i) {
			t.Errorf("record %d is at %+v, want offset %d", i, recs[i].PartitionOffset, i)
		}
	}
	if recs[5].PartitionOffset != (txn.PartitionOffset{}) {
		t.Errorf("the refused record is said to be at %+v", recs[5].PartitionOffset)
	}
}
