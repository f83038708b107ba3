package canal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// initialKeys are primary keys whose order is found in different ways. The
// expressions make keys of a number, most of them in no order.
var initialKeys = []struct{ name, columns, key, of string }{
	{"bigint", "id BIGINT", "id", "%d"},
	{"random", "id BIGINT UNSIGNED", "id", "CONV(LEFT(LEFT(SHA2(%d, 256), 32), 16), 16, 10)"},
	{"negative", "id INT", "id", "CAST(CRC32(%d) AS SIGNED) - 2147483648"},
	{"binary", "id BINARY(16)", "id", "UNHEX(LEFT(SHA2(%d, 256), 32))"},
	{"varbinary", "id VARBINARY(8)", "id", "TRIM(TRAILING '0' FROM LEFT(LEFT(SHA2(%d, 256), 32), 8))"},
	{"char", "id CHAR(36) CHARACTER SET latin1", "id", "LEFT(SHA2(%d, 256), 32)"},
	{"text", "id VARCHAR(64)", "id", "CONCAT(CHAR(0xC3A0 + CRC32(%[1]d) %% 20 USING utf8mb4), ' ', LEFT(SHA2(%[1]d, " +
		"256), 32))"},
	{"blanks", "id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "id",
		"CONCAT(%[1]d, REPEAT(CHAR(9), %[1]d %% 3), 'x')"},
	{"bin", "id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "id", "LEFT(SHA2(%d, 256), 32)"},
	{"decimal", "id DECIMAL(20,3)", "id", "(CAST(CRC32(%d) AS SIGNED) - 2147483648) / 1000"},
	{"datetime", "id DATETIME(6)", "id", "'2020-01-01' + INTERVAL CRC32(%d) MICROSECOND"},
	{"timestamp", "id TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01 00:00:00'", "id",
		"'2020-01-01' + INTERVAL CRC32(%d) MICROSECOND"},
	{"time", "id TIME(3)", "id", "SEC_TO_TIME((CAST(CRC32(%d) %% 5400000 AS SIGNED) - 2700000) / 1000)"},
	{"two", "region VARCHAR(10), id INT", "region, id", "CONCAT('r', %[1]d %% 7), -%[1]d"},
}

// All rows that stood in a table come once, and what is written meanwhile comes
// once, however the reading is cut off; whatever the primary key is.
func TestRealSnapshotRows(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, k := range initialKeys {
			t.Run(k.name, func(t *testing.T) {
				db.exec("SET SESSION sql_mode=''", "DROP TABLE IF EXISTS outbox", "CREATE TABLE outbox ("+k.columns+
					", n BIGINT NOT NULL, payload LONGTEXT, PRIMARY KEY ("+k.key+"), UNIQUE KEY (n))")
				readSnapshot(t, db, k.of)
			})
		}
	})
}

func readSnapshot(t *testing.T, db *database, of string) {
	insert := func(from, to int) string {
		var rows []string
		for n := from; n < to; n++ {
			rows = append(rows, "("+fmt.Sprintf(of, n)+fmt.Sprintf(", %d, 'p%d')", n, n))
		}
		return "INSERT INTO outbox VALUES " + strings.Join(rows, ",")
	}
	const stood, all = 800, 1050
	for n := 0; n < stood; n += 400 {
		db.exec(insert(n, n+400))
	}
	at := db.now()
	at.Snapshot = &position.Snapshot{}
	writer := db.connect(db.name)
	execOn(t, writer, "SET SESSION sql_mode=''")
	written := make(chan error, 1)
	go func() {
		written <- write(func(n int) []string {
			return []string{
				insert(stood+n, stood+n+1),
				fmt.Sprintf("DELETE FROM outbox WHERE n IN (%d, %d, %d)", n*2, stood-1-n, stood+n-3),
				fmt.Sprintf("UPDATE outbox SET payload='q' WHERE n=%d", n*3),
			}
		}, all-stood, func(s string) error { _, err := writer.Execute(s); return err })
	}()
	seen := map[int64]int{}
	rnd := rand.New(rand.NewPCG(7, 7))
	snapshot := 0
	for cuts := 0; len(seen) < all; cuts++ {
		s := follow(t, db, at)
		for left := rnd.IntN(400); (left > 0 || cuts > 6) && len(seen) < all; {
			txs, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range txs {
				if left--; left < 0 && cuts <= 6 {
					break
				}
				if txs[i].Commit.Snapshot != nil {
					snapshot += len(txs[i].Rows)
				}
				for _, r := range txs[i].Rows {
					seen[r.After[len(r.After)-2].(int64)]++
				}
				at.Advance(txs[i].Commit)
			}
		}
		if err := s.Close(); err != nil && !errors.Is(err, canal.ErrClosed) {
			t.Fatal(err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if snapshot != stood {
		t.Errorf("%d snapshot rows came, want %d", snapshot, stood)
	}
	for n := range int64(all) {
		if seen[n] != 1 {
			t.Errorf("row %d came %d times", n, seen[n])
		}
	}
	if at.Snapshot != nil {
		t.Errorf("the position still has snapshot rows: %s", at)
	}
}

func write(statements func(n int) []string, times int, exec func(string) error) error {
	for n := range times {
		for _, s := range statements(n) {
			if err := exec(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow opens what the position asks for.
func follow(t *testing.T, db *database, at position.Position) interface {
	Next(ctx context.Context) ([]txn.Transaction, error)
	Close() error
} {
	t.Helper()
	if at.Snapshot == nil {
		s, err := canal.Open(t.Context(), db.cfg, at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Tables whose rows can't be told apart, or that are seen before they are in the
// binlog, are refused, and so is a user who may not read them.
func TestRealSnapshotRefusals(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, c := range []struct{ ddl, says string }{
			{"CREATE TABLE outbox (id INT, payload TEXT)", "has no primary key"},
			{"CREATE TABLE outbox (id DOUBLE PRIMARY KEY, payload TEXT)", "holds column id of type double"},
			{"CREATE TABLE outbox (id ENUM('b','a') PRIMARY KEY, payload TEXT)", "holds column id of type enum"},
			{"CREATE TABLE outbox (id INT PRIMARY KEY, payload TEXT) ENGINE=MyISAM", "has engine MyISAM"},
			{"CREATE TABLE outbox (id INT PRIMARY KEY, payload TEXT)", ""},
		} {
			db.exec("DROP TABLE IF EXISTS outbox", c.ddl)
			at := db.now()
			at.Snapshot = &position.Snapshot{}
			tables, _, err := canal.CheckSnapshot(t.Context(), db.cfg, true)
			if c.says == "" {
				if err != nil || tables != 1 {
					t.Errorf("%d tables, %v", tables, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: checked with %v, want %q", c.ddl, err, c.says)
			}
			s, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
			var e *canal.Error
			if !errors.As(err, &e) || e.Retryable() || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: opened with %v, want %q for good", c.ddl, err, c.says)
			}
			if err == nil {
				_ = s.Close()
			}
		}
	})
}

// A row that is deleted before its turn is published from the binlog, if that has it.
func TestRealSnapshotRowGoneWithoutImage(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	at := db.now()
	at.Snapshot = &position.Snapshot{}
	db.exec("SET SESSION binlog_row_image=MINIMAL", "DELETE FROM outbox WHERE id=2", "SET SESSION binlog_row_image=FULL")
	s, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for err == nil {
		_, err = s.Next(t.Context())
	}
	var e *canal.Error
	if !errors.As(err, &e) || e.Kind != canal.MissingColumn || !strings.Contains(err.Error(),
		"deleted before it was published") {
		t.Errorf("ended with %v", err)
	}
}

// Snapshot rows and nothing else: what is inserted later never comes, and opening
// again finds everything done.
func TestRealSnapshotOnly(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'a'), (2, 'b')")
	at := db.now()
	at.Snapshot = &position.Snapshot{}
	db.exec("INSERT INTO outbox (id, payload) VALUES (3, 'c')")
	db.cfg.SnapshotOnly = true
	for _, want := range []string{"1 2", ""} {
		s, err := canal.OpenSnapshot(t.Context(), db.cfg, at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		reading := make(chan error, 1)
		go func() {
			for {
				txs, err := s.Next(ctx)
				if err != nil {
					reading <- err
					return
				}
				for i := range txs {
					for _, r := range txs[i].Rows {
						got = append(got, fmt.Sprint(r.After[0]))
					}
					at.Advance(txs[i].Commit)
				}
			}
		}()
		for in := s.Status().Snapshot; in == nil || !in.Finished; in = s.Status().Snapshot {
			if ctx.Err() != nil {
				t.Fatal("it does not finish")
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		if err := <-reading; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if rows := strings.Join(got, " "); rows != want || at.Snapshot != nil {
			t.Errorf("rows %q came, want %q; the position is %s", rows, want, at)
		}
	}
}
