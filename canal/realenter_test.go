package canal_test

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Rows come by whatever statement they enter, and whatever engine keeps them or does not.
func TestRealRowsEnter(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, engine := range []string{"InnoDB", "MyISAM", "MEMORY", "BLACKHOLE", "ARCHIVE", "CSV"} {
			if db.value("SELECT COUNT(*) FROM information_schema.ENGINES WHERE ENGINE='"+engine+"' AND SUPPORT IN ('YES', "+
				"'DEFAULT')") == "0" {
				continue
			}
			db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT NOT NULL) ENGINE="+engine, "DELETE FROM orders")
			r := db.open(db.now())
			db.exec("INSERT INTO outbox VALUES (1), (2)", "INSERT INTO orders VALUES (3, ''), (4, '')",
				"INSERT INTO outbox SELECT id FROM orders ORDER BY id")
			r.until(4) // with its columns, which the binlog does not tell
			again := []string{"DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT NOT NULL) ENGINE=" + engine +
				" AS SELECT 5 AS id UNION SELECT 6"}
			if !db.isMaria() && engine != "InnoDB" { // with GTIDs it takes that for no other engine
				again = []string{"INSERT INTO outbox VALUES (5), (6)"}
			}
			db.exec(append(again, "INSERT INTO outbox SET id=99")...)
			if got := r.until(99).rows(); engine != "BLACKHOLE" && got != "1 2 3 4 5 6 99" || engine == "BLACKHOLE" &&
				got != "1 2 3 4 99" && got != "1 2 3 4 5 6 99" {
				t.Errorf("%s: rows %s came", engine, got)
			}
			_ = r.Close()
		}
	})
}

// A table in memory is empty after a restart, which the server writes to the binlog as a
// statement: that stops nothing.
func TestRealMemoryTableRestarts(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...servers.Options) *servers.MySQL{"MySQL": servers.MySQLForTest,
		"MariaDB": servers.MariaDBForTest} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t, start(t, servers.Options{Own: true}))
			db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY) ENGINE=MEMORY",
				"INSERT INTO outbox VALUES (1)")
			at := db.now()
			if err := db.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := db.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.conn = db.connect(db.name)
			db.exec("INSERT INTO outbox VALUES (1), (2)")
			if got := db.open(at).until(2).rows(); got != "1 2" {
				t.Errorf("rows %s came", got)
			}
		})
	}
}
