package canal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// group starts n servers of one history and a configuration for all of them.
func group(t *testing.T, n int) []*fake {
	t.Helper()
	noLeaks(t)
	var all []*fake
	for i := range n {
		f := startFake(t, events(mysqlLog(), silence))
		f.UUID = uuid.UUID{15: byte(i + 1)}.String()
		all = append(all, f)
	}
	for _, f := range all[1:] {
		all[0].cfg.Others = append(all[0].cfg.Others, fmt.Sprintf("127.0.0.1:%d", f.Port()))
	}
	all[0].cfg.PrimaryOnly = true
	return all
}

func address(f *fake) string { return fmt.Sprintf("127.0.0.1:%d", f.Port()) }

func TestF14WhichHostIsTaken(t *testing.T) {
	from := sid.String() + ":1-90"
	for _, c := range []struct {
		name string
		set  func(all []*fake)
		want int // the host, -1 for none
		kind canal.Kind
	}{
		{"the first primary", func([]*fake) {}, 0, 0},
		{"not a replica", func(all []*fake) { all[0].SetReadOnly(true) }, 1, 0},
		{"a replica, if that will do", func(all []*fake) { all[0].SetReadOnly(true); all[0].cfg.PrimaryOnly = false }, 0, 0},
		{"the one in use", func(all []*fake) { all[0].cfg.Prefer = address(all[2]) }, 2, 0},
		{"not the one in use when that is a replica",
			func(all []*fake) { all[0].cfg.Prefer = address(all[2]); all[2].SetReadOnly(true) }, 0, 0},
		{"not one that lacks transactions", func(all []*fake) { all[0].Executed = sid.String() + ":1-80" }, 1, 0},
		{"not one that has purged", func(all []*fake) { all[0].Purged = sid.String() + ":1-95" }, 1, 0},
		{"one that lacks transactions, if it is the only primary and that is accepted", func(all []*fake) {
			all[0].Executed = sid.String() + ":1-80"
			all[1].SetReadOnly(true)
			all[2].SetReadOnly(true)
			all[0].cfg.OnLostTransactions = func(context.Context, *position.Set, string) error { return nil }
		}, 0, 0},
		{"no primary", func(all []*fake) {
			for _, f := range all {
				f.SetReadOnly(true)
			}
		}, -1, canal.NoPrimary},
		{"the reason of the only primary decides", func(all []*fake) {
			all[0].Purged = sid.String() + ":1-95"
			all[1].SetReadOnly(true)
			all[2].SetReadOnly(true)
		}, -1, canal.Purged},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := group(t, 3)
			c.set(all)
			s, err := canal.Open(t.Context(), all[0].cfg, set(t, from))
			if c.want < 0 {
				e := wantError(t, err, c.kind, position.GTID{}, address(all[0]), address(all[1]), address(all[2]))
				if c.kind == canal.Purged && (e.Difference != sid.String()+":91-95" || e.Retryable()) {
					t.Errorf("difference %s, retry %t", e.Difference, e.Retryable())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.Status().Address; got != address(all[c.want]) {
				t.Errorf("reading from %s, want %s", got, address(all[c.want]))
			}
			for i, f := range all {
				if dumps := len(f.Dumps()); i != c.want && dumps > 0 {
					t.Errorf("host %d was asked for the binlog", i)
				}
			}
		})
	}
}

// A host that says nothing costs a second, not its time-out.
func TestF14SilentHostHoldsUpNobody(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all := group(t, 2)
	cfg := all[0].cfg
	cfg.Others = []string{address(all[0]), address(all[1])}
	cfg.Host, cfg.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	cfg.ConnectTimeout = time.Hour
	s, err := canal.Open(t.Context(), cfg, set(t, sid.String()+":1-100"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Status().Address; got != address(all[0]) {
		t.Errorf("reading from %s", got)
	}
	// And when nobody answers, the context ends it.
	cfg.Others = []string{l.Addr().String()}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if _, err := canal.Open(ctx, cfg, set(t, sid.String()+":1-100")); !errors.Is(err, why) {
		t.Errorf("Open: %v", err)
	}
}

// The host of the old primary has gone without a word, and another one is promoted
// while its answer is awaited.
func TestF14SilentHostDoesNotHideASuccessor(t *testing.T) {
	all := group(t, 2)
	cfg := all[0].cfg
	cfg.Host, cfg.Port = "192.0.2.1", 3306 // nobody's
	cfg.Others = []string{address(all[0]), address(all[1])}
	cfg.ConnectTimeout = patience
	cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "192.0.2.1:3306" {
			<-ctx.Done() // as connect(2) does, for two minutes
			return nil, context.Cause(ctx)
		}
		return dialTCP(ctx, network, address)
	}
	all[0].SetReadOnly(true)
	all[1].SetReadOnly(true)
	time.AfterFunc(100*time.Millisecond, func() { all[1].SetReadOnly(false) })
	begin := time.Now()
	s, err := canal.Open(t.Context(), cfg, set(t, sid.String()+":1-100"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, took := s.Status().Address, time.Since(begin); got != address(all[1]) || took > patience/2 {
		t.Errorf("reading from %s after %s", got, took)
	}
	// And when there is none, that is said in time.
	all[1].SetReadOnly(true)
	cfg.ConnectTimeout = 300 * time.Millisecond
	_, err = canal.Open(t.Context(), cfg, set(t, sid.String()+":1-100"))
	wantError(t, err, canal.NoPrimary, position.GTID{}, "192.0.2.1:3306", "deadline")
}

// What asks for metadata goes to the primary, too.
func TestF14MetadataComesFromThePrimary(t *testing.T) {
	all := group(t, 2)
	all[0].SetReadOnly(true)
	all[1].Executed = sid.String() + ":1-200"
	if p, err := canal.CurrentPosition(t.Context(), all[0].cfg); err != nil || p.Server != all[1].UUID ||
		p.Set.String() != all[1].Executed {
		t.Errorf("now is %+v, %v", p, err)
	}
	if s, err := canal.Inspect(t.Context(), all[0].cfg); err != nil || s.UUID != all[1].UUID || s.ReadOnly != "" {
		t.Errorf("%+v, %v", s, err)
	}
	all[1].GTIDMode = "OFF"
	_, err := canal.CurrentPosition(t.Context(), all[0].cfg)
	wantError(t, err, canal.WrongMode, position.GTID{}, "several hosts")
}

func TestF14DemotedWhileStreaming(t *testing.T) {
	all := group(t, 2)
	all[1].SetReadOnly(true)
	all[0].cfg.RoleCheck = 10 * time.Millisecond
	warned := make(chan struct{}, 10)
	all[0].cfg.Logger = slog.New(tattle{slog.DiscardHandler, warned})
	r := all[0].open(set(t, sid.String()+":1-100"))
	all[0].SetReadOnly(true)
	<-warned // nobody takes writes: it stays
	if !r.Status().Connected {
		t.Error("the stream ended though there is no other primary")
	}
	all[1].SetReadOnly(false)
	if e := r.fails(); e.Kind != canal.Demoted || !e.Retryable() || !strings.Contains(e.Error(), address(all[1])) {
		t.Errorf("got %v", e)
	}
	<-canal.Ended(r.Stream)
	if got := all[0].open(set(t, sid.String()+":1-100")).Status().Address; got != address(all[1]) {
		t.Errorf("then reading from %s", got)
	}
}

// tattle tells of warnings.
type tattle struct {
	slog.Handler
	to chan<- struct{}
}

func (tattle) Enabled(context.Context, slog.Level) bool { return true }

func (h tattle) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		h.to <- struct{}{}
	}
	return nil
}

// The address leads to another server while the old connection lives.
func TestF14AddressMovesWhileStreaming(t *testing.T) {
	all := group(t, 2)
	moved := make(chan struct{})
	cfg := all[0].cfg
	cfg.RoleCheck = 10 * time.Millisecond
	cfg.Others = []string{"127.0.0.1:1"}
	cfg.Dialer = func(ctx context.Context, network, to string) (net.Conn, error) {
		select {
		case <-moved:
			if to == address(all[0]) {
				to = address(all[1])
			}
		default:
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
	all[0].cfg = cfg
	r := all[0].open(set(t, sid.String()+":1-100"))
	close(moved)
	if e := r.fails(); e.Kind != canal.ServerChanged || !strings.Contains(e.Error(), all[1].UUID) {
		t.Errorf("got %v", e)
	}
}

// With one host nobody asks for its role.
func TestOneHostMayBeAReplica(t *testing.T) {
	f := newFake(t, events(mysqlLog(), silence))
	f.SetReadOnly(true)
	f.cfg.RoleCheck = time.Millisecond
	r := f.open(set(t, sid.String()+":1-100"))
	before := len(f.Queries())
	time.Sleep(30 * time.Millisecond)
	if n := len(f.Queries()); n != before || !r.Status().Connected {
		t.Errorf("%d questions while streaming", n-before)
	}
}

func TestF14ServerChangesAreCounted(t *testing.T) {
	all := group(t, 2)
	m := canal.NewMetrics(nil)
	all[0].cfg.Metrics = m
	var said []string
	from := set(t, sid.String()+":1-100")
	from.Server = all[0].UUID
	for _, readOnly := range []bool{false, true, true, false} {
		all[0].SetReadOnly(readOnly)
		s, err := canal.Open(t.Context(), all[0].cfg, from)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, s.Status().Previous)
		_ = s.Close()
	}
	if got, want := fmt.Sprintf("%q", said), fmt.Sprintf("%q", []string{"", all[0].UUID, "", all[1].UUID}); got != want {
		t.Errorf("servers before: %s, want %s", got, want)
	}
}

// An origin is told of once, and the server's own when it is new.
func TestF16UnknownOrigins(t *testing.T) {
	b := mysqlLog()
	for _, g := range []position.GTID{gtid(101), {SID: uuid.UUID{1}, Seq: 1}, gtid(102), {SID: uuid.UUID{1}, Seq: 2},
		{SID: uuid.UUID{2}, Seq: 1}} {
		b.Transaction(g, func() { insert(b, int(g.Seq)) })
	}
	f := newFake(t, events(b, silence))
	warned := make(chan struct{}, 10)
	f.cfg.Logger = slog.New(tattle{slog.DiscardHandler, warned})
	r := f.open(set(t, sid.String()+":1-100"))
	for len(r.all) < 5 {
		if err := r.step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Status().UnknownOrigins; got != 2 || len(warned) != 2 {
		t.Errorf("%d unknown origins, %d warnings", got, len(warned))
	}
}
