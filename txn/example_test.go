package txn_test

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// When a batch is durable, the connector is behind its transactions.
func ExampleOver() {
	server := uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")
	at := position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}
	at.Set.AddRange(position.GTID{SID: server, Seq: 10}, 1)
	next, err := txn.Over(at, []txn.Group{{
		Commit:  position.Commit{GTID: position.GTID{SID: server, Seq: 11}, First: 11},
		Records: []txn.Record{{Topic: "outbox.event.Order"}},
	}})
	fmt.Println(next.Set, next.Seq, err)
	// Output: 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-11 1 <nil>
}
