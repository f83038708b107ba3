package canal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// Transactions that were accepted as lost, before or at this very opening, are not in
// the set that the server is told to pass over: one that was rebuilt and gives their
// numbers to others sends those, and the stream stops instead of going on without them.
func TestF15LostTransactionsAreAskedFor(t *testing.T) {
	const other = "11111111-2222-3333-4444-555555555555"
	lost := set(t, other+":11-13").Set
	for name, accept := range map[string]func(f *fake){
		"before": func(f *fake) { f.cfg.Accepted = lost },
		"just now": func(f *fake) {
			f.cfg.OnLostTransactions = func(context.Context, *position.Set, string) error { return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			again := position.GTID{SID: uuid.MustParse(other), Seq: 12}
			b := mysqlLog()
			b.Transaction(gtid(101), func() { insert(b, 1) })
			b.Transaction(again, func() { insert(b, 2) })
			serve := events(b, silence)
			asked := make(chan canaltest.Dump, 1)
			f := newFake(t, func(d canaltest.Dump, to *canaltest.Sender) error {
				select {
				case asked <- d:
				default:
				}
				return serve(d, to)
			})
			f.Executed = sid.String() + ":1-100," + other + ":1-10"
			accept(f)
			r := f.open(set(t, sid.String()+":1-100,"+other+":1-13"))
			got, err := position.ParseSet(position.MySQL, (<-asked).Set)
			if err != nil {
				t.Fatal(err)
			}
			if both := got.Intersect(lost); !both.IsEmpty() {
				t.Errorf("the server is told not to send %s", both)
			}
			for err == nil {
				err = r.step()
			}
			wantError(t, err, canal.Diverged, again)
			if e := new(canal.Error); errors.As(err, &e) && e.Retryable() {
				t.Error("it is tried again")
			}
			if got := r.rows(); got != "1" {
				t.Errorf("rows %s came before it, want 1", got)
			}
		})
	}
}
