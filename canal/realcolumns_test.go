package canal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
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
