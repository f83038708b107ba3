package canal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// described is canaltest.Outbox as information_schema describes it.
func described() []schema.ColumnInfo {
	cols := []schema.ColumnInfo{{Name: "id", DataType: "bigint", ColumnType: "bigint", Precision: 19, Primary: true,
		KeyPosition: 1}}
	for _, name := range []string{"aggregatetype", "aggregateid", "type"} {
		cols = append(cols, schema.ColumnInfo{Name: name, Nullable: true, DataType: "varchar", ColumnType: "varchar(255)",
			CharLength: 255, Charset: "utf8mb4"})
	}
	cols = append(cols, schema.ColumnInfo{Name: "payload", Nullable: true, DataType: "longtext", ColumnType: "longtext",
		CharLength: 1<<32 - 1, Charset: "utf8mb4"})
	for i := range cols {
		cols[i].Position, cols[i].ServerVersion = i+1, "8.4.0"
		if cols[i].DataType != "bigint" {
			cols[i].Scale = -1
		}
	}
	return cols
}

func minimalLog(rows ...[]any) *canaltest.Binlog {
	b := mysqlLog()
	o := canaltest.Outbox()
	o.Full = false
	b.Transaction(gtid(1), func() { b.Map(o); b.Insert(o, rows...) })
	return b
}

func TestShapeFromInformationSchema(t *testing.T) {
	f := newFeed(t)
	asked := 0
	f.w = canal.NewEventHandler(f.cfg, f.flavor, f.from, func(n schema.Name) ([]schema.ColumnInfo, error) {
		asked++
		if n.String() != "shop.outbox" {
			t.Errorf("asked for %s", n)
		}
		return described(), nil
	}, func(tr txn.Transaction) error { f.out = append(f.out, tr); return nil })
	b := minimalLog(row(1))
	o := canaltest.Outbox()
	o.Full = false
	o.ID = 101 // the table was opened again: another id, the same shape
	b.Transaction(gtid(2), func() { b.Map(o); b.Insert(o, row(2)) })
	b.GTID(gtid(3), 0, 0)
	b.Query("shop", "ALTER TABLE orders ADD x INT")
	b.Transaction(gtid(4), func() { b.Map(o); b.Insert(o, row(4)) })
	f.walk(b).want("1[1] 2[2] 3[] 4[4]")
	if asked != 1 {
		t.Errorf("information_schema was asked %d times, want 1", asked)
	}
	if a, b := f.out[0].Rows[0].Table, f.out[3].Rows[0].Table; a != b || a.Column("payload") != 4 {
		t.Errorf("tables are %p and %p", a, b)
	}
	for i, ddl := range []string{
		"ALTER TABLE `outbox` ADD COLUMN x INT INVISIBLE", "/* c */ ALTER TABLE shop.outbox DROP x",
		"RENAME TABLE outbox TO old, new TO outbox",
		"ALTER TABLE new RENAME TO outbox", "DROP DATABASE shop", "TRUNCATE outbox",
	} {
		b.GTID(gtid(uint64(10+2*i)), 0, 0)
		b.Query("shop", ddl)
		b.Transaction(gtid(uint64(11+2*i)), func() { b.Map(o); b.Insert(o, row(i)) })
		if f.walk(b); f.err != nil || asked < i+2 {
			t.Errorf("after %s information_schema was asked %d times, %v", ddl, asked, f.err)
		}
	}
}

func TestShapeErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		cols  []schema.ColumnInfo
		kind  canal.Kind
		words []string
	}{
		{"table is gone", nil, canal.UnknownTable, []string{"binlog_row_metadata=FULL"}},
		{"fewer columns", described()[:4], canal.SchemaMismatch, []string{"binlog_row_metadata=FULL",
			"4 columns are known, the binlog has 5", "payload"}},
		{"a hidden column", described()[1:], canal.UnknownTable, []string{"binlog_row_metadata=FULL", "position 2"}},
		{"another type", func() []schema.ColumnInfo {
			c := described()
			c[0].DataType, c[0].ColumnType, c[0].Precision = "int", "int", 10
			return c
		}(), canal.SchemaMismatch, []string{"id", "bigint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed(t)
			f.tables = map[string][]schema.ColumnInfo{"shop.outbox": c.cols}
			words := append([]string{"shop.outbox"}, c.words...)
			if c.kind == canal.SchemaMismatch {
				words = words[:len(words)-1]
			}
			f.walk(minimalLog(row(1))).fails(c.kind, gtid(1), words...)
			var e *canal.Error
			if errors.As(f.err, &e) && (e.Table != "shop.outbox" || e.Retryable() != (c.kind == canal.UnknownTable)) {
				t.Errorf("table %q, retry %t", e.Table, e.Retryable())
			}
		})
	}
}

// Names in the binlog are those of the row's time and win over today's.
func TestShapeFromTheBinlogWins(t *testing.T) {
	f := newFeed(t)
	cols := described()
	cols[1].Name = "renamed"
	value := "Order"
	cols[2].Default = &value
	f.tables = map[string][]schema.ColumnInfo{"shop.outbox": cols}
	b := mysqlLog()
	b.Transaction(gtid(1), func() { insert(b, 1) })
	f.walk(b).want("1[1]")
	table := f.out[0].Rows[0].Table
	if table.Columns[1].Name != "aggregatetype" || table.Columns[1].DefaultKnown {
		t.Errorf("column is %+v", table.Columns[1])
	}
	if c := table.Columns[2]; !c.DefaultKnown || c.Default == nil || *c.Default != value {
		t.Errorf("the default did not come over: %+v", c)
	}
}

// go-mysql dies of a deeply nested document; here it stays bytes.
func TestHostileJSON(t *testing.T) {
	o := canaltest.Outbox()
	o.Columns[4] = canaltest.JSON("payload")
	doc := strings.Repeat("\x02\x01\x00\x0c\x00\x0b\x00\x01\x00\x00\x00\x00", 3)
	b := mysqlLog()
	b.Transaction(gtid(1), func() {
		b.Map(o)
		r := row(1)
		r[4] = doc
		b.Insert(o, r)
	})
	f := newFeed(t).walk(b)
	f.want("1[1]")
	if got := f.out[0].Rows[0].After[4]; fmt.Sprint(got) != fmt.Sprint([]byte(doc)) {
		t.Errorf("document is %v", got)
	}
}

// An error must name the column and nothing of the value; go-mysql's own errors
// hold the whole event.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "topsecret"
	for name, r := range map[string][]byte{
		"damaged":  rowBytes(canaltest.Outbox(), []any{int64(1), "Order", secret, "x", "y"}),
		"bad text": rowBytes(canaltest.Outbox(), []any{int64(1), "Order", secret + "\xff", "x", "y"}),
	} {
		if name == "damaged" {
			r = r[:len(r)-1]
		}
		b := mysqlLog()
		o := canaltest.Outbox()
		b.Transaction(gtid(1), func() { b.Map(o); b.Rows(30, o.ID, 1, r) })
		f := newFeed(t).walk(b)
		f.fails(canal.Undecodable, gtid(1), "shop.outbox")
		wantAbsent(t, f.err, secret)
	}
}

// A column that nobody needs can't fail a row, whatever its type.
func TestUnneededColumnsAreNotLookedAt(t *testing.T) {
	o := canaltest.Outbox()
	o.Columns = append(o.Columns, canaltest.Column{Name: "geo", Type: mysql.MYSQL_TYPE_BLOB, Meta: 4})
	b := mysqlLog()
	b.Transaction(gtid(1), func() {
		b.Map(o)
		b.Insert(o, append(row(1), "\xff\xfe not text"))
	})
	f := newFeed(t)
	f.cfg.Needed = func(*schema.Table) []int { return []int{0, 4} }
	f.walk(b).want("1[1]")
	if got := f.out[0].Rows[0].After; got[5] != schema.Missing || got[1] != schema.Missing || got[4] != `{"id":1}` {
		t.Errorf("row is %v", got)
	}
}

// Events of very many rows are decoded in pieces.
func TestManyRowsInOneEvent(t *testing.T) {
	b := mysqlLog()
	var ids []int
	for i := range 5000 {
		ids = append(ids, i)
	}
	b.Transaction(gtid(1), func() { insert(b, ids...) })
	f := newFeed(t).walk(b)
	if f.err != nil || total(f.out) != 5000 {
		t.Fatalf("%d rows, %v", total(f.out), f.err)
	}
	for i, r := range f.out[0].Rows {
		if r.After[0] != int64(i) {
			t.Fatalf("row %d is %v", i, r.After[0])
		}
	}
}

func TestRealRowMetadataFull(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("SET GLOBAL binlog_row_metadata=FULL")
		t.Cleanup(func() {
			_, _ = db.conn.Execute("SET GLOBAL binlog_row_metadata=" + map[bool]string{true: "NO_LOG",
				false: "MINIMAL"}[db.isMaria()])
		})
		db.conn = db.connect(db.name)
		start := db.now()
		// All of it is read after the last DDL: today's columns would be wrong.
		db.exec("INSERT INTO outbox (id, aggregatetype, type) VALUES (1, 'a', 't')",
			"ALTER TABLE outbox CHANGE aggregatetype kind VARCHAR(255) NOT NULL DEFAULT 'Order'",
			"INSERT INTO outbox (id, kind, type) VALUES (2, 'b', 't')",
			"ALTER TABLE outbox DROP COLUMN payload, ADD COLUMN payload LONGTEXT FIRST",
			"INSERT INTO outbox (id, kind, payload) VALUES (3, 'c', 'p')",
			"DROP TABLE outbox")
		// Payload is first now, so ids are found by name.
		s, err := canal.Open(t.Context(), db.cfg, start)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var got []string
		for len(got) < 3 {
			all, err := s.Next(t.Context())
			if err != nil {
				t.Fatalf("after %v: %v", got, err)
			}
			for _, tr := range all {
				for _, r := range tr.Rows {
					kind := r.Table.Column("aggregatetype")
					if kind < 0 {
						kind = r.Table.Column("kind")
					}
					got = append(got, fmt.Sprintf("%v:%v:%v", r.After[r.Table.Column("id")], r.After[kind],
						r.After[r.Table.Column("payload")]))
				}
			}
		}
		if want := "[1:a:<nil> 2:b:<nil> 3:c:p]"; fmt.Sprint(got) != want {
			t.Errorf("rows are %v, want %s", got, want)
		}
	})
}

// Rows that are older than a change which left number and types of the columns as
// they were get the present names, if these were asked for when the server had made
// the change. At the change that is noticed.
func TestB037NamesFromAfterAChange(t *testing.T) {
	const swap = "ALTER TABLE outbox RENAME COLUMN aggregatetype TO type, RENAME COLUMN type TO aggregatetype"
	walk := func(f *feed, reached position.Position, ddl string) *feed {
		f.w = canal.NewEventHandler(f.cfg, f.flavor, f.from, func(
			schema.Name,
		) ([]schema.ColumnInfo, error) {
			return described(), nil
		},
			func(tr txn.Transaction) error { f.out = append(f.out, tr); return nil }, reached)
		b := minimalLog(row(1))
		b.GTID(gtid(2), 0, 0)
		b.Query("shop", ddl)
		o := canaltest.Outbox()
		o.Full = false
		b.Transaction(gtid(3), func() { b.Map(o); b.Insert(o, row(3)) })
		return f.walk(b)
	}
	reached := func(n uint64) position.Position {
		p := position.Position{Set: position.NewSet(position.MySQL)}
		p.Set.AddRange(gtid(n), 1)
		return p
	}
	walk(newFeed(t), reached(2), swap).fails(canal.SchemaMismatch, gtid(2), "shop.outbox", "binlog_row_metadata=FULL")
	walk(newFeed(t).byFile(), position.Position{File: "binlog.000001", Pos: 1 << 20}, swap).fails(canal.SchemaMismatch,
		gtid(2), "shop.outbox")
	walk(newFeed(t), reached(1), swap).want("1[1] 2[] 3[3]")
	walk(newFeed(t).byFile(), position.Position{File: "binlog.000001", Pos: 200}, swap).want("1[1] 2[] 3[3]")
	walk(newFeed(t), position.Position{}, swap).want("1[1] 2[] 3[3]") // nobody knows
	walk(newFeed(t), reached(2), "ALTER TABLE outbox ADD INDEX (type)").want("1[1] 2[] 3[3]")
	walk(newFeed(t), reached(2), "ALTER TABLE other RENAME COLUMN a TO b").want("1[1] 2[] 3[3]")
}
