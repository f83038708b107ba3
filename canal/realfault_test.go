package canal_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// behindProxy lets the streams of a database go through a proxy.
func (db *database) behindProxy() *servers.Proxy {
	db.t.Helper()
	p, err := servers.StartProxy(db.Addr())
	if err != nil {
		db.t.Fatal(err)
	}
	db.t.Cleanup(func() { _ = p.Close() })
	_, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		db.t.Fatal(err)
	}
	if db.cfg.Port, err = strconv.Atoi(port); err != nil {
		db.t.Fatal(err)
	}
	return p
}

// big inserts n rows of 1 kB in one transaction, from id first on.
func (db *database) big(first, n int) {
	db.t.Helper()
	db.exec("BEGIN")
	for i := 0; i < n; i += 500 {
		var values []string
		for j := range min(500, n-i) {
			values = append(values, fmt.Sprintf("(%d, REPEAT('x', 1000))", first+i+j))
		}
		db.exec("INSERT INTO outbox (id, payload) VALUES " + strings.Join(values, ","))
	}
	db.exec("COMMIT")
}

// Both cuts hit the same transaction; the position must stay before it.
func TestB005TwoCutsInOneTransaction(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		start := db.known()
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		db.big(1000, 5000)
		db.exec("INSERT INTO outbox (id) VALUES (2)")
		p := db.behindProxy()
		at := start
		var all []txn.Transaction
		for i, limit := range []int64{1 << 20, 3 << 20} {
			p.CutAfter(limit)
			r := db.open(at)
			e := r.fails()
			if !e.Retryable() {
				t.Errorf("cut %d: %v", i, e)
			}
			all = append(all, r.all...)
			at = r.at
			_ = r.Close()
			if total(all) > 1 { // row 1, unless the cut hit the question for its columns
				t.Fatalf("after cut %d there are %d rows", i, total(all))
			}
		}
		p.CutAfter(-1)
		r := db.open(at).until(2)
		if got := total(all) + total(r.all); got != 5002 {
			t.Errorf("%d rows in all, want 5002", got)
		}
	})
}

func TestB010RealPurge(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		start := db.now()
		db.exec("INSERT INTO outbox (id) VALUES (1)", "INSERT INTO outbox (id) VALUES (2)")
		last := db.now()
		db.exec("FLUSH BINARY LOGS")
		byFile := start
		byFile.Set = nil
		// The server keeps files that a reader of an earlier test still has open.
		deadline := time.Now().Add(patience)
		for {
			db.exec("PURGE BINARY LOGS TO '" + db.now().File + "'")
			logs, err := canal.Binlogs(t.Context(), db.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if logs[0].Name != start.File {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the server does not purge %s", start.File)
			}
			time.Sleep(50 * time.Millisecond)
		}
		_, err := canal.Open(t.Context(), db.cfg, start)
		wantError(t, err, canal.Purged, position.GTID{})
		var e *canal.Error
		if errors.As(err, &e) && (e.Difference != last.Set.Subtract(start.Set).String() || e.Retryable()) {
			t.Errorf("missing is %s, want %s", e.Difference, last.Set.Subtract(start.Set))
		}
		if !db.isMaria() {
			_, err = canal.Open(t.Context(), db.cfg, byFile)
			wantError(t, err, canal.Purged, position.GTID{}, start.File)
		}
		// From where the purge ends it goes on.
		db.exec("INSERT INTO outbox (id) VALUES (3)")
		if got := db.open(last).until(3).rows(); got != "3" {
			t.Errorf("after the purge: %s", got)
		}
	})
}

// An idle server that turns to another file and purges the old ones leaves a reader
// by file and offset nothing to miss.
func TestB010RealPurgeOfAnIdleServer(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		at := db.now()
		at.Set = nil
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		r := db.open(at).until(1)
		db.exec("FLUSH BINARY LOGS")
		file := db.now().File
		for at.File != file {
			all, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range all {
				at.Advance(tx.Commit)
			}
		}
		_ = r.Close()
		db.exec("PURGE BINARY LOGS TO '"+file+"'", "INSERT INTO outbox (id) VALUES (2)")
		if got := db.open(at).until(2).rows(); got != "2" {
			t.Errorf("after the purge: %s", got)
		}
	})
}

func TestB011RealServerIsBehind(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		now := db.now()
		ahead := now
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		r := db.open(now).until(1)
		last := r.at.Last
		_ = r.Close()
		lost := last
		lost.Seq += 2
		ahead.Set = r.at.Set.Clone()
		ahead.Set.AddRange(lost, lost.Seq-1)
		_, err := canal.Open(t.Context(), db.cfg, ahead)
		wantError(t, err, canal.Behind, position.GTID{})
		want := ahead.Set.Subtract(r.at.Set).String()
		var e *canal.Error
		if errors.As(err, &e) && e.Difference != want {
			t.Errorf("the server lacks %s, want %s", e.Difference, want)
		}
		if !db.isMaria() {
			file := now
			file.Set, file.Pos = nil, 1<<40
			_, err = canal.Open(t.Context(), db.cfg, file)
			wantError(t, err, canal.Behind, position.GTID{})
		}
	})
}

func TestB018RealGTIDModes(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	mode := func(m string) { db.exec("SET GLOBAL gtid_mode=" + m) }
	t.Cleanup(func() { // t.Context is over by now, the connection is not
		for _, m := range []string{"OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"} {
			_, _ = db.conn.Execute("SET GLOBAL gtid_mode=" + m)
		}
	})
	db.exec("INSERT INTO outbox (id) VALUES (1)")
	last := db.now()
	mode("ON_PERMISSIVE")
	_, err := canal.Open(t.Context(), db.cfg, last)
	wantError(t, err, canal.WrongMode, position.GTID{}, "gtid_mode=ON_PERMISSIVE")
	mode("OFF_PERMISSIVE")
	byFile := db.now()
	if byFile.Set != nil {
		t.Errorf("with GTIDs off for new transactions the position is %+v", byFile)
	}
	db.exec("INSERT INTO outbox (id) VALUES (2)")
	// By file it goes through all modes.
	f := db.open(byFile).until(2)
	mode("ON_PERMISSIVE")
	db.exec("INSERT INTO outbox (id) VALUES (3)")
	f.until(3)
	mode("ON")
	db.exec("INSERT INTO outbox (id) VALUES (4)")
	if got := f.until(4).rows(); got != "2 3 4" || f.at.Set != nil {
		t.Errorf("by file: rows %s, position %+v", got, f.at)
	}
	// By GTID the anonymous transaction between stops it, not to be skipped silently.
	rd := db.open(last)
	if e := rd.fails(); e.Kind != canal.AnonymousTransaction || rd.rows() != "" {
		t.Errorf("with an anonymous transaction to come: %v, rows %s", e, rd.rows())
	}
}

func TestB020RealHalfOpenConnection(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		p := db.behindProxy()
		db.cfg.Heartbeat = 600 * time.Millisecond
		r := db.open(db.now())
		// Idle for several read timeouts: heartbeats keep it up.
		heard := r.Status().Heard
		time.Sleep(4 * time.Second)
		if st := r.Status(); !st.Connected || !st.Heard.After(heard) {
			t.Fatalf("idle: %+v", st)
		}
		p.Blackhole(true)
		if e := r.fails(); e.Kind != canal.Disconnected || !e.Retryable() {
			t.Errorf("half open: %v", e)
		}
		p.Blackhole(false)
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		db.open(r.at).until(1)
	})
}

// A reader that is stopped by back-pressure is thrown out by the server; it goes
// on where it was.
func TestB021RealSlowReader(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("SET GLOBAL net_write_timeout=1")
		t.Cleanup(func() { _, _ = db.conn.Execute("SET GLOBAL net_write_timeout=60") })
		start := db.now()
		for i := range 40 { // 40 MB: more than the sockets hold
			db.big(1000*(i+1), 1000)
		}
		db.exec("INSERT INTO outbox (id) VALUES (1000000)")
		db.cfg.QueueBytes = 1 << 20
		r := db.open(start)
		if err := r.step(); err != nil { // the dump is under way
			t.Fatal(err)
		}
		deadline := time.Now().Add(patience)
		for threads := 1; threads > 0; {
			v, err := db.Value(t.Context(),
				"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
			if err != nil {
				t.Fatal(err)
			}
			if threads, err = strconv.Atoi(v); err != nil || time.Now().After(deadline) {
				t.Fatalf("the server keeps the slow reader: %s, %v", v, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if e := r.fails(); e.Kind != canal.Disconnected || !e.Retryable() {
			t.Errorf("thrown out: %v", e)
		}
		first := total(r.all)
		_ = r.Close()
		again := db.open(r.at).until(1000000)
		if got := first + total(again.all); got != 40_001 || first == 0 {
			t.Errorf("%d rows before and %d after", first, total(again.all))
		}
	})
}

// MariaDB goes by the server id; MySQL by a UUID, which go-mysql makes up anew
// for each connection, so that there both stay.
func TestB022RealDuplicateServerID(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	one := db.open(db.now())
	two := db.open(db.now())
	if e := one.fails(); e.Kind != canal.DuplicateServerID || !e.Retryable() {
		t.Errorf("the first reader ends with %v", e)
	}
	db.exec("INSERT INTO outbox (id) VALUES (1)")
	two.until(1)
}

func TestRealRestartAndKill(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		if db.External() {
			t.Log("the server is not ours to restart")
			return
		}
		r := db.open(db.now())
		db.exec("INSERT INTO outbox (id) VALUES (1)")
		r.until(1)
		stops := []func() error{db.Kill}
		if db.isMaria() { // MySQL waits ten seconds for its readers
			stops = append(stops, db.Stop)
		}
		for i, stop := range stops {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if e := r.fails(); !e.Retryable() {
				t.Errorf("server gone: %v", e)
			}
			_, err := canal.Open(t.Context(), db.cfg, r.at)
			wantError(t, err, canal.Unreachable, position.GTID{})
			if err := db.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			db.conn = db.connect(db.name)
			db.exec(fmt.Sprintf("INSERT INTO outbox (id) VALUES (%d)", 2+i))
			r = db.open(r.at).until(int64(2 + i))
			if got := r.rows(); got != fmt.Sprint(2+i) {
				t.Errorf("after the restart: rows %s", got)
			}
		}
	})
}

// A place that is inside of an event, where the server can't show the events from, does
// not get better by asking again.
func TestRealPlaceInsideAnEvent(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	before, err := canal.CurrentPosition(t.Context(), db.cfg)
	if err != nil {
		t.Fatal(err)
	}
	db.exec("INSERT INTO outbox (aggregateid) VALUES ('a')", "FLUSH BINARY LOGS",
		"INSERT INTO outbox (aggregateid) VALUES ('b')")
	from, err := canal.CurrentPosition(t.Context(), db.cfg)
	if err != nil {
		t.Fatal(err)
	}
	from.File, from.Pos = before.File, before.Pos+5
	s, err := canal.Open(t.Context(), db.cfg, from)
	if err == nil {
		for err == nil {
			_, err = s.Next(t.Context())
		}
		_ = s.Close()
	}
	if e := wantError(t, err, canal.WrongHistory, position.GTID{}, before.File, "GTID set"); e.Retryable() {
		t.Errorf("asked again: %v", err)
	}
}

// MariaDB lets a server write lower numbers than its domain has, unless it is told not
// to. That looks as if the newest ones were lost, and both are said then.
func TestRealLooseGTIDs(t *testing.T) {
	db := newDatabase(t, pool.MariaDB(t))
	from := db.now()
	ahead, err := position.ParseSet(position.MariaDB, "0-9999-4000000000")
	if err != nil {
		t.Fatal(err)
	}
	from.Set = ahead
	_, err = canal.Open(t.Context(), db.cfg, from)
	wantError(t, err, canal.Behind, position.GTID{}, "4000000000", "gtid_strict_mode is OFF")
	db.exec("SET GLOBAL gtid_strict_mode = ON")
	defer db.exec("SET GLOBAL gtid_strict_mode = OFF")
	_, err = canal.Open(t.Context(), db.cfg, from)
	if e := wantError(t, err, canal.Behind, position.GTID{}); strings.Contains(e.Error(), "gtid_strict_mode") {
		t.Errorf("strict: %v", e)
	}
}

// A server that was reset or restored writes files of the same names again. By file and
// offset nothing but the time at which they were begun tells them apart.
func TestF14RealAnotherFileOfTheSameName(t *testing.T) {
	mysql := servers.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}
	for name, start := range map[string]func(t *testing.T) *servers.MySQL{
		"MySQL":   func(t *testing.T) *servers.MySQL { return servers.MySQLForTest(t, mysql) },
		"MariaDB": func(t *testing.T) *servers.MySQL { return servers.MariaDBForTest(t, servers.Options{Own: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t, start(t))
			db.exec("FLUSH BINARY LOGS")
			from := db.now()
			from.Set = nil
			db.exec("INSERT INTO outbox (id) VALUES (1)")
			r := db.open(from).until(1)
			_ = r.Close()
			at := r.at
			at.Last = position.GTID{} // MariaDB has no mode without GTIDs
			if at.Created == 0 {
				t.Errorf("the position does not say when its file was begun: %+v", at)
			}
			time.Sleep(time.Until(time.Unix(int64(at.Created)+1, 0)))
			if db.isMaria() {
				db.exec("RESET MASTER")
			} else {
				db.exec("RESET BINARY LOGS AND GTIDS")
			}
			for db.now().File < at.File {
				db.exec("FLUSH BINARY LOGS")
			}
			db.exec("INSERT INTO outbox (id) VALUES (2)", "INSERT INTO outbox (id) VALUES (3)")
			r = db.open(at)
			if e := r.fails(); e.Kind != canal.Behind || e.Retryable() || !strings.Contains(e.Error(),
				"another file of that name") || r.rows() != "" {
				t.Errorf("after rows %s: %v", r.rows(), e)
			}
			from = db.now() // does not say it, as those that operators set
			from.Set = nil
			db.exec("INSERT INTO outbox (id) VALUES (4)")
			r = db.open(from).until(4)
			if r.rows() != "4" || r.at.Created <= at.Created {
				t.Errorf("rows %s, then %+v", r.rows(), r.at)
			}
		})
	}
}
