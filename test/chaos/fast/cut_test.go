package fast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// logged is one transaction as the events of a binlog.
type logged struct {
	gtid   position.GTID
	events [][]byte
	rows   []int64
}

// history makes a binlog with what a shop's binlog has: outbox rows in several
// statements, other tables, rolled back groups, DDL, large and compressed ones.
func history() (head [][]byte, all []logged) {
	b := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4)
	head = slices.Clone(b.Events)
	orders := canaltest.Table{ID: 200, Database: "shop", Name: "orders", Full: true,
		Columns: []canaltest.Column{canaltest.BigInt("id")}}
	next := int64(0)
	insert := func(b *canaltest.Binlog, tx *logged, rows int) {
		var images [][]any
		for range rows {
			next++
			tx.rows = append(tx.rows, next)
			images = append(images, []any{next, "Order", fmt.Sprint("agg-", next%3), "Created", "{}"})
		}
		b.Map(canaltest.Outbox())
		b.Insert(canaltest.Outbox(), images...)
	}
	add := func(write func(tx *logged)) {
		tx := logged{gtid: position.GTID{SID: sourceID, Seq: uint64(len(all) + 1)}}
		from := len(b.Events)
		b.GTID(tx.gtid, uint64(1_700_000_000_000_000+len(all)), 0)
		write(&tx)
		tx.events = slices.Clone(b.Events[from:])
		all = append(all, tx)
	}
	for range 2 {
		add(func(tx *logged) {
			b.Begin()
			insert(b, tx, 2)
			insert(b, tx, 1)
			b.XID()
		})
		add(func(*logged) {
			b.Begin()
			b.Map(orders)
			b.Insert(orders, []any{int64(1)})
			b.XID()
		})
		add(func(tx *logged) { // undone
			b.Begin()
			insert(b, tx, 1)
			tx.rows = nil
			b.Query("shop", "ROLLBACK")
		})
		add(func(tx *logged) {
			b.Compressed(func(in *canaltest.Binlog) {
				in.Begin()
				insert(in, tx, 2)
				in.XID()
			})
		})
		add(func(*logged) { b.Query("shop", "CREATE TABLE other (id INT)") })
		add(func(tx *logged) {
			b.Begin()
			insert(b, tx, 1)
			b.XID()
		})
	}
	return head, all
}

// TestCutAtEachEvent cuts the binlog's connection after each number of events, goes
// on from the position that was reached, and cuts again one event later. What the
// transactions committed must come once, in order, and the position must cover
// every transaction that is through, those without outbox rows too.
func TestCutAtEachEvent(t *testing.T) {
	head, all := history()
	events, want := len(head), []int64(nil)
	for _, tx := range all {
		events += len(tx.events)
		want = append(want, tx.rows...)
	}
	for cut := range events + 1 {
		var left int // events until the cut; -1 for none
		server := &canaltest.Server{
			UUID: sourceID.String(), GTIDMode: "ON", Executed: fmt.Sprintf("%s:1-%d", sourceID, len(all)), LogBin: "ON",
			Binlogs: []string{"binlog.000001"},
		}
		server.Serve = func(d canaltest.Dump, to *canaltest.Sender) error {
			known, err := position.ParseSet(position.MySQL, d.Set)
			if err != nil {
				return err
			}
			send := slices.Clone(head)
			for _, tx := range all {
				if !known.Has(tx.gtid) {
					send = append(send, tx.events...)
				}
			}
			for _, e := range send {
				if left == 0 {
					to.Cut()
					return io.EOF
				}
				left--
				if err := to.Event(slices.Clone(e)); err != nil {
					return err
				}
			}
			return nil
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		at := position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: 4}
		var got []int64
		for _, left = range []int{cut, cut + 1, -1} {
			if err := read(t.Context(), server, t.TempDir(), &at, &got, len(all)); err != nil && left < 0 {
				t.Fatalf("cut after %d events: %v", cut, err)
			}
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("cut after %d events: rows %v arrived, %v were committed", cut, got, want)
		}
		if at.Set.Count() != uint64(len(all)) {
			t.Fatalf("cut after %d events: the position is %s, the server has %d transactions", cut, at.Set, len(all))
		}
	}
}

// read reads until the position covers all transactions or the stream ends.
func read(ctx context.Context, server *canaltest.Server, spool string, at *position.Position, got *[]int64,
	all int) error {
	stream, err := canal.Open(ctx, canal.Config{
		Host: "127.0.0.1", Port: server.Port(), User: canaltest.User, Password: canaltest.Password, ServerID: 7,
		SpoolDir: spool, Heartbeat: time.Second,
		Tables: canal.Tables{Match: func(_, table string) (bool, error) { return table == "outbox", nil }},
	}, *at)
	if err != nil {
		return err
	}
	defer stream.Close()
	for at.Set.Count() < uint64(all) {
		txs, err := stream.Next(ctx)
		if err != nil {
			return err
		}
		for _, tx := range txs {
			for _, row := range tx.Rows {
				id, ok := row.After[0].(int64)
				if !ok {
					return errors.New("id is no number")
				}
				*got = append(*got, id)
			}
			at.Advance(tx.Commit)
		}
	}
	return nil
}
