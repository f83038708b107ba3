package canal_test

import (
	"context"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Whoever reads a stream keeps where it is by the commit positions of what was handed on.
func ExampleOpen() {
	ctx := context.Background()
	outbox := schema.Name{Database: "shop", Table: "outbox"}
	cfg := canal.Config{
		Host: "mysql.example.internal", User: "outbox_cdc", ServerID: 7001,
		Tables: canal.Tables{
			Match: func(db, table string) (bool, error) { return schema.Name{Database: db, Table: table} == outbox, nil },
			List:  []schema.Name{outbox},
		},
	}
	at, err := canal.CurrentPosition(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := canal.Open(ctx, cfg, at)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Close()
	for {
		transactions, err := stream.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, tx := range transactions {
			fmt.Println(tx.Commit.GTID, len(tx.Rows))
			at.Advance(tx.Commit) // only where the transaction ends
		}
	}
}
