package kafka_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// A batch and the position that it leads to become visible together, or not at all.
func ExamplePublisher() {
	ctx := context.Background()
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Connector = []string{"kafka.example.internal:9092"}, "orders"
	pub, err := kafka.NewPublisher(cfg, slog.Default(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sink := pub.ExactlyOnce(1)
	at, found, err := sink.Open(ctx) // fences whoever wrote before
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sink.Close(ctx)
	if !found {
		at = position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}
	}
	groups := []txn.Group{{
		Commit: position.Commit{GTID: position.GTID{SID: source, Seq: 12}, First: 12},
		Records: []txn.Record{{Topic: "outbox.event.Order", Partition: -1, Key: []byte("42"), Value: []byte("{}"),
			Timestamp: -1}},
	}}
	next, err := txn.Over(at, groups)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := sink.Commit(ctx, &txn.Batch{Groups: groups, Position: next}); err != nil {
		fmt.Println(err) // the sink is dead: only the next Open can tell what became of the batch
	}
}
