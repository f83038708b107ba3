package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// aNode is one daemon at work. Its servers do not exist: what counts here is which
// connectors try to reach them.
type aNode struct {
	*Node

	id   string
	reg  *prometheus.Registry
	stop func()
}

// startNode runs a node until the test ends; yaml adds to its configuration, admin to
// the section of that name.
func startNode(t *testing.T, id, dir, yaml string, admin ...string) *aNode {
	t.Helper()
	section := strings.Join(append([]string{"listen: \"127.0.0.1:0\""}, admin...), ", ")
	cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, "node: {id: %s, data_dir: %q}\nadmin: {%s}\n%s", id, dir, section, yaml)))
	if err != nil {
		t.Fatal(err)
	}
	return runNode(t, cfg)
}

func runNode(t *testing.T, cfg *config.Config) *aNode {
	t.Helper()
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	return runNodeWith(t, cfg, debezium.File{Name: "worker.properties", Data: []byte(
		"bootstrap.servers=127.0.0.1:1\nkey.converter=" + converter + "\nvalue.converter=" + converter + "\n")}, NewLogger(cfg.Log, t.Output()))
}

// runNodeLogging runs a node whose worker's file says nothing.
func runNodeLogging(t *testing.T, cfg *config.Config, log *slog.Logger) *aNode {
	t.Helper()
	return runNodeWith(t, cfg, debezium.File{Name: "worker.properties"}, log)
}

func runNodeWith(t *testing.T, cfg *config.Config, worker debezium.File, log *slog.Logger) *aNode {
	t.Helper()
	n := &aNode{id: cfg.Node.ID, reg: prometheus.NewRegistry()}
	var err error
	if n.Node, err = New(cfg, &Compiler{Worker: &worker, Remote: &config.Resolver{Reach: cfg.Admin.Reach()}}, log, n.reg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	n.stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			t.Errorf("node %s: %v", n.id, err)
		}
	}
	t.Cleanup(n.stop)
	return n
}

// startCluster runs three nodes with the same file.
func startCluster(t *testing.T, yaml string) []*aNode {
	t.Helper()
	var peers, listen []string
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listen = append(listen, l.Addr().String())
		peers = append(peers, fmt.Sprintf("n%d=%s", i+1, l.Addr()))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var nodes []*aNode
	for i := range 3 {
		nodes = append(nodes, startNode(t, fmt.Sprintf("n%d", i+1), t.TempDir(), fmt.Sprintf(
			"cluster: {listen: %q, peers: [%s], heartbeat_timeout: 600ms, step_down_after: 0s}\n%s", listen[i], strings.Join(peers, ", "), yaml)))
	}
	return nodes
}

func leaderAmong(t *testing.T, nodes []*aNode) (leader *aNode, followers []*aNode) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		leader, followers = nil, nil
		for _, n := range nodes {
			if s := n.node.Status(); s.Role == "leader" && s.Ready {
				leader = n
			} else {
				followers = append(followers, n)
			}
		}
		return leader != nil
	})
	return leader, followers
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// of returns what the node says about a connector.
func (n *aNode) of(name string) admin.Connector {
	for _, c := range n.Status().Connectors {
		if c.Name == name {
			return c
		}
	}
	return admin.Connector{}
}

func (n *aNode) is(name, state string) func() bool {
	return func() bool { return n.of(name).State == state }
}

// theRunner is the runner of a connector, to see whether it is another.
func (n *aNode) theRunner(name string) *runner {
	for _, r := range n.fleet.all() {
		if r.name == name {
			return r
		}
	}
	return nil
}

// keys are those of a connector that can be built, with changes.
func keys(name string, changes ...string) json.RawMessage {
	m := map[string]string{
		"name": name, "connector.class": "io.debezium.connector.mysql.MySqlConnector",
		"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "cdc", "database.password": "x",
		"topic.prefix": name, "table.include.list": "shop.outbox", "snapshot.mode": "no_data",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
	}
	for i := 0; i < len(changes); i += 2 {
		m[changes[i]] = changes[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

const fileConnector = `
connectors:
  - name: declared
    source: {host: 127.0.0.1, port: 1, user: cdc, table: shop.outbox, start: current}
    kafka: {brokers: ["127.0.0.1:1"]}
`

func (n *aNode) put(t *testing.T, name string, config json.RawMessage) {
	t.Helper()
	if err := n.node.PutConfig(t.Context(), name, config, "", "test"); err != nil {
		t.Fatal(err)
	}
}

// Connectors come, change and go while the others run on.
func TestConnectorsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, "n1", dir, fileConnector)
	eventually(t, "the connector of the file runs", n.is("declared", "running"))
	declared := n.theRunner("declared")

	n.put(t, "a", keys("a"))
	n.put(t, "b", keys("b"))
	eventually(t, "a runs", n.is("a", "running"))
	eventually(t, "b runs", n.is("b", "running"))
	a, b := n.theRunner("a"), n.theRunner("b")
	if a.config.Source.Port != 1 || a.config.Kafka.Brokers[0] != "127.0.0.1:1" || a.config.Source.Table != "shop.outbox" {
		t.Errorf("a is built as %+v", a.config)
	}

	n.put(t, "b", keys("b", "database.port", "2"))
	eventually(t, "b is another one", func() bool { r := n.theRunner("b"); return r != b && r.config.Source.Port == 2 })
	eventually(t, "and runs", n.is("b", "running"))
	if n.theRunner("a") != a || n.theRunner("declared") != declared {
		t.Error("a change of b has touched the others")
	}
	if s := b.worker.Status(); s.State != "unassigned" {
		eventually(t, "the old b has ended", func() bool { return b.worker.Status().State == "unassigned" })
	}

	// What can't be built says so and harms no other.
	n.put(t, "b", keys("b", "database.hostnam", "x"))
	eventually(t, "b has failed", n.is("b", "failed"))
	if e := n.of("b").LastError; e == nil || e.Code != "config_invalid" || !strings.Contains(e.Message, "database.hostnam") || e.RetryAt != nil {
		t.Errorf("the reason of b is %+v", e)
	}
	if n.theRunner("a") != a || n.theRunner("declared") != declared || n.of("a").State != "running" {
		t.Error("a config that can't be built has touched the others")
	}
	n.put(t, "b", keys("b"))
	eventually(t, "b runs again", n.is("b", "running"))

	if err := n.node.DeleteConnector(t.Context(), "a", "", "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is gone", func() bool { return n.theRunner("a") == nil })
	eventually(t, "and has ended", func() bool { return a.worker.Status().State == "unassigned" })
	if series := seriesOf(t, n.reg, "a"); series != 0 {
		t.Errorf("%d series of a deleted connector are left", series)
	}
	if seriesOf(t, n.reg, "b") == 0 {
		t.Error("b has no series")
	}

	// A restart finds them again.
	n.stop()
	n = startNode(t, "n1", dir, fileConnector)
	eventually(t, "b runs after the restart", n.is("b", "running"))
	eventually(t, "the connector of the file runs after the restart", n.is("declared", "running"))
	if n.theRunner("a") != nil {
		t.Error("a deleted connector is back after the restart")
	}
}

// slowWorker ends when it is allowed to.
type slowWorker struct {
	connector.Refused

	began, mayEnd chan struct{}
}

func (w *slowWorker) Run(stop, _ context.Context, _ uint64) {
	close(w.began)
	<-stop.Done()
	<-w.mayEnd
}

// Two of one name never work at the same time, or records would come out of order.
func TestConnectorWaitsForItsPredecessor(t *testing.T) {
	newRunner := func() (*runner, *slowWorker) {
		w := &slowWorker{began: make(chan struct{}), mayEnd: make(chan struct{})}
		return &runner{name: "a", worker: w, standby: func() {}}, w
	}
	first, w1 := newRunner()
	second, w2 := newRunner()
	changed := make(chan struct{})
	asked := make(chan struct{}, 3)
	list := func() ([]*runner, <-chan struct{}) {
		asked <- struct{}{}
		select {
		case <-changed:
			return []*runner{second}, nil
		default:
			return []*runner{first}, changed
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runAll(ctx, context.Background(), 1, list)
	}()
	<-w1.began
	<-asked
	close(changed)
	<-asked
	select {
	case <-w2.began:
		t.Error("the second began while the first was draining")
	case <-time.After(50 * time.Millisecond):
	}
	close(w1.mayEnd)
	<-w2.began
	close(w2.mayEnd)
	cancel()
	<-done
}

// seriesOf counts the series with connector=name.
func seriesOf(t *testing.T, reg *prometheus.Registry, name string) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "connector" && l.GetValue() == name {
					count++
				}
			}
		}
	}
	return count
}

// A name in file and store runs from neither, and nothing else is harmed.
func TestConnectorNameClash(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	n.put(t, "other", keys("other"))
	eventually(t, "both run", func() bool { return n.is("declared", "running")() && n.is("other", "running")() })
	other, first := n.theRunner("other"), n.theRunner("declared")
	n.put(t, "declared", keys("declared"))
	eventually(t, "the clash is refused", n.is("declared", "failed"))
	eventually(t, "what ran has ended", func() bool { return first.worker.Status().State == "unassigned" })
	if e := n.of("declared").LastError; e == nil || !strings.Contains(e.Message, "node's file") {
		t.Errorf("the reason is %+v", e)
	}
	if err := n.node.DeleteConnector(t.Context(), "declared", "", "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one of the file runs again", n.is("declared", "running"))
	if n.theRunner("other") != other {
		t.Error("a clash has touched another connector")
	}
}

// A connector over the network may not say where the node keeps its data.
func TestConnectorHasNoNodeSettings(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	n.put(t, "a", keys("a", "binlog.outbox.data_dir", "/elsewhere"))
	eventually(t, "it is refused", n.is("a", "failed"))
	if e := n.of("a").LastError; !strings.Contains(e.Message, "binlog.outbox.data_dir") {
		t.Errorf("the reason is %+v", e)
	}
}

// What was put at a follower runs on the leader, and on the next one.
func TestConnectorsSurviveAFailover(t *testing.T) {
	nodes := startCluster(t, fileConnector)
	leader, followers := leaderAmong(t, nodes)
	followers[0].put(t, "a", keys("a"))
	eventually(t, "a runs on the leader", leader.is("a", "running"))
	eventually(t, "a is known to a follower", followers[1].is("a", "unassigned"))
	leader.stop()
	next, others := leaderAmong(t, followers)
	eventually(t, "a runs on the next leader", next.is("a", "running"))
	eventually(t, "the file's runs there too", next.is("declared", "running"))
	others[0].put(t, "a", keys("a", "database.port", "2"))
	eventually(t, "its change arrives", func() bool { r := next.theRunner("a"); return r != nil && r.config.Source.Port == 2 })
	eventually(t, "and runs", next.is("a", "running"))
}

// A deleted connector does not run for the moment until its run is ended.
func TestDeletedConnectorIsStopped(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	n.put(t, "a", keys("a"))
	eventually(t, "a runs", n.is("a", "running"))
	p := &positions{node: n.node, notices: n.notices, name: "a"}
	if got := p.RunState(); got != connector.Running {
		t.Errorf("before it is deleted a is %s", got)
	}
	if err := n.node.DeleteConnector(t.Context(), "a", "", "test"); err != nil {
		t.Fatal(err)
	}
	if got := p.RunState(); got != connector.Stopped {
		t.Errorf("after it was deleted a is %s", got)
	}
	if got := (&positions{node: n.node, notices: n.notices, name: "declared", declared: true}).RunState(); got != connector.Running {
		t.Errorf("a connector of the file is %s", got)
	}
}

// A configuration that was replaced is not taken up again, not even for a moment:
// requests bring the fleet up to date beside the one that follows the store.
func TestOlderConfigurationsDoNotComeBack(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	eventually(t, "a leader", n.node.IsLeader)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				n.fleet.reconcile()
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		newest := 0
		for ctx.Err() == nil {
			_, changed := n.fleet.list()
			if r := n.fleet.named("a"); r != nil {
				port := r.config.Source.Port
				if port < newest {
					t.Errorf("configuration %d is taken up after %d", port, newest)
					return
				}
				newest = port
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	for port := range 100 {
		n.put(t, "a", keys("a", "database.port", fmt.Sprint(port+1)))
	}
}

// exampleYAML is the example of the configuration, with a password.
func exampleYAML() string {
	return strings.Replace(config.Example(), "${env:MYSQL_PASSWORD}", "hunter2", 1)
}

// write makes a file in a directory of the test's own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
