package canal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

var sid = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

func gtid(n uint64) position.GTID { return position.GTID{SID: sid, Seq: n} }

func maria(n uint64) position.GTID { return position.GTID{Server: 1, Seq: n} }

// outbox is the matcher of all tests here: tables called outbox.
func isOutbox(_, table string) (bool, error) { return table == "outbox", nil }

// row is a row of canaltest.Outbox.
func row(id int) []any {
	return []any{int64(id), "Order", fmt.Sprintf("agg-%d", id), "Created", fmt.Sprintf(`{"id":%d}`, id)}
}

// foreign is a table with a type that nobody can decode.
func foreign() canaltest.Table {
	return canaltest.Table{ID: 200, Database: "shop", Name: "orders", Columns: []canaltest.Column{{Name: "x", Type: 244}}}
}

// begun is when all files of canaltest were begun.
const begun = 1_700_000_000

// feed walks events and keeps what comes out.
type feed struct {
	t   *testing.T
	cfg canal.Config
	// from is a GTID set position unless set otherwise.
	flavor position.Flavor
	from   position.Position
	tables map[string][]schema.ColumnInfo

	w   *canal.EventHandler
	out []txn.Transaction
	err error
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	return &feed{
		t: t, flavor: position.MySQL,
		cfg:  canal.Config{ServerID: 7, Tables: canal.Tables{Match: isOutbox}, SpoolDir: t.TempDir()},
		from: position.Position{Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: 4},
	}
}

func (f *feed) start() {
	f.t.Helper()
	f.w = canal.NewEventHandler(f.cfg, f.flavor, f.from,
		func(n schema.Name) ([]schema.ColumnInfo, error) { return f.tables[n.String()], nil },
		func(t txn.Transaction) error { f.out = append(f.out, t); return nil })
	f.t.Cleanup(func() {
		if err := f.w.Close(); err != nil {
			f.t.Error(err)
		}
	})
}

// walk feeds events until one fails.
func (f *feed) walk(b *canaltest.Binlog) *feed {
	f.t.Helper()
	if f.w == nil {
		f.start()
	}
	for _, e := range b.Events {
		if f.err = f.w.Handle(bytes.Clone(e)); f.err != nil {
			break
		}
	}
	b.Events = nil
	return f
}

// ids lists what was handed on: "gtid[ids]" per transaction.
func (f *feed) ids() string {
	f.t.Helper()
	if f.err != nil {
		f.t.Fatalf("unexpected error: %v", f.err)
	}
	return idsOf(f.out)
}

func idsOf(all []txn.Transaction) string {
	var parts []string
	for _, t := range all {
		var ids []string
		for _, r := range t.Rows {
			ids = append(ids, fmt.Sprint(r.After[0]))
		}
		part := fmt.Sprintf("%d", t.Commit.GTID.Seq)
		if t.Commit.First < t.Commit.GTID.Seq {
			part = fmt.Sprintf("%d-%d", t.Commit.First, t.Commit.GTID.Seq)
		}
		part += fmt.Sprint(ids)
		if !t.Final {
			part += "+"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func (f *feed) want(want string) {
	f.t.Helper()
	if got := f.ids(); got != want {
		f.t.Errorf("handed on %s, want %s", got, want)
	}
}

// fails asserts the kind of the error and that it names the transaction.
func (f *feed) fails(kind canal.Kind, g position.GTID, words ...string) {
	f.t.Helper()
	wantError(f.t, f.err, kind, g, words...)
}

func wantError(t *testing.T, err error, kind canal.Kind, g position.GTID, words ...string) *canal.Error {
	t.Helper()
	var e *canal.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a %s", err, kind)
	}
	if e.Kind != kind {
		t.Fatalf("got %s (%v), want %s", e.Kind, err, kind)
	}
	if e.GTID != g {
		t.Errorf("error names transaction %q, want %q: %v", e.GTID, g, err)
	}
	if !g.IsZero() && !strings.Contains(err.Error(), g.String()) {
		t.Errorf("error text lacks %s: %v", g, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error text lacks %q: %v", w, err)
		}
	}
	return e
}

func mysqlLog() *canaltest.Binlog { return canaltest.NewBinlog(position.MySQL, "binlog.000001", 4) }

func mariaLog() *canaltest.Binlog {
	return canaltest.NewBinlog(position.MariaDB, "mariadb-bin.000001", 4)
}

func (f *feed) maria() *feed {
	f.flavor = position.MariaDB
	f.from = position.Position{Set: position.NewSet(position.MariaDB), File: "mariadb-bin.000001", Pos: 4}
	return f
}

func (f *feed) byFile() *feed {
	f.from = position.Position{File: "binlog.000001", Pos: 4, Created: begun}
	return f
}

// insert appends a table map and rows with the given ids.
func insert(b *canaltest.Binlog, ids ...int) {
	t := canaltest.Outbox()
	b.Map(t)
	var rows [][]any
	for _, id := range ids {
		rows = append(rows, row(id))
	}
	b.Insert(t, rows...)
}

func total(all []txn.Transaction) (rows int) {
	for _, t := range all {
		rows += len(t.Rows)
	}
	return rows
}

func wantAbsent(t *testing.T, err error, secret string) {
	t.Helper()
	if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
		t.Errorf("the error tells a secret: %v", err)
	}
}
