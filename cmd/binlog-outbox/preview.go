package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// newPreview is the command preview.
func newPreview(p *program) *cobra.Command {
	var name, from, gtids string
	var limit int
	c := &cobra.Command{
		Use:   "preview [CONNECTOR.json ...]",
		Short: "Print the records that the live binlog would give, and publish nothing",
		Long: "Read the binlog, route and serialise the outbox rows, and print each as one line of JSON.\n" +
			"Kafka is not needed, no position is stored, and a running connector is not disturbed.",
		RunE: func(c *cobra.Command, args []string) error {
			if s := config.Start(from); s != config.StartCurrent && s != config.StartEarliest {
				return &usageError{err: fmt.Errorf("--from %s is not possible; current and earliest are", from)}
			}
			if limit < 0 {
				return &usageError{err: fmt.Errorf("--limit %d is not possible; a number of records is wanted, or 0", limit)}
			}
			cfg, err := p.load(args)
			if err != nil {
				return err
			}
			conn, err := oneConnector(cfg, name)
			if err != nil {
				return err
			}
			err = preview(c.Context(), cfg, conn, config.Start(from), gtids, limit, p.stdout)
			if c.Context().Err() != nil {
				return nil //nolint:nilerr // interrupted, as it is meant to be
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&name, "connector", "", "`name` of the connector, when there are several")
	f.StringVar(&from, "from", string(config.StartCurrent), "where to begin: current or earliest")
	f.StringVar(&gtids, "from-gtid-set", "", "begin after this GTID `set`, in place of --from")
	f.IntVarP(&limit, "limit", "n", 0, "stop after this `number` of records; 0 goes on until interrupted")
	return c
}

func oneConnector(cfg *config.Config, name string) (*config.Connector, error) {
	var names []string
	for i := range cfg.Connectors {
		c := &cfg.Connectors[i]
		if c.Name == name || name == "" && len(cfg.Connectors) == 1 {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if name != "" {
		return nil, &usageError{err: fmt.Errorf("there is no connector %q; the configuration has %q", name, names)}
	}
	return nil, &usageError{err: fmt.Errorf("name one of the connectors %q with --connector", names)}
}

// preview prints limit records from the binlog of c.
func preview(ctx context.Context, cfg *config.Config, c *config.Connector, from config.Start, gtids string, limit int,
	to io.Writer) error {
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	printed := 0
	return node.Preview(ctx, cfg, c, from, gtids, func(rec *txn.Record, m *position.Commit) (more bool, _ error) {
		if err := out.Encode(shown(rec, m)); err != nil {
			return false, err
		}
		printed++
		return printed != limit, nil
	})
}

// shownRecord is a record as preview prints it. Bytes that are not UTF-8 are
// printed in base64.
type shownRecord struct {
	Topic     string        `json:"topic"`
	Partition *int32        `json:"partition,omitempty"`
	Key       any           `json:"key"`
	Value     any           `json:"value"`
	Headers   []shownHeader `json:"headers"`
	Timestamp int64         `json:"timestamp"`
	GTID      string        `json:"gtid,omitempty"`
	File      string        `json:"file"`
	Pos       uint64        `json:"pos"`
}

type shownHeader struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func shown(r *txn.Record, m *position.Commit) shownRecord {
	s := shownRecord{
		Topic: r.Topic, Key: shownBytes(r.Key), Value: shownBytes(r.Value), Timestamp: r.Timestamp,
		GTID: m.GTID.String(), File: m.File, Pos: m.Pos, Headers: []shownHeader{},
	}
	if r.Partition >= 0 {
		s.Partition = &r.Partition
	}
	for _, h := range r.Headers {
		s.Headers = append(s.Headers, shownHeader{h.Key, shownBytes(h.Value)})
	}
	return s
}

func shownBytes(b []byte) any {
	switch {
	case b == nil:
		return nil
	case utf8.Valid(b):
		return string(b)
	default:
		return map[string][]byte{"base64": slices.Clone(b)}
	}
}
