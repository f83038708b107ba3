package kafka_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

func TestMetrics(t *testing.T) {
	c := kafkatest.Start(t, kfake.SeedTopics(1, "orders"))
	reg := prometheus.NewRegistry()
	pub, err := kafka.NewPublisher(config(c.Brokers()), slog.New(slog.NewTextHandler(io.Discard, nil)),
		kafka.NewMetrics(prometheus.WrapRegistererWith(prometheus.Labels{"connector": "orders"}, reg)))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, pub.ExactlyOnce(1))
	b := newBatcher("orders")
	commit(t, s, b.next(3, 2)) // "1/0" and so on with keys "k0": 5 bytes each
	c.FailProduce("orders", 1, kerr.InvalidProducerEpoch)
	if _, err := s.Commit(t.Context(), b.next(2, 2)); err == nil {
		t.Fatal("no error")
	}
	want := `
# HELP binlog_outbox_kafka_transactions_total Kafka transactions of this connector, by outcome. After an abort the connector opens its sink anew.
# TYPE binlog_outbox_kafka_transactions_total counter
binlog_outbox_kafka_transactions_total{connector="orders",outcome="abort"} 1
binlog_outbox_kafka_transactions_total{connector="orders",outcome="commit"} 2
# HELP binlog_outbox_producer_fenced_total Times this node found that another writer had taken over its transactional id.
# TYPE binlog_outbox_producer_fenced_total counter
binlog_outbox_producer_fenced_total{connector="orders"} 1
# HELP binlog_outbox_publish_bytes_total Bytes of key, value and headers of those records before compression.
# TYPE binlog_outbox_publish_bytes_total counter
binlog_outbox_publish_bytes_total{connector="orders",outcome="error",topic="orders"} 20
binlog_outbox_publish_bytes_total{connector="orders",outcome="ok",topic="orders"} 30
# HELP binlog_outbox_publish_inflight_records Records of the batch that is being published.
# TYPE binlog_outbox_publish_inflight_records gauge
binlog_outbox_publish_inflight_records{connector="orders"} 0
# HELP binlog_outbox_publish_records_total Records handed to Kafka, by topic (the first 200, then "other") and by whether they were acknowledged. With exactly-once, ok means committed.
# TYPE binlog_outbox_publish_records_total counter
binlog_outbox_publish_records_total{connector="orders",outcome="error",topic="orders"} 4
binlog_outbox_publish_records_total{connector="orders",outcome="ok",topic="orders"} 6
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "binlog_outbox_kafka_transactions_total",
		"binlog_outbox_producer_fenced_total", "binlog_outbox_publish_bytes_total",
		"binlog_outbox_publish_inflight_records", "binlog_outbox_publish_records_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "binlog_outbox_publish_duration_seconds"); n != 1 || err != nil {
		t.Errorf("duration: %d, %v", n, err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
