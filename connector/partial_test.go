package connector

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// changing is a world of a few large transactions of three kinds of rows, of which
// each life takes what its configuration names, in parts of its own sizes, from a
// server with an order of its own.
type changing struct {
	*world
	whole []txn.Transaction
	takes map[position.Kind]bool // at this life
	order []int                  // of whole, at this life
}

var changingKinds = []position.Kind{
	{Database: "shop", Table: "always", Op: "insert"}, {Database: "shop", Table: "always", Op: "update"},
	{Database: "shop", Table: "sometimes", Op: "insert"},
}

func newChanging(seed uint64, exactlyOnce bool) *changing {
	c := &changing{world: newWorld(seed, exactlyOnce)}
	c.binlog, c.rows = nil, 0
	tables := map[string]*schema.Table{}
	for _, k := range changingKinds {
		tables[k.Table] = &schema.Table{Name: schema.Name{Database: k.Database, Table: k.Table}}
	}
	// Servers of two identities have written; only those of one are in order.
	sids := []uuid.UUID{simServer, uuid.MustParse("11111111-2222-3333-4444-555555555555")}
	for n := range uint64(6) {
		g := position.GTID{SID: sids[n%2], Seq: n/2 + 1}
		tx := txn.Transaction{Commit: position.Commit{GTID: g, First: g.Seq}, Final: true}
		for range 10 + c.rnd.IntN(20) {
			c.rows++
			k := changingKinds[c.rnd.IntN(len(changingKinds))]
			row := schema.Row{Table: tables[k.Table], Op: schema.Insert, After: []any{c.rows}}
			if k.Op == "update" {
				row.Op, row.Before = schema.Update, row.After
			}
			tx.Rows = append(tx.Rows, row)
		}
		c.whole = append(c.whole, tx)
	}
	return c
}

// change chooses the configuration and the server of the next life. all is for the
// last one.
func (c *changing) change(all bool) {
	c.takes = map[position.Kind]bool{}
	for i, k := range changingKinds {
		c.takes[k] = all || i == 0 || c.intn(2) == 0
	}
	c.order = nil
	var left [2][]int
	for i := range c.whole {
		left[i%2] = append(left[i%2], i)
	}
	for len(c.order) < len(c.whole) {
		if of := &left[c.intn(2)]; len(*of) > 0 {
			c.order, *of = append(c.order, (*of)[0]), (*of)[1:]
		}
	}
}

func (c *changing) Open(ctx context.Context, from position.Position) (Source, error) {
	c.mu.Lock()
	c.binlog = nil
	for _, i := range c.order {
		tx := c.whole[i]
		var rows []schema.Row
		for _, r := range tx.Rows {
			if c.takes[kindOf(&r)] {
				rows = append(rows, r)
			}
		}
		for first := 0; ; {
			part := tx
			end := min(len(rows), first+1+c.rnd.IntN(6))
			part.Rows, part.FirstRow, part.Final = rows[first:end], uint64(first), end == len(rows)
			c.binlog = append(c.binlog, part)
			if first = end; part.Final {
				break
			}
		}
	}
	c.mu.Unlock()
	return c.world.Open(ctx, from)
}

func (c *changing) connector() *Connector {
	cfg := DefaultConfig()
	cfg.Name, cfg.Limits = "sim", Limits{Rows: 3, Bytes: 1 << 20}
	return New(cfg, c, c, c, c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// A transaction that is published in part is gone on with where it was left, kind by
// kind, whatever the configuration takes now, and whichever server gives it, before
// or after others: nothing is lost, and with a sink that keeps the position nothing
// comes twice.
func TestPartsOfAnotherConfiguration(t *testing.T) {
	for _, exactlyOnce := range []bool{true, false} {
		for seed := range uint64(400) {
			synctest.Test(t, func(t *testing.T) {
				c := newChanging(seed, exactlyOnce)
				c.faults = .05
				most := 0
				for range 8 {
					c.change(false)
					c.life(c.connector(), time.Duration(1+c.intn(6))*time.Second, c.intn(2) == 0)
					most = max(most, len(c.stored.Partials))
				}
				c.change(true)
				c.faults = 0
				c.life(c.connector(), 2*time.Minute, false)
				times := map[uint64]int{}
				for _, id := range c.log {
					times[id]++
				}
				for _, tx := range c.whole {
					for i := range tx.Rows {
						id := tx.Rows[i].After[0].(uint64)
						always := kindOf(&tx.Rows[i]) == changingKinds[0]
						if n := times[id]; always && n == 0 || exactlyOnce && n > 1 {
							t.Fatalf("seed %d: row %d of %v came %d times", seed, id, kindOf(&tx.Rows[i]), n)
						}
					}
				}
				if len(c.stored.Partials) != 0 || c.stored.Set.Count() != uint64(len(c.whole)) {
					t.Fatalf("seed %d: in the end the position is %s", seed, c.stored)
				}
			})
		}
	}
}

// Rows are counted by kind, few kinds or many.
func TestCounter(t *testing.T) {
	var c Counter
	for range 2 {
		c.Reset()
		want := map[position.Kind]uint64{}
		for n := range 100 {
			tables := []*schema.Table{{Name: schema.Name{Database: "shop", Table: string(rune('a' + n*n%23))}}, nil}
			row := schema.Row{Table: tables[n%2], Op: []schema.Op{schema.Insert, schema.Update, schema.Insert}[n%3]}
			kind, i := c.Next(&row)
			if kind != kindOf(&row) || i != want[kind] {
				t.Fatalf("row %d: %v %d, want %v %d", n, kind, i, kindOf(&row), want[kindOf(&row)])
			}
			want[kind]++
		}
		if counted := c.Counted(); len(counted) != len(want) || slices.ContainsFunc(counted,
			func(k position.KindRows) bool { return want[k.Kind] != k.N }) {
			t.Errorf("counted %v, want %v", counted, want)
		}
	}
}
