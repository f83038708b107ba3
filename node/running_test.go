package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// aNode is one node at work. Mostly its servers do not exist: what counts then is which
// connectors try to reach them.
type aNode struct {
	*Node

	id   string
	reg  *prometheus.Registry
	stop func()
	// ended gives what Run returned, once.
	ended <-chan error
}

// startNode runs a node until the test ends; yaml adds to its configuration, admin to
// the section of that name.
func startNode(t *testing.T, id, dir, yaml string, admin ...string) *aNode {
	t.Helper()
	return runNode(t, configured(t, id, dir, yaml, admin...), Options{})
}

// configured is the configuration of a node.
func configured(t *testing.T, id, dir, yaml string, admin ...string) *config.Config {
	t.Helper()
	section := strings.Join(append([]string{"listen: \"127.0.0.1:0\""}, admin...), ", ")
	cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, "node: {id: %s, data_dir: %q}\nadmin: {%s}\n%s", id, dir,
		section, yaml)))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// workerFile is that of a Connect worker.
func workerFile(broker, more string) *debezium.File {
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	return &debezium.File{Name: "worker.properties", Data: []byte(
		"bootstrap.servers=" + broker + "\nkey.converter=" + converter + "\nvalue.converter=" + converter + "\n" + more)}
}

// runNode runs a node until the test ends. What o leaves open is the test's log, metrics
// of the node's own, and the usual worker's file.
func runNode(t *testing.T, cfg *config.Config, o Options) *aNode {
	t.Helper()
	ended := make(chan error, 1)
	n := &aNode{id: cfg.Node.ID, reg: prometheus.NewRegistry(), ended: ended}
	o.Metrics = n.reg
	if o.Logger == nil {
		o.Logger = NewLogger(cfg.Log, t.Output())
	}
	if o.Compiler == nil {
		o.Compiler = &Compiler{Worker: workerFile("127.0.0.1:1", "")}
	}
	o.Compiler.Remote = &config.Resolver{Reach: cfg.Admin.Reach()}
	var err error
	if n.Node, err = New(cfg, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- n.Run(ctx)
	}()
	n.stop = func() {
		cancel()
		<-done
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("node %s: %v", n.id, err)
			}
		default: // it has been looked at
		}
	}
	t.Cleanup(n.stop)
	return n
}

// startCluster runs three nodes with the same file.
func startCluster(t *testing.T, yaml string) []*aNode {
	t.Helper()
	return startClusterWith(t, yaml, func(int, *config.Config, *Options) {})
}

// startClusterWith does so with options; the nodes are numbered from 0.
func startClusterWith(t *testing.T, yaml string, options func(i int, cfg *config.Config, o *Options)) []*aNode {
	t.Helper()
	peers, listeners := make([]string, 3), make([]net.Listener, 3)
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], peers[i] = l, fmt.Sprintf("n%d=%s", i+1, l.Addr())
	}
	nodes := make([]*aNode, 3)
	for i := range nodes {
		cfg := configured(t, fmt.Sprintf("n%d", i+1), t.TempDir(), fmt.Sprintf(
			"cluster: {listen: %q, peers: [%s], heartbeat_timeout: 600ms, step_down_after: 0s}\n%s", listeners[i].Addr(),
			strings.Join(peers, ", "), yaml))
		o := Options{Peers: listeners[i]}
		options(i, cfg, &o)
		nodes[i] = runNode(t, cfg, o)
	}
	return nodes
}

func leaderAmong(t *testing.T, nodes []*aNode) (leader *aNode, followers []*aNode) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		leader, followers = nil, nil
		for _, n := range nodes {
			if s := n.store.Status(); s.Role == "leader" && s.Ready {
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

// instance is the instance of a connector, to see whether it is another.
func (n *aNode) instance(name string) *instance {
	for _, r := range n.manager.all() {
		if r.name == name {
			return r
		}
	}
	return nil
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
