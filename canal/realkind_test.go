package canal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Whatever a server calls a table is taken, or refused with the reason: when its columns
// are looked at, for a pattern, for its snapshot rows, and when a row of it comes.
func TestRealKindsOfTables(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, c := range []struct {
			only, ddl, says string
			pattern         bool // a pattern means no such thing
		}{
			{"", "CREATE VIEW outbox AS SELECT * FROM orders", "is a view", true},
			{"", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note LONGTEXT) ENGINE=MERGE UNION=(a)", "its engine is MRG_",
				false},
			{"mariadb", "CREATE SEQUENCE outbox", "is a sequence", true},
			{"mariadb", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note LONGTEXT) WITH SYSTEM VERSIONING",
				"WITH SYSTEM VERSIONING", false},
			{"mysql", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note LONGTEXT) ENGINE=FEDERATED " +
				"CONNECTION='mysql://a@127.0.0.1:1/b/c'", "its engine is FEDERATED", false},
			{"", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note LONGTEXT)", "", false},
			{"", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, note LONGTEXT) PARTITION BY HASH (id) PARTITIONS 3", "", false},
		} {
			if c.only != "" && c.only != db.Flavor() {
				continue
			}
			db.exec("DROP VIEW IF EXISTS outbox", "DROP TABLE IF EXISTS outbox, a",
				"CREATE TABLE a (id BIGINT PRIMARY KEY, note LONGTEXT) ENGINE=MyISAM")
			if db.isMaria() {
				db.exec("DROP SEQUENCE IF EXISTS outbox")
			}
			if strings.Contains(c.ddl, "FEDERATED") &&
				db.value("SELECT COUNT(*) FROM information_schema.ENGINES WHERE ENGINE='FEDERATED' AND SUPPORT='YES'") == "0" {
				continue
			}
			db.exec(c.ddl)
			name := schema.Name{Database: db.name, Table: "outbox"}
			want := func(what string, err error, says string) {
				t.Helper()
				var e *canal.Error
				switch {
				case says == "" && err != nil, says != "" && (!errors.As(err, &e) || e.Retryable() ||
					!strings.Contains(err.Error(), says)):
					t.Errorf("%s: %s: got %v, want %q", c.ddl, what, err, says)
				}
			}
			_, err := canal.Columns(t.Context(), db.cfg, name)
			want("columns", err, c.says)
			byPattern := c.says
			if c.pattern {
				byPattern = ""
			}
			_, err = canal.Matching(t.Context(), db.cfg)
			want("matching", err, byPattern)
			named := db.cfg
			named.Tables.List = []schema.Name{name}
			_, _, err = canal.CheckSnapshot(t.Context(), named, true)
			want("snapshot rows", err, c.says)
		}
	})
}

// A table that gets a history while it is read stops the stream at its first row.
func TestRealTableGetsHistory(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	db.exec("SET GLOBAL binlog_row_metadata=FULL")
	t.Cleanup(func() { db.exec("SET GLOBAL binlog_row_metadata=NO_LOG") })
	r := db.open(db.now())
	db.exec("INSERT INTO outbox (id) VALUES (1)")
	r.until(1)
	db.exec("ALTER TABLE outbox ADD SYSTEM VERSIONING", "INSERT INTO outbox (id) VALUES (2)",
		"UPDATE outbox SET payload='x' WHERE id=2")
	if e := r.fails(); e.Kind != canal.BadConfig || !strings.Contains(e.Error(), "WITH SYSTEM VERSIONING") ||
		r.rows() != "1" {
		t.Errorf("after rows %s: %v", r.rows(), e)
	}
}

// A primary key that the server has generated and does not show is there all the same.
func TestRealHiddenGeneratedKey(t *testing.T) {
	db := newDatabase(t, servers.MySQLForTest(t, servers.Options{Args: []string{
		"--show-gipk-in-create-table-and-information-schema=OFF", "--sql-generate-invisible-primary-key=ON",
	}}))
	db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT, payload LONGTEXT)",
		"INSERT INTO outbox VALUES (1, 'stood')")
	at := db.now()
	at.Snapshot = &position.Snapshot{Begun: 1}
	s := follow(t, db, at)
	defer s.Close()
	db.exec("INSERT INTO outbox VALUES (2, 'came')")
	var got []string
	for len(got) < 2 {
		txs, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tx := range txs {
			for _, row := range tx.Rows {
				got = append(got, row.After[2].(string))
			}
		}
	}
	if text := strings.Join(got, " "); text != "stood came" {
		t.Errorf("got %s", text)
	}
}
