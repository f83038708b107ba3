package node

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// network is all that one node has of it: what it dials and what it accepts.
type network struct {
	net.Listener

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("cut by the test")

// kill takes the node's connections away, and refuses others: what everybody else sees
// of it is what they see of a process that was killed. It does not know, and goes on as
// long as it can.
func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
	for _, c := range n.conns {
		_ = c.Close()
	}
	_ = n.Close()
}

func (n *network) keep(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, errors.Join(errCut, c.Close())
	}
	n.conns = append(n.conns, c)
	return c, nil
}

func (n *network) Accept() (net.Conn, error) { return n.keep(n.Listener.Accept()) }

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.keep((&net.Dialer{}).DialContext(ctx, network, address))
}

// published holds what a read_committed consumer sees against the source: each row once,
// and those of one aggregate in the order of their commits.
func published(t *testing.T, k *kafkatest.Cluster, topic string, rows int) {
	t.Helper()
	eventually(t, "all rows", func() bool { return len(k.Records(topic)) >= rows })
	seen, last := map[string]bool{}, map[string]int{}
	for _, r := range k.Records(topic) {
		id, key := string(r.Value), string(r.Key)
		n, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] {
			t.Errorf("row %s comes twice", id)
		}
		if n < last[key] {
			t.Errorf("row %d of %s comes after %d", n, key, last[key])
		}
		seen[id], last[key] = true, n
	}
	if len(seen) != rows {
		t.Errorf("%d rows are published, want %d", len(seen), rows)
	}
}

// exactlyOnce is a connector whose topics need no more than one broker.
func exactlyOnce(source *canaltest.OutboxServer, broker string) string {
	const one = "create_topics: {replication_factor: 1}, position_replication_factor: 1"
	return strings.Replace(scriptedConnector(source, broker, ""), "kafka: {", "kafka: {"+one+", ", 1)
}

// TestAKilledNode: of three nodes the one that publishes is killed in the middle of its
// work, and each row comes once and in order.
func TestAKilledNode(t *testing.T) {
	k, source := kafkatest.Start(t), canaltest.StartOutbox(t, 50)
	topic := k.Topic("outbox.event.order", 3, nil)
	networks := make([]*network, 3)
	nodes := startClusterWith(t, exactlyOnce(source, k.Brokers()[0]), func(i int, cfg *config.Config, o *Options) {
		networks[i] = &network{Listener: o.Peers}
		o.Peers, o.Dial = networks[i], networks[i].dial
		cfg.Node.ShutdownTimeout = time.Second // of one that was killed
	})
	committing, enough := context.WithCancel(t.Context())
	var commits sync.WaitGroup
	defer commits.Wait()
	defer enough()
	rows := 50
	commits.Go(func() {
		for committing.Err() == nil {
			source.Commit(5)
			rows += 5
			time.Sleep(time.Millisecond)
		}
	})
	eventually(t, "that it publishes", func() bool { return len(k.Records(topic)) > 100 })
	leader, others := leaderAmong(t, nodes)
	networks[slices.Index(nodes, leader)].kill()
	before := len(k.Records(topic))
	next, _ := leaderAmong(t, others)
	eventually(t, "that the next one publishes", func() bool { return len(k.Records(topic)) > before+200 })
	if next.of("orders").Published == 0 {
		t.Errorf("node %s leads and has published nothing", next.id)
	}
	enough()
	commits.Wait()
	published(t, k, topic, rows)
}

// TestABrokenDisk: a node that can't store any more ends with a reason, and another one
// goes on from what it had published.
func TestABrokenDisk(t *testing.T) {
	k, source := kafkatest.Start(t), canaltest.StartOutbox(t, 50)
	topic := k.Topic("outbox.event.order", 3, nil)
	disks := make([]atomic.Pointer[error], 3)
	nodes := startClusterWith(t, exactlyOnce(source, k.Brokers()[0]), func(i int, _ *config.Config, o *Options) {
		o.BeforeWrite = func() error {
			if err := disks[i].Load(); err != nil {
				return *err
			}
			return nil
		}
	})
	eventually(t, "that it publishes", func() bool { return len(k.Records(topic)) == 50 })
	leader, others := leaderAmong(t, nodes)
	full := error(syscall.ENOSPC)
	disks[slices.Index(nodes, leader)].Store(&full)
	source.Commit(50)
	select {
	case err := <-leader.ended:
		var store *ha.StoreError
		if !errors.As(err, &store) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(store.Remedy, "free space") {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on without its disk")
	}
	leaderAmong(t, others)
	source.Commit(50)
	published(t, k, topic, 150)
}

// played is a connector in a state.
type played struct{ status connector.Status }

func (p *played) Run(stop, leadership context.Context, _ uint64) { <-stop.Done(); <-leadership.Done() }
func (p *played) Status() connector.Status                       { return p.status }
func (p *played) Restart()                                       {}

// TestReach: a leader none of whose connectors works gives way after the time that the
// configuration says, and not before, nor when one works or none is wanted.
func TestReach(t *testing.T) {
	trying := connector.Status{State: connector.StateRunning, LastError: &connector.LastError{Code: "unreachable"}}
	for name, test := range map[string]struct {
		states []connector.Status
		gives  bool
	}{
		"none works":  {[]connector.Status{trying, trying}, true},
		"one is away": {[]connector.Status{trying, {State: connector.StateRunning, Phase: connector.Streaming}}, false},
		"all paused":  {[]connector.Status{{State: connector.StatePaused}}, false},
		"none at all": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := &config.Config{}
				cfg.Cluster.StepDownAfter, cfg.Cluster.Peers = time.Minute, []string{"n1=a:1"}
				m := &manager{assembly: &assembly{cfg: cfg}, instances: map[string]*instance{}}
				for i, s := range test.states {
					id := strconv.Itoa(i)
					m.instances[id] = &instance{name: id, connector: &played{s}}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				err := m.watchReach(ctx, t.Context())
				took, gave := time.Since(began), errors.Is(err, ha.ErrStepDown)
				if gave != test.gives || gave && (took <= time.Minute || took > time.Minute+2*reachInterval) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}
