package recent_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
)

func ExampleIndex() {
	t := recent.NewBudget(1000).New(1000)
	t.Begin(time.Now())
	commit := position.Commit{GTID: position.GTID{SID: uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562"), Seq: 7}}
	t.Add(time.Now(), 1, func(int) recent.Published {
		return recent.Published{ID: t.ID([]byte("e-1")), Commit: &commit, Topic: "outbox.event.Order", Partition: 2,
			Offset: 40}
	})
	for _, f := range t.Find(t.ID([]byte("e-1")), 10) {
		fmt.Println(f.Topic, f.Partition, f.Offset)
	}
	// Output: outbox.event.Order 2 40
}
