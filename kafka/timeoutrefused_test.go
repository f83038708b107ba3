package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// refusedTimeout opens a sink whose transactions may take 30 s, which the brokers refuse.
func refusedTimeout(t *testing.T, brokers []string, wants ...string) {
	t.Helper()
	cfg := config(brokers)
	cfg.TransactionTimeout = 30 * time.Second
	s := publisher(t, cfg).ExactlyOnce(1)
	_, _, err := s.Open(t.Context())
	closeSink(t, s)
	e := wantError(t, err, kafka.SettingRefused, false)
	for _, want := range wants {
		if !strings.Contains(e.Text, want) {
			t.Errorf("the error says %q, without %q", e.Text, want)
		}
	}
}

func TestRealTransactionTimeoutAboveTheBrokers(t *testing.T) {
	k := servers.KafkaForTest(t, servers.KafkaOptions{Properties: []string{"transaction.max.timeout.ms=11000"}})
	refusedTimeout(t, []string{k.Addr()}, "transaction_timeout 30s", "transaction.max.timeout.ms of 11s")
	cfg := config([]string{k.Addr()})
	cfg.TransactionTimeout = 11 * time.Second
	reopen(t, publisher(t, cfg))
}

// Brokers that do not tell their settings refuse it, too.
func TestTransactionTimeoutAboveUnknownBrokers(t *testing.T) {
	c := kafkatest.Start(t)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.InvalidTransactionTimeout, Count: -1})
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.ClusterAuthorizationFailed, Count: -1})
	refusedTimeout(t, c.Brokers(), "transaction_timeout 30s", "above their transaction.max.timeout.ms:")
}
