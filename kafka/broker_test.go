package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// What kfake can't tell: a real broker writes its commit markers later, answers
// CONCURRENT_TRANSACTIONS, takes seconds to come back and remembers producers.
func TestRealBroker(t *testing.T) {
	k := servers.KafkaForTest(t, servers.KafkaOptions{Own: true})
	b := broker{k, kafkatest.Reader{Brokers: []string{k.Addr()}}}
	t.Run("records and position", b.recordsAndPosition)
	t.Run("take-over of an open transaction", b.takeOver)
	t.Run("large records and topic limits", b.limits)
	t.Run("invalid records", b.invalid)
	t.Run("probe", b.probe)
	t.Run("kill -9 under load", b.killed)
}

type broker struct {
	*servers.Kafka
	reader kafkatest.Reader
}

func (b broker) publisher(t *testing.T, name string) *kafka.Publisher {
	t.Helper()
	cfg := config([]string{b.Addr()})
	cfg.Connector = name
	return publisher(t, cfg)
}

func (b broker) topic(t *testing.T, name string, partitions int32, settings map[string]string) string {
	t.Helper()
	if err := b.CreateTopic(name, partitions, settings); err != nil {
		t.Fatal(err)
	}
	return name
}

func (b broker) records(t *testing.T, topic string) []kafkatest.Record {
	t.Helper()
	recs, err := b.reader.Read(t.Context(), topic, true)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func (b broker) recordsAndPosition(t *testing.T) {
	for _, d := range deliveries() {
		t.Run(d.name, func(t *testing.T) {
			topic := b.topic(t, "records-"+d.name, 3, nil)
			pub := b.publisher(t, topic)
			batches := newBatcher(topic)
			var want []string
			var last *txn.Batch
			for range 3 {
				s := d.make(pub)
				pos, found, err := s.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if last != nil && !d.partial {
					wantPosition(t, pos, found, last.Position)
				}
				for range 5 {
					last = batches.next(4, 7)
					want = append(want, batchValues(last)...)
					commit(t, s, last)
				}
				closeSink(t, s)
			}
			wantExactlyInOrder(t, b.records(t, topic), want)
		})
	}
}

// A leader that stands still in the middle of a transaction is taken over within
// milliseconds, and its transaction is never seen.
func (b broker) takeOver(t *testing.T) {
	topic := b.topic(t, "takeover", 4, nil)
	pub := b.publisher(t, topic)
	batches := newBatcher(topic)
	var want []string
	var times []time.Duration
	for range 15 {
		old, _, _ := reopen(t, pub)
		kept := batches.next(2, 8)
		commit(t, old, kept)
		want = append(want, batchValues(kept)...)
		kafka.LeaveTransactionOpen(t, old, batches.next(2, 8))
		batches.seq -= 2

		begin := time.Now()
		young := pub.ExactlyOnce(2)
		pos, found, err := young.Open(t.Context())
		times = append(times, time.Since(begin))
		if err != nil {
			t.Fatal(err)
		}
		wantPosition(t, pos, found, kept.Position)
		closeSink(t, young)
	}
	wantExactlyInOrder(t, b.records(t, topic), want)
	slices.Sort(times)
	t.Logf("take-over: p50 %s, max %s", times[len(times)/2], times[len(times)-1])
}

func (b broker) limits(t *testing.T) {
	topic := b.topic(t, "limits", 1, map[string]string{"max.message.bytes": "100000"})
	pub := b.publisher(t, topic)
	batch := newBatcher(topic).next(60, 5)
	for _, r := range all(batch) {
		r.Value = append(r.Value, make([]byte, 5000)...)
	}
	s, _, _ := reopen(t, pub)
	commit(t, s, batch) // 1.5 MB in batches of less than 100 KB
	large := newBatcher(topic).next(2, 1)
	all(large)[1].Value = make([]byte, 200000)
	_, err := s.Commit(t.Context(), large)
	if e := wantError(t, err, kafka.RecordTooLarge, false); e.Group != 1 {
		t.Errorf("group %d is blamed: %v", e.Group, err)
	}
	if n := len(b.records(t, topic)); n != 300 {
		t.Errorf("%d records, want 300", n)
	}
}

func (b broker) probe(t *testing.T) {
	cfg := config([]string{b.Addr()})
	for _, f := range kafka.Probe(t.Context(), cfg, true, []string{"limits"}) {
		t.Log(f)
		if f.Level == kafka.Failed {
			t.Errorf("finding: %s", f)
		}
	}
}

// The broker is killed twice in the middle of what both deliveries write, and
// comes back. Exactly once must be exactly that; at least once may repeat, but
// only by beginning again at or before the end of what was there.
func (b broker) killed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	partitions := int32(3)
	if raceEnabled {
		partitions = 1
	}
	once, least := b.topic(t, "killed-once", partitions, nil), b.topic(t, "killed-least", 1, nil)
	stop := make(chan struct{})
	results := make(chan stream, 2)
	go func() { results <- run(ctx, t, b.publisher(t, once), once, true, stop) }()
	go func() { results <- run(ctx, t, b.publisher(t, least), least, false, stop) }()
	for range 2 {
		time.Sleep(1500 * time.Millisecond) // load, not a wait for anything
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if err := b.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second)
	close(stop)
	for range 2 {
		r := <-results
		got := b.records(t, r.topic)
		t.Logf("%s: %d transactions, %d sessions, %d records", r.topic, r.end, r.sessions, len(got))
		if r.err != nil || r.end == 0 {
			t.Errorf("%s: %d sessions, %d transactions: %v", r.topic, r.sessions, r.end, r.err)
		}
		want := make([]string, 0, r.end*rowsPerTransaction)
		for seq := range r.end {
			for row := range rowsPerTransaction {
				want = append(want, fmt.Sprintf("%d/%d", seq+1, row))
			}
		}
		if r.topic == once {
			wantExactlyInOrder(t, got, want)
			continue
		}
		if diff := cmp.Diff(want, rewinds(t, values(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.topic, diff)
		}
	}
}

// rewinds checks that a log is a chain of runs that begin at or before the end of
// what was there, and returns it without the repetitions.
func rewinds(t *testing.T, log []string) []string {
	t.Helper()
	at := map[string]int{}
	var chain []string
	next := 0
	for i, v := range log {
		p, seen := at[v]
		switch {
		case !seen && next == len(chain):
			at[v] = len(chain)
			chain = append(chain, v)
			next++
		case seen:
			next = p + 1
		default:
			t.Fatalf("record %d, %q, is new but follows %q in the middle of a repetition", i, v, log[i-1])
		}
	}
	return chain
}

type stream struct {
	topic    string
	end      uint64 // last transaction that is known to be durable
	sessions int
	err      error
}

// run publishes until it is stopped, session after session, as a connector does.
func run(ctx context.Context, t *testing.T, pub *kafka.Publisher, topic string, exactlyOnce bool,
	stop chan struct{}) stream {
	r := stream{topic: topic}
	pos := position.Position{Set: position.NewSet(position.MySQL)}
	for ctx.Err() == nil {
		r.sessions++
		var s sink = pub.AtLeastOnce()
		if exactlyOnce {
			s = pub.ExactlyOnce(uint64(r.sessions))
		}
		stopped, err := term(ctx, s, topic, exactlyOnce, &pos, stop)
		closeSink(t, s)
		r.end = pos.Last.Seq
		if stopped {
			return r
		}
		var e *kafka.Error
		if !errors.As(err, &e) || !e.Retry {
			r.err = err
			return r
		}
		t.Logf("%s: session %d ended at %d: %v", topic, r.sessions, r.end, err)
		time.Sleep(50 * time.Millisecond)
	}
	r.err = context.Cause(ctx)
	return r
}

func term(ctx context.Context, s sink, topic string, exactlyOnce bool, pos *position.Position,
	stop chan struct{}) (stopped bool, err error) {
	stored, found, err := s.Open(ctx)
	if err != nil {
		return false, err
	}
	if exactlyOnce && found {
		*pos = stored
	}
	b := newBatcher(topic)
	b.seq, b.set = pos.Last.Seq, pos.Set
	for {
		select {
		case <-stop:
			return true, nil
		default:
		}
		batch := b.next(20, rowsPerTransaction)
		done, err := s.Commit(ctx, batch)
		if err == nil {
			*pos = batch.Position
			continue
		}
		if !exactlyOnce && done > 0 {
			pos.Last = batch.Groups[done-1].Commit.GTID
			pos.Set = position.NewSet(position.MySQL)
			pos.Set.AddRange(pos.Last, 1)
		}
		return false, err
	}
}
