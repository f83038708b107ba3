package kafka_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

var describeConfigs = []kmsg.Key{kmsg.DescribeConfigs}

// A batch that fails for good must not be overtaken by what sarama holds behind
// it, or the partition would have a gap, and later a repetition out of order.
func TestB076NothingIsPublishedPastAFailedRecord(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, map[string]string{"max.message.bytes": "1000000"})
	cfg := config(c.Brokers())
	cfg.MaxRetries = 2
	cfg.MaxMessageBytes = 4096 // so that one Commit takes many requests
	pub := publisher(t, cfg)
	for round := range 20 {
		s := pub.AtLeastOnce()
		if _, _, err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		have := len(c.Records(topic))
		fault := c.FailProduce(topic, 3, kerr.NotEnoughReplicas) // first try and both retries
		b := newBatcher(topic).next(200, 5)
		done, err := s.Commit(t.Context(), b)
		wantError(t, err, kafka.Unavailable, true)
		closeSink(t, s)
		fault.Remove()
		got := c.Records(topic)[have:]
		if len(got) < done*5 {
			t.Fatalf("round %d: %d commit positions are reported durable, but only %d records are there", round, done, len(got))
		}
		for i, r := range got {
			if string(r.Value) != string(all(b)[i].Value) {
				t.Fatalf("round %d: record %d is %q, want %q: something was published past the failed one", round, i, r.Value,
					all(b)[i].Value)
			}
		}
	}
}

func TestB076DoneCoversAcknowledgedMarksOnly(t *testing.T) {
	c := kafkatest.Start(t)
	good, bad := c.Topic("good", 1, nil), c.Topic("bad", 1, nil)
	cfg := config(c.Brokers())
	cfg.MaxRetries = 1
	s := open(t, publisher(t, cfg).AtLeastOnce())
	c.FailProduce(bad, -1, kerr.TopicAuthorizationFailed)
	b := newBatcher(good).next(5, 2)
	all(b)[5].Topic = bad // of the third group
	done, err := s.Commit(t.Context(), b)
	e := wantError(t, err, kafka.NotAuthorized, true)
	if e.Topic != bad {
		t.Errorf("error names topic %q: %v", e.Topic, err)
	}
	if done > 2 {
		t.Errorf("done = %d, but mark 2 has a record that failed", done)
	}
}

// While Kafka is away a sink holds one batch and nothing more, session after session.
func TestB088MemoryStaysFlatWhileKafkaIsAway(t *testing.T) {
	c := kafkatest.Start(t, kfake.SeedTopics(3, "orders"))
	cfg := config(c.Brokers())
	cfg.AckTimeout, cfg.RequestTimeout, cfg.DeliveryTimeout = 200*time.Millisecond, 400*time.Millisecond, time.Second
	pub := publisher(t, cfg)
	batch := newBatcher("orders").next(100, 20)
	for _, r := range all(batch) {
		r.Value = make([]byte, 5000) // 10 MB in all
	}
	away := func() {
		s := pub.AtLeastOnce()
		if _, _, err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Network.Pause()
		if _, err := s.Commit(t.Context(), batch); err == nil {
			t.Fatal("published into a black hole")
		}
		closeSink(t, s)
		c.Network.Resume()
		c.Network.Cut() // what the cluster had not read yet is not the sink's
	}
	away()
	before, goroutines := heap(), runtime.NumGoroutine()
	for range 5 {
		away()
	}
	if grown := heap() - before; grown > 20<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 60 {
		t.Errorf("%d goroutines more than before", n)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
