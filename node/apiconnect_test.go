package node

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// call makes a request and decodes the answer into into, unless it is nil.
func (n *aNode) call(t *testing.T, method, path, body string, into any) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.admin.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return resp.StatusCode, string(b)
}

// must makes a request that answers with status.
func (n *aNode) must(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	got, text := n.call(t, method, path, body, nil)
	if got != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	return text
}

// level is that of one of the node's loggers.
func (n *aNode) level(logger string) string {
	for _, l := range n.api.Loggers() {
		if l.Name == logger {
			return l.Level
		}
	}
	return ""
}

func (n *aNode) leads() bool { s := n.store.Status(); return s.Role == "leader" && s.Ready }

// Secrets are shown masked, references as they are, and what comes back masked stays
// what it was.
func TestConnectAPIMasksSecrets(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "", "secret_variables: [SET_HERE, NOT_SET_HERE]")
	eventually(t, "the node leads", n.leads)
	created := n.must(t, 201, "POST", "/connectors", `{"name": "a", "config": `+string(keys("a", "database.password",
		"hunter2"))+`}`)
	if strings.Contains(created, "hunter2") || !strings.Contains(created, `"database.password":"***"`) {
		t.Errorf("the answer to POST has the secret: %s", created)
	}
	var config map[string]string
	n.call(t, "GET", "/connectors/a/config", "", &config)
	config["database.port"] = "2"
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	n.must(t, 200, "PUT", "/connectors/a/config", string(b))
	n.must(t, 200, "PATCH", "/connectors/a/config", `{"connect.timeout.ms": 1000}`)
	var stored map[string]string
	if err := json.Unmarshal(n.store.Configs()["a"], &stored); err != nil {
		t.Fatal(err)
	}
	if stored["database.password"] != "hunter2" || stored["database.port"] != "2" ||
		stored["connect.timeout.ms"] != "1000" {
		t.Errorf("stored is %v", stored)
	}
	for _, path := range []string{"/connectors/a", "/connectors/a/config", "/connectors/a/tasks",
		"/connectors?expand=info", "/v1/connectors/a"} {
		if text := n.must(t, 200, "GET", path, ""); strings.Contains(text, "hunter2") {
			t.Errorf("GET %s has the secret: %s", path, text)
		}
	}
	path := "/connector-plugins/io.debezium.connector.mysql.MySqlConnector/config/validate"
	if text := n.must(t, 200, "PUT", path, string(keys("a", "database.password", "hunter2",
		"producer.override.sasl.jaas.config", "x password=\"hunter2\";"))); strings.Contains(text, "hunter2") {
		t.Errorf("PUT validate has the secret: %s", text)
	}
	if _, text := n.call(t, "POST", "/connectors", `{"name": "b", "config": `+string(keys("b", "database.password",
		"***"))+`}`, nil); !strings.Contains(text, "database.password is ***") {
		t.Errorf("a mask that stands for nothing is taken: %s", text)
	}
	reference := `${env:NOT_SET_HERE}`
	n.must(t, 400, "PATCH", "/connectors/a/config", `{"database.password": "`+reference+`"}`)
	t.Setenv("SET_HERE", "hunter3")
	n.must(t, 200, "PATCH", "/connectors/a/config", `{"database.password": "${env:SET_HERE}"}`)
	if text := n.must(t, 200, "GET", "/connectors/a/config", ""); !strings.Contains(text, "${env:SET_HERE}") {
		t.Errorf("the reference is not shown: %s", text)
	}
	for _, e := range n.store.Audit() {
		if text := e.Detail + e.Reason; strings.Contains(text, "hunter") {
			t.Errorf("the audit list has the secret: %+v", e)
		}
	}
}

// What the file declares is shown with Debezium's keys and can't be changed.
func TestConnectAPIOfTheFile(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	eventually(t, "the node leads", n.leads)
	var info struct {
		Name   string
		Config map[string]string
	}
	n.call(t, "GET", "/connectors/declared", "", &info)
	if info.Config["connector.class"] != debezium.MySQLClass || info.Config["database.hostname"] != "127.0.0.1" ||
		info.Config["name"] != "declared" || info.Config["topic.prefix"] != "declared" {
		t.Errorf("the connector is shown as %v", info.Config)
	}
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/connectors/declared/config", string(keys("declared"))},
		{"PATCH", "/connectors/declared/config", `{"database.port": "2"}`},
		{"DELETE", "/connectors/declared", ""},
		{"POST", "/connectors", `{"name": "declared", "config": ` + string(keys("declared")) + `}`},
	} {
		if text := n.must(t, 409, c.method, c.path, c.body); c.method != "POST" && !strings.Contains(text, "file") {
			t.Errorf("%s %s: %s", c.method, c.path, text)
		}
	}
	n.must(t, 202, "PUT", "/connectors/declared/pause", "")
	eventually(t, "it is paused", n.is("declared", "paused"))
	n.must(t, 202, "PUT", "/connectors/declared/resume", "")
	eventually(t, "it runs", n.is("declared", "running"))
}

// Browsers may not be led here by the pages of others.
func TestConnectAPIRefusesOtherSites(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	eventually(t, "the node leads", n.leads)
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+n.admin.Addr()+"/connectors/declared/restart",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("%s, %v", resp.Status, err)
	}
	n.must(t, 204, "POST", "/connectors/declared/restart", "")
}

// What is asked of any node is answered by the leader.
func TestConnectAPIAtFollowers(t *testing.T) {
	nodes := startCluster(t, "")
	leader, followers := leaderAmong(t, nodes)
	f := followers[0]
	f.must(t, 201, "POST", "/connectors", `{"name": "a", "config": `+string(keys("a"))+`}`)
	running := `"state":"RUNNING","worker_id":"` + leader.id + ":"
	for _, n := range nodes {
		eventually(t, "every node says that a runs on the leader", func() bool {
			_, text := n.call(t, "GET", "/connectors/a/status", "", nil)
			return strings.Count(text, running) == 2
		})
	}
	if text := f.must(t, 200, "GET", "/connectors?expand=status", ""); !strings.Contains(text, running) {
		t.Errorf("expanded at a follower: %s", text)
	}
	f.must(t, 202, "PUT", "/connectors/a/pause", "")
	eventually(t, "a is paused", leader.is("a", "paused"))
	f.must(t, 409, "POST", "/connectors", `{"name": "a", "config": `+string(keys("a"))+`}`)
	f.must(t, 200, "PUT", "/connectors/a/config", string(keys("a", "database.port", "2")))
	if r := leader.instance("a"); r == nil || r.config.Source.Port != 2 {
		t.Errorf("after the answer the leader has %+v", r)
	}
	var who string
	for _, e := range leader.store.Audit() {
		if e.Action == "set_run_state" {
			who = e.By + "; " + e.Reason
		}
	}
	if !strings.Contains(who, "127.0.0.1") || !strings.Contains(who, "PUT /connectors/a/pause") {
		t.Errorf("the audit list says %q", who)
	}
	// Levels of logs belong to a node, unless they are asked for everywhere.
	f.must(t, 200, "PUT", "/admin/loggers/admin", `{"level": "DEBUG"}`)
	if got := leader.level("admin"); got != "info" {
		t.Errorf("the leader's level is %s", got)
	}
	f.must(t, 204, "PUT", "/admin/loggers/admin?scope=cluster", `{"level": "WARN"}`)
	for _, n := range nodes {
		if got := n.level("admin"); got != "warn" {
			t.Errorf("the level at %s is %v", n.id, got)
		}
	}
	f.must(t, 204, "DELETE", "/connectors/a", "")
	eventually(t, "a is gone everywhere", func() bool {
		return followers[1].instance("a") == nil &&
			f.instance("a") == nil
	})

	// Without a leader nothing is written, and what is asked is told without states.
	f.must(t, 201, "POST", "/connectors", `{"name": "b", "config": `+string(keys("b"))+`}`)
	eventually(t, "f knows b", func() bool { return f.instance("b") != nil })
	leader.stop()
	followers[1].stop()
	eventually(t, "no leader is known", func() bool {
		s := f.store.Status()
		return s.LeaderID == "" &&
			s.Role != ha.Leader
	})
	// It may have been the leader for a moment, and lost what was asked of it then.
	eventually(t, "a write is refused for want of a leader", func() bool {
		code, text := f.call(t, "PUT", "/connectors/b/pause", "", nil)
		return code == 409 && strings.Contains(text, "leader")
	})
	if text := f.must(t, 200, "GET", "/connectors/b/status", ""); !strings.Contains(text, `"state":"UNASSIGNED"`) {
		t.Errorf("a status without a leader: %s", text)
	}
}

// Deleting keeps the position, as Connect does.
func TestConnectAPIDeleteKeepsThePosition(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	eventually(t, "the node leads", n.leads)
	n.must(t, 201, "PUT", "/connectors/a/config", string(keys("a")))
	set, err := position.ParseSet(position.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9")
	if err != nil {
		t.Fatal(err)
	}
	at := position.Position{Flavor: position.MySQL, Set: set}
	if err := n.store.SavePosition(t.Context(), "a", ha.Session{Term: n.store.Status().Term, ID: "x"}, at); err != nil {
		t.Fatal(err)
	}
	n.must(t, 204, "DELETE", "/connectors/a", "")
	n.must(t, 404, "GET", "/connectors/a", "")
	n.must(t, 201, "PUT", "/connectors/a/config", string(keys("a")))
	eventually(t, "the new one runs, though the old one was stopped for its deletion", n.is("a", "running"))
	if text := n.must(t, 200, "GET", "/connectors/a/offsets", ""); !strings.Contains(text, ":1-9") {
		t.Errorf("the position is gone: %s", text)
	}
}

// Two connectors may not take what each needs for itself.
func TestConnectAPIRefusesConflicts(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	eventually(t, "the node leads", n.leads)
	n.must(t, 201, "PUT", "/connectors/a/config", string(keys("a", "database.server.id", "7")))
	if text := n.must(t, 400, "PUT", "/connectors/b/config", string(keys("b", "database.server.id",
		"7"))); !strings.Contains(text, "database.server.id") {
		t.Errorf("the refusal names no key: %s", text)
	}
	n.put(t, "c", keys("c", "database.server.id", "7")) // past the API
	eventually(t, "c is refused", n.is("c", "failed"))
	n.must(t, 204, "DELETE", "/connectors/a", "")
	eventually(t, "c runs when a is gone", n.is("c", "running"))
}

// A connector that can't be built is one that failed, without a task.
func TestConnectAPIOfWhatCannotBeBuilt(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	n.put(t, "a", keys("a", "database.hostnam", "x"))
	eventually(t, "it has failed", n.is("a", "failed"))
	var status struct {
		Connector struct{ State, Trace string }
		Tasks     []any
	}
	n.call(t, "GET", "/connectors/a/status", "", &status)
	if status.Connector.State != "FAILED" || !strings.Contains(status.Connector.Trace, "database.hostnam") ||
		len(status.Tasks) > 0 {
		t.Errorf("status is %+v", status)
	}
}

func TestConnectAPIOff(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	n.must(t, 200, "GET", "/connectors", "")
	off, err := config.Build(config.YAML("test",
		[]byte("node: {id: n2, data_dir: "+t.TempDir()+"}\nadmin: {listen: \"127.0.0.1:0\", connect_api: false}\n")))
	if err != nil {
		t.Fatal(err)
	}
	n2 := runNode(t, off, Options{})
	n2.must(t, 404, "GET", "/connectors", "")
	n2.must(t, 200, "GET", "/v1/status", "")
}

// The keys that stand for a connector make the same connector.
func TestDescribedConnectorIsTheSame(t *testing.T) {
	yaml := `node: {data_dir: /tmp/x}
connectors:
  - name: least
    source: {host: mysql, user: cdc, password: "${env:P}", table: shop.outbox}
    kafka: {brokers: ["k1:9092"]}
  - name: orders-outbox
    topic_prefix: shop
    source: {host: mysql, hosts: ["b:3307"], user: cdc, password: "${env:P}", tables: [shop.outbox, shop.outbox2], flavor: mariadb, server_id: 9, start: current, connect_timeout: 7s, gtid_exclude: [a, b], tls: {mode: required}}
    outbox: {route_by: kind, additional: ["type:header:eventType", "v:envelope"], expand_json: true, skip_operations: [u, d]}
    format: {key: string, value: {type: json, schemas: true}}
    kafka: {brokers: ["k1:9092", "k2:9092"], delivery: at_least_once, max_message_bytes: 2MiB, create_topics: {partitions: 3, configs: {a: b, c: d}}, sasl: {mechanism: PLAIN, user: u, password: "${env:P}"}}
    limits: {queue_bytes: 1MiB}
    debezium: {quirks: true, compat: "3.2"}
`
	resolver := &config.Resolver{LookupEnv: func(string) (string, bool) { return "secret", true }}
	want, err := (&config.Builder{Resolver: resolver}).Build(config.YAML("x", []byte(yaml)))
	if err != nil {
		t.Fatal(err)
	}
	comparer := cmp.Comparer(func(a, b config.Secret) bool { return a.Reference() == b.Reference() })
	var described map[string]string
	for i := range want.Connectors {
		described = debezium.Describe(want.ConnectorSettings(i))
		text, err := json.Marshal(described)
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Compiler{Resolver: resolver, Remote: resolver}).Compile(want.Connectors[i].Name, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(&want.Connectors[i], got, comparer, cmpopts.IgnoreUnexported(config.Connector{})); diff != "" {
			t.Error(diff)
		}
	}
	if len(described) < 10 || described["database.password"] != "${env:P}" ||
		described["connector.class"] != debezium.MariaDBClass {
		t.Errorf("described as %v", described)
	}
}
