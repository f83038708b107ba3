package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

func TestClusterID(t *testing.T) {
	c := kafkatest.Start(t, kfake.ClusterID("the-cluster"))
	// One that is away does not matter.
	id, err := kafka.ClusterID(t.Context(), config(append([]string{"127.0.0.1:1"}, c.Brokers()...)))
	if err != nil || id != "the-cluster" {
		t.Errorf("id %q, %v", id, err)
	}
	if id, err := kafka.ClusterID(t.Context(), config([]string{"127.0.0.1:1"})); err == nil {
		t.Errorf("nobody answers, and the id is %q", id)
	}
}
