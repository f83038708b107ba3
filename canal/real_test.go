package canal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func TestRealTransactions(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		r := db.open(db.now())
		db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'a'), (2, 'b')")
		r.until(2) // else the columns may be asked for after they have changed
		db.exec(
			"BEGIN", "INSERT INTO outbox (id, payload) VALUES (3, 'c')", "INSERT INTO orders (note) VALUES ('x')",
			"INSERT INTO outbox (id, payload) VALUES (4, 'd')", "COMMIT",
			"BEGIN", "INSERT INTO outbox (id, payload) VALUES (5, 'e')", "ROLLBACK",
			"INSERT INTO orders (note) VALUES ('x')",
			"BEGIN", "INSERT INTO outbox (id, payload) VALUES (6, 'f')", "SAVEPOINT s", "INSERT INTO outbox (id) VALUES (7)",
			"ROLLBACK TO s",
			"INSERT INTO outbox (id, payload) VALUES (8, 'g')", "COMMIT",
			"UPDATE outbox SET payload='z'", "DELETE FROM outbox WHERE id=1",
			"FLUSH BINARY LOGS",
			"ALTER TABLE outbox ADD COLUMN extra INT NOT NULL DEFAULT 5 FIRST",
			"ALTER TABLE outbox DROP COLUMN extra",
			"INSERT INTO outbox (id, payload) VALUES (9, 'h')",
		)
		r.until(9)
		if got, want := r.transactions(), "[1 2] [3 4] [6 8] [9]"; got != want {
			t.Errorf("transactions are %s, want %s", got, want)
		}
		st := r.Status()
		if st.Inserts != 7 && st.Inserts != 6 || st.Updates != 1 || st.Deletes != 1 {
			t.Errorf("status counts %d inserts, %d updates, %d deletes", st.Inserts, st.Updates, st.Deletes)
		}
		// The position that the commits make is the server's own.
		if now := db.now(); !r.at.Set.Equal(now.Set) || r.at.File != now.File || r.at.Pos != now.Pos {
			t.Errorf("position is %s, %s:%d; the server's is %s, %s:%d", r.at.Set, r.at.File, r.at.Pos, now.Set, now.File,
				now.Pos)
		}
		// And it can be resumed from: nothing twice, nothing missing.
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		db.exec("INSERT INTO outbox (id) VALUES (10)")
		again := db.open(r.at).until(10)
		if got := again.rows(); got != "10" {
			t.Errorf("after resuming: %s", got)
		}
	})
}

func TestRealFilePosition(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	from := db.now()
	from.Set = nil
	r := db.open(from)
	db.exec("INSERT INTO outbox (id) VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO outbox (id) VALUES (2)")
	r.until(2)
	if now := db.now(); r.at.File != now.File || r.at.Pos != now.Pos || r.at.Set != nil {
		t.Errorf("position is %+v, the server's is %s:%d", r.at, now.File, now.Pos)
	}
	db.exec("INSERT INTO outbox (id) VALUES (3)")
	if got := db.open(r.at).until(3).rows(); got != "3" {
		t.Errorf("after resuming: %s", got)
	}
}

// The binlogs of two servers have the same names. Read on at the same place in
// another server's, rows would be missing without a word.
func TestRealFilePositionIsOfOneServer(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		from := db.now()
		from.Set = nil
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		if got := db.open(from).until(1).rows(); got != "1" {
			t.Errorf("on the same server: rows %s", got)
		}
		if from.Server == "" {
			t.Fatal("the position does not say which server's it is")
		}
		from.Server = strings.NewReplacer("1", "2", "2", "1", "a", "b").Replace(from.Server) + "3"
		_, err := canal.Open(t.Context(), db.cfg, from)
		wantError(t, err, canal.WrongHistory, position.GTID{}, from.Server)
	})
}

// A reader that lags behind sees the columns of today.
func TestB037RealSwappedColumns(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		for _, byFile := range []bool{false, true} {
			db.exec("DROP TABLE outbox", outboxDDL)
			from := db.now()
			if byFile {
				from.Set = nil
			}
			db.exec("INSERT INTO outbox (id, aggregateid, type) VALUES (1, 'a', 't')",
				"ALTER TABLE outbox CHANGE aggregateid type VARCHAR(255), CHANGE type aggregateid VARCHAR(255)")
			r := db.open(from)
			e := r.fails()
			if e.Kind != canal.SchemaMismatch || e.Table != db.name+".outbox" || e.Retryable() {
				t.Errorf("by file %t: %v", byFile, e)
			}
			if r.rows() != "" {
				t.Errorf("by file %t: rows %s went out", byFile, r.rows())
			}
			// It can go on behind the change.
			from = db.now()
			db.exec("INSERT INTO outbox (id) VALUES (2)")
			if got := db.open(from).until(2).rows(); got != "2" {
				t.Errorf("by file %t: after the change: rows %s", byFile, got)
			}
		}
	})
}

// Names and texts of definitions come in the connection's character set, which the
// server chooses when it does not know the one that is asked for.
func TestRealNamesBeyondASCII(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.cfg.Tables.Match = func(_, table string) (bool, error) { return table == "ausgänge", nil }
		db.exec("SET NAMES utf8mb4", "CREATE TABLE ausgänge (id BIGINT PRIMARY KEY, größe INT, art ENUM('ü','z'), s "+
			"SET('é','ю'))")
		r := db.open(db.now())
		db.exec("INSERT INTO ausgänge VALUES (1, 5, 'ü', 'é,ю')")
		r.until(1)
		row := r.all[len(r.all)-1].Rows[0]
		if got := fmt.Sprint(row.Table.Columns[1].Name, row.After); got != "größe[1 5 ü é,ю]" {
			t.Errorf("read %s", got)
		}
		// Characters of four bytes are more than information_schema can show. The statement
		// tells them.
		db.exec("DELETE FROM ausgänge", "ALTER TABLE ausgänge MODIFY art ENUM('😀','z')",
			"INSERT INTO ausgänge VALUES (2, 5, '😀', '')")
		r.until(2)
		if got := fmt.Sprint(r.all[len(r.all)-1].Rows[0].After); got != "[2 5 😀 ]" {
			t.Errorf("read %s", got)
		}
		r = db.open(db.now())
		db.exec("INSERT INTO ausgänge VALUES (3, 5, '😀', '')")
		if e := r.fails(); e.Kind != canal.Undecodable || !strings.Contains(e.Error(), "binlog_row_metadata=FULL") {
			t.Errorf("got %v", e)
		}
	})
}

// Engines without transactions commit by query event, MyISAM among them.
func TestB014RealEngines(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", strings.Replace(outboxDDL, "LONGTEXT)", "LONGTEXT) ENGINE=MyISAM", 1),
			"CREATE TABLE marks (id INT) ENGINE=MyISAM")
		r := db.open(db.now())
		db.exec("INSERT INTO outbox (id) VALUES (1)", "INSERT INTO outbox (id) VALUES (2), (3)")
		r.until(3)
		want := "[1] [2 3]"
		if db.isMaria() { // MySQL with GTIDs refuses to mix engines in a transaction
			db.exec("BEGIN", "INSERT INTO orders (note) VALUES ('gone')", "INSERT INTO outbox (id) VALUES (4)", "ROLLBACK")
			r.until(4)
			db.exec("DROP TABLE outbox", outboxDDL,
				"BEGIN", "INSERT INTO outbox (id) VALUES (5)", "INSERT INTO marks VALUES (1)", "SAVEPOINT s",
				"INSERT INTO outbox (id) VALUES (6)", "INSERT INTO marks VALUES (2)", "ROLLBACK TO s",
				"INSERT INTO outbox (id) VALUES (7)", "COMMIT",
				"BEGIN", "INSERT INTO outbox (id) VALUES (8)", "INSERT INTO marks VALUES (3)", "ROLLBACK",
				"INSERT INTO outbox (id) VALUES (9)")
			r.until(9)
			want += " [4] [5 7] [9]"
		}
		db.exec("DROP TABLE outbox", outboxDDL, "BEGIN", "CREATE TEMPORARY TABLE tmp (id INT)",
			"INSERT INTO outbox (id) VALUES (10)",
			"DROP TEMPORARY TABLE tmp", "INSERT INTO outbox (id) VALUES (11)", "ROLLBACK", "INSERT INTO outbox (id) VALUES (12)")
		r.until(12)
		want += " [12]"
		db.exec("CREATE TABLE other AS SELECT * FROM outbox", "DROP TABLE outbox",
			"CREATE TABLE outbox (PRIMARY KEY (id)) AS SELECT 13 AS id")
		r.until(13)
		want += " [13]"
		db.exec("DROP TABLE outbox", outboxDDL, "INSERT INTO outbox (id) VALUES (14)")
		r.until(14)
		want += " [14]"
		if got := r.transactions(); got != want {
			t.Errorf("transactions are %s, want %s", got, want)
		}
	})
}

func TestB013RealXA(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		start := db.now()
		other := db.connect(db.name)
		xa := func(table, end string) {
			execOn(t, other, "XA START 'x','y',7", "INSERT INTO "+table+" VALUES ()", "XA END 'x','y',7", end)
		}
		xa("orders", "XA COMMIT 'x','y',7 ONE PHASE")
		xa("orders", "XA PREPARE 'x','y',7")
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		execOn(t, other, "XA COMMIT 'x','y',7")
		xa("orders", "XA PREPARE 'x','y',7")
		execOn(t, other, "XA ROLLBACK 'x','y',7")
		xa("outbox", "XA COMMIT 'x','y',7 ONE PHASE") // row 2
		db.exec("INSERT INTO outbox (id) VALUES (3)")
		r := db.open(start).until(3)
		if got, want := r.transactions(), "[1] [2] [3]"; got != want {
			t.Errorf("transactions are %s, want %s", got, want)
		}
		xa("outbox", "XA PREPARE 'x','y',7")
		e := r.fails()
		if e.Kind != canal.PreparedXA || e.GTID.IsZero() || e.Retryable() {
			t.Errorf("at the prepare: %v", e)
		}
		// Opened again before and after its end it stops at the same place, and
		// nothing of it or behind it is handed on.
		for _, end := range []string{"", "XA ROLLBACK 'x','y',7"} {
			if end != "" {
				execOn(t, other, end)
			}
			again := db.open(r.at)
			if e := again.fails(); e.Kind != canal.PreparedXA || again.rows() != "" {
				t.Errorf("opened again: %v, rows %q", e, again.rows())
			}
		}
	})
}

// MariaDB's ANALYZE carries statements out, and logs them as they were typed.
func TestB032RealAnalyzedStatement(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	r := db.open(db.now())
	db.exec("SET SESSION binlog_format=STATEMENT", "ANALYZE FORMAT=JSON INSERT INTO outbox (id) VALUES (1)")
	if e := r.fails(); e.Kind != canal.StatementFormat {
		t.Errorf("got %v", e)
	}
}

func TestB032RealStatementFormat(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		r := db.open(db.now())
		db.exec("SET SESSION binlog_format=STATEMENT", "INSERT INTO orders (note) VALUES ('outbox')",
			"INSERT INTO outbox (id, payload) VALUES (1, 'topsecret')")
		e := r.fails()
		if e.Kind != canal.StatementFormat || e.GTID.IsZero() || e.Table != db.name+".outbox" {
			t.Errorf("got %v", e)
		}
		wantAbsent(t, e, "topsecret")
	})
}

func TestB033RealRowImage(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		r := db.open(db.now())
		db.exec("SET SESSION binlog_row_image=MINIMAL", "INSERT INTO outbox (id, payload) VALUES (1, NULL)")
		e := r.fails()
		if e.Kind != canal.MissingColumn || !strings.Contains(e.Error(), "aggregatetype") {
			t.Errorf("got %v", e)
		}
	})
}

func TestB034RealPartialJSON(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.exec("ALTER TABLE outbox MODIFY payload JSON",
		`INSERT INTO outbox (id, payload) VALUES (1, '{"a": "`+strings.Repeat("x", 200)+`", "b": 1}')`)
	r := db.open(db.now())
	db.exec("SET SESSION binlog_row_value_options=PARTIAL_JSON", "UPDATE outbox SET payload=JSON_SET(payload, '$.b', 2)",
		`INSERT INTO outbox (id, payload) VALUES (2, '{"a": 1}')`)
	r.until(2)
	if got := r.Status().Updates; got != 1 {
		t.Errorf("%d updates counted", got)
	}
	payload := r.all[len(r.all)-1].Rows[0].After[4]
	if doc, ok := payload.([]byte); !ok || len(doc) == 0 || doc[0] != 0 {
		t.Errorf("the JSON document is %T %v, want its binary form", payload, payload)
	}
}

func TestB001CompressedTransactions(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	r := db.open(db.now())
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("(%d, 'p')", 1000+i))
	}
	db.exec("SET SESSION binlog_transaction_compression=ON",
		"INSERT INTO outbox (id, payload) VALUES (1, 'a')",
		"INSERT INTO outbox (id, payload) VALUES "+strings.Join(many, ","),
		"INSERT INTO outbox (id, payload) VALUES (2, REPEAT('five megabytes', 400000))",
		"INSERT INTO orders (note) VALUES (REPEAT('x', 1000))",
		"SET SESSION binlog_transaction_compression=OFF",
		"INSERT INTO outbox (id, payload) VALUES (3, 'b')")
	r.until(3)
	var sizes []int
	for _, tr := range r.all {
		if len(tr.Rows) > 0 {
			sizes = append(sizes, len(tr.Rows))
		}
	}
	if fmt.Sprint(sizes) != "[1 1000 1 1]" {
		t.Errorf("rows per transaction are %v", sizes)
	}
	for _, tr := range r.all {
		if len(tr.Rows) == 1 && tr.Rows[0].After[0] == int64(2) {
			if p, _ := tr.Rows[0].After[4].(string); p != strings.Repeat("five megabytes", 400000) {
				t.Errorf("the large payload has %d bytes and is not what was inserted", len(p))
			}
		}
	}
	if now := db.now(); !r.at.Set.Equal(now.Set) || r.at.Pos != now.Pos {
		t.Errorf("position is %s:%d, the server's is %s:%d", r.at.Set, r.at.Pos, now.Set, now.Pos)
	}
}

func TestB007RealTaggedGTIDs(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	r := db.open(db.now())
	db.exec("SET gtid_next='AUTOMATIC:app'", "INSERT INTO outbox (id) VALUES (1)", "SET gtid_next='AUTOMATIC'",
		"INSERT INTO outbox (id) VALUES (2)")
	r.until(2)
	if now := db.now(); !r.at.Set.Equal(now.Set) || !strings.Contains(now.Set.String(), ":app:") {
		t.Errorf("position is %s, the server's is %s", r.at.Set, now.Set)
	}
	db.exec("INSERT INTO outbox (id) VALUES (3)")
	if got := db.open(r.at).until(3).rows(); got != "3" {
		t.Errorf("after resuming: %s", got)
	}
}

func TestB008RealGapsStay(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	const id = "11111111-2222-3333-4444-555555555555"
	r := db.open(db.now())
	commit := func(n, row int) {
		db.exec(fmt.Sprintf("SET gtid_next='%s:%d'", id, n), fmt.Sprintf("INSERT INTO outbox (id) VALUES (%d)", row),
			"SET gtid_next='AUTOMATIC'")
	}
	commit(7, 7)
	commit(9, 9)
	r.until(9)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.at.Set.String(), id+":7:9") {
		t.Errorf("position is %s", r.at.Set)
	}
	commit(8, 8)
	if got := db.open(r.at).until(8).rows(); got != "8" {
		t.Errorf("after resuming: %s", got)
	}
}

func TestB024Positions(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		now := db.now()
		if now.IsZero() || now.Set == nil || now.File == "" || now.Pos < 4 {
			t.Errorf("now is %+v", now)
		}
		early, err := canal.EarliestPosition(t.Context(), db.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if early.IsZero() || early.Pos != 4 || !now.Set.Contains(early.Set) {
			t.Errorf("earliest is %+v", early)
		}
		if got := db.open(early).until(1).rows(); got != "1" {
			t.Errorf("from the earliest position: %s", got)
		}
		// The right to see the status must do.
		user := "u" + db.name[max(0, len(db.name)-20):]
		right := "REPLICATION CLIENT"
		if db.isMaria() {
			right = "BINLOG MONITOR"
		}
		db.exec("DROP USER IF EXISTS "+user, "CREATE USER "+user+" IDENTIFIED BY 'pw'", "GRANT "+right+" ON *.* TO "+user)
		cfg := db.cfg
		cfg.User, cfg.Password = user, "pw"
		if p, err := canal.CurrentPosition(t.Context(), cfg); err != nil || !p.Set.Equal(now.Set) && p.IsZero() {
			t.Errorf("with %s only: %v, %v", right, p, err)
		}
		_, err = canal.Open(t.Context(), cfg, now)
		wantError(t, err, canal.AccessDenied, position.GTID{})
		cfg.Password = "wrong"
		_, err = canal.Open(t.Context(), cfg, now)
		wantError(t, err, canal.AccessDenied, position.GTID{})
		wantAbsent(t, err, "wrong")
	})
}
