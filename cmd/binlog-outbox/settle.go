package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// settleLimit bounds the command settle.
const settleLimit = time.Minute

func newSettle(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "settle CONNECTOR TOPIC PARTITION commit|abort [CONNECTOR.json ...]",
		Short: "Commit or abort what a transaction has left open in a partition",
		Long: "Commit or abort what a transaction of this connector has left open in a partition, where the\n" +
			"connector has stopped with transaction_hanging since nobody but you can decide. commit loses\n" +
			"nothing, and rows of an unfinished batch there come twice; abort repeats nothing, and committed\n" +
			"rows there are lost. Kafka is asked directly, with the connector's settings. A connector that\n" +
			"runs is thrown out of its transaction; restart one that has failed afterwards:\n\n" +
			"  binlog-outbox settle orders-outbox order.events 3 commit\n" +
			"  binlog-outbox connector restart orders-outbox",
		Args: cobra.MinimumNArgs(4),
		RunE: func(c *cobra.Command, args []string) error {
			if args[3] != "commit" && args[3] != "abort" {
				return &usageError{err: fmt.Errorf("%q is neither commit nor abort", args[3])}
			}
			partition, err := strconv.ParseInt(args[2], 10, 32)
			if err != nil || partition < 0 {
				return &usageError{err: fmt.Errorf("partition %q is not a number", args[2])}
			}
			cfg, err := p.load(args[4:])
			if err != nil {
				return err
			}
			conn, err := oneConnector(cfg, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), settleLimit)
			defer cancel()
			return p.settle(ctx, cfg, conn, args[1], int32(partition), args[3] == "commit")
		},
	}
}

func (p *program) settle(ctx context.Context, cfg *config.Config, c *config.Connector, topic string, partition int32,
	commit bool) error {
	found, err := node.Settle(ctx, cfg, c, topic, partition, commit, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if err != nil {
		return err
	}
	if !found {
		_, err = fmt.Fprintf(p.stdout, "nothing of this connector waits for a decision in topic %s, partition %d\n", topic,
			partition)
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "done; binlog-outbox connector restart %s lets it go on\n", c.Name)
	return err
}
