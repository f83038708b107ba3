package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin/admintest"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// served is the URL of a node that leads, with the connector orders; section adds to
// its configuration of the admin server.
func served(t *testing.T, source *canaltest.OutboxServer, broker string, section ...string) (url string) {
	t.Helper()
	yaml := fmt.Appendf(nil, `
node: {id: n1, data_dir: %q}
admin: {%s}
connectors:
  - name: orders
    source: {host: 127.0.0.1, port: %d, user: %s, password: %s, table_patterns: ["shop.outbox"], start: earliest}
    outbox: {route_by: aggregatetype}
    kafka: {brokers: [%q], create_topics: {replication_factor: 1}, position_replication_factor: 1}
    retry: {initial: 20ms, max: 100ms}
`, t.TempDir(), strings.Join(append(section, `listen: "127.0.0.1:0"`), ", "), source.Port(), canaltest.User, canaltest.Password, broker)
	cfg, err := config.Build(config.YAML("test", yaml))
	if err != nil {
		t.Fatal(err)
	}
	return started(t, cfg)
}

// started runs a node until the test ends, and returns its URL when it leads.
func started(t *testing.T, cfg *config.Config) (url string) {
	t.Helper()
	n, err := node.New(cfg, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "a leader", func() bool { return n.Status().Role == "leader" })
	return "http://" + n.AdminAddr()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// sid is the source's server_uuid.
const sid = canaltest.SID

// published waits until the connector has published, and the cluster knows, as much of the
// source.
func published(t *testing.T, url, gtids string) {
	t.Helper()
	eventually(t, "position "+gtids, func() bool {
		_, out, _ := command{}.run(t, "offset", "get", "orders", "--server", url)
		return strings.Contains(out, gtids)
	})
}

// TestCommandsOfARunningNode: each command against the real handlers of a node, with what
// it prints and its exit code.
func TestCommandsOfARunningNode(t *testing.T) {
	url := served(t, canaltest.StartOutbox(t, 10), kafkatest.Start(t).Brokers()[0])
	published(t, url, sid+":1-10")
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
		{"connector pause", true, exitUsage, "accepts 1 arg(s)"},
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
		{"rows skip orders --transaction " + sid + ":23 --row 2", true, exitOK, sid + ":23"},
		{"rows dead-letter orders --transaction " + sid + ":23 --row 3", true, exitOK, "dead_letter"},
		{"rows list orders", false, exitOK, "rows not published by this node since it started: 0"},
		{"rows list none", false, exitNotFound, "connector_not_found"},
		{"rows skip orders --transaction " + sid + ":23", true, exitUsage, "--row"},
		{"rows skip orders --transaction x --row 1", true, exitFailed, "invalid_request"},
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
	if b, err := os.ReadFile(snapshot); err != nil || !strings.HasPrefix(string(b), "1 ") ||
		!strings.Contains(string(b), `"cluster":`) {
		t.Errorf("snapshot: %v, %.80q", err, b)
	}
	_, out, _ := command{}.run(t, "audit", "--server", url, "-o", "json")
	var list struct{ Entries []ha.AuditEntry }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Entries) == 0 ||
		!strings.HasPrefix(list.Entries[0].By, userName()) || list.Entries[0].Reason != "test" {
		t.Errorf("%v, %+v", err, list)
	}
	if code, _, errs := (command{}).run(t, "status", "--server", "http://127.0.0.1:1"); code != exitFailed ||
		!strings.Contains(errs, "asking the node") {
		t.Errorf("nobody there: %d %s", code, errs)
	}
	if code, _, _ := (command{environ: []string{"BINLOG_OUTBOX_SERVER=" + url}}).run(t, "status"); code != exitOK {
		t.Errorf("the environment names the node: %d", code)
	}
}

// TestAnswersOfANode: what a real node says is what docs/openapi.yaml says.
func TestAnswersOfANode(t *testing.T) {
	url := served(t, canaltest.StartOutbox(t, 10), kafkatest.Start(t).Brokers()[0])
	published(t, url, sid+":1-10")
	contract, err := admintest.Load("../../docs/openapi.yaml")
	if err != nil {
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
		{"POST /v1/connectors/orders/unpublished-rows", `{"reason":"test","transaction":"` + sid +
			`:23","row":2,"action":"skip"}`, 201},
		{"GET /v1/connectors/orders/unpublished-rows", "", 200},
		{"GET /v1/cluster", "", 200},
		{"GET /v1/cluster/members", "", 200},
		{"POST /v1/cluster/leader/transfer", why, 409},
		{"GET /v1/audit", "", 200},
		{"GET /v1/config", "", 200},
		{"GET /v1/loggers", "", 200},
	} {
		method, path, _ := strings.Cut(one.route, " ")
		if status, answer := contract.Ask(t, method, url+path, one.body); status != one.want {
			t.Fatalf("%s: %d %s", one.route, status, answer)
		}
	}
}

// TestStatusSaysWhenNotWell: by its exit code, for scripts.
func TestStatusSaysWhenNotWell(t *testing.T) {
	url := served(t, canaltest.StartOutbox(t, 1), "127.0.0.1:1")
	eventually(t, "that it is not well", func() bool {
		code, out, _ := command{}.run(t, "status", "--server", url)
		return code == exitUnhealthy && strings.Contains(out, "orders")
	})
}

// TestCommandsLogIn: with a name and a password of the web configuration file.
func TestCommandsLogIn(t *testing.T) {
	file := write(t, "web.yaml", "basic_auth_users: {ann: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n")
	url := served(t, canaltest.StartOutbox(t, 1), "127.0.0.1:1", fmt.Sprintf("web_config: %q", file))
	if code, _, errs := (command{}).run(t, "status", "--server", url); code != exitFailed ||
		!strings.Contains(errs, "Unauthorized") {
		t.Errorf("without a password: %d %s", code, errs)
	}
	password := write(t, "password", "fakepassword\n")
	if code, _, errs := (command{}).run(t, "connector", "pause", "orders", "--server", url, "--user", "ann",
		"--password-file", password, "--reason", "test"); code != exitOK {
		t.Errorf("with one: %d %s", code, errs)
	}
	_, out, errs := command{}.run(t, "audit", "-o", "json", "--server", url, "--user", "ann", "--password-file", password)
	var list struct{ Entries []ha.AuditEntry }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Entries) != 1 || list.Entries[0].By != "ann" {
		t.Errorf("%v %s, %+v", err, errs, list)
	}
}

// TestAnswersHaveALimit: whatever listens there may send without end.
func TestAnswersHaveALimit(t *testing.T) {
	sent := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		part := bytes.Repeat([]byte{' '}, 1<<20)
		for ; sent < 512; sent++ {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	code, _, errs := command{}.run(t, "status", "--server", srv.URL)
	srv.Close()
	if code != exitFailed || !strings.Contains(errs, "larger than 32MiB") || sent > 128 {
		t.Errorf("%d after %d MiB: %s", code, sent, errs)
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

// TestTraceAtARealNode: of an event that was published, of one that is not there, and of
// one that a search finds.
func TestTraceAtARealNode(t *testing.T) {
	k := kafkatest.Start(t)
	topic := k.Topic("outbox.event.order", 3, nil)
	source := canaltest.StartOutbox(t, 20)
	url := served(t, source, k.Brokers()[0])
	published(t, url, sid+":1-20")
	if code, out, errs := (command{}).run(t, "events", "find", "7", "--server", url); code != exitOK ||
		!strings.Contains(out, "published") || !strings.Contains(out, sid+":7") || !strings.Contains(out, topic) {
		t.Errorf("trace: %d\n%s%s", code, out, errs)
	}
	if code, out, _ := (command{}).run(t, "events", "find", "77", "--server", url); code != exitNotFound ||
		!strings.Contains(out, "not seen") || !strings.Contains(out, "20 events") {
		t.Errorf("trace of what is not there: %d\n%s", code, out)
	}

	other := served(t, source, k.Brokers()[0]) // it has published none of them
	published(t, other, sid+":1-20")
	if code, out, errs := (command{}).run(t, "events", "find", "7", "--search", "--server", other); code != exitOK ||
		!strings.Contains(out, "passed") || !strings.Contains(out, sid+":7 at binlog.000001:") {
		t.Errorf("search: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := (command{}).run(t, "events", "find", "77", "--search", "--server",
		other); code != exitNotFound || !strings.Contains(out, "not_found") {
		t.Errorf("search of what is not there: %d\n%s%s", code, out, errs)
	}
}
