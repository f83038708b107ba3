package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// TestLatest: the last committed value of each key, over all partitions; nothing while a
// transaction is open.
func TestLatest(t *testing.T) {
	c := kafkatest.Start(t)
	c.Topic("offsets", 3, map[string]string{"cleanup.policy": "compact"})
	ctx := t.Context()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.TransactionalID("worker"),
		kgo.DefaultProduceTopic("offsets"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	put := func(end kgo.TransactionEndTry, pairs ...string) {
		t.Helper()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(pairs); i += 2 {
			r := &kgo.Record{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])}
			if pairs[i+1] == "" {
				r.Value = nil
			}
			if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	put(kgo.TryCommit, "a", "1", "b", "1", "c", "1", "other", "1")
	put(kgo.TryCommit, "a", "2", "b", "")
	put(kgo.TryAbort, "a", "3", "c", "")
	latest := func(ctx context.Context) (map[string][]byte, error) {
		return kafka.Latest(ctx, config(c.Brokers()), "offsets", func(key []byte) bool { return len(key) == 1 })
	}
	got, err := latest(ctx)
	if err != nil || len(got) != 3 || string(got["a"]) != "2" || got["b"] != nil || string(got["c"]) != "1" {
		t.Errorf("%q, %v", got, err)
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Key: []byte("a"), Value: []byte("4")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if got, err := latest(short); err == nil {
		t.Errorf("while a transaction is open: %q", got)
	}
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if got, err = latest(ctx); err != nil || string(got["a"]) != "4" {
		t.Errorf("after its end: %q, %v", got, err)
	}
	if _, err := kafka.Latest(ctx, config(c.Brokers()), "nobodys", func([]byte) bool { return true }); err == nil ||
		!strings.Contains(err.Error(), string(kafka.TopicMissing)) {
		t.Errorf("a topic that is not there: %v", err)
	}
}

func TestLatestWithoutRights(t *testing.T) {
	c := kafkatest.Start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "offsets"),
		kfake.User("PLAIN", "outbox", "right", kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: "offsets", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperationDescribe, Allow: true,
		}))
	cfg := config(c.Brokers())
	cfg.SASL = &kafka.SASL{Mechanism: "PLAIN", Credentials: user("outbox", "right")}
	_, err := kafka.Latest(t.Context(), cfg, "offsets", func([]byte) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "READ and DESCRIBE on the topic are needed") {
		t.Error(err)
	}
}
