package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// delivery is one of the sinks under the shared tests.
type delivery struct {
	name string
	make func(*kafka.Publisher) sink
	// partial is true when leading commits can be durable although Commit failed.
	partial bool
}

func deliveries() []delivery {
	return []delivery{
		{"at_least_once", func(p *kafka.Publisher) sink { return p.AtLeastOnce() }, true},
		{"exactly_once", func(p *kafka.Publisher) sink { return p.ExactlyOnce(1) }, false},
	}
}

// conform runs one test over all sinks, each with its own cluster.
func conform(t *testing.T, run func(t *testing.T, c *kafkatest.Cluster, d delivery), opts ...kfake.Opt) {
	t.Helper()
	for _, d := range deliveries() {
		t.Run(d.name, func(t *testing.T) { run(t, kafkatest.Start(t, opts...), d) })
	}
}

func TestRecordsArriveInOrderWithAllTheirParts(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic)
		first, second := b.next(3, 4), b.next(2, 1)
		all(second)[0].Headers = []txn.Header{{Key: "id", Value: []byte("1")}, {Key: "null"}, {Key: "empty", Value: []byte{}},
			{Key: "id", Value: []byte("again")}}
		all(second)[1].Key, all(second)[1].Value = nil, nil
		commit(t, s, first)
		commit(t, s, second)

		got := c.Records(topic)
		if diff := cmp.Diff(batchValues(first, second), values(got)); diff != "" {
			t.Fatalf("records (-want +got):\n%s", diff)
		}
		h := got[12].Headers
		if len(h) != 4 || h[0].Key != "id" || string(h[0].Value) != "1" || h[1].Value != nil || h[2].Value == nil ||
			len(h[2].Value) != 0 || string(h[3].Value) != "again" {
			t.Errorf("headers = %q", h)
		}
		if got[13].Key != nil || got[13].Value != nil {
			t.Errorf("null key and value became %q, %q", got[13].Key, got[13].Value)
		}
		if ms := got[0].Timestamp.UnixMilli(); ms != 1700000000123 {
			t.Errorf("timestamp = %d", ms)
		}
	})
}

func TestEmptyKeysAndValuesAreNotNull(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic).next(1, 1)
		all(b)[0].Key, all(b)[0].Value, all(b)[0].Timestamp = []byte{}, []byte{}, -1
		before := time.Now().Add(-time.Second)
		commit(t, s, b)
		got := c.Records(topic)[0]
		if got.Key == nil || got.Value == nil || len(got.Key)+len(got.Value) != 0 {
			t.Errorf("empty key and value became %#v, %#v", got.Key, got.Value)
		}
		if got.Timestamp.Before(before) {
			t.Errorf("a negative timestamp means now, got %s", got.Timestamp)
		}
	})
}

func TestBatchWithoutRecordsIsDurableAtOnce(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		commit(t, s, newBatcher("none").next(5, 0))
	})
}

func TestExplicitPartitionWins(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 12, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic).next(1, 12)
		for i, r := range all(b) {
			r.Partition = int32(11 - i)
		}
		commit(t, s, b)
		for i, r := range c.Records(topic) {
			if r.Partition != int32(i) || string(r.Value) != string(all(b)[11-i].Value) {
				t.Errorf("partition %d holds %q", r.Partition, r.Value)
			}
		}
	})
}

func TestPartitionOutOfRangeIsAClearError(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic).next(3, 2)
		all(b)[3].Partition = 3 // of the second transaction
		done, err := s.Commit(t.Context(), b)
		e := wantError(t, err, kafka.PartitionOutOfRange, false)
		if e.Topic != topic || e.Partition != 3 || e.Group != 1 || !strings.Contains(err.Error(), "has 3") {
			t.Errorf("error %v names topic %q partition %d group %d", err, e.Topic, e.Partition, e.Group)
		}
		wantDone(t, c, d, topic, b, done, 1)
	})
}

// wantDone checks what a failed Commit left behind: with at-least-once the records
// of the groups before the bad one and nothing else, with exactly-once nothing.
func wantDone(t *testing.T, c *kafkatest.Cluster, d delivery, topic string, b *txn.Batch, done, bad int) {
	t.Helper()
	want := 0
	if d.partial {
		want = bad
	}
	if done != want {
		t.Errorf("done = %d, want %d", done, want)
	}
	if got, n := c.Records(topic), txn.Count(b.Groups[:want]); len(got) != n {
		t.Errorf("%d records are visible, want %d: %q", len(got), n, values(got))
	}
}

func TestB062WaitsForAMissingTopicAndGoesOn(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		a := c.Topic("a", 1, nil)
		pub := publisher(t, config(c.Brokers()))
		b := newBatcher(a).next(3, 1) // rows for a, missing, a
		all(b)[1].Topic = "missing"
		s := open(t, d.make(pub))
		done, err := s.Commit(t.Context(), b)
		e := wantError(t, err, kafka.TopicMissing, true)
		if e.Topic != "missing" || !strings.Contains(err.Error(), "waiting") {
			t.Errorf("error = %v", err)
		}
		wantDone(t, c, d, a, b, done, 1)
		if c.TopicInfo("missing") != nil {
			t.Error("the topic was created by looking it up")
		}

		c.Topic("missing", 1, nil)
		next := open(t, d.make(pub))
		rest := *b
		if d.partial {
			rest.Groups = b.Groups[1:]
		}
		commit(t, next, &rest)
		if diff := cmp.Diff([]string{"1/0", "3/0"}, values(c.Records(a))); diff != "" {
			t.Errorf("topic a (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"2/0"}, values(c.Records("missing"))); diff != "" {
			t.Errorf("topic missing (-want +got):\n%s", diff)
		}
	})
}

func TestB062CreatesTopicsAsConfigured(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		cfg := config(c.Brokers())
		cfg.Topics = kafka.TopicCreation{Create: true, Partitions: 6, Replication: -1,
			Settings: map[string]string{"cleanup.policy": "compact"}}
		s := open(t, d.make(publisher(t, cfg)))
		commit(t, s, newBatcher("made").next(2, 3))
		info := c.TopicInfo("made")
		if info == nil {
			t.Fatal("the topic was not created")
		}
		if n := len(c.PartitionInfos("made")); n != 6 {
			t.Errorf("%d partitions, want 6", n)
		}
		if p := info.Configs["cleanup.policy"]; p == nil || *p != "compact" {
			t.Errorf("configs = %v", info.Configs)
		}
	})
}

func TestB062LeavesCreationToTheBrokers(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		cfg := config(c.Brokers())
		cfg.Topics.AutoCreate = true
		s := open(t, d.make(publisher(t, cfg)))
		commit(t, s, newBatcher("made").next(2, 3))
		if n := len(c.PartitionInfos("made")); n != 5 {
			t.Errorf("%d partitions, want the brokers' default of 5", n)
		}
	}, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(5))
}

func TestB063ClientLimit(t *testing.T) {
	const limit = 10000
	const overhead = 61 + 21 + 2 + 3 + 1 // batch, record, key "k0" with length, value's length, no headers
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		cfg := config(c.Brokers())
		cfg.MaxMessageBytes = limit
		fits := limit - overhead - 1
		s := open(t, d.make(publisher(t, cfg)))
		ok := newBatcher(topic).next(1, 1)
		all(ok)[0].Value = bytes.Repeat([]byte("x"), fits)
		commit(t, s, ok)

		b := newBatcher(topic).next(2, 1)
		all(b)[1].Value = bytes.Repeat([]byte("secret"), limit)[:fits+1]
		done, err := s.Commit(t.Context(), b)
		e := wantError(t, err, kafka.RecordTooLarge, false)
		if e.Group != 1 || e.Topic != topic || !strings.Contains(err.Error(), "10001") ||
			!strings.Contains(err.Error(), "client's limit is 10000") || strings.Contains(err.Error(), "secret") {
			t.Errorf("error = %v", err)
		}
		if want := map[bool]int{true: 1}[d.partial]; done != want {
			t.Errorf("done = %d, want %d", done, want)
		}
	})
}

func TestB063HeadersCount(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		cfg := config(c.Brokers())
		cfg.MaxMessageBytes = 10000
		s := open(t, d.make(publisher(t, cfg)))
		b := newBatcher(topic).next(1, 1)
		all(b)[0].Headers = []txn.Header{{Key: "h", Value: make([]byte, 10000)}}
		_, err := s.Commit(t.Context(), b)
		wantError(t, err, kafka.RecordTooLarge, false)
	})
}

func TestB063TopicLimitBelowTheClientsBlamesTheLargeRecordOnly(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("small", 1, map[string]string{"max.message.bytes": "5000"})
		pub := publisher(t, config(c.Brokers()))
		s := open(t, d.make(pub))
		// Together far above the topic's limit, each one below it.
		many := newBatcher(topic).next(50, 4)
		for _, r := range all(many) {
			r.Value = append(r.Value, bytes.Repeat([]byte("x"), 500)...)
		}
		commit(t, s, many)
		if got := c.Records(topic); len(got) != 200 {
			t.Fatalf("%d records, want 200", len(got))
		}
		b := newBatcher(topic).next(3, 1)
		all(b)[1].Value = bytes.Repeat([]byte("x"), 6000)
		_, err := s.Commit(t.Context(), b)
		e := wantError(t, err, kafka.RecordTooLarge, false)
		if e.Group != 1 || !strings.Contains(err.Error(), "topic") || !strings.Contains(err.Error(), "max.message.bytes") {
			t.Errorf("error = %v, group %d", err, e.Group)
		}
	})
}

func TestB063UnknownTopicLimitIsFoundOut(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("small", 1, map[string]string{"max.message.bytes": "5000"})
		c.Fault(kfake.Fault{Keys: describeConfigs, Err: kerr.TopicAuthorizationFailed, Count: -1})
		pub := publisher(t, config(c.Brokers()))
		b := newBatcher(topic).next(20, 4)
		for _, r := range all(b) {
			r.Value = append(r.Value, bytes.Repeat([]byte("x"), 500)...)
		}
		for term := 1; ; term++ {
			s := d.make(pub)
			if _, _, err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := s.Commit(t.Context(), b)
			closeSink(t, s)
			if err == nil {
				t.Logf("published in session %d", term)
				break
			}
			wantError(t, err, kafka.BatchTooLarge, true)
			if term > 20 {
				t.Fatal("the batches did not get small enough")
			}
		}
	})
}

func TestB077RetriesNeitherReorderNorDouble(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic)
		errs := []*kerr.Error{kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition, kerr.RequestTimedOut,
			kerr.NotEnoughReplicas}
		var want []string
		for i := range 40 {
			if i%2 == 0 {
				c.FailProduce(topic, 1, errs[i/2%len(errs)])
			}
			if i%5 == 0 {
				c.ShufflePartitionLeaders()
			}
			batch := b.next(5, 14)
			want = append(want, batchValues(batch)...)
			commit(t, s, batch)
		}
		wantExactlyInOrder(t, c.Records(topic), want)
	}, kfake.NumBrokers(3))
}

// wantExactlyInOrder checks that got holds each of want once, and for each key in
// want's order.
func wantExactlyInOrder(t *testing.T, got []kafkatest.Record, want []string) {
	t.Helper()
	at := map[string]int{}
	for i, v := range want {
		at[v] = i
	}
	last := map[string]int{}
	seen := map[string]bool{}
	for _, r := range got {
		v := string(r.Value)
		if seen[v] {
			t.Fatalf("%q is there twice", v)
		}
		seen[v] = true
		if prev, ok := last[string(r.Key)]; ok && at[v] < prev {
			t.Fatalf("key %q: %q comes after %q", r.Key, v, want[prev])
		}
		last[string(r.Key)] = at[v]
	}
	if len(seen) != len(want) {
		t.Fatalf("%d records, want %d", len(seen), len(want))
	}
}

func TestB078UnknownProducerEndsTheSessionAndTheNextGoesOn(t *testing.T) {
	for _, fault := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch} {
		t.Run(fault.Message, func(t *testing.T) {
			conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
				topic := c.Topic("orders", 1, nil)
				pub := publisher(t, config(c.Brokers()))
				s := open(t, d.make(pub))
				b := newBatcher(topic)
				first := b.next(2, 2)
				commit(t, s, first)
				c.FailProduce(topic, 1, fault)
				second := b.next(2, 2)
				done, err := s.Commit(t.Context(), second)
				var e *kafka.Error
				if !errors.As(err, &e) || !e.Retry || done != 0 {
					t.Fatalf("Commit = %d, %v; want a retryable error", done, err)
				}
				if _, err := s.Commit(t.Context(), second); err == nil {
					t.Fatal("a sink must not go on after an error")
				}
				next := open(t, d.make(pub))
				commit(t, next, second)
				wantExactlyInOrder(t, c.Records(topic), batchValues(first, second))
			})
		})
	}
}

func TestB080CloseIsBoundedWhileBrokersAreBlackHoles(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		s := d.make(publisher(t, config(c.Brokers())))
		if _, _, err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := newBatcher(topic)
		commit(t, s, b.next(1, 1))
		c.Network.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := s.Commit(ctx, b.next(3, 100)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit = %v, want the context's error", err)
		}
		closing, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.Close(closing); err != nil {
			t.Logf("Close: %v", err)
		}
		if d := time.Since(begin); d > 20*time.Second {
			t.Errorf("Commit and Close took %s", d)
		}
	})
}

func TestB080OpenIsBoundedWhileBrokersAreBlackHoles(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		c.Network.Pause()
		s := d.make(publisher(t, config(c.Brokers())))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, _, err := s.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Open = %v, want the context's error", err)
		}
		closeSink(t, s)
	})
}

func TestNoBrokerIsARetryableError(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		cfg := config(c.Brokers())
		cfg.Brokers = []string{"127.0.0.1:1"}
		s := d.make(publisher(t, cfg))
		_, _, err := s.Open(t.Context())
		wantError(t, err, kafka.Unreachable, true)
		closeSink(t, s)
	})
}

func TestOneDeadSeedIsNoHarm(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		cfg := config(append([]string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, c.Brokers()...))
		s := open(t, d.make(publisher(t, cfg)))
		commit(t, s, newBatcher(topic).next(1, 1))
	})
}

func TestConnectionsCutBetweenBatchesAreOpenedAgain(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		b := newBatcher(topic)
		var want []string
		for range 10 {
			batch := b.next(3, 7)
			want = append(want, batchValues(batch)...)
			commit(t, s, batch)
			c.DropProduce(1)
		}
		wantExactlyInOrder(t, c.Records(topic), want)
	})
}

func TestCommitEndsWithItsContext(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		cause := errors.New("the leadership is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := s.Commit(ctx, newBatcher(topic).next(1, 1)); !errors.Is(err, cause) {
			t.Errorf("Commit = %v, want the context's cause", err)
		}
	})
}

func TestDeliveryTimeoutIsARetryableError(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 1, nil)
		cfg := config(c.Brokers())
		cfg.AckTimeout, cfg.RequestTimeout, cfg.DeliveryTimeout, cfg.MaxRetries = 500*time.Millisecond, time.Second,
			2*time.Second, 1000
		s := open(t, d.make(publisher(t, cfg)))
		c.FailProduce(topic, -1, kerr.NotEnoughReplicas)
		_, err := s.Commit(t.Context(), newBatcher(topic).next(1, 1))
		wantError(t, err, kafka.Timeout, true)
	})
}
