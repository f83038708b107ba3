package canal_test

import (
	"slices"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// answers are what information_schema says, and whether the table is changed further on.
type answers struct {
	columns []schema.ColumnInfo
	changes bool
	asked   int
}

func swapped() []schema.ColumnInfo {
	now := described()
	now[2].Name, now[3].Name = now[3].Name, now[2].Name
	return now
}

func (f *feed) follow(columns string, a *answers) {
	f.w = canal.NewEventHandler(f.cfg, f.flavor, f.from, func(schema.Name) ([]schema.ColumnInfo, error) {
		a.asked++
		return a.columns, nil
	}, func(tr txn.Transaction) error { f.out = append(f.out, tr); return nil })
	f.w.Follow(columns, func(schema.Name) (bool, error) { return a.changes, nil })
}

// third are the names of the third column, of all rows.
func (f *feed) third() (names []string) {
	for _, tx := range f.out {
		for _, row := range tx.Rows {
			names = append(names, row.Table.Columns[2].Name)
		}
	}
	return names
}

const swap = "ALTER TABLE outbox CHANGE aggregateid type VARCHAR(255), CHANGE type aggregateid VARCHAR(255)"

func minimal(id uint64) canaltest.Table {
	o := canaltest.Outbox()
	o.Full, o.ID = false, id
	return o
}

// The columns of a row are those of its place, whatever the server has by now; and so
// behind a restart at any place.
func TestG2ColumnsGoThroughDDL(t *testing.T) {
	f := newFeed(t)
	a := &answers{columns: described()}
	f.follow("", a)
	b := minimalLog(row(1))
	f.walk(b)
	a.columns = swapped()
	o := minimal(canaltest.Outbox().ID)
	b.GTID(gtid(2), 0, 0)
	b.Query("shop", swap)
	b.Transaction(gtid(3), func() { b.Map(o); b.Insert(o, row(3)) })
	b.GTID(gtid(4), 0, 0)
	b.Query("shop", "ALTER TABLE outbox ADD INDEX (type)")
	b.Transaction(gtid(5), func() { b.Map(o); b.Insert(o, row(5)) })
	f.walk(b)
	if got, want := f.third(), []string{"aggregateid", "type", "type"}; f.err != nil || !slices.Equal(got, want) {
		t.Fatalf("the third column is %v, want %v: %v", got, want, f.err)
	}
	var at position.Position
	for i, tx := range f.out {
		at.Advance(tx.Commit)
		if told := tx.Commit.Columns != ""; told != (i < 2) {
			t.Errorf("transaction %d tells columns: %t", i+1, told)
		}
		again := newFeed(t)
		again.follow(at.Columns, &answers{columns: swapped(), changes: true})
		rest := mysqlLog()
		if i == 0 {
			rest.GTID(gtid(2), 0, 0)
			rest.Query("shop", swap)
		}
		rest.Transaction(gtid(9), func() { rest.Map(o); rest.Insert(o, row(9)) })
		if again.walk(rest); again.err != nil || !slices.Equal(again.third(), []string{"type"}) {
			t.Errorf("behind transaction %d: %v, %v", i+1, again.third(), again.err)
		}
	}
}

// What the server says does not count for rows before a change of the table.
func TestG2AnswerOfLaterColumns(t *testing.T) {
	f := newFeed(t)
	f.follow("", &answers{columns: swapped(), changes: true})
	f.walk(minimalLog(row(1)))
	if e := wantError(t, f.err, canal.SchemaMismatch, gtid(1), "further on"); e.Table != "shop.outbox" ||
		len(f.third()) != 0 {
		t.Errorf("%v, rows %v", e, f.third())
	}
}

// A change that is not in the binlog shows by a new table id alone.
func TestF5NewTableID(t *testing.T) {
	for name, c := range map[string]struct {
		now     []schema.ColumnInfo
		changes bool
		stops   bool
	}{
		"as before":           {described(), false, false},
		"changed, unlogged":   {swapped(), false, true},
		"changed, further on": {swapped(), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t)
			a := &answers{columns: described()}
			f.follow("", a)
			b := minimalLog(row(1))
			f.walk(b)
			a.columns, a.changes = c.now, c.changes
			o := minimal(101)
			b.Transaction(gtid(2), func() { b.Map(o); b.Insert(o, row(2)) })
			f.walk(b)
			if c.stops {
				wantError(t, f.err, canal.SchemaMismatch, gtid(2), "not in the binlog")
			} else if f.err != nil {
				t.Error(f.err)
			}
			if got := len(f.third()); got != 1 && c.stops || got != 2 && !c.stops {
				t.Errorf("%d rows went out", got)
			}
		})
	}
}
