package kafka_test

import (
	"context"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// A leader stands still right after its claim, and another one takes over. Whatever the
// first one does when it wakes up, the transaction of the second stays what it is.
func TestFencedOpeningLeavesTheNextTransactionAlone(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	batches := newBatcher(topic)
	batch := batches.next(1, 2)
	var young *kafka.ExactlyOnce
	asked := 0
	cfg := config(c.Brokers())
	cfg.VerifyLeader = func(context.Context) error {
		if asked++; asked == 2 {
			young, _, _ = reopen(t, publisher(t, config(c.Brokers())))
			kafka.LeaveRecordsOpen(t, young, batch)
		}
		return nil
	}
	old := publisher(t, cfg).ExactlyOnce(1)
	_, _, err := old.Open(t.Context())
	wantError(t, err, kafka.Fenced, true)
	closeSink(t, old)
	if err := kafka.CommitOpenRecords(t, young, batch); err != nil {
		t.Fatalf("the next leader can't go on: %v", err)
	}
	wantExactlyInOrder(t, c.Records(topic), batchValues(batch))
}
