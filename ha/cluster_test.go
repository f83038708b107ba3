package ha

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clusterOf returns configurations of n nodes on free loopback ports, with the
// listeners already open.
func clusterOf(t testing.TB, n int, ca *authority) []Config {
	t.Helper()
	configs := make([]Config, n)
	var peers []Peer
	for i := range configs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() }) // for those that no node took
		id := string(rune('a' + i))
		peers = append(peers, Peer{ID: id, Addr: ln.Addr().String(), CertName: id + ".nodes.test"})
		c := DefaultConfig()
		c.NodeID, c.DataDir, c.Listener = id, t.TempDir(), ln
		c.HeartbeatTimeout = 600 * time.Millisecond // tests share their machine
		if ca != nil {
			ca.issue(t, id, []string{id + ".nodes.test"})
			c.TLS = ca.files(id)
		}
		configs[i] = c
	}
	for i := range configs {
		configs[i].Peers = peers
	}
	return configs
}

func startAll(t testing.TB, configs []Config) []*runningNode {
	t.Helper()
	nodes := make([]*runningNode, len(configs))
	for i := range configs {
		nodes[i] = start(t, configs[i])
	}
	for _, n := range nodes {
		n.waitReady(t)
	}
	return nodes
}

func leaderOf(t testing.TB, nodes []*runningNode) (leader *runningNode, others []*runningNode) {
	t.Helper()
	waitUntil(t, "a leader is ready", func() bool {
		leader, others = nil, nil
		for _, n := range nodes {
			if s := n.Status(); s.Role == Leader && s.Ready {
				leader = n
			} else {
				others = append(others, n)
			}
		}
		return leader != nil
	})
	return leader, others
}

func TestClusterWithTLS(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, newAuthority(t))
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	ctx := testContext(t)

	must(t, leader.SavePosition(ctx, "orders", Session{Term: leader.term(), ID: "r"}, at(5)))
	must(t, leader.VerifyLeader(ctx))
	f := followers[0]
	if err := f.SavePosition(ctx, "orders", Session{Term: leader.term(), ID: "r"}, at(6)); !errors.Is(err, ErrNotLeader) {
		t.Errorf("SavePosition at a follower: %v", err)
	}
	if err := f.VerifyLeader(ctx); !errors.Is(err, ErrNotLeader) {
		t.Errorf("VerifyLeader at a follower: %v", err)
	}
	// Operators may talk to any node.
	must(t, f.SetRunState(ctx, "orders", Paused, "maintenance", "ann"))
	must(t, f.RestartConnector(ctx, "orders", "kick", "ann"))
	var rejected *RejectedError
	if err := f.SetPosition(ctx, "orders", at(1), "again", "ann"); !errors.As(err, &rejected) ||
		rejected.Reason != ReasonNotStopped || rejected.Have.Position.Seq != 5 {
		t.Errorf("a refusal by way of a follower: %v", err)
	}
	for _, n := range nodes {
		waitUntil(t, "all nodes have the state", func() bool {
			st, _ := n.Connector("orders")
			return st.Position.Seq == 5 && st.RunState.State == Paused && st.Restarts == 1
		})
	}
	cluster := leader.Status().Cluster
	for _, n := range nodes {
		s := n.Status()
		if s.Cluster != cluster || s.LeaderID != leader.cfg.NodeID || len(s.Members) != 3 || s.LastContact == nil ||
			!s.Ready {
			t.Errorf("status of %s: %+v", s.NodeID, s)
		}
	}
	for _, v := range leader.Status().Members {
		if v.Reachable == nil || !*v.Reachable || !v.Voter {
			t.Errorf("%s is no reachable voter", v.ID)
		}
	}

	// A node that is gone is seen to be, comes back under its id, and catches up.
	gone := followers[1]
	must(t, gone.stop(t))
	waitUntil(t, "the leader misses the node", func() bool { return !leader.reachable(gone.dir.id.raftID()) })
	must(t, leader.AppendDecision(ctx, "orders", Decision{Kind: "skip", By: "ann"}))
	c := gone.cfg
	c.Listener = nil
	back := start(t, c)
	waitUntil(t, "the node has caught up", func() bool {
		st, _ := back.Connector("orders")
		return len(st.Decisions) == 1
	})
	if back.dir.id.raftID() != gone.dir.id.raftID() {
		t.Errorf("identity %v, before %v", back.dir.id, gone.dir.id)
	}
	waitUntil(t, "the leader sees it again", func() bool { return leader.reachable(gone.dir.id.raftID()) })
}

// TestB089LeadershipMoves stops leaders in turn: a new one leads under a higher
// term, no two f run at once, and every context ends with a cause.
func TestB089LeadershipMoves(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	nodes := startAll(t, configs)
	var running atomic.Int32
	type turn struct {
		node int
		term uint64
	}
	turns := make(chan turn, 64)
	var wg sync.WaitGroup
	follow := func(i int, n *Node) {
		wg.Go(func() {
			err := n.Lead(context.Background(), func(ctx context.Context, term uint64) error {
				if running.Add(1) != 1 {
					t.Error("two nodes lead at once")
				}
				turns <- turn{i, term}
				<-ctx.Done()
				running.Add(-1)
				if c := context.Cause(ctx); !errors.Is(c, ErrShuttingDown) && !errors.Is(c, ErrLeadershipLost) {
					t.Errorf("cause %v", c)
				}
				return ctx.Err()
			})
			if !errors.Is(err, ErrShuttingDown) {
				t.Errorf("Lead: %v", err)
			}
		})
	}
	for i, n := range nodes {
		follow(i, n.Node)
	}
	var last uint64
	for round := range uint64(4) {
		now := receive(t, "a leader", turns)
		if now.term <= last {
			t.Fatalf("term %d after %d", now.term, last)
		}
		last = now.term
		n := nodes[now.node]
		must(t, n.SavePosition(testContext(t), "orders", Session{Term: now.term, ID: fmt.Sprint(round)}, at(round+1)))
		begin := time.Now()
		must(t, n.stop(t))
		next := receive(t, "the next leader", turns)
		t.Logf("hand-over in %s", time.Since(begin))
		if next.node == now.node {
			t.Fatal("the stopped node leads")
		}
		if st, _ := nodes[next.node].Connector("orders"); st.Position.Seq != round+1 {
			t.Fatalf("B090: the new leader begins at %d, want %d", st.Position.Seq, round+1)
		}
		turns <- next
		c := n.cfg
		c.Listener = nil
		nodes[now.node] = start(t, c)
		nodes[now.node].waitReady(t)
		follow(now.node, nodes[now.node].Node)
	}
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	wg.Wait()
}

// TestShutdownHandsOver: the next leader does not have to wait until the last one
// is missed.
func TestShutdownHandsOver(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		configs[i].HeartbeatTimeout = 5 * time.Second // far above what a hand-over takes
	}
	leader, others := leaderOf(t, startAll(t, configs))
	must(t, leader.SavePosition(testContext(t), "orders", Session{Term: leader.term(), ID: "r"}, at(1)))
	begin := time.Now()
	must(t, leader.stop(t))
	leaderOf(t, others)
	if took := time.Since(begin); took >= configs[0].HeartbeatTimeout {
		t.Errorf("the next leader took %s: it was elected, not handed over to", took)
	}
}

// TestStepDownHandsOver: a leader that can't work gives way to one that can.
func TestStepDownHandsOver(t *testing.T) {
	t.Parallel()
	nodes := startAll(t, clusterOf(t, 3, nil))
	leader, _ := leaderOf(t, nodes)
	blind := leader.cfg.NodeID
	ctx, cancel := context.WithCancel(testContext(t))
	found := make(chan string, 1)
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			_ = n.Lead(ctx, func(leadership context.Context, _ uint64) error {
				ctx := either(ctx, leadership)
				if n.cfg.NodeID == blind {
					return fmt.Errorf("kafka is out of reach: %w", ErrStepDown)
				}
				found <- n.cfg.NodeID
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	receive(t, "a node that can work", found)
	cancel()
	wg.Wait()
}

// TestCutLeaderLosesLeadership: a leader without its peers ends f's context.
func TestCutLeaderLosesLeadership(t *testing.T) {
	t.Parallel()
	nodes := startAll(t, clusterOf(t, 3, nil))
	leader, followers := leaderOf(t, nodes)
	l := leadUntil(testContext(t), leader.Node)
	receive(t, "f", l.began)
	next := make(chan time.Time, 2)
	for _, n := range followers {
		go func() {
			_ = n.Lead(testContext(t), func(ctx context.Context, _ uint64) error { // ends with the node
				next <- time.Now()
				<-ctx.Done()
				return ctx.Err()
			})
		}()
	}
	cut := time.Now()
	leader.mux.close() // as if its network card died
	if cause := receive(t, "the end", l.ended); !errors.Is(cause, ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	ended := time.Now()
	both := ended.Sub(receive(t, "the next leader", next))
	t.Logf("two led for %s, of a lease of %s", both, leader.cfg.LeaseTimeout)
	if both > leader.cfg.LeaseTimeout+10*time.Second {
		t.Errorf("two led for %s", both)
	}
	waitUntil(t, "another node leads and writes", func() bool {
		next, _ := leaderOf(t, followers)
		return next.SetRunState(testContext(t), "orders", Paused, "", "ann") == nil
	})
	t.Logf("first write %s after the cut", time.Since(cut))
	if err := leader.SetRunState(testContext(t), "orders", Running, "", "ann"); !errors.Is(err, ErrNoLeader) {
		t.Errorf("a write at the node that was cut off: %v", err)
	}
}

// TestNoBootstrapWithoutAllPeers: a cluster does not begin before its nodes have
// met, and an empty node beside a cluster waits.
func TestNoBootstrapWithoutAllPeers(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	a, b := start(t, configs[0]), start(t, configs[1])
	_, err := a.meet(testContext(t))
	if err == nil {
		t.Error("two of three have met all")
	}
	c := start(t, configs[2])
	for _, n := range []*runningNode{a, b, c} {
		n.waitReady(t)
	}
	leader, others := leaderOf(t, []*runningNode{a, b, c})
	must(t, leader.SetRunState(testContext(t), "orders", Paused, "", "ann"))
	lost := others[0]
	must(t, lost.stop(t))
	again := lost.cfg
	again.Listener, again.DataDir = nil, t.TempDir()
	empty := start(t, again)
	if _, err := empty.meet(testContext(t)); !errors.Is(err, errExists) {
		t.Errorf("a node that lost its disk would begin a cluster of its own: %v", err)
	}
}

func TestSnapshotReachesALateNode(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		configs[i].TrailingLogs = 1
	}
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	late := followers[0]
	must(t, late.stop(t))
	for i := range uint64(40) {
		must(t, leader.SavePosition(testContext(t), "orders", Session{Term: leader.term(), ID: "r"}, at(i+1)))
	}
	must(t, leader.raft.Snapshot().Error())
	c := late.cfg
	c.Listener = nil
	late = start(t, c)
	waitUntil(t, "the late node has the position", func() bool {
		st, _ := late.Connector("orders")
		return st.Position.Seq == 40
	})
	must(t, late.stop(t))
	late = start(t, c) // from the snapshot that it was sent
	if st, _ := late.Connector("orders"); st.Position.Seq != 40 {
		t.Errorf("after a restart: %+v", st)
	}
}

// TestAloneRefusesAClustersDirectory: forgetting to list the peers must not look
// like a hang.
func TestAloneRefusesAClustersDirectory(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	nodes := startAll(t, configs)
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	c := DefaultConfig()
	c.NodeID, c.DataDir = "a", configs[0].DataDir
	_, err := Open(c, quiet(), nil)
	if !errors.Is(err, ErrForeignState) {
		t.Errorf("Open: %v", err)
	}
}
