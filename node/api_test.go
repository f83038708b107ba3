package node

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// leading is a node that leads, with its connectors not at work: their source
// and Kafka are away.
func leading(t *testing.T) (*api, *instance) {
	t.Helper()
	d := testDaemon(t, prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { d.changes.run(ctx, d.store); done <- struct{}{} }()
	go func() { _ = d.store.Run(ctx); done <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-done
		<-done
	})
	for !d.store.Status().Ready {
		if t.Context().Err() != nil {
			t.Fatal("no leader")
		}
		time.Sleep(time.Millisecond)
	}
	return d.api, d.manager.all()[0]
}

var ann = admin.Actor{By: "ann", Reason: "test"}

func codeOf(err error) string {
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		return p.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestControlIsAudited: every write is in the audit list with who and why, and
// connectors show what is wanted of them.
func TestControlIsAudited(t *testing.T) {
	c, r := leading(t)
	name := r.name
	ctx := t.Context()
	for _, err := range []error{
		c.SetRunState(ctx, name, ha.Paused, ann),
		c.Restart(ctx, name, ann),
		c.SetRunState(ctx, name, ha.Stopped, ann),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.SetOffset(ctx, name, admin.OffsetRequest{Reset: true}, ann); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range c.store.Audit() {
		if e.By != ann.By || e.Reason != ann.Reason || e.Connector != name {
			t.Errorf("%+v", e)
		}
		actions = append(actions, e.Action)
	}
	if !slices.Equal(actions, []string{"set_run_state", "restart_connector", "set_run_state", "set_position"}) {
		t.Errorf("audit: %q", actions)
	}
	s, err := c.Connector(name)
	if err != nil || s.Wanted.State != ha.Stopped || s.Wanted.By != "ann" || s.Wanted.Reason != "test" ||
		s.Wanted.At.IsZero() {
		t.Errorf("%+v, %v", s.Wanted, err)
	}
	for what, err := range map[string]error{
		"state": c.SetRunState(ctx, "none", ha.Paused, ann), "restart": c.Restart(ctx, "none", ann),
		"offset": second(c.SetOffset(ctx, "none", admin.OffsetRequest{Reset: true}, ann)), "get": second(c.Offset("none")),
		"show": second(c.Connector("none")),
	} {
		if codeOf(err) != admin.CodeConnectorNotFound {
			t.Errorf("%s of an unknown connector: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestRestartReachesTheConnector: the counter in the store, which any node may
// raise, restarts the connector where it runs.
func TestRestartReachesTheConnector(t *testing.T) {
	t.Parallel()
	c, r := leading(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leadership, end := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { r.connector.Run(ctx, leadership, 1); done <- struct{}{} }()
	go func() { c.manager.followRestarts(ctx); done <- struct{}{} }()
	defer func() { cancel(); end(); <-done; <-done }()
	waitFor(t, "a failed attempt", func() bool { return r.connector.Status().LastError != nil })
	// The pauses grow to a minute: a restart is seen by an attempt that is sooner.
	var before time.Time
	waitFor(t, "a long pause", func() bool {
		e := r.connector.Status().LastError
		before = e.At
		return time.Until(e.RetryAt) > 2*time.Second
	})
	if err := c.Restart(t.Context(), r.name, ann); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the next attempt", func() bool { return r.connector.Status().LastError.At.After(before) })
	if took := time.Since(before); took > 30*time.Second {
		t.Errorf("the restart took %v", took)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

const sid = canaltest.SID

func gtids(t *testing.T, text string) *position.Set {
	t.Helper()
	s, err := position.ParseSet(position.MySQL, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSetOffset: only of a stopped connector; a dry run changes nothing and says
// how many transactions come again and how many are passed over.
func TestSetOffset(t *testing.T) {
	c, r := leading(t)
	name, ctx := r.name, t.Context()
	at := position.Position{Flavor: position.MySQL, Set: gtids(t, sid+":1-10"), Seq: 7}
	run, _ := c.store.NewSession(name, c.store.Status().Term)
	if err := c.store.SavePosition(ctx, name, run, at); err != nil {
		t.Fatal(err)
	}
	request := admin.OffsetRequest{GTIDSet: sid + ":1-6:20-21", DryRun: true}
	for _, s := range []ha.RunState{ha.Running, ha.Paused} {
		if err := c.SetRunState(ctx, name, s, ann); err != nil {
			t.Fatal(err)
		}
		if _, err := c.SetOffset(ctx, name, request, ann); codeOf(err) != admin.CodeNotStopped {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := c.SetRunState(ctx, name, ha.Stopped, ann); err != nil {
		t.Fatal(err)
	}
	change, err := c.SetOffset(ctx, name, request, ann)
	if err != nil || change.Repeated == nil || *change.Repeated != 4 || *change.Skipped != 2 ||
		change.Before.GTIDSet != sid+":1-10" || change.After.GTIDSet != sid+":1-6:20-21" || len(change.Notes) == 0 {
		t.Fatalf("%+v, %v", change, err)
	}
	if o, _ := c.Offset(name); o.Position.GTIDSet != sid+":1-10" || o.OffsetOverride != nil {
		t.Errorf("a dry run has set %+v", o)
	}
	request.DryRun = false
	if _, err := c.SetOffset(ctx, name, request, ann); err != nil {
		t.Fatal(err)
	}
	if o, _ := c.Offset(name); o.Position.GTIDSet != sid+":1-6:20-21" || o.OffsetOverride == nil ||
		o.Position.Sequence != 7+position.SeqGap || o.Position.Sequence != change.After.Sequence || !o.Found {
		t.Errorf("the position is %+v", o)
	}
	if _, err := c.SetOffset(ctx, name, admin.OffsetRequest{Reset: true}, ann); err != nil {
		t.Fatal(err)
	}
	if o, _ := c.Offset(name); o.Found || o.OffsetOverride == nil {
		t.Errorf("after a reset: %+v", o)
	}
	for what, bad := range map[string]admin.OffsetRequest{
		"two ways": {GTIDSet: sid + ":1", At: "now"}, "no set": {GTIDSet: "x"}, "an empty set": {GTIDSet: ","},
		"no time":   {At: "yesterday"},
		"no offset": {File: "b.000001"}, "no file": {Pos: 4}, "a name": {File: "binlog", Pos: 4},
	} {
		if _, err := c.SetOffset(ctx, name, bad, ann); codeOf(err) != admin.CodeInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.SetOffset(ctx, name, admin.OffsetRequest{At: "now"}, ann); codeOf(err) != admin.CodeSourceUnavailable {
		t.Errorf("a source that is away: %v", err)
	}
}

func TestFileNotes(t *testing.T) {
	at := func(file string, pos uint64) position.Position {
		return position.Position{Server: "s", File: file, Pos: pos}
	}
	for _, c := range []struct {
		before, after position.Position
		want          string
	}{
		{at("b.000002", 900), at("b.000002", 400),
			"back: what lies between comes again (500 bytes of one file; how many transactions is not known)"},
		{at("b.000002", 900), at("b.000003", 4), "forward: what lies between is passed over (in several files; how many " +
			"transactions is not known)"},
		{at("b.000002", 900), at("b.000002", 900), "the two positions are the same"},
		{at("b.000002", 900), position.Position{Server: "t", File: "b.000002", Pos: 4},
			"the two positions are of different servers, so what lies between them is not known"},
		{at("b.000002", 900), position.Position{Set: gtids(t, sid+":1")},
			"the two positions are of different kinds (GTID set; file and offset), so what lies between them is not known"},
	} {
		if got := fileNote(c.before, c.after); got != c.want {
			t.Errorf("%s to %s: %q", c.before, c.after, got)
		}
	}
}

// TestProblems: each error of the store has a code and a status of its own.
func TestProblems(t *testing.T) {
	for err, want := range map[error]struct {
		status int
		code   string
	}{
		&ha.RejectedError{Reason: ha.ReasonNotStopped}:       {http.StatusConflict, admin.CodeNotStopped},
		&ha.RejectedError{Reason: ha.ReasonUnknownConnector}: {http.StatusNotFound, admin.CodeConnectorNotFound},
		&ha.RejectedError{Reason: ha.ReasonFull}:             {http.StatusConflict, admin.CodeRejected},
		&ha.UnknownOutcomeError{Err: ha.ErrNoLeader}:         {http.StatusGatewayTimeout, admin.CodeUnknownOutcome},
		ha.ErrNoLeader:     {http.StatusServiceUnavailable, admin.CodeNoLeader},
		ha.ErrShuttingDown: {http.StatusServiceUnavailable, admin.CodeNoLeader},
		ha.ErrBusy:         {http.StatusServiceUnavailable, admin.CodeBusy},
		ha.ErrNotMember:    {http.StatusNotFound, admin.CodeMemberNotFound},
		ha.ErrQuorum:       {http.StatusConflict, admin.CodeQuorum},
		ha.ErrNoOtherVoter: {http.StatusConflict, admin.CodeNoOtherVoter},
		ha.ErrInvalid:      {http.StatusBadRequest, admin.CodeInvalid},
		errors.New("disk"): {http.StatusInternalServerError, admin.CodeInternal},
	} {
		p, ok := errors.AsType[*admin.Problem](problem(err))
		if !ok || p.Status != want.status || p.Code != want.code {
			t.Errorf("%v: %+v", err, p)
		}
	}
	if problem(nil) != nil {
		t.Error("nothing is a problem")
	}
}
