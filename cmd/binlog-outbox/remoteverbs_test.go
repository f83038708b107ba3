package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/admin/admintest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// served is a node that leads, with its admin server, and its URL.
func served(t *testing.T, change func(*admin.Config)) (c *control, r *runner, url string) {
	t.Helper()
	c, r = leading(t)
	cfg := admin.Config{Listen: "127.0.0.1:0"}
	if change != nil {
		change(&cfg)
	}
	s, err := admin.Listen(cfg, c.d, c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, r, "http://" + s.Addr()
}

// TestVerbsOfARunningNode: each verb against the real handlers of a node, with what
// it prints and its exit code.
func TestVerbsOfARunningNode(t *testing.T) {
	c, r, url := served(t, nil)
	at := position.Position{Flavor: position.MySQL, Set: gtids(t, sid+":1-10")}
	run, _ := c.d.node.NewRun(r.name, c.d.node.Status().Term)
	if err := c.d.node.SavePosition(t.Context(), r.name, run, at); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	snapshot := filepath.Join(dir, "state")
	why := []string{"--reason", "test"}
	for _, test := range []struct {
		args   string
		reason bool
		code   int
		want   string // in what is printed
	}{
		{"status", false, exitOK, "node n1 (leader), leader n1"},
		{"connector list", false, exitOK, "orders"},
		{"connector describe orders", false, exitOK, "delivery: exactly_once"},
		{"connector describe none", false, exitNotFound, "connector_not_found"},
		{"connector pause orders", false, exitUsage, "--reason"},
		{"connector pause orders", true, exitOK, "paused"},
		{"connector resume orders", true, exitOK, "running"},
		{"connector restart orders", true, exitOK, "orders"},
		{"connector restart none", true, exitNotFound, "connector_not_found"},
		{"connector pause", true, exitUsage, "wants the name"},
		{"offset get orders", false, exitOK, "gtid_set: " + sid + ":1-10"},
		{"offset set orders --now", true, exitConflict, "connector_not_stopped"},
		{"connector stop orders", true, exitOK, "stopped"},
		{"offset set orders --dry-run --gtid-set " + sid + ":1-4", true, exitOK, "come again: 6, that are passed over: 0"},
		{"offset get orders", false, exitOK, sid + ":1-10"},
		{"offset set orders --gtid-set " + sid + ":1-4", true, exitOK, "done; resume the connector"},
		{"offset get orders", false, exitOK, sid + ":1-4"},
		{"offset set orders --now --earliest", true, exitUsage, "one of"},
		{"offset set orders --file b.000001", true, exitUsage, "one of"},
		{"offset set orders --at yesterday", true, exitFailed, "invalid_request"},
		{"offset reset orders", true, exitOK, "to   source.start"},
		{"set-aside skip orders --transaction " + sid + ":23 --row 2", true, exitOK, sid + ":23"},
		{"set-aside dead-letter orders --transaction " + sid + ":23 --row 3", true, exitOK, "dead_letter"},
		{"set-aside list orders", false, exitOK, "rows set aside on this node since it started: 0"},
		{"set-aside list none", false, exitNotFound, "connector_not_found"},
		{"set-aside skip orders --transaction " + sid + ":23", true, exitUsage, "--row"},
		{"set-aside skip orders --transaction x --row 1", true, exitFailed, "invalid_request"},
		{"cluster members", false, exitOK, "n1"},
		{"cluster transfer", true, exitConflict, "no_other_voter"},
		{"cluster remove n9", true, exitFailed, "this node is alone"},
		{"cluster promote n9", true, exitFailed, "this node is alone"},
		{"cluster add n9 127.0.0.1:1", true, exitFailed, "this node is alone"},
		{"cluster snapshot " + snapshot, true, exitOK, ""},
		{"loggers", false, exitOK, "LEVEL"},
		{"loggers set none debug", true, exitNotFound, "logger_not_found"},
		{"audit", false, exitOK, "set_position"},
		{"audit -o yaml", false, exitOK, "action: set_run_state"},
		{"audit -o xml", false, exitUsage, "table, json and yaml"},
	} {
		args := append(strings.Fields(test.args), "--server", url)
		if test.reason {
			args = append(args, why...)
		}
		code, out, errs := command{}.run(t, args...)
		if code != test.code || !strings.Contains(out+errs, test.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", test.args, code, test.code, test.want, out, errs)
		}
	}
	if b, err := os.ReadFile(snapshot); err != nil || !strings.Contains(string(b), "raft snapshot") {
		t.Errorf("snapshot: %v, %.80q", err, b)
	}
	_, out, _ := command{}.run(t, "audit", "--server", url, "-o", "json")
	var list struct{ Entries []admin.AuditEntry }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Entries) == 0 || !strings.HasPrefix(list.Entries[0].By, userName()) || list.Entries[0].Reason != "test" {
		t.Errorf("%v, %+v", err, list)
	}
	if code, _, errs := (command{}).run(t, "status", "--server", "http://127.0.0.1:1"); code != exitFailed || !strings.Contains(errs, "asking the node") {
		t.Errorf("nobody there: %d %s", code, errs)
	}
	if code, _, _ := (command{environ: []string{"BINLOG_OUTBOX_SERVER=" + url}}).run(t, "status"); code != exitOK {
		t.Errorf("the environment names the node: %d", code)
	}
}

// TestAnswersOfANode: what a real node says is what docs/openapi.yaml says.
func TestAnswersOfANode(t *testing.T) {
	c, r, url := served(t, nil)
	contract, err := admintest.Load("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	at := position.Position{Flavor: position.MySQL, Set: gtids(t, sid+":1-10"), Last: position.GTID{SID: uuid.MustParse(sid), Seq: 10}, Committed: time.Now()}
	run, _ := c.d.node.NewRun(r.name, c.d.node.Status().Term)
	if err := c.d.node.SavePosition(t.Context(), r.name, run, at); err != nil {
		t.Fatal(err)
	}
	const why = `{"reason":"test"}`
	for _, one := range []struct {
		route, body string
		want        int
	}{
		{"GET /v1/status", "", 200},
		{"GET /v1/connectors", "", 200},
		{"PUT /v1/connectors/orders/pause", why, 202},
		{"PUT /v1/connectors/orders/stop", why, 202},
		{"PUT /v1/connectors/orders/offset", `{"reason":"test","gtid_set":"` + sid + `:1-4","dry_run":true}`, 200},
		{"DELETE /v1/connectors/orders/offset", why, 200},
		{"GET /v1/connectors/orders/offset", "", 200},
		{"GET /v1/connectors/orders", "", 200},
		{"POST /v1/connectors/orders/restart", why, 202},
		{"PUT /v1/connectors/orders/resume", why, 202},
		{"POST /v1/connectors/orders/set-aside", `{"reason":"test","transaction":"` + sid + `:23","row":2,"action":"skip"}`, 201},
		{"GET /v1/connectors/orders/set-aside", "", 200},
		{"GET /v1/cluster", "", 200},
		{"GET /v1/cluster/members", "", 200},
		{"POST /v1/cluster/leader/transfer", why, 409},
		{"GET /v1/audit", "", 200},
		{"GET /v1/config", "", 200},
		{"GET /v1/loggers", "", 200},
	} {
		method, path, _ := strings.Cut(one.route, " ")
		if status, answer := askByContract(t, contract, method, url+path, one.body); status != one.want {
			t.Fatalf("%s: %d %s", one.route, status, answer)
		}
	}
}

// TestStatusSaysWhenNotWell: by its exit code, for scripts.
func TestStatusSaysWhenNotWell(t *testing.T) {
	_, r, url := served(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.worker.Run(ctx, context.Background(), 1) }()
	defer func() { cancel(); <-done }()
	waitFor(t, "a failed attempt", func() bool { return r.worker.Status().LastError != nil })
	if code, out, _ := (command{}).run(t, "status", "--server", url); code != exitUnhealthy || !strings.Contains(out, "orders") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestVerbsLogIn: with a name and a password of the web configuration file.
func TestVerbsLogIn(t *testing.T) {
	file := write(t, "web.yaml", "basic_auth_users: {ann: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n")
	c, _, url := served(t, func(a *admin.Config) {
		a.WebConfig, a.Auth = file, func() admin.Auth { return asksFor(file) }
	})
	if code, _, errs := (command{}).run(t, "status", "--server", url); code != exitFailed || !strings.Contains(errs, "Unauthorized") {
		t.Errorf("without a password: %d %s", code, errs)
	}
	password := write(t, "password", "fakepassword\n")
	if code, _, errs := (command{}).run(t, "connector", "pause", "orders", "--server", url, "--user", "ann", "--password-file", password, "--reason", "test"); code != exitOK {
		t.Errorf("with one: %d %s", code, errs)
	}
	if a := c.Audit(); len(a) != 1 || a[0].By != "ann" {
		t.Errorf("%+v", a)
	}
}

// TestServerOfTheConfiguration: without --server, the node that this host's
// configuration describes is asked.
func TestServerOfTheConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"": "http://127.0.0.1:8083", "admin: {listen: '127.0.0.1:9000'}": "http://127.0.0.1:9000",
		"admin: {listen: '0.0.0.0:9000', allow_remote: true}": "http://127.0.0.1:9000", "admin: {listen: '127.0.0.1:0'}": "",
	} {
		p := &program{environ: []string{"BINLOG_OUTBOX_CONFIG=" + write(t, "node.yaml", text+"\n"+goodYAML())}}
		got, err := (&remote{p: p}).base()
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// askByContract sends a request and holds the answer to the contract.
func askByContract(t *testing.T, contract *admintest.Contract, method, url, body string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if err := contract.Check(req, body, resp.StatusCode, resp.Header, answer); err != nil {
		t.Errorf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode, answer
}
