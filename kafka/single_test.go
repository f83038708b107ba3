package kafka_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

var rounds = flag.Int("rounds", 2, "how often TestRealSingleBroker kills its broker, and how often it stops it")

// One broker without replicas is killed in the middle of a transaction, or stopped for
// longer than its session may take, so that its own controller fences it while it goes
// on serving. The next leader opens as soon as it can, and so does the one after it.
func TestRealSingleBroker(t *testing.T) {
	k := servers.KafkaForTest(t, servers.KafkaOptions{Own: true, JVMArgs: []string{markersLogged(t)}})
	s := single{broker: broker{k, kafkatest.Reader{Brokers: []string{k.Addr()}}}, batches: newBatcher("")}
	for _, name := range []string{"a-topic", "m-topic", "z-topic"} {
		s.topics = append(s.topics, s.topic(t, name, 12, map[string]string{"retention.ms": "-1"}))
	}
	s.pub = s.publisher(t, "single")
	s.sink, _, _ = reopen(t, s.pub)
	for round := range *rounds {
		s.round(t, fmt.Sprintf("kill %d", round), func() error {
			if err := s.Kill(); err != nil {
				return err
			}
			return s.Restart(t.Context())
		})
		s.round(t, fmt.Sprintf("pause %d", round), func() error {
			if err := s.Pause(); err != nil {
				return err
			}
			time.Sleep(3600 * time.Millisecond) // the session takes 3 s
			return s.Resume()
		})
	}
}

type single struct {
	broker
	topics  []string
	pub     *kafka.Publisher
	batches *batcher
	sink    *kafka.ExactlyOnce
	want    []string
}

func (s *single) next() *txn.Batch {
	batch := s.batches.next(12, 12)
	for i, r := range all(batch) {
		r.Topic = s.topics[i%len(s.topics)]
		r.Key = fmt.Append(nil, "k", i)
	}
	return batch
}

// open opens sinks until one works, as sessions do.
func (s *single) open(t *testing.T) uint64 {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		sink := s.pub.ExactlyOnce(2)
		s.sink = sink
		pos, _, err := sink.Open(t.Context())
		if err == nil {
			t.Cleanup(func() { closeSink(t, sink) })
			return pos.Last.Seq
		}
		closeSink(t, s.sink)
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// publish commits the batch in as many sessions as it takes.
func (s *single) publish(t *testing.T, batch *txn.Batch) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		_, err := s.sink.Commit(t.Context(), batch)
		if err == nil {
			break
		}
		closeSink(t, s.sink)
		if at := s.open(t); at == batch.Position.Last.Seq {
			break // it was committed
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.want = append(s.want, batchValues(batch)...)
}

func (s *single) round(t *testing.T, name string, harm func() error) {
	t.Helper()
	kept := s.next()
	s.publish(t, kept)
	kafka.LeaveTransactionOpen(t, s.sink, s.next())
	s.batches.seq -= 12
	over := make(chan error, 1)
	go func() { over <- harm() }()
	time.Sleep(50 * time.Millisecond) // so that it has begun; nothing is proven otherwise
	if at := s.open(t); at != kept.Position.Last.Seq {
		t.Fatalf("%s: the position is at %d, want %d", name, at, kept.Position.Last.Seq)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	s.publish(t, s.next())
	closeSink(t, s.sink)
	s.open(t)
	var got []string
	for _, topic := range s.topics {
		got = append(got, values(s.records(t, topic))...)
	}
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(s.want))) {
		t.Fatalf("%s: read_committed consumers see %d records, want %d", name, len(got), len(s.want))
	}
}
