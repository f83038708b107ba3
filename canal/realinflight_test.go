package canal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// A transaction is in the binlog before the engine has committed it: a semi-synchronous
// source waits in between for a replica, which there is none of here. Whatever the start
// lies behind, its rows come once.
func TestRealSnapshotRowsInFlight(t *testing.T) {
	const plugin = "--plugin-load-add=semisync_source.so"
	for _, c := range []struct {
		name   string
		server func(t testing.TB) *servers.MySQL
		start  func(*position.Position)
		flush  string // while the row is in flight
	}{
		{"MariaDB", pool.MariaDB, nil, ""},
		{"MariaDB by file", pool.MariaDB, func(p *position.Position) { p.Set = nil }, ""},
		{"MariaDB, rotated", pool.MariaDB, nil, "FLUSH BINARY LOGS"},
		{"MySQL", func(t testing.TB) *servers.MySQL {
			return servers.MySQLForTest(t, servers.Options{Args: []string{plugin}})
		}, nil, ""},
		{"MySQL by file", func(t testing.TB) *servers.MySQL {
			return servers.MySQLForTest(t, servers.Options{Args: []string{plugin}})
		}, func(p *position.Position) { p.Set = nil }, ""},
		{"MySQL without GTIDs", func(t testing.TB) *servers.MySQL {
			return servers.MySQLForTest(t, servers.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF",
				plugin}})
		}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) { inFlight(t, newDatabase(t, c.server(t)), c.start, c.flush) })
	}
}

func inFlight(t *testing.T, db *database, start func(*position.Position), flush string) {
	db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'stood')")
	semi := "rpl_semi_sync_source"
	if db.isMaria() {
		semi = "rpl_semi_sync_master"
	}
	db.exec("SET GLOBAL "+semi+"_wait_point='AFTER_SYNC'", "SET GLOBAL "+semi+"_timeout=3000",
		"SET GLOBAL "+semi+"_enabled=ON")
	defer db.exec("SET GLOBAL " + semi + "_enabled=OFF")
	before := db.now()
	writer, flusher := db.connect(db.name), db.connect("")
	written := make(chan error, 2)
	begin := time.Now()
	go func() {
		_, err := writer.Execute("INSERT INTO outbox (id, payload) VALUES (2, 'in flight')")
		written <- err
	}()
	at := db.now()
	for at.File == before.File && at.Pos == before.Pos {
		if time.Since(begin) > patience {
			t.Fatal("the insert does not get into the binlog")
		}
		at = db.now()
	}
	if flush == "" {
		written <- nil
	} else {
		go func() {
			_, err := flusher.Execute(flush)
			written <- err
		}()
		time.Sleep(300 * time.Millisecond)
	}
	if start != nil {
		start(&at)
	}
	at.Snapshot = &position.Snapshot{Begun: 1}
	s := follow(t, db, at)
	defer s.Close()
	var rows []string
	read := func() {
		txs, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range txs {
			for _, r := range txs[i].Rows {
				rows = append(rows, fmt.Sprint(r.After[0]))
			}
			at.Advance(txs[i].Commit)
		}
	}
	for at.Snapshot != nil {
		read()
	}
	if err := errors.Join(<-written, <-written); err != nil {
		t.Fatal(err)
	}
	db.exec("INSERT INTO outbox (id, payload) VALUES (3, 'later')")
	for len(rows) == 0 || rows[len(rows)-1] != "3" {
		read()
	}
	if got := strings.Join(rows, " "); got != "1 2 3" {
		t.Errorf("rows %s came, want 1 2 3", got)
	}
}

// Without GTIDs, who may not see the locks can't know what is in flight, and is told
// what to do; a start by GTID set needs no such right.
func TestRealSnapshotRowsNeedTheLocks(t *testing.T) {
	db := newDatabase(t, pool.MySQL(t))
	db.exec("INSERT INTO outbox (id, payload) VALUES (1, 'a')",
		"CREATE USER IF NOT EXISTS nolocks IDENTIFIED BY 'pw'",
		"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO nolocks", "GRANT SELECT ON "+db.name+".* TO nolocks")
	t.Cleanup(func() { db.exec("DROP USER nolocks") })
	root := db.cfg
	db.cfg.User, db.cfg.Password = "nolocks", "pw"
	at := db.now()
	at.Snapshot = &position.Snapshot{}
	byFile := at
	byFile.Set = nil
	for _, byGTID := range []bool{true, false} {
		_, _, err := canal.CheckSnapshot(t.Context(), db.cfg, byGTID)
		wantSnapshot(t, err, byGTID)
	}
	s, err := canal.OpenSnapshot(t.Context(), db.cfg, byFile)
	if wantSnapshot(t, err, false); err == nil {
		_ = s.Close()
	}
	s, err = canal.OpenSnapshot(t.Context(), db.cfg, at)
	if wantSnapshot(t, err, true); err == nil {
		_ = s.Close()
	}
	if s, err = canal.OpenSnapshot(t.Context(), root, byFile); err != nil {
		t.Error(err)
	} else {
		_ = s.Close()
	}
}

func wantSnapshot(t *testing.T, err error, ok bool) {
	t.Helper()
	if ok != (err == nil) || !ok && !strings.Contains(err.Error(), "GRANT SELECT ON performance_schema") {
		t.Errorf("opened with %v", err)
	}
}
