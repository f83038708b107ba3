package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// fakeControl remembers what it was asked for.
type fakeControl struct {
	fakeOperations

	asked []string
	last  Actor
	// request is the last position asked for, err what every write answers.
	request OffsetRequest
	decided RowRequest
	err     error
	// leader is another node that leads; nil when this one does.
	leader func(*http.Request) (*http.Response, error)
}

func (f *fakeControl) Leads() bool { return f.leader == nil }

func (f *fakeControl) RoundTrip(r *http.Request) (*http.Response, error) { return f.leader(r) }

func (f *fakeControl) note(what, name string, by Actor) error {
	if name != "orders" {
		return &Problem{Status: 404, Code: CodeConnectorNotFound, Detail: "there is no connector " + name}
	}
	f.asked, f.last = append(f.asked, what), by
	return f.err
}

func (f *fakeControl) Connector(name string) (Connector, error) {
	if name != "orders" {
		return Connector{}, &Problem{Status: 404, Code: CodeConnectorNotFound, Detail: "there is no connector " + name}
	}
	return Connector{Name: name, State: "running", Phase: "streaming", Wanted: ha.RunStatus{State: ha.Running}}, nil
}

func (f *fakeControl) SetRunState(_ context.Context, name string, want ha.RunState, by Actor) error {
	return f.note(string(want), name, by)
}

func (f *fakeControl) Restart(_ context.Context, name string, by Actor) error {
	return f.note("restart", name, by)
}

func (f *fakeControl) Offset(name string) (Offset, error) {
	if name != "orders" {
		return Offset{}, &Problem{Status: 404, Code: CodeConnectorNotFound, Detail: "there is no connector " + name}
	}
	return Offset{Connector: name, Found: true, Position: Position{GTIDSet: "a:1-5"}}, nil
}

func (f *fakeControl) SetOffset(_ context.Context, name string, request OffsetRequest, by Actor) (OffsetChange, error) {
	f.request = request
	err := f.note("offset", name, by)
	if err != nil {
		return OffsetChange{}, err
	}
	n := uint64(2)
	return OffsetChange{Connector: name, DryRun: request.DryRun, Reset: request.Reset, Repeated: &n}, nil
}

func (f *fakeControl) UnpublishedRows(name string) (UnpublishedRows, error) {
	if name != "orders" {
		return UnpublishedRows{}, &Problem{Status: 404, Code: CodeConnectorNotFound, Detail: "there is no connector " + name}
	}
	return UnpublishedRows{Connector: name, Decisions: []RowDecision{{RowRequest: RowRequest{"b.000001:400", 2,
		"dead_letter"}}}}, nil
}

func (f *fakeControl) DecideRow(_ context.Context, name string, request RowRequest, by Actor) (RowDecision, error) {
	f.decided = request
	return RowDecision{RowRequest: request, Reason: by.Reason, By: by.By}, f.note("rows", name, by)
}

func fakeEvent(id, name string) Event {
	at, offset := time.Unix(1_700_000_000, 0).UTC(), int64(7)
	behind := uint64(3)
	place := PartitionOffset{Topic: "t", Partition: 1, Offset: &offset, At: at}
	return Event{ID: id, Node: "n1", Connectors: []ConnectorEvent{{
		Connector: name, Where: EventPublished, Written: &Written{GTID: "a:1", File: "b.1", Pos: 4, CommittedAt: &at,
			SnapshotRow: 1},
		Published: []PartitionOffset{place}, Behind: &behind, Unpublished: &UnpublishedEvent{Row: 1, Action: "skip",
			Cause: "c", Message: "m", At: at, DeadLetter: &place},
		State: "failed", Error: "c: m", Known: EventsKnown{Since: &at, Events: 5, Off: true},
		Search: &Search{State: "running", Begun: at, Ended: &at, Detail: "d", Bytes: 1, OfBytes: 2, Transactions: 3, At: &at},
	}}}
}

func (f *fakeControl) Event(id, name string) (Event, error) {
	return fakeEvent(id, name), nil
}

func (f *fakeControl) Search(id, name string, by Actor) (Event, error) {
	return fakeEvent(id, name), f.note("search "+id, "orders", by)
}

func (f *fakeControl) EndSearch(id string, by Actor) (Event, error) {
	return fakeEvent(id, "orders"), f.note("end search "+id, "orders", by)
}

// TestEventRoutes: ids are taken as they are, a search is an order.
func TestEventRoutes(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	if a := ask("GET", "/v1/events/a%2Fb%20c?connector=orders", ""); a.code != 200 ||
		!strings.Contains(a.body, `"id": "a/b c"`) || !strings.Contains(a.body, `"connector": "orders"`) {
		t.Errorf("%+v", a)
	}
	if a := ask("GET", "/v1/events/"+strings.Repeat("x", 2000), ""); a.code != 400 {
		t.Errorf("a long id: %d", a.code)
	}
	if a := ask("POST", "/v1/events/e/search", `{"connector":"orders"}`); a.code != 400 ||
		a.problem(t) != CodeReasonRequired {
		t.Errorf("a search without a reason: %+v", a)
	}
	if a := ask("POST", "/v1/events/e/search", `{"connector":"orders","reason":"r"}`); a.code != 202 ||
		f.asked[0] != "search e" || f.last.Reason != "r" {
		t.Errorf("%+v, %q", a, f.asked)
	}
	if a := ask("DELETE", "/v1/events/e/search", "", ReasonHeader, "r"); a.code != 200 || f.asked[1] != "end search e" {
		t.Errorf("%+v, %q", a, f.asked)
	}
}

// answer is a response with its body.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (a answer) problem(t *testing.T) string {
	t.Helper()
	var p struct {
		Title, Detail, Code string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil ||
		a.header.Get("Content-Type") != "application/problem+json" || p.Status != a.code || p.Title == "" || p.Detail == "" {
		t.Errorf("not a problem (%v): %d %v %s", err, a.code, a.header, a.body)
	}
	return p.Code
}

// ask sends a request to the server of serveControl.
type ask func(method, path, body string, header ...string) answer

func serveControl(t *testing.T, node Node, control Control) ask {
	t.Helper()
	base := serveBoth(t, Config{Listen: "127.0.0.1:0"}, node, control)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return func(method, path, body string, header ...string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		a := answer{resp.StatusCode, resp.Header, string(b)}
		if c, err := theContract(); err != nil {
			t.Fatal(err)
		} else if err := c.Check(r, body, a.code, a.header, b); err != nil {
			t.Errorf("%s %s and docs/openapi.yaml: %v", method, path, err)
		}
		return a
	}
}

const why = `{"reason":"deploy","by":"ann"}`

func TestConnectorRoutes(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	if a := ask("GET", "/v1/connectors", ""); a.code != 200 || !strings.Contains(a.body, `"name": "orders"`) {
		t.Errorf("list: %+v", a)
	}
	if a := ask("GET", "/v1/connectors/orders", ""); a.code != 200 || !strings.Contains(a.body, `"phase": "streaming"`) {
		t.Errorf("one: %+v", a)
	}
	for _, c := range []struct{ method, action string }{{"PUT", "pause"}, {"PUT", "resume"}, {"PUT", "stop"},
		{"POST", "restart"}} {
		if a := ask(c.method, "/v1/connectors/orders/"+c.action, why); a.code != 202 ||
			!strings.Contains(a.body, `"name": "orders"`) {
			t.Errorf("%s: %+v", c.action, a)
		}
		if a := ask(c.method, "/v1/connectors/none/"+c.action, why); a.code != 404 || a.problem(t) != CodeConnectorNotFound {
			t.Errorf("%s of an unknown connector: %+v", c.action, a)
		}
		if a := ask("GET", "/v1/connectors/orders/"+c.action, ""); a.code != 405 || a.problem(t) != CodeMethod ||
			a.header.Get("Allow") != c.method {
			t.Errorf("GET %s: %+v", c.action, a)
		}
	}
	if diff := cmp.Diff([]string{"paused", "running", "stopped", "restart"}, f.asked); diff != "" {
		t.Error(diff)
	}
	if a := ask("GET", "/v1/connectors/none", ""); a.code != 404 || a.problem(t) != CodeConnectorNotFound {
		t.Errorf("unknown: %+v", a)
	}
	if a := ask("GET", "/v1/nothing", ""); a.code != 404 || a.problem(t) != CodeNotFound {
		t.Errorf("unknown path: %+v", a)
	}
}

// TestWritesSayWhoAndWhy: in the body or in headers; a name that nobody proves is
// marked as such.
func TestWritesSayWhoAndWhy(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	const path = "/v1/connectors/orders/pause"
	for _, c := range []struct {
		body   string
		header []string
		want   Actor
	}{
		{why, nil, Actor{"ann (unverified) at 127.0.0.1", "deploy"}},
		{`{"reason":"deploy"}`, nil, Actor{"unknown at 127.0.0.1", "deploy"}},
		{"", []string{ReasonHeader, "deploy", ByHeader, "ann"}, Actor{"ann (unverified) at 127.0.0.1", "deploy"}},
	} {
		if a := ask("PUT", path, c.body, c.header...); a.code != 202 || f.last != c.want {
			t.Errorf("%s: %d %s, %+v", c.body, a.code, a.body, f.last)
		}
	}
	asked := len(f.asked)
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		code   string
	}{
		"no reason":      {`{"by":"ann"}`, nil, 400, CodeReasonRequired},
		"blank reason":   {`{"reason":" "}`, nil, 400, CodeReasonRequired},
		"nothing":        {"", nil, 400, CodeReasonRequired},
		"misspelt":       {`{"reason":"x","dryrun":true}`, nil, 400, CodeInvalid},
		"not JSON":       {`reason`, nil, 400, CodeInvalid},
		"two values":     {why + why, nil, 400, CodeInvalid},
		"a form":         {why, []string{"Content-Type", "text/plain"}, 415, CodeMediaType},
		"a long reason":  {`{"reason":"` + strings.Repeat("x", maxReason+1) + `"}`, nil, 400, CodeInvalid},
		"a large body":   {`{"reason":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413, CodeTooLarge},
		"a large header": {"", []string{ReasonHeader, strings.Repeat("x", maxReason+1)}, 400, CodeInvalid},
	} {
		if a := ask("PUT", path, c.body, c.header...); a.code != c.status || a.problem(t) != c.code {
			t.Errorf("%s: %d %s, want %d %s", name, a.code, a.body, c.status, c.code)
		}
	}
	if len(f.asked) != asked {
		t.Errorf("a refused write was carried out: %v", f.asked[asked:])
	}
}

func TestOffsetRoutes(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	const path = "/v1/connectors/orders/offset"
	if a := ask("GET", path, ""); a.code != 200 || !strings.Contains(a.body, `"gtid_set": "a:1-5"`) {
		t.Errorf("get: %+v", a)
	}
	for _, c := range []struct {
		method, body string
		want         OffsetRequest
	}{
		{"PUT", `{"reason":"r","gtid_set":"a:1-3","dry_run":true}`, OffsetRequest{GTIDSet: "a:1-3", DryRun: true}},
		{"PUT", `{"reason":"r","file":"b.000002","pos":4}`, OffsetRequest{File: "b.000002", Pos: 4}},
		{"PUT", `{"reason":"r","at":"now"}`, OffsetRequest{At: "now"}},
		{"POST", `{"reason":"r","debezium":{"offset":{"event":2},"config":{"a":"b"}},"dry_run":true}`, OffsetRequest{
			Debezium: &DebeziumOffset{Offset: json.RawMessage(`{"event":2}`), Config: map[string]string{"a": "b"}}, DryRun: true,
		}},
		{"DELETE", `{"reason":"r","dry_run":true}`, OffsetRequest{Reset: true, DryRun: true}},
		{"DELETE", `{"reason":"r"}`, OffsetRequest{Reset: true}},
	} {
		if a := ask(c.method, path, c.body); a.code != 200 || !cmp.Equal(f.request, c.want) ||
			!strings.Contains(a.body, `"repeated_transactions": 2`) {
			t.Errorf("%s %s: %+v, %+v", c.method, c.body, a, f.request)
		}
	}
	if a := ask("PUT", path, `{"reason":"r","dry_run":true}`); a.code != 400 || a.problem(t) != CodeInvalid {
		t.Errorf("no position: %+v", a)
	}
	for _, body := range []string{`{"reason":"r"}`, `{"reason":"r","debezium":{}}`, `{"reason":"r","at":"now"}`} {
		if a := ask("POST", path, body); a.code != 400 || a.problem(t) != CodeInvalid {
			t.Errorf("POST %s: %+v", body, a)
		}
	}
	if a := ask("PUT", path, `{"reason":"r","debezium":{"offset":{"event":2}}}`); a.code != 400 ||
		a.problem(t) != CodeInvalid {
		t.Errorf("Debezium's by PUT: %+v", a)
	}
	if a := ask("PUT", path, `{"reason":"r","reset":true}`); a.code != 400 {
		t.Errorf("reset by PUT: %+v", a)
	}
	f.err = &Problem{Status: 409, Code: CodeNotStopped, Detail: "stop it first"}
	if a := ask("PUT", path, `{"reason":"r","at":"now"}`); a.code != 409 || a.problem(t) != CodeNotStopped {
		t.Errorf("running: %+v", a)
	}
	f.err = &Problem{Status: 503, Code: CodeNoLeader, Detail: "no leader", RetryAfter: 1}
	if a := ask("PUT", path, `{"reason":"r","at":"now"}`); a.code != 503 || a.header.Get("Retry-After") != "1" {
		t.Errorf("no leader: %+v", a)
	}
}
