package node

import (
	"context"
	"errors"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// Preview reads the binlog of c, from its end, its beginning or after a GTID set, and
// hands each record that its rows give to f until f wants no more. A record is lent: it
// is overwritten by a later one. Nothing is published or stored, and a connector at work
// is not disturbed. cfg names this node.
func Preview(ctx context.Context, cfg *config.Config, c *config.Connector, from config.Start, gtids string, f func(*kafka.Record, *position.Mark) (more bool, _ error)) error {
	return unveiled(c, preview(ctx, cfg, c, from, gtids, f))
}

func preview(ctx context.Context, node *config.Config, c *config.Connector, from config.Start, gtids string, f func(*kafka.Record, *position.Mark) (bool, error)) error {
	route, err := newRoute(c, nil)
	if err != nil {
		return err
	}
	probe := *c
	probe.Source.Start = from
	// A number of its own: the connector that runs must keep its stream.
	probe.Source.ServerID = config.DerivedServerID(node.Node.ID, c.Name+"\x00preview")
	src, err := newSources(node, &probe, route, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	src.canal.SpoolDir += ".preview"
	at, err := src.Start(ctx)
	if err != nil {
		return err
	}
	if gtids != "" {
		if at.Set == nil {
			return errors.New("the server has no GTIDs to begin after")
		}
		if at.Set, err = position.ParseSet(at.Flavor, gtids); err != nil {
			return err
		}
	}
	stream, err := src.Open(ctx, at)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // nothing was written
	return eachRecord(ctx, stream, route, f)
}

func eachRecord(ctx context.Context, stream connector.Source, route *route, f func(*kafka.Record, *position.Mark) (bool, error)) error {
	mem := route.NewMemory()
	for {
		txs, err := stream.Next(ctx)
		if err != nil {
			return err
		}
		for i := range txs {
			for j := range txs[i].Rows {
				rec, ok, err := route.Encode(mem, &txs[i].Rows[j])
				if err != nil {
					return &connector.RowError{Mark: txs[i].Mark, Row: txs[i].FirstRow + uint64(j), Err: err}
				}
				if !ok {
					continue
				}
				if more, err := f(&rec, &txs[i].Mark); err != nil || !more {
					return err
				}
			}
			mem.Reset()
		}
	}
}
