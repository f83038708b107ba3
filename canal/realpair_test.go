package canal_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// pair is a primary and a replica of it, known to one configuration.
type pair struct {
	a, b *database
	cfg  canal.Config
}

func newPair(t *testing.T, start func(testing.TB, ...servers.Options) *servers.MySQL) *pair {
	t.Helper()
	p := &pair{a: own(t, start)}
	// The replica's binlog is reset, so the database comes from the primary.
	p.b = &database{MySQL: start(t, ownOptions), t: t, name: p.a.name}
	if err := servers.Replicate(t.Context(), p.b.MySQL, p.a.MySQL); err != nil {
		t.Fatal(err)
	}
	p.catchUp(p.b, p.a)
	p.b.conn = p.b.connect(p.b.name)
	p.cfg = p.a.cfg
	p.cfg.Others = []string{p.b.Addr()}
	p.cfg.PrimaryOnly = true
	p.cfg.RoleCheck = 100 * time.Millisecond
	p.b.cfg = p.a.cfg
	p.b.cfg.Host, p.b.cfg.Port = p.b.Host(), p.b.Port()
	return p
}

func (p *pair) catchUp(replica, source *database) {
	p.a.t.Helper()
	if err := servers.CatchUp(p.a.t.Context(), replica.MySQL, source.MySQL); err != nil {
		p.a.t.Fatal(err)
	}
}

func (p *pair) open(from position.Position) *reading {
	p.a.t.Helper()
	s, err := canal.Open(p.a.t.Context(), p.cfg, from)
	if err != nil {
		p.a.t.Fatal(err)
	}
	p.a.t.Cleanup(func() { _ = s.Close() })
	return &reading{t: p.a.t, Stream: s, at: from}
}

// promote makes the replica the primary.
func (p *pair) promote() {
	p.a.t.Helper()
	if err := servers.Promote(p.a.t.Context(), p.b.MySQL); err != nil {
		p.a.t.Fatal(err)
	}
}

func (p *pair) kill() {
	p.a.t.Helper()
	if err := p.a.Kill(); err != nil {
		p.a.t.Fatal(err)
	}
}

func (r *reading) end() position.Position {
	r.t.Helper()
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
	at := r.at
	at.Server = r.Status().Server.UUID
	return at
}

// The primary dies, nothing is lost, and the other host goes on. The fingerprint
// of the last transaction is the same there.
func TestF14PrimaryFailover(t *testing.T) {
	for _, flavor := range []struct {
		name  string
		start func(testing.TB, ...servers.Options) *servers.MySQL
	}{{"MySQL", servers.MySQLForTest}, {"MariaDB", servers.MariaDBForTest}} {
		t.Run(flavor.name, func(t *testing.T) {
			p := newPair(t, flavor.start)
			reg := prometheus.NewPedanticRegistry()
			p.cfg.Metrics = canal.NewMetrics(reg)
			r := p.open(p.a.now())
			if st := r.Status(); st.Address != p.a.Addr() || st.Previous != "" {
				t.Errorf("connected to %s, before to %q", st.Address, st.Previous)
			}
			p.a.insert(1)
			p.a.exec("BEGIN", "INSERT INTO outbox (id) VALUES (2)", "DO SLEEP(1.2)", "INSERT INTO outbox (id) VALUES (3)",
				"COMMIT")
			r.until(3)
			p.catchUp(p.b, p.a)
			p.kill()
			if e := r.fails(); !e.Retryable() {
				t.Errorf("the primary died: %v", e)
			}
			at := r.end()
			_, err := canal.Open(t.Context(), p.cfg, at)
			wantError(t, err, canal.NoPrimary, position.GTID{}, p.a.Addr(), "connecting to", "read_only=ON")
			p.promote()
			p.cfg.Prefer = p.a.Addr()
			r = p.open(at)
			if st := r.Status(); st.Address != p.b.Addr() || st.Previous == "" || st.Previous == st.Server.UUID {
				t.Errorf("connected to %s, before to %q", st.Address, st.Previous)
			}
			p.b.insert(4)
			if got := r.until(4).rows(); got != "4" {
				t.Errorf("after the failover: rows %s", got)
			}
			// MariaDB can't send the new primary's first transaction again: the number
			// before it is another server's.
			at = r.end()
			p.b.insert(5)
			if got := p.open(at).until(5).rows(); got != "5" {
				t.Errorf("after the new primary's first transaction: rows %s", got)
			}
			if st := r.Status(); !p.a.isMaria() && st.UnknownOrigins != 1 {
				t.Errorf("%d unknown origins", st.UnknownOrigins)
			}
			if got := metric(t, reg, "binlog_outbox_source_server_changes_total"); got != 1 {
				t.Errorf("%v server changes", got)
			}
		})
	}
}

func metric(t *testing.T, reg prometheus.Gatherer, name string) float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Errorf("there is no %s", name)
	return -1
}

// A planned switch-over: the old primary lives on as a replica and keeps our
// connection.
func TestF14SwitchOverWithoutLossOfConnection(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	r := p.open(p.a.now())
	p.a.insert(1)
	r.until(1)
	// Read-only alone is no reason to leave.
	p.a.exec("SET GLOBAL super_read_only=ON")
	time.Sleep(500 * time.Millisecond)
	if st := r.Status(); !st.Connected {
		t.Error("the stream ended although nobody else takes writes")
	}
	if err := servers.SwitchOver(t.Context(), p.a.MySQL, p.b.MySQL); err != nil {
		t.Fatal(err)
	}
	e := r.fails()
	if e.Kind != canal.Demoted || !e.Retryable() || !strings.Contains(e.Error(), p.b.Addr()) {
		t.Errorf("after the switch-over: %v", e)
	}
	p.b.insert(2)
	r = p.open(r.end())
	if got := r.until(2).rows(); got != "2" || r.Status().Address != p.b.Addr() {
		t.Errorf("rows %s from %s", got, r.Status().Address)
	}
	// And back.
	if err := servers.SwitchOver(t.Context(), p.b.MySQL, p.a.MySQL); err != nil {
		t.Fatal(err)
	}
	if e := r.fails(); e.Kind != canal.Demoted {
		t.Errorf("after the switch back: %v", e)
	}
	p.a.insert(3)
	if got := p.open(r.end()).until(3).rows(); got != "3" {
		t.Errorf("after the switch back: rows %s", got)
	}
}

// The primary dies with transactions that we have and no other server.
func TestF15LostTail(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	a, b := p.a.value("SELECT @@server_uuid"), p.b.value("SELECT @@server_uuid")
	r := p.open(p.a.now())
	p.a.insert(1)
	r.until(1)
	p.catchUp(p.b, p.a)
	p.b.exec("STOP REPLICA")
	p.a.insert(2, 3)
	at := r.until(3).end()
	lost := at.Set.Subtract(p.b.now().Set)
	if lost.Count() != 2 || !strings.HasPrefix(lost.String(), a+":") {
		t.Fatalf("lost is %s", lost)
	}
	p.b.cfg.PrimaryOnly = false
	_, err := canal.Open(t.Context(), p.b.cfg, at)
	wantError(t, err, canal.Lagging, position.GTID{}, "replica") // it may get them yet
	p.kill()
	p.promote()
	p.b.insert(4)
	_, err = canal.Open(t.Context(), p.cfg, at)
	if e := wantError(t, err, canal.LostTransactions, position.GTID{}, lost.String(),
		"source.lost_transactions=accept"); e.Retryable() || e.Difference != lost.String() {
		t.Errorf("got %+v", e)
	}
	// A refusal to record it ends the opening.
	p.cfg.OnLostTransactions = func(context.Context, *position.Set, string) error { return context.DeadlineExceeded }
	if _, err := canal.Open(t.Context(), p.cfg, at); err == nil {
		t.Error("opened although the loss could not be recorded")
	}
	reg := prometheus.NewPedanticRegistry()
	p.cfg.Metrics = canal.NewMetrics(reg)
	var recorded []string
	p.cfg.OnLostTransactions = func(_ context.Context, set *position.Set, server string) error {
		recorded = append(recorded, set.String()+" "+server)
		return nil
	}
	r = p.open(at).until(4)
	if got := r.rows(); got != "4" || fmt.Sprint(recorded) != "["+lost.String()+" "+b+"]" {
		t.Errorf("accepted: rows %s, recorded %v", got, recorded)
	}
	if got := metric(t, reg, "binlog_outbox_source_lost_transactions_total"); got != 2 ||
		!r.Status().LostTransactions.Equal(lost) {
		t.Errorf("counted %v, status has %v", got, r.Status().LostTransactions)
	}
	at = r.end()
	// From then on they are known, also where the policy is to stop.
	p.cfg.OnLostTransactions, p.cfg.Accepted = nil, lost
	p.b.insert(5)
	r = p.open(at).until(5)
	if got := r.rows(); got != "5" || r.Status().LostTransactions != nil {
		t.Errorf("known: rows %s, %v", got, r.Status().LostTransactions)
	}
	at = r.end()
	// The old primary comes back with its tail, or with others under its numbers.
	if err := p.a.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.a.conn = p.a.connect(p.a.name)
	p.a.cfg.Accepted = lost
	p.a.exec("SET GLOBAL super_read_only=OFF", "SET gtid_next='"+b+":1'", "COMMIT")
	p.a.exec("SET gtid_next='"+b+":2'", "COMMIT", "SET gtid_next=AUTOMATIC")
	_, err = canal.Open(t.Context(), p.a.cfg, at)
	wantError(t, err, canal.Diverged, position.GTID{}, lost.String())
}

func (db *database) value(q string) string {
	db.t.Helper()
	v, err := db.Value(db.t.Context(), q)
	if err != nil {
		db.t.Fatal(err)
	}
	return v
}

// MariaDB's position is the domain's last transaction, whoever wrote it: what was
// lost with another server can't be told from what the server lost itself.
func TestF15LostTailMariaDB(t *testing.T) {
	p := newPair(t, servers.MariaDBForTest)
	r := p.open(p.a.now())
	p.a.insert(1)
	r.until(1)
	p.catchUp(p.b, p.a)
	p.b.exec("STOP SLAVE")
	p.a.insert(2, 3)
	at := r.until(3).end()
	_, err := canal.Open(t.Context(), p.b.cfg, at)
	wantError(t, err, canal.Lagging, position.GTID{}, "replica")
	p.kill()
	p.promote()
	_, err = canal.Open(t.Context(), p.cfg, at)
	wantError(t, err, canal.Behind, position.GTID{}, at.Last.String())
	// The new primary has come as far and further, on another way.
	p.b.insert(102, 103, 104)
	_, err = canal.Open(t.Context(), p.cfg, at)
	var e *canal.Error
	if err == nil {
		r := &reading{t: t}
		r.Stream, err = canal.Open(t.Context(), p.cfg, at)
		if err == nil {
			e = r.fails()
		}
	}
	if e == nil && !errors.As(err, &e) || e.Kind != canal.Behind || e.Retryable() {
		t.Errorf("got %v, %v", e, err)
	}
}

// A stale primary that is back first is not taken when one is there that has all
// that we have, whatever the order and the policy.
func TestF15TheHostWithoutLossIsTaken(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	p.b.exec("STOP REPLICA")
	p.promote() // split brain: both take writes
	p.a.insert(1)
	r := p.open(p.a.now())
	p.a.insert(2)
	at := r.until(2).end()
	p.cfg.Host, p.cfg.Port, p.cfg.Others = p.b.Host(), p.b.Port(), []string{p.a.Addr()}
	p.cfg.OnLostTransactions = func(context.Context, *position.Set,
		string) error {
		t.Error("asked to accept a loss")
		return nil
	}
	if got := p.open(at).Status().Address; got != p.a.Addr() {
		t.Errorf("reading from %s", got)
	}
}

// Errant transactions of the new primary are committed there and published.
func TestF16ErrantTransactions(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	r := p.open(p.a.now())
	p.a.insert(1)
	at := r.until(1).end()
	p.catchUp(p.b, p.a)
	const stranger = "11111111-2222-3333-4444-555555555555"
	p.b.exec("SET GLOBAL super_read_only=OFF", "SET gtid_next='"+stranger+":1'", "INSERT INTO outbox (id) VALUES (100)",
		"SET gtid_next=AUTOMATIC", "INSERT INTO outbox (id) VALUES (101)")
	p.a.insert(2)
	p.catchUp(p.b, p.a)
	p.kill()
	p.promote()
	r = p.open(at).until(2)
	if got := r.rows(); got != "100 101 2" || r.Status().UnknownOrigins != 2 {
		t.Errorf("rows %s, %d unknown origins", got, r.Status().UnknownOrigins)
	}
	at = r.end()
	p.b.insert(3)
	if r = p.open(at).until(3); r.Status().UnknownOrigins != 0 {
		t.Errorf("%d unknown origins though all are known", r.Status().UnknownOrigins)
	}
}

// Others' transactions come before the last one in the new primary's binlog.
func TestF14OtherOrderOnTheNewPrimary(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	r := p.open(p.a.now())
	p.catchUp(p.b, p.a)
	p.b.exec("SET GLOBAL super_read_only=OFF", "INSERT INTO outbox (id) VALUES (100)") // before it gets row 1
	p.a.insert(1)
	at := r.until(1).end()
	p.catchUp(p.b, p.a)
	p.kill()
	p.promote()
	p.b.insert(2)
	if got := p.open(at).until(2).rows(); got != "100 2" {
		t.Errorf("rows %s", got)
	}
	// And when it is another one there, nothing is handed on.
	at.Committed = at.Committed.Add(time.Microsecond)
	_, err := canal.Open(t.Context(), p.cfg, at)
	wantError(t, err, canal.Diverged, at.Last)
}

// Purged where we go: the exact set, and nobody is asked to accept anything.
func TestF17PurgedOnTheNewPrimary(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	r := p.open(p.a.now())
	p.a.insert(1)
	at := r.until(1).end()
	p.a.insert(2, 3)
	p.catchUp(p.b, p.a)
	missing := p.b.now().Set.Subtract(at.Set).String()
	p.kill()
	p.promote()
	p.b.purge()
	_, err := canal.Open(t.Context(), p.cfg, at)
	if e := wantError(t, err, canal.Purged, position.GTID{}); e.Difference != missing || e.Retryable() {
		t.Errorf("missing is %s, want %s", e.Difference, missing)
	}
	// When just the last one is purged, what gtid_executed says must do.
	now := at
	now.Set = p.b.now().Set
	p.b.insert(4)
	if got := p.open(now).until(4).rows(); got != "4" {
		t.Errorf("rows %s", got)
	}
}

// The servers have each other's origins, and each purged or lacks what we do not
// want anyway.
func TestB012OriginsThatDoNotCount(t *testing.T) {
	db := own(t, servers.MySQLForTest)
	const other = "11111111-2222-3333-4444-555555555555"
	as := func(n, row int) {
		db.exec(fmt.Sprintf("SET gtid_next='%s:%d'", other, n), fmt.Sprintf("INSERT INTO outbox (id) VALUES (%d)", row),
			"SET gtid_next=AUTOMATIC")
	}
	start := db.now()
	as(1, 101)
	db.purge()
	_, err := canal.Open(t.Context(), db.cfg, start)
	wantError(t, err, canal.Purged, position.GTID{}, other+":1")
	has := start
	has.Set = has.Set.Clone()
	has.Set.Add(position.GTID{SID: [16]byte{1}, Seq: 7}) // what another source had
	self := db.value("SELECT @@server_uuid")
	db.cfg.Origins = func(id uuid.UUID) (bool, error) { return id.String() == self, nil }
	r := db.open(has)
	db.insert(1)
	as(2, 102)
	db.insert(2)
	r.until(2)
	if got := r.rows(); got != "1 2" || r.Status().Filtered != 1 {
		t.Errorf("rows %s, %d passed over", got, r.Status().Filtered)
	}
	if now := db.now(); now.Set.Subtract(r.at.Set).String() != other+":1" {
		t.Errorf("position is %s, the server's is %s", r.at.Set, now.Set)
	}
	as(3, 103)
	last := r.at
	_ = r.Close()
	db.insert(3)
	if got := db.open(last).until(3).rows(); got != "3" {
		t.Errorf("after resuming: rows %s", got)
	}
	maria := newDatabase(t, pool.MariaDB(t))
	maria.cfg.Origins = db.cfg.Origins
	_, err = canal.Open(t.Context(), maria.cfg, maria.now())
	wantError(t, err, canal.BadConfig, position.GTID{}, "MySQL only")
}

// One name for two servers: the one that takes writes is preferred.
func TestSeveralAddressesBehindOneName(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	cfg := p.a.cfg
	cfg.Host, cfg.RoleCheck = "db.example", 100*time.Millisecond
	cfg.Lookup = func(context.Context, string) ([]string, error) { return []string{"192.0.2.2", "192.0.2.1"}, nil }
	cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		to := p.a.Addr()
		if strings.HasPrefix(address, "192.0.2.2:") {
			to = p.b.Addr()
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}
	p.cfg = cfg
	r := p.open(p.a.now())
	if got := r.Status().Address; got != "db.example:"+strconv.Itoa(cfg.Port)+" (192.0.2.1:"+strconv.Itoa(cfg.Port)+")" {
		t.Errorf("connected to %s", got)
	}
	p.kill()
	r.fails()
	if got := p.open(r.end()).Status().Address; !strings.Contains(got, "192.0.2.2") {
		t.Errorf("with the primary down it connected to %s", got) // better a replica than none
	}
}

// Between checks and dump, and with several hosts, a position by file is refused.
func TestSeveralHostsNeedGTIDs(t *testing.T) {
	p := newPair(t, servers.MySQLForTest)
	byFile := p.a.now()
	byFile.Set = nil
	_, err := canal.Open(t.Context(), p.cfg, byFile)
	wantError(t, err, canal.WrongMode, position.GTID{}, "several hosts")
}
