package canal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// ownOptions make a server that can be a replica, with data of its own.
var ownOptions = servers.Options{Own: true, Args: []string{"--log-slave-updates=ON"}}

// own starts a server of its own, whose data the test may put back.
func own(t *testing.T, start func(testing.TB, ...servers.Options) *servers.MySQL) *database {
	t.Helper()
	return newDatabase(t, start(t, ownOptions))
}

// both runs a test on a MySQL and a MariaDB of its own.
func both(t *testing.T, f func(t *testing.T, db *database)) {
	t.Run("MySQL", func(t *testing.T) { f(t, own(t, servers.MySQLForTest)) })
	t.Run("MariaDB", func(t *testing.T) { f(t, own(t, servers.MariaDBForTest)) })
}

func (db *database) insert(ids ...int) {
	db.t.Helper()
	for _, id := range ids {
		db.exec(fmt.Sprintf("INSERT INTO outbox (id) VALUES (%d)", id))
	}
}

// stopped does something to the data of the server, which is killed for it: in
// order it would wait for its readers.
func (db *database) stopped(do func(data string)) {
	db.t.Helper()
	if err := db.Kill(); err != nil {
		db.t.Fatal(err)
	}
	do(filepath.Join(db.Dir(), "data"))
	if err := db.Restart(db.t.Context()); err != nil {
		db.t.Fatal(err)
	}
	db.conn = db.connect(db.name)
}

// purge leaves the server nothing but an empty binlog.
func (db *database) purge() {
	db.t.Helper()
	db.exec("FLUSH BINARY LOGS")
	db.exec("PURGE BINARY LOGS TO '" + db.now().File + "'")
}

func (db *database) copyTree(to, from string) {
	db.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		db.t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() { // the socket is of no use
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o750)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o640)
	})
	if err != nil {
		db.t.Fatal(err)
	}
}

// The source loses transactions that were published, as at a crash of its host
// without sync_binlog=1, and gives their numbers to others. MySQL's own check is
// silent as soon as it has given out more numbers than it lost.
func TestF18GTIDReuse(t *testing.T) {
	both(t, func(t *testing.T, db *database) {
		start := db.now()
		saved := filepath.Join(t.TempDir(), "saved")
		db.insert(1, 2, 3, 4, 5, 6, 7)
		db.stopped(func(data string) { db.copyTree(saved, data) })
		db.insert(8, 9, 10)
		r := db.open(start).until(10)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		lost := r.at.Last
		// With nothing lost it goes on, and the last one is not handed on again.
		again := db.open(r.at)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		db.stopped(func(data string) { db.copyTree(data, saved) })
		_, err := canal.Open(t.Context(), db.cfg, r.at)
		wantError(t, err, canal.Behind, position.GTID{}) // not yet overtaken
		// MariaDB's times are whole seconds.
		time.Sleep(1100 * time.Millisecond)
		db.insert(108, 109, 110, 111)
		if now := db.now(); !now.Set.Contains(r.at.Set) {
			t.Fatalf("the server at %s has not overtaken %s", now.Set, r.at.Set)
		}
		for range 2 { // it stays so
			_, err = canal.Open(t.Context(), db.cfg, r.at)
			e := wantError(t, err, canal.Diverged, lost, "committed at")
			if e.Retryable() || e.Difference != lost.String() || e.Kind.String() != "source_diverged" {
				t.Errorf("got %+v", e)
			}
		}
	})
}

// A reader that reconnects gets nothing twice, whatever its last transaction was,
// and the server's own word is not needed for that.
func TestF19LastTransactionIsNotHandedOnAgain(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		statements := [][]string{
			{"INSERT INTO outbox (id) VALUES (%d)"},
			{"INSERT INTO orders (note) VALUES ('x')"},
			{"ALTER TABLE orders COMMENT 'x'"},
			{"BEGIN", "INSERT INTO outbox (id) VALUES (%d)", "DO SLEEP(1.2)", "INSERT INTO orders (note) VALUES ('x')",
				"COMMIT"},
			{"CREATE TABLE other AS SELECT 1 AS x"},
		}
		if !db.isMaria() {
			statements = append(statements, []string{"SET SESSION binlog_transaction_compression=ON",
				"INSERT INTO outbox (id, payload) VALUES (%d, REPEAT('x', 1000))",
				"SET SESSION binlog_transaction_compression=OFF"})
		}
		at := db.now()
		id := 1
		for _, list := range statements {
			for _, s := range list {
				if strings.Contains(s, "%d") {
					s = fmt.Sprintf(s, id)
					id++
				}
				db.exec(s)
			}
			want := db.now()
			r := db.open(at)
			for !r.at.Set.Equal(want.Set) {
				if err := r.step(); err != nil {
					t.Fatal(err)
				}
			}
			_ = r.Close()
			at = r.at
			next := id
			id++
			db.insert(next)
			again := db.open(at).until(int64(next))
			if got := again.rows(); got != fmt.Sprint(next) {
				t.Errorf("after %v: rows %s", list, got)
			}
			st := again.Status()
			for deadline := time.Now().Add(patience); st.Transactions == 0 && time.Now().Before(deadline); st = again.Status() {
				time.Sleep(time.Millisecond) // it is counted right after it was handed on
			}
			if st.Opened <= 0 || st.Opened > patience || st.Transactions != 1 {
				t.Errorf("status says opened in %s, %d transactions", st.Opened, st.Transactions)
			}
			_ = again.Close()
			at = again.at
		}
	})
}

// A large last transaction is not sent again for the sake of its commit time, where
// the server says how large it is, and held nowhere.
func TestF18LargeLastTransaction(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		r := db.open(db.now())
		db.big(1000, 20_000)
		at := r.until(20_999).end()
		db.insert(1)
		db.cfg.SpoolDir = filepath.Join(t.TempDir(), "spool")
		db.cfg.SpoolThreshold = 1 << 20
		again := db.open(at).until(1)
		st := again.Status()
		if got := again.rows(); got != "1" || !db.isMaria() && st.ReceivedBytes > 4<<20 {
			t.Errorf("rows %s, %d bytes received", got, st.ReceivedBytes)
		}
		if _, err := os.Stat(db.cfg.SpoolDir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the spool was used: %v", err)
		}
	})
}
