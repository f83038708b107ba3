package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// alive says whether the process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func value(t *testing.T, s *MySQL, statement string) string {
	t.Helper()
	v, err := s.Value(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustExec(t *testing.T, s *MySQL, statements ...string) {
	t.Helper()
	if err := s.Exec(t.Context(), statements...); err != nil {
		t.Fatal(err)
	}
}

func TestDatabases(t *testing.T) {
	for _, test := range []struct {
		name  string
		start func(testing.TB, ...Options) *MySQL
		// gtid must not be empty once something was written.
		gtid string
		args []string
	}{
		{"mysql", MySQLForTest, "SELECT @@gtid_executed", []string{"--binlog-row-metadata=FULL"}},
		{"mariadb", MariaDBForTest, "SELECT @@gtid_binlog_pos", []string{"--binlog-row-metadata=FULL"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.start(t, Options{Args: test.args})
			if got := value(t, s, test.gtid); got != "" {
				t.Errorf("a new server has executed %q", got)
			}
			if got := value(t, s, "SELECT @@binlog_row_metadata"); got != "FULL" {
				t.Errorf("binlog_row_metadata is %s, so arguments did not arrive", got)
			}
			mustExec(t, s, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2)")
			if value(t, s, test.gtid) == "" {
				t.Error("no GTID was executed")
			}
			t.Run("cdc user", func(t *testing.T) { testCDCUser(t, s) })
			t.Run("kill", func(t *testing.T) { testKill(t, s) })
			t.Run("pause", func(t *testing.T) { testPause(t, s) })
			t.Run("stop", func(t *testing.T) { testStop(t, s) })
			t.Run("close", func(t *testing.T) { testClose(t, s) })
		})
	}
}

func testCDCUser(t *testing.T, s *MySQL) {
	for range 2 { // also when it is there
		if err := s.CreateCDCUser(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := client.Connect(s.Addr(), CDCUser, CDCPassword, "d")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Execute("SELECT * FROM t"); err != nil {
		t.Error(err)
	}
	if _, err := conn.Execute("INSERT INTO t VALUES (99)"); err == nil {
		t.Error("the account may write")
	}
}

func testKill(t *testing.T, s *MySQL) {
	pid, at := s.PID(), s.Addr()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Fatalf("process %d lives", pid)
	}
	if err := s.ping(t.Context()); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != at || s.PID() == pid {
		t.Errorf("restarted at %s as %d, was at %s as %d", s.Addr(), s.PID(), at, pid)
	}
	if got := value(t, s, "SELECT COUNT(*) FROM d.t"); got != "2" {
		t.Errorf("%s rows of 2 survived", got)
	}
}

func testPause(t *testing.T, s *MySQL) {
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Value(ctx, "SELECT 1"); err == nil {
		t.Error("a paused server answers")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 is %q", got)
	}
}

func testStop(t *testing.T, s *MySQL) {
	if err := s.Pause(); err != nil { // Stop must get through to a paused server
		t.Fatal(err)
	}
	pid, done := s.PID(), s.Done()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	default:
		t.Error("Done is open after Stop")
	}
	if alive(pid) {
		t.Errorf("process %d lives", pid)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func testClose(t *testing.T, s *MySQL) {
	pid, dir := s.PID(), s.Dir()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if alive(pid) {
		t.Errorf("process %d lives", pid)
	}
	if exists(dir) {
		t.Errorf("%s is left", dir)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a closed server restarts")
	}
}

func TestServersSideBySideInGivenFolders(t *testing.T) {
	dir := t.TempDir()
	one, err := StartMySQL(t.Context(), Options{Name: "one", Dir: filepath.Join(dir, "one")})
	if err != nil {
		t.Fatal(err)
	}
	two := MySQLForTest(t, Options{Name: "two", ServerID: 77})
	if got := value(t, two, "SELECT @@server_id"); got != "77" {
		t.Errorf("server_id is %s", got)
	}
	if got, want := value(t, one, "SELECT @@server_id"), strconv.Itoa(one.Port()); got != want {
		t.Errorf("server_id is %s, not %s", got, want)
	}
	uuid := value(t, one, "SELECT @@server_uuid")
	if uuid == value(t, two, "SELECT @@server_uuid") {
		t.Error("both servers are the same one")
	}
	mustExec(t, one, "CREATE DATABASE kept")
	if _, err := StartMySQL(t.Context(), Options{Dir: one.Dir()}); !errors.Is(err, errLocked) {
		t.Errorf("a folder in use is taken: %v", err)
	}
	port := one.Port()
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	one = MySQLForTest(t, Options{Dir: one.Dir()})
	if one.Port() != port {
		t.Errorf("listens on %d, was on %d", one.Port(), port)
	}
	if got := value(t, one, "SELECT @@server_uuid"); got != uuid {
		t.Errorf("identity is %s, was %s", got, uuid)
	}
	mustExec(t, one, "USE kept")
}

func TestFailedStartTellsTheServersLog(t *testing.T) {
	before, _ := filepath.Glob(filepath.Join(tempBase(), "data", "broken-*"))
	_, err := StartMySQL(t.Context(), Options{Name: "broken", Args: []string{"--no-such-option=1"}})
	if err == nil {
		t.Fatal("a server with an unknown option starts")
	}
	if !contains(err, "no-such-option") {
		t.Errorf("the error does not tell why: %v", err)
	}
	if after, _ := filepath.Glob(filepath.Join(tempBase(), "data", "broken-*")); len(after) > len(before) {
		t.Errorf("%v is left", after)
	}
}

func TestNamedServer(t *testing.T) {
	real := MySQLForTest(t, Options{InitArgs: []string{"--lower-case-table-names=1"}})
	if got := value(t, real, "SELECT @@lower_case_table_names"); got != "1" {
		t.Errorf("lower_case_table_names is %s", got)
	}
	mustExec(t, real, "CREATE USER tester@'%' IDENTIFIED BY 'a:b@c'", "GRANT ALL ON *.* TO tester@'%'")
	t.Setenv("BINLOG_OUTBOX_TEST_MYSQL", "tester:a:b@c@"+real.Addr())
	var pool Pool
	t.Cleanup(pool.Close)
	s := pool.MySQL(t)
	if s != pool.MySQL(t) {
		t.Error("a pool has one server for all tests")
	}
	if !s.External() || s.Addr() != real.Addr() || s.Port() != real.Port() {
		t.Errorf("%s was used, external %v", s.Addr(), s.External())
	}
	if got := value(t, s, "SELECT CURRENT_USER()"); got != "tester@%" {
		t.Errorf("logged in as %s", got)
	}
	for name, do := range map[string]func() error{
		"Stop": s.Stop, "Kill": s.Kill, "Pause": s.Pause, "Resume": s.Resume,
		"Restart": func() error { return s.Restart(t.Context()) },
	} {
		if err := do(); !errors.Is(err, ErrExternal) {
			t.Errorf("%s answers %v", name, err)
		}
	}
	pool.Close()
	if got := value(t, real, "SELECT 1"); got != "1" {
		t.Error("closing the pool closed a server that is not its own")
	}
}

func TestParseAccount(t *testing.T) {
	for _, test := range []struct {
		text, user, password, addr string
		ok                         bool
	}{
		{"root:@127.0.0.1:3306", "root", "", "127.0.0.1:3306", true},
		{"root@[::1]:3306", "root", "", "[::1]:3306", true},
		{"u:p:@x@h:1", "u", "p:@x", "h:1", true},
		{"127.0.0.1:3306", "", "", "", false},
		{":p@h:1", "", "", "", false},
		{"u:p@h", "", "", "", false},
	} {
		t.Run(test.text, func(t *testing.T) {
			user, password, addr, err := parseAccount(test.text)
			if (err == nil) != test.ok {
				t.Fatalf("error %v", err)
			}
			if test.ok && (user != test.user || password != test.password || addr != test.addr) {
				t.Errorf("got %q %q %q", user, password, addr)
			}
		})
	}
}

func TestSweepLeavesWhatIsHeld(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"held", "left"} {
		if err := os.MkdirAll(filepath.Join(base, name, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := tryLock(filepath.Join(base, "held", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.unlock()
	sweep(base)
	if !exists(filepath.Join(base, "held", "data")) || exists(filepath.Join(base, "left")) {
		t.Error("a held folder was removed, or a left one was not")
	}
}
