package canal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// changes lists what was done to which rows: "insert 1", "update 1>2".
func (r *reading) changes() string {
	var out []string
	for _, tx := range r.all {
		for _, row := range tx.Rows {
			if row.Op == schema.Update {
				out = append(out, fmt.Sprintf("update %v>%v", row.Before[0], row.After[0]))
			} else {
				out = append(out, fmt.Sprintf("insert %v", row.After[0]))
			}
		}
	}
	return strings.Join(out, ", ")
}

// Updates come with both images when they are asked for, and are only counted when
// they are not.
func TestRealUpdates(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		statements := []string{
			"INSERT INTO outbox (id, payload) VALUES (1, 'a'), (2, 'b')",
			"UPDATE outbox SET payload = 'c'",
			"UPDATE outbox SET id = id + 10, payload = REPEAT('x', 300) ORDER BY id",
			"BEGIN", "UPDATE outbox SET id = 1 WHERE id = 11", "ROLLBACK",
			"DELETE FROM outbox WHERE id = 11",
			"INSERT INTO outbox (id) VALUES (99)",
		}
		db.cfg.Updates = true
		asked := db.open(db.now())
		db.cfg.Updates, db.cfg.ServerID = false, db.cfg.ServerID+1
		other := db.open(db.now())
		db.exec(statements...)
		if got, want := asked.until(99).changes(),
			"insert 1, insert 2, update 1>1, update 2>2, update 1>11, update 2>12, insert 99"; got != want {
			t.Errorf("asked for, got  %s\nwant %s", got, want)
		}
		for _, tx := range asked.all {
			for _, row := range tx.Rows {
				if row.Op == schema.Update && row.After[0] == int64(12) && (row.Before[4] != "c" ||
					row.After[4] != strings.Repeat("x", 300)) {
					t.Errorf("the images are %.100v and %.100v", row.Before, row.After)
				}
			}
		}
		if got, want := other.until(99).changes(), "insert 1, insert 2, insert 99"; got != want {
			t.Errorf("not asked for, got %s, want %s", got, want)
		}
		if a, b := asked.Status(), other.Status(); a.Inserts != 3 || b.Inserts != 3 || a.Updates != b.Updates ||
			a.Updates == 0 {
			t.Errorf("counted %d and %d inserts, %d and %d updates", a.Inserts, b.Inserts, a.Updates, b.Updates)
		}
	})
}

// Only the key and the needed columns are decoded, and a row image that lacks the
// others is no reason to stop.
func TestRealUpdatesOfPartialImages(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.cfg.Updates = true
		db.cfg.Needed = func(t *schema.Table) []int { return []int{t.Column("payload")} }
		r := db.open(db.now())
		db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'a')", "SET binlog_row_image = MINIMAL",
			"UPDATE outbox SET type = 't'", "UPDATE outbox SET id = 2", "SET binlog_row_image = FULL",
			"INSERT INTO outbox (id, payload) VALUES (99, 'z')")
		got := make(map[string]bool)
		r.untilPayload("z")
		for _, tx := range r.all {
			for _, row := range tx.Rows {
				got[fmt.Sprint(row.Op, row.Before, row.After)] = true
			}
		}
		missing := schema.Missing
		for _, want := range []string{
			fmt.Sprint(schema.Update, []any{int64(1), missing, missing, missing, missing},
				[]any{missing, missing, missing, missing, missing}),
			fmt.Sprint(schema.Update, []any{int64(1), missing, missing, missing, missing},
				[]any{int64(2), missing, missing, missing, missing}),
		} {
			if !got[want] {
				t.Errorf("no %s among %v", want, got)
			}
		}
	})
}

// untilPayload reads until a row has this payload.
func (r *reading) untilPayload(text string) {
	r.t.Helper()
	for {
		if err := r.step(); err != nil {
			r.t.Fatal(err)
		}
		for _, tx := range r.all {
			for _, row := range tx.Rows {
				if row.After[4] == text {
					return
				}
			}
		}
	}
}

// MariaDB compresses the rows of updates too.
func TestRealCompressedUpdates(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	db.exec("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
	t.Cleanup(func() { db.exec("SET GLOBAL log_bin_compress = OFF") })
	db.cfg.Updates = true
	r := db.open(db.now())
	c := db.connect(db.name)
	execOn(t, c, "INSERT INTO outbox (id, payload) VALUES (1, REPEAT('a', 3000))",
		"UPDATE outbox SET id = 2, payload = REPEAT('b', 3000)", "INSERT INTO outbox (id) VALUES (99)")
	if got, want := r.until(99).changes(), "insert 1, update 1>2, insert 99"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A prepared XA transaction that only updates rows, and not their keys, publishes
// nothing and passes; one that changes a key stops the stream as inserts do.
func TestRealPreparedUpdates(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.cfg.Updates = true
	db.exec("INSERT INTO outbox (id) VALUES (1)")
	r := db.open(db.now())
	db.exec("XA START 'u1'", "UPDATE outbox SET payload = 'x'", "XA END 'u1'", "XA PREPARE 'u1'", "XA COMMIT 'u1'",
		"INSERT INTO outbox (id) VALUES (5)")
	if got := r.until(5).changes(); got != "insert 5" {
		t.Errorf("got %s", got)
	}
	refusing := db.now()
	db.exec("XA START 'u3'", "UPDATE outbox SET payload = 'y'", "XA END 'u3'", "XA PREPARE 'u3'", "XA COMMIT 'u3'")
	db.cfg.RefusePartialUpdates, db.cfg.ServerID = true, db.cfg.ServerID+1
	if e := db.open(refusing).fails(); e.Kind != canal.PreparedXA {
		t.Errorf("updates are to be refused, got %v", e)
	}
	db.exec("XA START 'u2'", "UPDATE outbox SET id = 7 WHERE id = 1", "XA END 'u2'", "XA PREPARE 'u2'", "XA ROLLBACK 'u2'")
	if e := r.fails(); e.Kind != canal.PreparedXA {
		t.Errorf("got %v", e)
	}
}
