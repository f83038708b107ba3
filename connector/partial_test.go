package connector

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
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

// scripted gives transactions once and then has no more.
type scripted struct {
	Source
	txs []txn.Transaction
}

func (s *scripted) Next(context.Context) ([]txn.Transaction, error) {
	txs := s.txs
	if s.txs = nil; txs == nil {
		return nil, io.EOF
	}
	return txs, nil
}

// By file and offset the transaction that is published in part is the next one. What only
// says which columns became known is none.
func TestLearntColumnsAreNoTransaction(t *testing.T) {
	outbox := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}}
	rows := func(first uint64) (out []schema.Row) {
		for n := range uint64(3) {
			out = append(out, schema.Row{Table: outbox, Op: schema.Insert, After: []any{first + n}})
		}
		return out
	}
	from := position.Position{
		File: "b.000001", Pos: 100,
		Partials: []position.Partial{{Rows: []position.KindRows{{Kind: kindOf(&rows(1)[0]), N: 2}}}},
	}
	source := &scripted{txs: []txn.Transaction{
		{Commit: position.Commit{Columns: "c"}, Final: true},
		{Commit: position.Commit{File: "b.000001", Pos: 200}, Rows: rows(1), Final: true},
		{Commit: position.Commit{File: "b.000001", Pos: 300}, Rows: rows(4), Final: true},
	}}
	p := newPipe(Limits{Rows: 100, Bytes: 1 << 20}, &world{})
	s := session{pipe: p, taken: newReadSet(from)}
	if err := s.readAll(t.Context(), source, from); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	p.close(nil)
	var got []uint64
	drain(t, p, func(b *batch) {
		for _, g := range b.Groups {
			for _, r := range g.Records {
				got = append(got, binary.BigEndian.Uint64(r.Key))
			}
		}
	})
	if want := []uint64{3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("rows %v are published, want %v", got, want)
	}
}
