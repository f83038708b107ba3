package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// fakeOperations remembers what it was asked for.
type fakeOperations struct {
	did  []string
	by   Actor
	fail error
}

func (f *fakeOperations) do(by Actor, words ...string) error {
	f.did, f.by = append(f.did, strings.Join(words, " ")), by
	return f.fail
}

func (f *fakeOperations) Cluster() ha.Status {
	yes := true
	return ha.Status{NodeID: "n1", LeaderID: "n1", Role: "leader", Term: 3,
		Members: []ha.Member{{ID: "n1", Voter: true, Leader: true, Reachable: &yes}}}
}

func (f *fakeOperations) AddMember(_ context.Context, id, address string, by Actor) error {
	return f.do(by, "add", id, address)
}

func (f *fakeOperations) RemoveMember(_ context.Context, id string, force bool, by Actor) error {
	if force {
		return f.do(by, "remove by force", id)
	}
	return f.do(by, "remove", id)
}

func (f *fakeOperations) Promote(_ context.Context, id string, by Actor) error {
	return f.do(by, "promote", id)
}

func (f *fakeOperations) TransferLeadership(_ context.Context, to string, by Actor) error {
	return f.do(by, "transfer", to)
}

func (f *fakeOperations) Snapshot(_ context.Context, w io.Writer, by Actor) error {
	if err := f.do(by, "snapshot"); err != nil {
		return err
	}
	_, err := io.WriteString(w, "state")
	return err
}

func (f *fakeOperations) Audit() []ha.AuditEntry {
	return []ha.AuditEntry{{Index: 4, By: "ann", Action: "set_run_state", Connector: "orders", Reason: "deploy"}}
}

func (f *fakeOperations) Config() (json.RawMessage, error) {
	return json.RawMessage(`{"node":{"id":"n1"}}`), f.fail
}

func (f *fakeOperations) Loggers() []Logger { return []Logger{{Name: "root", Level: "info"}} }

func (f *fakeOperations) SetLogger(name, level string, during time.Duration, by Actor) error {
	return f.do(by, "logger", name, level, during.String())
}

func TestOperationRoutes(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	for path, want := range map[string]string{
		"/v1/cluster": `"term": 3`, "/v1/cluster/members": `"reachable": true`, "/v1/audit": `"action": "set_run_state"`,
		"/v1/config": `"id": "n1"`, "/v1/loggers": `"level": "info"`,
	} {
		if a := ask("GET", path, ""); a.code != 200 || !strings.Contains(a.body, want) {
			t.Errorf("GET %s: %+v", path, a)
		}
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/cluster/members", `{"reason":"r","id":"n4","address":"n4:7400"}`, "add n4 n4:7400"},
		{"DELETE", "/v1/cluster/members/n4", `{"reason":"r"}`, "remove n4"},
		{"DELETE", "/v1/cluster/members/n4", `{"reason":"r","force":true}`, "remove by force n4"},
		{"POST", "/v1/cluster/members/n4/promote", `{"reason":"r"}`, "promote n4"},
		{"POST", "/v1/cluster/leader/transfer", `{"reason":"r","to":"n2"}`, "transfer n2"},
		{"POST", "/v1/cluster/leader/transfer", `{"reason":"r"}`, "transfer "},
		{"PUT", "/v1/loggers/raft", `{"reason":"r","level":"debug","for":"10m"}`, "logger raft debug 10m0s"},
		{"PUT", "/v1/loggers/raft", `{"reason":"r","level":"debug"}`, "logger raft debug 0s"},
	} {
		f.did = nil
		if a := ask(c.method, c.path, c.body); a.code != 200 || !slices.Equal(f.did, []string{c.want}) || f.by.Reason != "r" {
			t.Errorf("%s %s: %+v, %q", c.method, c.path, a, f.did)
		}
		f.did = nil
		if a := ask(c.method, c.path, `{}`); a.code != 400 || a.problem(t) != CodeReasonRequired || f.did != nil {
			t.Errorf("%s %s without a reason: %+v", c.method, c.path, a)
		}
		f.fail = &Problem{Status: 409, Code: CodeQuorum, Detail: "no majority"}
		if a := ask(c.method, c.path, c.body); a.code != 409 || a.problem(t) != CodeQuorum {
			t.Errorf("%s %s that is refused: %+v", c.method, c.path, a)
		}
		f.fail = nil
	}
	if a := ask("PUT", "/v1/loggers/raft", `{"reason":"r","level":"debug","for":"soon"}`); a.code != 400 {
		t.Errorf("for soon: %+v", a)
	}
}

func TestSnapshotRoute(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	const path = "/v1/cluster/snapshot"
	if a := ask("GET", path, "", ReasonHeader, "backup"); a.code != 200 || a.body != "state" ||
		a.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%+v", a)
	}
	if a := ask("GET", path, ""); a.code != 400 || a.problem(t) != CodeReasonRequired {
		t.Errorf("without a reason: %+v", a)
	}
	f.fail = errors.New("disk")
	if a := ask("GET", path, "", ReasonHeader, "backup"); a.code != 500 || a.problem(t) != CodeInternal {
		t.Errorf("that fails: %+v", a)
	}
}
