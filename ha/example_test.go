package ha_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// A node that is alone leads by itself; its leadership ends when it no longer does.
func ExampleNode_Lead() {
	dir, err := os.MkdirTemp("", "ha-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := ha.DefaultConfig()
	cfg.NodeID, cfg.DataDir = "n1", dir
	node, err := ha.Open(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	running := make(chan error, 1)
	go func() { running <- node.Run(ctx) }()
	_ = node.Lead(ctx, func(leadership context.Context, term uint64) error {
		fmt.Println("leads", node.IsLeader(), leadership.Err())
		stop()
		return nil
	})
	_ = node.Shutdown(context.Background())
	<-running
	// Output: leads true <nil>
}
