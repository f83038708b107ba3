package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// node plays a node with three connectors: one streams, one waits for MySQL, one has
// failed. Behind the real admin server it does what is asked of it.
type node struct {
	mu      sync.Mutex
	began   time.Time
	states  map[string]ha.RunStatus
	audit   []ha.AuditEntry
	leader  string
	well    bool
	wellAt  time.Time
	decided admin.RowRequest // the last decision about a row
	latency *prometheus.HistogramVec
}

const set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-18230041,\n7d2c1b90-0a4e-4f25-8f4c-2b6f9c1f3d11:1-77"

func newNode() *node {
	now := time.Now()
	n := &node{
		began: now, leader: "cdc-1", states: map[string]ha.RunStatus{},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "binlog_outbox_end_to_end_latency_seconds", Help: "x.", Buckets: []float64{.001, .0025, .005, .01, .025, .05,
				.1, .25},
		}, []string{"connector"}),
	}
	for _, name := range []string{"billing-outbox", "orders-outbox", "shipping-outbox"} {
		n.states[name] = ha.RunStatus{State: ha.Running}
		n.latency.WithLabelValues(name)
	}
	for i, e := range []ha.AuditEntry{
		{By: "ann", Action: "set_run_state", Connector: "orders-outbox", Detail: "paused",
			Reason: "schema change of shop.outbox"},
		{By: "ann", Action: "set_run_state", Connector: "orders-outbox", Detail: "running", Reason: "schema change done"},
		{By: "otto (unverified) at 10.1.4.7", Action: "transfer_leadership", Detail: "to cdc-1",
			Reason: "kernel update of cdc-3"},
	} {
		e.Index, e.At = uint64(4000+i*17), now.Add(time.Duration(i-9)*47*time.Minute)
		n.audit = append(n.audit, e)
	}
	return n
}

func (n *node) Checks() []admin.Check { return []admin.Check{{Name: "cluster", OK: true}} }

func (n *node) Status() admin.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := admin.Status{Node: "cdc-1", Version: "0.1.0", Role: "leader", Leader: n.leader, Term: 7}
	if n.leader != "cdc-1" {
		s.Role = "follower"
	}
	for _, name := range []string{"billing-outbox", "orders-outbox", "shipping-outbox"} {
		s.Connectors = append(s.Connectors, n.connector(name))
	}
	return s
}

// connector is one of them; the caller holds the lock.
func (n *node) connector(name string) admin.Connector {
	now := time.Now()
	run := now.Sub(n.began).Seconds()
	committed := now.Add(-40 * time.Millisecond)
	c := admin.Connector{
		Name: name, State: "running", Phase: "streaming", Wanted: n.states[name],
		Since: now.Add(-3*time.Hour - 12*time.Minute), Delivery: "exactly_once", Sessions: 1,
		Published: uint64(184_200 + 950*run + 300*math.Sin(run/2)),
		Position: admin.Position{GTIDSet: set, File: "binlog.000412", Pos: 88_120_417,
			LastGTID: "3e11fa47-71ca-11e1-9e33-c80aa9429562:18230041", EventTime: &committed, Sequence: 91_223_870},
		Queue: admin.Queue{Records: 12, Bytes: 6_144}, LagSeconds: ptr(0.0),
		Backlog: &connector.Backlog{At: now.Add(-4 * time.Second), Transactions: ptr(uint64(0)), Bytes: ptr(uint64(0)),
			HeadroomSeconds: ptr(2.9 * 86400), HeadroomBytes: ptr(uint64(9 << 30)), RetentionSeconds: ptr(3.0 * 86400)},
		Takeover: map[string]float64{"producer": 0.011, "position": 0.019, "source": 0.008},
		Source: &admin.Source{
			Connected: true, Flavor: "mysql", ServerUUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", ServerVersion: "9.7.4",
			BinlogFile: "binlog.000412", BinlogPosition: 88_120_417,
			LastEventAge: 0.02, Inserts: 184_211, Deletes: 184_150, Transactions: 901_333, EventTime: &committed,
		},
	}
	switch {
	case n.leader != "cdc-1":
		return admin.Connector{Name: name, State: "unassigned", Wanted: c.Wanted, Delivery: c.Delivery, Position: c.Position}
	case c.Wanted.State != ha.Running:
		c.State, c.Phase, c.Source, c.Since = string(c.Wanted.State), "", nil, c.Wanted.At
		c.Queue = admin.Queue{}
	case n.well && name != "orders-outbox":
		c.Published = uint64(40_112 + 300*now.Sub(n.wellAt).Seconds())
	case name == "orders-outbox":
		n.latency.WithLabelValues(name).Observe(0.004 + 0.003*math.Abs(math.Sin(run*7)))
	case name == "shipping-outbox":
		retry := now.Truncate(20 * time.Second).Add(20 * time.Second)
		c.Phase, c.Source, c.Queue, c.Published, c.Sessions, c.LagSeconds = "waiting to retry", nil, admin.Queue{}, 40_112, 6,
			ptr(214.0)
		c.LastError = &connector.LastError{Code: "unreachable", At: now.Add(-3 * time.Second), RetryAt: retry,
			Message: "connecting to mysql-ship.example.internal:3306: dial tcp 10.1.7.3:3306: connect: connection refused"}
	default:
		c.State, c.Phase, c.Source, c.Queue, c.Published, c.Since = "failed", "", nil, admin.Queue{}, 40_112,
			now.Add(-26*time.Minute)
		c.LagSeconds, c.Backlog.Transactions, c.Backlog.Bytes = ptr(1571.0), ptr(uint64(20_114)), ptr(uint64(41<<20))
		gtid, _ := position.ParseGTID("9be2f2a1-5c1d-11ee-8c99-0242ac120002:771203")
		c.LastError = &connector.LastError{
			Code: "record_too_large", GTID: gtid, Transaction: gtid.String(), Row: 3, At: now.Add(-26 * time.Minute),
			Message: "topic outbox.event.invoice: the record has 2,411,008 bytes, and the broker takes 1,048,588 " +
				"(max.message.bytes)",
		}
		c.Unpublished = admin.Unpublished{Rows: 5, Last: []admin.UnpublishedRow{{
			Transaction: "9be2f2a1-5c1d-11ee-8c99-0242ac120002:770988", Row: 1, Table: "billing.outbox", Action: "dead_letter",
			Cause:   "null_route_value",
			Message: "the column aggregate_type is NULL, and the topic's name is made of it", At: now.Add(-91 * time.Minute),
		}}}
	}
	return c
}

func ptr[T any](v T) *T { return &v }

func (n *node) Connector(name string) (admin.Connector, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.states[name].State == "" {
		return admin.Connector{}, &admin.Problem{Status: 404, Code: admin.CodeConnectorNotFound,
			Detail: "there is no connector " + name}
	}
	return n.connector(name), nil
}

// note keeps what was done; the caller holds the lock.
func (n *node) note(by admin.Actor, action, name, detail string) {
	n.audit = append(n.audit, ha.AuditEntry{Index: 4100 + uint64(len(n.audit)), At: time.Now(), By: by.By, Action: action,
		Connector: name, Detail: detail, Reason: by.Reason})
}

func (n *node) SetRunState(_ context.Context, name string, want ha.RunState, by admin.Actor) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states[name] = ha.RunStatus{State: want, Reason: by.Reason, By: by.By, At: time.Now()}
	n.note(by, "set_run_state", name, string(want))
	return nil
}

func (n *node) Restart(_ context.Context, name string, by admin.Actor) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note(by, "restart", name, "")
	return nil
}

func (n *node) Cluster() ha.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := ha.Status{Cluster: "c1", NodeID: "cdc-1", Role: ha.Leader, LeaderID: n.leader, Term: 7, CommitIndex: 4211,
		AppliedIndex: 4211, LastIndex: 4211, Ready: true}
	for i := 1; i <= 3; i++ {
		id := fmt.Sprintf("cdc-%d", i)
		m := ha.Member{ID: id, Address: id + ".example.internal:7400", Voter: true, Leader: id == n.leader}
		if n.leader == "cdc-1" {
			m.Reachable = ptr(i != 3)
		}
		c.Members = append(c.Members, m)
	}
	if n.leader != "cdc-1" {
		c.Role, c.LastContact = "follower", ptr(0.04)
	}
	return c
}

func (n *node) TransferLeadership(_ context.Context, to string, by admin.Actor) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to == "cdc-3" {
		return &admin.Problem{Status: 409, Code: admin.CodeRejected, Detail: "cdc-3 is not in contact"}
	}
	n.leader = "cdc-2"
	n.note(by, "transfer_leadership", "", "to "+n.leader)
	return nil
}

func (n *node) Audit() []ha.AuditEntry {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]ha.AuditEntry{}, n.audit...)
}

func (n *node) Loggers() []admin.Logger {
	return []admin.Logger{{Name: "root", Level: "info"}, {Name: "raft", Level: "debug",
		Until: ptr(time.Now().Add(8 * time.Minute))}}
}

func (n *node) DecideRow(_ context.Context, name string, choice admin.RowRequest,
	by admin.Actor) (admin.RowDecision, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.decided = choice
	n.note(by, "unpublished", name, fmt.Sprintf("%s of %s row %d", choice.Action, choice.Transaction, choice.Row))
	return admin.RowDecision{}, nil
}

// The page asks for none of these.
func (n *node) UnpublishedRows(string) (admin.UnpublishedRows, error) {
	return admin.UnpublishedRows{}, nil
}
func (n *node) Offset(string) (admin.Offset, error) { return admin.Offset{}, nil }
func (n *node) SetOffset(context.Context, string, admin.OffsetRequest, admin.Actor) (admin.OffsetChange, error) {
	return admin.OffsetChange{}, nil
}
func (n *node) AddMember(context.Context, string, string, admin.Actor) error  { return nil }
func (n *node) RemoveMember(context.Context, string, bool, admin.Actor) error { return nil }
func (n *node) Promote(context.Context, string, admin.Actor) error            { return nil }
func (n *node) Snapshot(context.Context, io.Writer, admin.Actor) error        { return nil }
func (n *node) Config() (json.RawMessage, error)                              { return json.RawMessage("{}"), nil }
func (n *node) SetLogger(string, string, time.Duration, admin.Actor) error    { return nil }

func (n *node) Leads() bool { return true }

func (n *node) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("this node leads")
}

func (n *node) Event(id, _ string) (admin.Event, error) {
	return admin.Event{ID: id, Node: n.leader, Connectors: []admin.ConnectorEvent{}}, nil
}
func (n *node) Search(id, name string, _ admin.Actor) (admin.Event, error) {
	return n.Event(id, name)
}
func (n *node) EndSearch(id string, _ admin.Actor) (admin.Event, error) {
	return n.Event(id, "")
}

func (n *node) set(change func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// serve runs the admin server over n and returns its address and what ends it.
func serve(t *testing.T, cfg admin.Config, n *node) (base string, end func()) {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(n.latency)
	s, err := admin.Listen(cfg, n, n, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	_, port, _ := net.SplitHostPort(s.Addr())
	return "http://" + strings.Replace(s.Addr(), "127.0.0.1:"+port, "localhost:"+port, 1), end
}
