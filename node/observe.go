package node

import (
	"context"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// observer looks at the source of one connector beside it: under a server id and with a
// spool directory of its own, for a connector at work, here or at another node, must keep
// its stream.
type observer struct {
	*sources
}

// observe makes an observer. One purpose, which is part of its server id, has one observer
// at a time.
func observe(node *config.Config, c *config.Connector, purpose string, dial dialer) (*observer, error) {
	own := *c
	own.Source.ServerID = config.DerivedServerID(node.Node.ID, c.Name+"\x00"+purpose)
	route, err := newRoute(&own, nil)
	if err != nil {
		return nil, err
	}
	src, err := newSources(node, &own, route, surroundings{log: slog.New(slog.DiscardHandler), dial: dial})
	if err != nil {
		return nil, err
	}
	src.canal.SpoolDir += "." + purpose
	return &observer{src}, nil
}

// scan reads as canal.Scan does.
func (o *observer) scan(ctx context.Context, from, to position.Position,
	f func(*txn.Transaction, canal.Status) (bool, error)) (position.Position, error) {
	c, err := o.connect()
	if err != nil {
		return from, err
	}
	return canal.Scan(ctx, c, from, to, f)
}
