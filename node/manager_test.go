package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/connector"
)

// keys are those of a connector that can be built, with changes.
func keys(name string, changes ...string) json.RawMessage {
	m := map[string]string{
		"name": name, "connector.class": "io.debezium.connector.mysql.MySqlConnector",
		"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "cdc", "database.password": "x",
		"topic.prefix": name, "table.include.list": "shop.outbox", "snapshot.mode": "no_data",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"key.converter":   "org.apache.kafka.connect.storage.StringConverter",
		"value.converter": "org.apache.kafka.connect.storage.StringConverter",
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
	if err := n.store.PutConfig(t.Context(), name, config, "", "test"); err != nil {
		t.Fatal(err)
	}
}

// Connectors come, change and go while the others run on.
func TestConnectorsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, "n1", dir, fileConnector)
	eventually(t, "the connector of the file runs", n.is("declared", "running"))
	declared := n.instance("declared")

	n.put(t, "a", keys("a"))
	n.put(t, "b", keys("b"))
	eventually(t, "a runs", n.is("a", "running"))
	eventually(t, "b runs", n.is("b", "running"))
	a, b := n.instance("a"), n.instance("b")
	if a.config.Source.Port != 1 || a.config.Kafka.Brokers[0] != "127.0.0.1:1" || a.config.Source.Table != "shop.outbox" {
		t.Errorf("a is built as %+v", a.config)
	}

	n.put(t, "b", keys("b", "database.port", "2"))
	eventually(t, "b is another one", func() bool { r := n.instance("b"); return r != b && r.config.Source.Port == 2 })
	eventually(t, "and runs", n.is("b", "running"))
	if n.instance("a") != a || n.instance("declared") != declared {
		t.Error("a change of b has touched the others")
	}
	if s := b.connector.Status(); s.State != "unassigned" {
		eventually(t, "the old b has ended", func() bool { return b.connector.Status().State == "unassigned" })
	}

	// What can't be built says so and harms no other.
	n.put(t, "b", keys("b", "database.hostnam", "x"))
	eventually(t, "b has failed", n.is("b", "failed"))
	if e := n.of("b").LastError; e == nil || e.Code != "config_invalid" ||
		!strings.Contains(e.Message, "database.hostnam") || !e.RetryAt.IsZero() {
		t.Errorf("the reason of b is %+v", e)
	}
	if n.instance("a") != a || n.instance("declared") != declared || n.of("a").State != "running" {
		t.Error("a config that can't be built has touched the others")
	}
	n.put(t, "b", keys("b"))
	eventually(t, "b runs again", n.is("b", "running"))

	if err := n.store.DeleteConnector(t.Context(), "a", "", "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is gone", func() bool { return n.instance("a") == nil })
	eventually(t, "and has ended", func() bool { return a.connector.Status().State == "unassigned" })
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
	if n.instance("a") != nil {
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
	newInstance := func() (*instance, *slowWorker) {
		w := &slowWorker{began: make(chan struct{}), mayEnd: make(chan struct{})}
		return &instance{name: "a", connector: w, standby: func() {}}, w
	}
	first, w1 := newInstance()
	second, w2 := newInstance()
	changed := make(chan struct{})
	asked := make(chan struct{}, 3)
	list := func() ([]*instance, <-chan struct{}) {
		asked <- struct{}{}
		select {
		case <-changed:
			return []*instance{second}, nil
		default:
			return []*instance{first}, changed
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
	other, first := n.instance("other"), n.instance("declared")
	n.put(t, "declared", keys("declared"))
	eventually(t, "the clash is refused", n.is("declared", "failed"))
	eventually(t, "what ran has ended", func() bool { return first.connector.Status().State == "unassigned" })
	if e := n.of("declared").LastError; e == nil || !strings.Contains(e.Message, "node's file") {
		t.Errorf("the reason is %+v", e)
	}
	if err := n.store.DeleteConnector(t.Context(), "declared", "", "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the one of the file runs again", n.is("declared", "running"))
	if n.instance("other") != other {
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
	eventually(t, "its change arrives", func() bool {
		r := next.instance("a")
		return r != nil &&
			r.config.Source.Port == 2
	})
	eventually(t, "and runs", next.is("a", "running"))
}

// A deleted connector does not run for the moment until its run is ended.
func TestDeletedConnectorIsStopped(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	n.put(t, "a", keys("a"))
	eventually(t, "a runs", n.is("a", "running"))
	p := &positions{store: n.store, changes: n.changes, name: "a"}
	if got := p.Wanted(); got != connector.StateRunning {
		t.Errorf("before it is deleted a is %s", got)
	}
	if err := n.store.DeleteConnector(t.Context(), "a", "", "test"); err != nil {
		t.Fatal(err)
	}
	if got := p.Wanted(); got != connector.StateStopped {
		t.Errorf("after it was deleted a is %s", got)
	}
	if got := (&positions{store: n.store, changes: n.changes, name: "declared",
		declared: true}).Wanted(); got != connector.StateRunning {
		t.Errorf("a connector of the file is %s", got)
	}
}

// A configuration that was replaced is not taken up again, not even for a moment:
// requests bring the connectors up to date beside what follows the store.
func TestOlderConfigurationsDoNotComeBack(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), "")
	eventually(t, "a leader", n.store.IsLeader)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				n.manager.reconcile()
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		newest := 0
		for ctx.Err() == nil {
			_, changed := n.manager.list()
			if r := n.manager.named("a"); r != nil {
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
