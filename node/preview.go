package node

import (
	"context"
	"errors"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Preview reads the binlog of c, from its end, its beginning or after a GTID set, and
// hands each record that its rows give to f until f wants no more. A record is lent: it
// is overwritten by a later one. Nothing is published or stored, and a connector at work
// is not disturbed. cfg names this node.
func Preview(ctx context.Context, cfg *config.Config, c *config.Connector, from config.Start, gtids string,
	f func(*txn.Record, *position.Commit) (more bool, _ error)) error {
	return unveiled(c, preview(ctx, cfg, c, from, gtids, f))
}

func preview(ctx context.Context, node *config.Config, c *config.Connector, from config.Start, gtids string,
	f func(*txn.Record, *position.Commit) (bool, error)) error {
	look, err := observe(node, c, "preview", nil)
	if err != nil {
		return err
	}
	at, err := look.begin(ctx, from)
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
	cc, err := look.connect()
	if err == nil {
		err = look.checkTables(ctx, cc) // or nobody would see why nothing comes
	}
	if err != nil {
		return err
	}
	var mem txn.Arena
	_, err = look.scan(ctx, at, position.Position{}, func(tx *txn.Transaction, _ canal.Status) (more bool, err error) {
		defer mem.Reset()
		for i := range tx.Rows {
			rec, ok, err := look.route.Encode(&mem, &tx.Rows[i])
			if err != nil {
				return false, &connector.RowError{Commit: tx.Commit, Row: tx.FirstRow + uint64(i), Err: err}
			}
			if !ok {
				continue
			}
			if more, err := f(&rec, &tx.Commit); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	})
	return err
}
