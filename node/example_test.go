package node_test

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// What the command run does, without its flags.
func ExampleNew() {
	cfg, err := (&config.Builder{}).Build(config.YAML("node.yaml", []byte(config.Example())))
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := node.New(cfg, node.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := n.Run(ctx); err != nil {
		fmt.Println(err)
	}
}
