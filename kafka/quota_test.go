package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// quota bounds what all clients without a quota of their own may produce, in bytes a
// second.
func (b broker) quota(t *testing.T, rate float64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
	entity.Type = "client-id" // of no name: all that have none of their own
	op := kmsg.NewAlterClientQuotasRequestEntryOp()
	op.Key, op.Value = "producer_byte_rate", rate
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	entry.Entity, entry.Ops = append(entry.Entity, entity), append(entry.Ops, op)
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Entries = append(req.Entries, entry)
	resp, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Entries[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A producer quota makes a large transaction take longer than transaction_timeout. It
// gets through all the same, with both deliveries, once; and somebody is told why it
// takes its time.
func TestRealQuota(t *testing.T) {
	k := servers.KafkaForTest(t, servers.KafkaOptions{Own: true})
	b := broker{k, kafkatest.Reader{Brokers: []string{k.Addr()}}}
	const rate = 100 << 10
	slow := func(topic string) *txn.Batch { // takes 12 s
		batch := newBatcher(topic).next(1, 25)
		for i := range batch.Groups[0].Records {
			batch.Groups[0].Records[i].Value = fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 50<<10))
		}
		return batch
	}
	small := func(name string, timeout time.Duration) (*kafka.Publisher, *bytes.Buffer, *prometheus.Registry) {
		cfg := config([]string{b.Addr()})
		cfg.Connector, cfg.MaxMessageBytes, cfg.TransactionTimeout = name, 128<<10, timeout
		cfg.DeliveryTimeout = 4 * time.Second // brokers have us wait longer
		reg, log := prometheus.NewRegistry(), &bytes.Buffer{}
		p, err := kafka.NewPublisher(cfg, slog.New(slog.NewTextHandler(log, nil)), kafka.NewMetrics(reg))
		if err != nil {
			t.Fatal(err)
		}
		return p, log, reg
	}
	for _, topic := range []string{"eo", "alo"} {
		b.topic(t, topic, 1, nil)
	}
	b.quota(t, rate)

	t.Run("exactly once", func(t *testing.T) {
		pub, log, reg := small("eo", 6*time.Second)
		attempts := 0
		for done := false; !done; attempts++ {
			if attempts == 6 {
				t.Fatal("it does not get through")
			}
			s, _, err := openOnce(t.Context(), pub)
			if err == nil {
				_, err = s.Commit(t.Context(), slow("eo"))
			}
			if done = err == nil; !done {
				wantError(t, err, kafka.Timeout, true)
				if !strings.Contains(err.Error(), "bytes a second") && !strings.Contains(err.Error(), "a slow batch") {
					t.Errorf("the error does not say that the batch is slow: %v", err)
				}
			}
			closeSink(t, s)
		}
		if attempts < 2 {
			t.Error("the quota did not make it slow")
		}
		if got := b.records(t, "eo"); len(got) != 25 {
			t.Errorf("%d of 25 records", len(got))
		}
		if !strings.Contains(log.String(), "throttle this client") || !throttled(t, reg) {
			t.Errorf("nobody is told of the quota: %s", log)
		}
	})
	t.Run("at least once", func(t *testing.T) {
		pub, _, reg := small("alo", 8*time.Second)
		commit(t, open(t, pub.AtLeastOnce()), slow("alo"))
		if got := b.records(t, "alo"); len(got) != 25 {
			t.Errorf("%d of 25 records", len(got))
		}
		if !throttled(t, reg) {
			t.Error("the metric has nothing of the quota")
		}
	})
}

func openOnce(ctx context.Context, pub *kafka.Publisher) (s *kafka.ExactlyOnce, found bool, err error) {
	s = pub.ExactlyOnce(1)
	_, found, err = s.Open(ctx)
	return s, found, err
}

func throttled(t *testing.T, reg *prometheus.Registry) bool {
	t.Helper()
	n, err := testutil.GatherAndCount(reg, "binlog_outbox_kafka_throttled_seconds_total")
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "binlog_outbox_kafka_throttled_seconds_total" {
			return f.Metric[0].Counter.GetValue() > 1
		}
	}
	return false
}
