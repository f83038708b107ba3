package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// sarama's circuit breaker sleeps its 10 s to the end; it holds nothing.
		goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
		// One per process, of a library that sarama measures with.
		goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

var source = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

// sink is what connector asks of both deliveries.
type sink interface {
	Open(ctx context.Context) (pos position.Position, found bool, err error)
	Commit(ctx context.Context, b *txn.Batch) (done int, err error)
	Close(ctx context.Context) error
}

// config returns settings for tests: short waits, so that failures come soon.
func config(brokers []string) kafka.Config {
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Connector, cfg.Node = brokers, "orders", "node-1"
	return cfg
}

func publisher(t testing.TB, cfg kafka.Config) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(cfg, slog.New(slog.NewTextHandler(testWriter{t}, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b))
	return len(b), nil
}

// open opens a sink that is closed with the test.
func open[S sink](t testing.TB, s S) S {
	t.Helper()
	if _, _, err := s.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { closeSink(t, s) })
	return s
}

func closeSink(t testing.TB, s sink) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// batcher makes batches whose transactions count on.
type batcher struct {
	topic string
	seq   uint64
	set   *position.Set
}

func newBatcher(topic string) *batcher {
	return &batcher{topic: topic, set: position.NewSet(position.MySQL)}
}

// next returns a batch of n transactions with rows records each. Values count on
// over all batches; keys repeat every 7 records.
func (b *batcher) next(n, rows int) *txn.Batch {
	batch := &txn.Batch{}
	for range n {
		b.seq++
		commit := position.Commit{GTID: position.GTID{SID: source, Seq: b.seq}, First: b.seq, File: "binlog.000001",
			Pos: b.seq * 100, Committed: time.UnixMicro(int64(b.seq))}
		g := txn.Group{Commit: commit}
		for r := range rows {
			g.Records = append(g.Records, record(b.topic, "k"+strconv.Itoa(r%7), fmt.Sprintf("%d/%d", b.seq, r)))
		}
		batch.Groups = append(batch.Groups, g)
	}
	last := batch.Groups[n-1].Commit
	b.set.AddRange(last.GTID, batch.Groups[0].Commit.First)
	batch.Position = position.Position{Flavor: position.MySQL, Server: source.String(), Set: b.set.Clone(),
		File: last.File, Pos: last.Pos,
		Last: last.GTID, Committed: last.Committed, Seq: b.seq * uint64(rows)}
	return batch
}

func record(topic, key, value string) txn.Record {
	return txn.Record{Topic: topic, Partition: -1, Key: []byte(key), Value: []byte(value), Timestamp: 1700000000123}
}

// all returns the records of a batch.
func all(b *txn.Batch) []*txn.Record {
	var out []*txn.Record
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			out = append(out, &b.Groups[i].Records[j])
		}
	}
	return out
}

func commit(t testing.TB, s sink, b *txn.Batch) {
	t.Helper()
	done, err := s.Commit(t.Context(), b)
	if err != nil || done != len(b.Groups) {
		t.Fatalf("Commit = %d, %v; want %d, nil", done, err, len(b.Groups))
	}
}

// wantError checks code, retryability and that err is an *kafka.Error.
func wantError(t testing.TB, err error, code kafka.Code, retry bool) *kafka.Error {
	t.Helper()
	var e *kafka.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *kafka.Error with code %s", err, err, code)
	}
	if e.Code != code || e.Retry != retry {
		t.Fatalf("error has code %s, retry %v, want %s, %v: %v", e.Code, e.Retry, code, retry, err)
	}
	return e
}

func values(recs []kafkatest.Record) []string {
	out := make([]string, len(recs))
	for i, r := range recs {
		out[i] = string(r.Value)
	}
	return out
}

func batchValues(batches ...*txn.Batch) []string {
	var out []string
	for _, b := range batches {
		for _, r := range all(b) {
			out = append(out, string(r.Value))
		}
	}
	return out
}
