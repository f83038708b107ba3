package canal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/goleak"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// fake is a scripted server with a configuration to read from it.
type fake struct {
	*canaltest.Server
	t   *testing.T
	cfg canal.Config
}

func newFake(t *testing.T, serve func(d canaltest.Dump, to *canaltest.Sender) error) *fake {
	t.Helper()
	noLeaks(t)
	return startFake(t, serve)
}

// noLeaks looks for goroutines when everything that is started from now on has ended.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func startFake(t *testing.T, serve func(d canaltest.Dump, to *canaltest.Sender) error) *fake {
	t.Helper()
	f := &fake{t: t, Server: &canaltest.Server{
		UUID: sid.String(), GTIDMode: "ON", Executed: sid.String() + ":1-100", LogBin: "ON",
		Binlogs: []string{"binlog.000009", "binlog.000010", "binlog.000011"}, Serve: serve,
	}}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Server.Close(); err != nil {
			t.Error(err)
		}
	})
	f.cfg = canal.Config{
		Host: "127.0.0.1", Port: f.Port(), User: canaltest.User, Password: canaltest.Password, ServerID: 7,
		Tables: canal.Tables{Match: isOutbox}, SpoolDir: t.TempDir(), Heartbeat: time.Second,
	}
	return f
}

func set(t *testing.T, text string) position.Position {
	t.Helper()
	s, err := position.ParseSet(position.MySQL, text)
	if err != nil {
		t.Fatal(err)
	}
	return position.Position{Flavor: position.MySQL, Set: s, File: "binlog.000009", Pos: 4}
}

func (f *fake) open(from position.Position) *reading {
	f.t.Helper()
	s, err := canal.Open(f.t.Context(), f.cfg, from)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close() })
	return &reading{t: f.t, Stream: s, at: from}
}

// events serves a binlog, then what then says.
func events(b *canaltest.Binlog, then func(to *canaltest.Sender) error) func(canaltest.Dump, *canaltest.Sender) error {
	all := slices.Clone(b.Events)
	return func(_ canaltest.Dump, to *canaltest.Sender) error {
		for _, e := range all {
			if err := to.Event(e); err != nil {
				return err
			}
		}
		return then(to)
	}
}

func silence(*canaltest.Sender) error { return nil }

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  func(t *testing.T) position.Position
		set   func(f *fake)
		kind  canal.Kind
		retry bool
		diff  string
		words string
	}{
		{"no position", func(*testing.T) position.Position { return position.Position{} }, nil, canal.BadConfig, false, "",
			"no position"},
		{"no tables", nil, func(f *fake) { f.cfg.Tables.Match = nil }, canal.BadConfig, false, "", "no outbox tables"},
		{
			"B010 purged", func(t *testing.T) position.Position { return set(t, sid.String()+":1-40:45-50") },
			func(f *fake) { f.Purged = sid.String() + ":1-60" }, canal.Purged, false, sid.String() + ":41-44:51-60", "purged",
		},
		{
			"B011 server is behind", func(t *testing.T) position.Position { return set(t, sid.String()+":1-107") },
			nil, canal.Behind, false, sid.String() + ":101-107", "lacks",
		},
		{
			"B011 server was reset", func(t *testing.T) position.Position { return set(t, sid.String()+":1-90") },
			func(f *fake) { f.Executed = "" }, canal.Behind, false, sid.String() + ":1-90", "lacks",
		},
		{"B018 GTIDs off", nil, func(f *fake) { f.GTIDMode = "OFF_PERMISSIVE" }, canal.WrongMode, false, "",
			"gtid_mode=OFF_PERMISSIVE"},
		{"no binlog", nil, func(f *fake) { f.LogBin = "OFF" }, canal.WrongMode, false, "", "log_bin"},
		{"B032 statements by default", nil, func(f *fake) { f.Format = "MIXED" }, canal.WrongMode, false, "",
			"binlog_format=MIXED"},
		{"flavor in the configuration", nil, func(f *fake) { f.cfg.Flavor = position.MariaDB }, canal.BadConfig, false, "",
			"mariadb"},
		{
			"flavor of the position", func(t *testing.T) position.Position {
				return position.Position{Set: position.NewSet(position.MariaDB), File: "binlog.000009", Pos: 4}
			}, nil, canal.WrongHistory, false, "", "mariadb",
		},
		{"B010 purged file", byFile("binlog.000008", 4), nil, canal.Purged, false, "binlog.000008", "binlog.000009"},
		{"B011 file to come", byFile("binlog.000012", 4), nil, canal.Behind, false, "binlog.000012", ""},
		{"B011 file is shorter", byFile("binlog.000011", 1<<20+1), nil, canal.Behind, false, "binlog.000011:1048577",
			"ends at 1048576"},
		{
			"B011 by file, server was reset", func(*testing.T) position.Position {
				return position.Position{Flavor: position.MySQL, Server: sid.String(), File: "binlog.000010", Pos: 777,
					Last: gtid(101)}
			}, nil, canal.Behind, false, gtid(101).String(), "reset or restored",
		},
		{"B017 other base name", byFile("mysql-bin.000010", 4), nil, canal.WrongHistory, false, "", "different base names"},
		{
			"B017 name order", byFile("binlog.999999", 4),
			func(f *fake) { f.Binlogs = []string{"binlog.1000000", "binlog.1000001"} }, canal.Purged, false, "binlog.999999", "",
		},
		{"other server", func(*testing.T) position.Position {
			return position.Position{Server: "11111111-2222-3333-4444-555555555555", File: "binlog.000010", Pos: 4}
		}, nil, canal.WrongHistory, false, "", sid.String()},
		{"wrong password", nil, func(f *fake) { f.cfg.Password = "topsecret" }, canal.AccessDenied, true, "", ""},
		{"nobody there", nil, func(f *fake) { f.cfg.Port = 1 }, canal.Unreachable, true, "", "connecting to 127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, nil)
			from := set(t, sid.String()+":1-100")
			if c.from != nil {
				from = c.from(t)
			}
			if c.set != nil {
				c.set(f)
			}
			_, err := canal.Open(t.Context(), f.cfg, from)
			wantError(t, err, c.kind, position.GTID{}, c.words)
			wantAbsent(t, err, "topsecret")
			var e *canal.Error
			if errors.As(err, &e) && (e.Difference != c.diff || e.Retryable() != c.retry) {
				t.Errorf("difference %q, retry %t; want %q, %t", e.Difference, e.Retryable(), c.diff, c.retry)
			}
			if len(f.Dumps()) != 0 {
				t.Error("the binlog was asked for all the same")
			}
		})
	}
}

func byFile(file string, pos uint64) func(*testing.T) position.Position {
	return func(*testing.T) position.Position { return position.Position{File: file, Pos: pos} }
}

// What is asked for is our position and not the server's, gaps and tags included.
func TestOpenAsksForThePosition(t *testing.T) {
	text := sid.String() + ":1-7:9-10:app:1-3:5"
	asked := make(chan canaltest.Dump, 1)
	f := newFake(t, func(d canaltest.Dump, _ *canaltest.Sender) error { asked <- d; return nil })
	f.Executed = sid.String() + ":1-100:app:1-50"
	from := set(t, text)
	f.open(from)
	if got := <-asked; got.Set != from.Set.String() {
		t.Errorf("asked for %+v, want %s", got, from.Set)
	}
	f.open(position.Position{File: "binlog.000010", Pos: 777})
	if got := <-asked; got.File != "binlog.000010" || got.Pos != 777 {
		t.Errorf("asked for %+v", got)
	}
}

func TestStreamFailures(t *testing.T) {
	fatal := func(text string) func(*canaltest.Sender) error {
		return func(*canaltest.Sender) error { return mysql.NewError(mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG, text) }
	}
	for _, c := range []struct {
		name  string
		then  func(to *canaltest.Sender) error
		kind  canal.Kind
		retry bool
	}{
		{"B022 duplicate server id", fatal("A replica with the same server_uuid/server_id as this replica has connected to " +
			"the source; the first event 'binlog.000010' at 4"), canal.DuplicateServerID, true},
		{"B010 purged", fatal("Cannot replicate because the source purged required binary logs. Replicate the missing " +
			"transactions from elsewhere"), canal.Purged, false},
		{"B011 more GTIDs", fatal("Replica has more GTIDs than the source has, using the source's SERVER_UUID."),
			canal.Behind, false},
		{"B018 anonymous", fatal("Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file binlog.000010, " +
			"position 157."), canal.AnonymousTransaction, false},
		{"too large", fatal("log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source"),
			canal.TooLarge, false},
		{"other fatal error", fatal("the moon is full"), canal.ServerFailed, true},
		{"shutdown", func(*canaltest.Sender) error {
			return mysql.NewError(mysql.ER_SERVER_SHUTDOWN, "Server shutdown in progress")
		}, canal.Disconnected, true},
		{"cut", func(to *canaltest.Sender) error { to.Cut(); return io.EOF }, canal.Disconnected, true},
		{"B020 half-open connection", silence, canal.Disconnected, true},
		{"end of dump, then silence", func(to *canaltest.Sender) error {
			return to.Packet([]byte{mysql.EOF_HEADER, 0, 0, 0,
				0})
		}, canal.Disconnected, true},
		{"unknown packet, then silence", func(to *canaltest.Sender) error { return to.Packet([]byte{0x42}) },
			canal.ServerFailed, true},
		{"empty packet", func(to *canaltest.Sender) error { return to.Packet(nil) }, canal.ServerFailed, true},
		{"garbage", func(to *canaltest.Sender) error { return to.Event([]byte("not an event at all")) }, canal.Disconnected,
			true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mysqlLog()
			b.Transaction(gtid(101), func() { insert(b, 1) })
			b.GTID(gtid(102), 0, 0)
			b.Begin()
			insert(b, 2) // and no commit
			f := newFake(t, events(b, c.then))
			f.cfg.Heartbeat = 100 * time.Millisecond
			r := f.open(set(t, sid.String()+":1-100"))
			e := r.fails()
			if e.Kind != c.kind || e.Retryable() != c.retry {
				t.Errorf("got %s, retry %t: %v", e.Kind, e.Retryable(), e)
			}
			if r.rows() != "1" {
				t.Errorf("handed on rows %s", r.rows())
			}
			if st := r.Status(); st.Connected {
				t.Error("status says connected")
			}
			if _, err := r.Next(t.Context()); !errors.As(err, &e) {
				t.Errorf("Next after the error: %v", err)
			}
			<-canal.Ended(r.Stream)
			for _, q := range f.Queries() { // B023: it may hit a thread of another server
				if strings.HasPrefix(q, "KILL") {
					t.Errorf("the server was told to %s", q)
				}
			}
		})
	}
}

// A stream that has been told to close does so whatever the network does, and
// without a second connection to KILL the first.
func TestCloseIsImmediate(t *testing.T) {
	b := mysqlLog()
	for i := range 100 {
		b.Transaction(gtid(uint64(101+i)), func() { insert(b, i) })
	}
	f := newFake(t, events(b, silence))
	f.cfg.Heartbeat = time.Hour
	f.cfg.QueueBytes = 1 // the reader is blocked by a full queue
	var dials atomic.Int64
	f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	r := f.open(set(t, sid.String()+":1-100"))
	if err := r.step(); err != nil {
		t.Fatal(err)
	}
	before := dials.Load()
	closed := make(chan error, 1)
	go func() { closed <- r.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, canal.ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
	if dials.Load() != before {
		t.Errorf("Close dialled %d times", dials.Load()-before)
	}
	for _, q := range f.Queries() {
		if strings.HasPrefix(q, "KILL") {
			t.Errorf("the server was told to %s", q)
		}
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := newFake(t, nil)
	f.cfg.Port = l.Addr().(*net.TCPAddr).Port
	f.cfg.ConnectTimeout = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if _, err := canal.Open(ctx, f.cfg, set(t, sid.String()+":1-100")); !errors.Is(err, why) {
		t.Errorf("Open: %v", err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	f := newFake(t, events(mysqlLog(), silence))
	f.cfg.Heartbeat = time.Hour
	r := f.open(set(t, sid.String()+":1-100"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next: %v", err)
	}
}

// The address may lead to another server the second time.
func TestServerChangesBetweenCheckAndDump(t *testing.T) {
	one := newFake(t, events(mysqlLog(), silence))
	two := newFake(t, events(mysqlLog(), silence))
	two.UUID = "11111111-2222-3333-4444-555555555555"
	var n atomic.Int64
	one.cfg.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		port := one.Port()
		if n.Add(1) > 1 {
			port = two.Port()
		}
		return (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
	}
	_, err := canal.Open(t.Context(), one.cfg, set(t, sid.String()+":1-100"))
	wantError(t, err, canal.ServerChanged, position.GTID{}, two.UUID)
}

func TestB024StatusStatement(t *testing.T) {
	f := newFake(t, nil)
	f.StatusErr = mysql.NewError(mysql.ER_PARSE_ERROR, "You have an error in your SQL syntax")
	p, err := canal.CurrentPosition(t.Context(), f.cfg)
	if err != nil || p.Set.String() != f.Executed || p.File != "binlog.000011" || p.Pos != 157 || p.Server != f.UUID {
		t.Errorf("got %+v, %v", p, err)
	}
	f.GTIDMode = "OFF"
	if p, err = canal.CurrentPosition(t.Context(), f.cfg); err != nil || p.Set != nil || p.File != "binlog.000011" {
		t.Errorf("without GTIDs: %+v, %v", p, err)
	}
	f.StatusErr = mysql.NewError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR,
		"Access denied; you need (at least one of) the SUPER, REPLICATION CLIENT privilege(s) for this operation")
	_, err = canal.CurrentPosition(t.Context(), f.cfg)
	wantError(t, err, canal.AccessDenied, position.GTID{}, "REPLICATION CLIENT")
}

// Nothing of go-mysql's log of the configuration gets through, at any level.
func TestNoSecretsInTheLog(t *testing.T) {
	var log bytes.Buffer
	b := mysqlLog()
	b.Transaction(gtid(101), func() { insert(b, 1) })
	f := newFake(t, events(b, func(to *canaltest.Sender) error { to.Cut(); return io.EOF }))
	f.cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := f.open(set(t, sid.String()+":1-100"))
	r.fails()
	_ = r.Close()
	if !strings.Contains(log.String(), "reading the binlog") {
		t.Errorf("log lacks the start: %s", &log)
	}
	for _, secret := range []string{canaltest.Password, "RawModeEnabled", "agg-1"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("log holds %q: %s", secret, &log)
		}
	}
}
