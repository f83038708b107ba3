package canal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
)

// What writes an outbox table by a statement that does not name it stops the stream, and
// what is known not to does not.
func TestRealIndirectStatements(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("SET GLOBAL log_bin_trust_function_creators=ON",
			"CREATE VIEW v AS SELECT * FROM outbox", "CREATE VIEW vv AS SELECT * FROM v",
			"CREATE VIEW innocent AS SELECT * FROM orders",
			"CREATE FUNCTION f(n INT) RETURNS INT BEGIN INSERT INTO outbox (aggregateid) VALUES (n); RETURN n; END",
			"CREATE FUNCTION g(n INT) RETURNS INT RETURN f(n)",
			"CREATE FUNCTION pure(n INT) RETURNS INT DETERMINISTIC RETURN n + 1",
			"CREATE TABLE triggered (id BIGINT PRIMARY KEY, note TEXT)",
			"CREATE TRIGGER t AFTER INSERT ON triggered FOR EACH ROW INSERT INTO outbox (aggregateid) VALUES (NEW.id)",
			"CREATE TABLE audited (id BIGINT PRIMARY KEY)",
			"CREATE TRIGGER a AFTER INSERT ON audited FOR EACH ROW INSERT INTO orders (note) VALUES ('a')")
		session := "SET SESSION binlog_format=STATEMENT"
		for i, c := range []struct {
			sql   string
			stops string
		}{
			{"INSERT INTO v (aggregateid) VALUES (1)", "view v"},
			{"INSERT INTO `vv` (aggregateid) VALUES (1)", "view vv"},
			{"UPDATE v SET payload='x'", "view v"},
			{"INSERT INTO orders (note) VALUES (f(1))", "function f"},
			{"UPDATE orders SET note = " + db.name + ".`g` (7) LIMIT 1", "function g"},
			{"INSERT INTO triggered VALUES (1, 'x')", "trigger t of table triggered"},
			{"DELETE FROM v", ""},
			{"INSERT INTO orders (note) VALUES (pure(1))", ""},
			{"INSERT INTO innocent (note) VALUES (CONCAT('a', LOWER('B')))", ""},
			{"INSERT INTO audited VALUES (1)", ""},
			{"REPLACE INTO orders (note) SELECT COUNT(*) FROM outbox WHERE LENGTH(payload) > 1", ""},
		} {
			db.exec("INSERT INTO orders (note) VALUES ('to be updated')")
			r := db.open(db.now())
			id := int64(1000 + i)
			db.exec(session, c.sql, "SET SESSION binlog_format=ROW", "REPLACE INTO outbox (id) VALUES ("+fmt.Sprint(id)+")")
			if c.stops == "" {
				r.until(id)
			} else if e := r.fails(); e.Kind != canal.StatementFormat || !strings.Contains(e.Error(), "used "+c.stops+",") {
				t.Errorf("%s: got %v", c.sql, e)
			}
			_ = r.Close()
		}
	})
}

// MariaDB's MIXED writes statements, too.
func TestRealMixedThroughView(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	db.exec("CREATE VIEW v AS SELECT * FROM outbox")
	r := db.open(db.now())
	db.exec("SET SESSION binlog_format=MIXED", "INSERT INTO v (id) VALUES (7)")
	if e := r.fails(); e.Kind != canal.StatementFormat || !strings.Contains(e.Error(), "used view v,") {
		t.Errorf("got %v", e)
	}
}
