package canal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// fields shows the last row as "column=value".
func (r *reading) fields(id int64) string {
	r.t.Helper()
	for _, tx := range r.all {
		for _, row := range tx.Rows {
			if row.After[0] != id {
				continue
			}
			var out []string
			for i, c := range row.Table.Columns[1:] {
				if v := row.After[i+1]; v != nil {
					out = append(out, fmt.Sprintf("%s=%v", c.Name, v))
				}
			}
			return strings.Join(out, " ")
		}
	}
	r.t.Fatalf("row %d has not come", id)
	return ""
}

// table is that of a row.
func (r *reading) table(id int64) *schema.Table {
	for _, tx := range r.all {
		for _, row := range tx.Rows {
			if row.After[0] == id {
				return row.Table
			}
		}
	}
	return nil
}

// A connector that was stopped, or lags, reads rows with the columns of their time: what
// the binlog does not tell comes with the position and is carried through the DDL.
func TestG2RealColumnsOfTheirTime(t *testing.T) {
	const row = "INSERT INTO outbox (id, aggregatetype, note, aggregateid) VALUES (2, 'order', 'the note', 'the key')"
	const want = "aggregatetype=order note=the note aggregateid=the key"
	cases := map[string]struct {
		between []string
		row     string
		want    string
	}{
		"drop and add": {[]string{row, "ALTER TABLE outbox DROP COLUMN note",
			"ALTER TABLE outbox ADD COLUMN note VARCHAR(20) AFTER id"}, "", want},
		"add first": {[]string{row, "ALTER TABLE outbox ADD COLUMN x VARCHAR(20) AFTER id",
			"ALTER TABLE outbox DROP COLUMN note"}, "", want},
		"in one": {[]string{row, "ALTER TABLE outbox DROP COLUMN note, ADD COLUMN note VARCHAR(20) AFTER id"}, "",
			want},
		"names swap": {[]string{row, "ALTER TABLE outbox CHANGE note aggregateid VARCHAR(20), CHANGE aggregateid note " +
			"VARCHAR(20)"}, "", want},
		"tables swap": {[]string{row, "CREATE TABLE other (id BIGINT PRIMARY KEY, aggregatetype VARCHAR(20), aggregateid " +
			"VARCHAR(20), note VARCHAR(20))",
			"RENAME TABLE outbox TO old, other TO outbox"}, "", want},
		"gh-ost": {[]string{"CREATE TABLE _outbox_gho LIKE outbox",
			"ALTER TABLE _outbox_gho ADD COLUMN x VARCHAR(20) FIRST, DROP COLUMN note",
			"ALTER TABLE _outbox_gho MODIFY id BIGINT FIRST",
			"RENAME TABLE outbox TO _outbox_del, _outbox_gho TO outbox",
			"INSERT INTO outbox (id, aggregatetype, x, aggregateid) VALUES (2, 'order', 'x', 'the key')",
			"ALTER TABLE outbox CHANGE x aggregateid VARCHAR(20), CHANGE aggregateid x VARCHAR(20)"}, "",
			"x=x aggregatetype=order aggregateid=the key"},
		"after": {[]string{"ALTER TABLE outbox MODIFY note VARCHAR(20) FIRST", "ALTER TABLE outbox MODIFY id BIGINT FIRST",
			"ALTER TABLE outbox ADD INDEX (note)", row,
			"ALTER TABLE outbox MODIFY note VARCHAR(20) AFTER aggregateid"}, "",
			"note=the note aggregatetype=order aggregateid=the key"},
		"words": {[]string{"ALTER TABLE outbox ADD COLUMN kind ENUM('a','b')",
			"INSERT INTO outbox (id, kind) VALUES (2, 'b')",
			"ALTER TABLE outbox MODIFY kind ENUM('new','a','b')"}, "", "kind=b"},
		"replaced": {[]string{row, "DROP TABLE outbox",
			"CREATE TABLE outbox (id BIGINT PRIMARY KEY, note VARCHAR(20), aggregatetype VARCHAR(20), aggregateid VARCHAR(20))"},
			"", want},
	}
	flavors(t, func(t *testing.T, db *database) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				at := db.published(t)
				db.exec(c.between...)
				db.exec("FLUSH TABLES")
				r := db.open(at).until(2)
				if got := r.fields(2); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				// And so it is behind all that, once more after a restart.
				db.exec("INSERT INTO outbox (id, aggregateid) VALUES (3, 'later')")
				if got := r.until(3).fields(3); got != "aggregateid=later" {
					t.Errorf("got %s", got)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				db.exec("INSERT INTO outbox (id, aggregateid) VALUES (4, 'last')")
				if got := db.open(r.at).until(4).fields(4); got != "aggregateid=last" {
					t.Errorf("got %s", got)
				}
			})
		}
	})
}

// published makes the table anew and reads a row of it; its answer is the place behind.
func (db *database) published(t *testing.T) position.Position {
	t.Helper()
	db.exec("DROP TABLE IF EXISTS outbox, other, old, _outbox_gho, _outbox_del",
		"CREATE TABLE outbox (id BIGINT PRIMARY KEY, aggregatetype VARCHAR(20), note VARCHAR(20), aggregateid VARCHAR(20))")
	r := db.open(db.now())
	defer r.Close()
	db.exec("INSERT INTO outbox (id, aggregateid) VALUES (1, 'k')")
	return r.until(1).at
}

// G9: the default of a column is that of the row's time, too.
func TestG9RealDefaultOfItsTime(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		at := db.published(t)
		db.exec("ALTER TABLE outbox ALTER COLUMN aggregateid SET DEFAULT 'old'",
			"INSERT INTO outbox (id, aggregateid) VALUES (2, NULL)",
			"ALTER TABLE outbox ALTER COLUMN aggregateid SET DEFAULT 'new'")
		r := db.open(at).until(2)
		c := r.table(2).Columns[3]
		if c.Default == nil || *c.Default != "old" {
			t.Errorf("the default is %v, want old", c.Default)
		}
	})
}

// F5: what changes a table and is not in the binlog stops the stream before a row goes out.
func TestF5RealUnloggedChange(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		at := db.published(t)
		r := db.open(at)
		db.exec("INSERT INTO outbox (id, aggregateid) VALUES (2, 'k')")
		r.until(2)
		db.exec("SET sql_log_bin=0", "ALTER TABLE outbox CHANGE note aggregateid VARCHAR(20), CHANGE aggregateid note "+
			"VARCHAR(20)", "SET sql_log_bin=1",
			"INSERT INTO outbox (id, aggregateid) VALUES (3, 'k')")
		if e := r.fails(); e.Kind != canal.SchemaMismatch || !strings.Contains(e.Error(), "not in the binlog") {
			t.Errorf("got %v", e)
		}
		if got := r.rows(); got != "2" {
			t.Errorf("rows %s went out", got)
		}
	})
}

// A statement that is not followed has the server asked; its answer counts when nothing
// changes the table until then.
func TestRealStatementsThatAreNotFollowed(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		unfollowed := "ALTER TABLE outbox ADD COLUMN %s TEXT(10), CONVERT TO CHARACTER SET utf8mb4"
		at := db.published(t)
		db.exec(fmt.Sprintf(unfollowed, "x"), "INSERT INTO outbox (id, aggregateid) VALUES (2, 'k')",
			"ALTER TABLE outbox ADD INDEX (note)")
		r := db.open(at).until(2)
		if got := r.fields(2); got != "aggregateid=k" {
			t.Errorf("got %s", got)
		}
		db.exec(fmt.Sprintf(unfollowed, "y"), "INSERT INTO outbox (id, aggregateid) VALUES (3, 'k')",
			"ALTER TABLE outbox CHANGE note aggregateid VARCHAR(20), CHANGE aggregateid note VARCHAR(20)")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = db.open(r.at)
		if e := r.fails(); e.Kind != canal.SchemaMismatch || !strings.Contains(e.Error(), "further on") {
			t.Errorf("got %v", e)
		}
		if got := r.rows(); got != "" {
			t.Errorf("rows %s went out", got)
		}
	})
}

// shaper changes an outbox table at random. All its columns have one type, so that nothing
// but their names tells them apart, and each row says in each column which one it is.
type shaper struct {
	*rand.Rand
	columns []string
	made    int
}

func (s *shaper) name() string {
	s.made++
	return fmt.Sprintf("c%d", s.made)
}

func (s *shaper) definition(name string) string { return name + " VARCHAR(40)" }

func (s *shaper) remove(i int) string {
	c := s.columns[i]
	s.columns = slices.Delete(slices.Clone(s.columns), i, i+1)
	return c
}

// clause changes the columns and returns what it takes.
func (s *shaper) clause() string {
	i := s.IntN(len(s.columns))
	switch n := s.IntN(6); {
	case n == 0 && len(s.columns) > 2:
		return "DROP COLUMN " + s.remove(i)
	case n == 1 && len(s.columns) > 2:
		c := s.remove(i)
		j := s.IntN(len(s.columns))
		s.columns = slices.Insert(s.columns, j+1, c)
		return "MODIFY " + s.definition(c) + " AFTER " + s.columns[j]
	case n == 2:
		c := s.columns[i]
		s.columns[i] = s.name()
		return "CHANGE " + c + " " + s.definition(s.columns[i])
	case n == 3 && len(s.columns) > 1:
		j := (i + 1) % len(s.columns)
		a, b := s.columns[i], s.columns[j]
		s.columns[i], s.columns[j] = b, a
		return "CHANGE " + a + " " + s.definition(b) + ", CHANGE " + b + " " + s.definition(a)
	case n == 4 && len(s.columns) < 12:
		c := s.name()
		s.columns = slices.Insert(s.columns, 0, c)
		return "ADD COLUMN " + s.definition(c) + " FIRST"
	}
	c := s.name()
	if len(s.columns) > 12 {
		indexed := s.columns[i]
		return "ADD INDEX (" + indexed + "), DROP COLUMN " + s.remove((i+1)%len(s.columns))
	}
	s.columns = slices.Insert(s.columns, i+1, c)
	return "ADD " + s.definition(c) + " AFTER " + s.columns[i]
}

// change is one change of the table outbox: at once, or by way of another table.
func (s *shaper) change() []string {
	switch s.IntN(6) {
	case 0: // as gh-ost
		return []string{"CREATE TABLE _outbox_gho LIKE outbox", "ALTER TABLE _outbox_gho " + s.clause(),
			"ALTER TABLE _outbox_gho " + s.clause(),
			"RENAME TABLE outbox TO _outbox_del, _outbox_gho TO outbox", "DROP TABLE _outbox_del"}
	case 1: // as pt-online-schema-change
		return []string{"CREATE TABLE _outbox_new LIKE outbox", "ALTER TABLE _outbox_new " + s.clause(),
			"RENAME TABLE outbox TO _outbox_old, _outbox_new TO outbox", "DROP TABLE IF EXISTS _outbox_old"}
	case 2:
		s.Shuffle(len(s.columns), func(i, j int) { s.columns[i], s.columns[j] = s.columns[j], s.columns[i] })
		create := "CREATE TABLE outbox (id BIGINT PRIMARY KEY"
		for _, c := range s.columns {
			create += ", " + s.definition(c)
		}
		return []string{"DROP TABLE outbox", create + ")"}
	}
	return []string{"ALTER TABLE outbox " + s.clause()}
}

func (s *shaper) insert(id int) string {
	values := []string{fmt.Sprint(id)}
	for _, c := range s.columns {
		values = append(values, fmt.Sprintf("'%s of %d'", c, id))
	}
	return "INSERT INTO outbox (id, " + strings.Join(s.columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// Two hundred changes of the table, twenty restarts in between, and a reader that is
// behind: each row has the columns of its time, once.
func TestRealColumnsThroughRandomDDL(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, c0 VARCHAR(40), x VARCHAR(40))")
		s := &shaper{Rand: rand.New(rand.NewPCG(7, 7)), columns: []string{"c0", "x"}}
		at := db.known()
		id, seen := 0, 0
		check := func(r *reading) {
			for _, tx := range r.all {
				for _, row := range tx.Rows {
					seen++
					for i, c := range row.Table.Columns {
						want := fmt.Sprintf("%s of %d", c.Name, seen)
						if c.Name == "id" {
							want = fmt.Sprint(seen)
						}
						if got := fmt.Sprint(row.After[i]); got != want {
							t.Fatalf("row %d: column %s holds %q", seen, c.Name, got)
						}
					}
				}
			}
			r.all = nil
		}
		for range 20 {
			for range 10 {
				db.exec(s.change()...)
				for range 1 + s.IntN(3) {
					id++
					db.exec(s.insert(id))
				}
			}
			r := db.open(at)
			upTo := seen + 1 + s.IntN(id-seen) // and the rest is read after the restart
			for seen < upTo {
				if err := r.step(); err != nil {
					t.Fatal(err)
				}
				check(r)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			at = r.at
		}
		r := db.open(at)
		for seen < id {
			if err := r.step(); err != nil {
				t.Fatal(err)
			}
			check(r)
		}
		if seen != id {
			t.Errorf("%d rows came, want %d", seen, id)
		}
	})
}

// A change while the rows that stood in the table are read does not hide what the columns
// were at the start.
func TestRealColumnsOfTheStart(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note VARCHAR(20), aggregateid VARCHAR(20))",
			"INSERT INTO outbox VALUES (1, 'n', 'k')")
		at := db.now()
		at.Snapshot = &position.Snapshot{}
		snapshot, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil && at.Snapshot != nil {
			var got []txn.Transaction
			got, err = snapshot.Next(t.Context())
			for _, tx := range got {
				at.Advance(tx.Commit)
			}
		}
		_ = snapshot.Close()
		if err != nil || at.Columns == "" {
			t.Fatalf("at %+v: %v", at, err)
		}
		db.exec("INSERT INTO outbox VALUES (2, 'n', 'k')",
			"ALTER TABLE outbox CHANGE note aggregateid VARCHAR(20), CHANGE aggregateid note VARCHAR(20)")
		if got := db.open(at).until(2).fields(2); got != "note=n aggregateid=k" {
			t.Errorf("got %s", got)
		}
	})
}

// TIMESTAMP columns are NOT NULL by default where explicit_defaults_for_timestamp is off.
func TestRealImplicitTimestamps(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, mode := range []string{"ON", "OFF"} {
			at := db.published(t)
			db.exec("SET sql_mode='', explicit_defaults_for_timestamp="+mode,
				"ALTER TABLE outbox ADD COLUMN a TIMESTAMP, ADD COLUMN b TIMESTAMP", "INSERT INTO outbox (id) VALUES (2)",
				"ALTER TABLE outbox DROP COLUMN a, DROP COLUMN b", "SET sql_mode=DEFAULT, explicit_defaults_for_timestamp=DEFAULT")
			r := db.open(at)
			table := r.until(2).table(2)
			if a, b := table.Columns[4], table.Columns[5]; a.Nullable != (mode == "ON") || b.Nullable != a.Nullable ||
				(a.DefaultExpr == "") != (mode == "ON") {
				t.Errorf("%s: got %+v %+v", mode, a, b)
			}
			_ = r.Close()
		}
	})
}
