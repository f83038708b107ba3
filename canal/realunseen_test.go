package canal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// Deletes in statement format are passed over as any others, and told; updates are where
// they are to be skipped.
func TestRealStatementDeletes(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("CREATE OR REPLACE VIEW v AS SELECT * FROM outbox",
			"INSERT INTO outbox (id) VALUES (1), (2), (3), (4), (5), (6)", "INSERT INTO orders VALUES (1, 'x'), (2, 'y')")
		var log bytes.Buffer
		db.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		r := db.open(db.now())
		db.cfg.Logger, db.cfg.Updates, db.cfg.ServerID = nil, true, db.cfg.ServerID+1
		asked := db.open(db.now())
		db.exec("SET SESSION binlog_format=STATEMENT",
			"DELETE FROM outbox WHERE id=1", "DELETE LOW_PRIORITY QUICK FROM outbox WHERE id=2 LIMIT 1",
			"DELETE a, b FROM outbox a JOIN orders b ON b.id=1 WHERE a.id=3",
			"DELETE FROM a USING outbox AS a JOIN orders WHERE a.id=4",
			"BEGIN", "DELETE FROM outbox WHERE id=5", "ROLLBACK",
			"TRUNCATE outbox", "UPDATE outbox SET payload='x' WHERE id=6",
			"SET SESSION binlog_format=ROW", "INSERT INTO outbox (id) VALUES (99)")
		if got := r.until(99).rows(); got != "99" {
			t.Errorf("rows %s came", got)
		}
		if n := r.Status().Unlogged; n != 5 {
			t.Errorf("%d statements were told, want 5", n)
		}
		_ = r.Close()
		if n := strings.Count(log.String(), "level=WARN msg=\"an outbox table was changed without row events\" what=\"rows "+
			"were deleted"); n != 4 {
			t.Errorf("%d deletes were told:\n%s", n, log.String())
		}
		if e := asked.fails(); e.Kind != canal.StatementFormat {
			t.Errorf("updates are asked for, got %v", e)
		}
	})
}

// Rows that come into an outbox table without row events are told.
func TestRealRowsPutInPlace(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p "+
			"VALUES LESS THAN (50), PARTITION q VALUES LESS THAN (MAXVALUE))",
			"CREATE TABLE filled (id BIGINT PRIMARY KEY)", "INSERT INTO filled VALUES (1)")
		r := db.open(db.now())
		want := uint64(0)
		for _, s := range [][]string{
			{"ALTER TABLE outbox EXCHANGE PARTITION p WITH TABLE filled"},
			{"ALTER TABLE outbox RENAME TO old", "RENAME TABLE filled TO outbox"},
			{"ALTER TABLE outbox RENAME filled", "ALTER TABLE old RENAME AS outbox"},
			{"RENAME TABLE outbox TO old, filled TO outbox"},
		} {
			db.exec(s...)
			db.exec("INSERT INTO outbox VALUES (" + fmt.Sprint(100+want) + ")")
			r.until(int64(100 + want))
			if n := r.Status().Unlogged; n <= want {
				t.Errorf("%s: %d statements were told, %d before", s, n, want)
			}
			want = r.Status().Unlogged
		}
	})
}

// Rows that are taken away as a whole before their turn are told, with the table.
func TestRealSnapshotRowsTakenAway(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, s := range []string{"TRUNCATE outbox", "ALTER TABLE outbox DROP PARTITION p",
			"ALTER TABLE outbox TRUNCATE PARTITION p", "DROP TABLE outbox", "DELETE FROM outbox WHERE id < 10"} {
			db.exec("DROP TABLE IF EXISTS outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id) "+
				"(PARTITION p VALUES LESS THAN (10), PARTITION q VALUES LESS THAN (MAXVALUE))",
				"INSERT INTO outbox VALUES (1), (2), (11)")
			var log bytes.Buffer
			db.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			at := db.now()
			at.Snapshot = &position.Snapshot{Begun: 1}
			db.exec("SET SESSION binlog_format=STATEMENT", s, "SET SESSION binlog_format=ROW")
			st, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
			if err != nil {
				t.Fatal(err)
			}
			for at.Snapshot != nil {
				txs, err := st.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range txs {
					at.Advance(txs[i].Commit)
				}
			}
			in := st.Status().Snapshot
			_ = st.Close()
			if !strings.Contains(log.String(), "went before all of them were read") ||
				!strings.Contains(log.String(), "table="+db.name+".outbox") {
				t.Errorf("%s: was not told: %+v\n%s", s, in, log.String())
			}
		}
	})
}

// Rows that a foreign key removes come from the binlog, or the table is refused.
func TestRealSnapshotRowsCascade(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) "+
			"REFERENCES orders (id) ON DELETE CASCADE)",
			"INSERT INTO orders VALUES (1, 'x')", "INSERT INTO outbox VALUES (1, 1), (2, NULL)")
		at := db.now()
		at.Snapshot = &position.Snapshot{Begun: 1}
		db.exec("DELETE FROM orders")
		s, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
		if db.isMaria() {
			var e *canal.Error
			if !errors.As(err, &e) || e.Kind != canal.BadConfig || !strings.Contains(e.Error(), "ON DELETE CASCADE") {
				t.Errorf("opened with %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		rows := 0
		for at.Snapshot != nil {
			txs, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range txs {
				rows += len(txs[i].Rows)
				at.Advance(txs[i].Commit)
			}
		}
		if rows != 2 {
			t.Errorf("%d rows came, want 2", rows)
		}
	})
}

// A partial update may change the key of a row whose turn is to come.
func TestRealSnapshotRowsPartialUpdate(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, payload JSON)",
		"INSERT INTO outbox VALUES (5, JSON_OBJECT('a', REPEAT('x', 1000), 'b', 1))")
	at := db.now()
	at.Snapshot = &position.Snapshot{Begun: 1}
	db.exec("SET SESSION binlog_row_value_options=PARTIAL_JSON",
		"UPDATE outbox SET id=1, payload=JSON_SET(payload, '$.b', 2)", "SET SESSION binlog_row_value_options=''")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := canal.OpenSnapshot(ctx, db.cfg, at)
	if err == nil {
		defer s.Close()
	}
	for err == nil {
		_, err = s.Next(ctx)
	}
	var e *canal.Error
	if !errors.As(err, &e) || e.Kind != canal.PartialUpdate || !strings.Contains(err.Error(),
		"its turn among the snapshot rows") {
		t.Errorf("ended with %v", err)
	}
}
