package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

const topic = "outbox.event.test"

// record makes the record of a row with its only key.
func record(n uint32) *kgo.Record {
	row := history.Row{Txn: 1, Number: n}
	body := history.AppendBody(nil, row, 50)
	before, after := history.Payload{Row: row, Key: history.Key(1), CRC: history.Checksum(body), Size: len(body)}.Head()
	return &kgo.Record{
		Topic: topic, Key: []byte(history.Key(1)), Value: []byte(before + "1" + after + string(body)),
		Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(row.ID())},
			{Key: "eventType", Value: []byte(history.EventType)}},
	}
}

func cluster(t *testing.T) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

func producer(t *testing.T, brokers []string, id string) *kgo.Client {
	t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func send(ctx context.Context, t *testing.T, p *kgo.Client, from, to uint32) {
	t.Helper()
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for n := from; n <= to; n++ {
		if err := p.ProduceSync(ctx, record(n)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadAllSeesCommittedRecordsOnly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	brokers := cluster(t)
	p := producer(t, brokers, "a")
	send(ctx, t, p, 1, 5)
	if err := p.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	send(ctx, t, p, 6, 7)
	if err := p.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	seen, err := ReadAll(ctx, brokers, topic)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range seen {
		got = append(got, fmt.Sprint(s.Row.Number, s.Fault))
	}
	if want := "1 2 3 4 5"; strings.Join(got, " ") != want {
		t.Errorf("read %v, want %s", got, want)
	}

	send(ctx, t, p, 8, 8)
	if _, err := ReadAll(ctx, brokers, topic); err == nil || !strings.Contains(err.Error(), "transaction is open") {
		t.Errorf("with an open transaction: %v", err)
	}
}

func TestTailCountsRowsOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	brokers := cluster(t)
	tail, err := StartTail(ctx, brokers, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Stop()
	p := producer(t, brokers, "a")
	for range 2 {
		send(ctx, t, p, 1, 4)
		if err := p.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	if err := tail.Wait(ctx, 4, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := tail.Wait(ctx, 5, 300*time.Millisecond); !errors.Is(err, errStalled) {
		t.Errorf("waiting for a row that does not come: %v", err)
	}
	if rows, records := tail.Rows(); rows != 4 || records != 8 {
		t.Errorf("%d rows in %d records, want 4 in 8", rows, records)
	}
}
