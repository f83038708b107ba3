package ha

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// joining is the configuration of a node that is not in configs' peers.
func joining(t testing.TB, id string, configs []Config) Config {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // when no node took it
	c := configs[0]
	c.NodeID, c.DataDir, c.Listener, c.Join, c.Advertise = id, t.TempDir(), ln, true, ln.Addr().String()
	return c
}

// quickly makes a cluster's slow clocks fast.
func quickly(configs []Config) []Config {
	for i := range configs {
		configs[i].PromoteAfter = 100 * time.Millisecond
		configs[i].StepDownPause = 50 * time.Millisecond
	}
	return configs
}

func voterNames(n *Node) string {
	var names []string
	for _, m := range n.Members() {
		if m.Voter {
			names = append(names, m.ID)
		} else {
			names = append(names, "("+m.ID+")")
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func waitVoters(t testing.TB, n *runningNode, want string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("members: %s", voterNames(n.Node))
		}
	}()
	waitUntil(t, "the voters are "+want, func() bool { return voterNames(n.Node) == want })
}

func audited(n *Node, action string) (out []AuditEntry) {
	for _, e := range n.Audit() {
		if e.Action == action {
			out = append(out, e)
		}
	}
	return out
}

// TestMembersComeAndGo takes one cluster through all changes of its members.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	ctx := testContext(t)
	must(t, leader.SavePosition(ctx, "orders", Session{Term: leader.term(), ID: "r"}, at(5)))

	// A new node asks to be let in, catches up and gets its vote.
	d := start(t, joining(t, "d", configs))
	d.waitReady(t)
	waitVoters(t, leader, "a b c d")
	waitUntil(t, "the new node has the state", func() bool { st, _ := d.Connector("orders"); return st.Position.Seq == 5 })
	if a := audited(leader.Node, "add_member"); len(a) != 1 || a[0].By != byCluster ||
		!strings.Contains(a[0].Detail, "d/") {
		t.Errorf("audit of the addition: %+v", a)
	}
	if a := audited(leader.Node, "promote_member"); len(a) != 1 {
		t.Errorf("audit of the promotion: %+v", a)
	}

	// B095: asking again changes nothing, at any node.
	must(t, followers[0].AddMember(ctx, "d", d.cfg.Advertise, "again", "ann"))
	must(t, d.Promote(ctx, "d", "again", "ann"))
	if a := audited(leader.Node, "add_member"); len(a) != 1 {
		t.Errorf("an addition that changed nothing was audited: %+v", a)
	}
	for name, err := range map[string]error{
		"another name than the node's":  followers[0].AddMember(ctx, "e", d.cfg.Advertise, "", "ann"),
		"a name that is in use":         followers[0].AddMember(ctx, "b", d.cfg.Advertise, "", "ann"),
		"nobody there":                  followers[0].AddMember(ctx, "e", freePorts(t, 1)[0], "", "ann"),
		"no address":                    leader.AddMember(ctx, "e", "nowhere", "", "ann"),
		"nobody asks":                   leader.AddMember(ctx, "e", "x:1", "", ""),
		"snapshot that nobody asks for": leader.Snapshot(ctx, new(bytes.Buffer), "", ""),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"remove":   followers[0].RemoveMember(ctx, "x", false, "", "ann"),
		"promote":  followers[0].Promote(ctx, "x", "", "ann"),
		"transfer": followers[0].TransferLeadership(ctx, "x", "", "ann"),
	} {
		if !errors.Is(err, ErrNotMember) {
			t.Errorf("%s of a stranger: %v", name, err)
		}
	}

	// Leadership to a node of choice, asked for at another.
	must(t, followers[0].TransferLeadership(ctx, "d", "because", "ann"))
	waitUntil(t, "d leads", func() bool { s := d.Status(); return s.Role == Leader && s.Ready })
	must(t, followers[1].TransferLeadership(ctx, "", "whoever", "ann"))
	waitUntil(t, "d does not lead", func() bool { return !d.IsLeader() })
	leader, followers = leaderOf(t, nodes)
	if a := audited(leader.Node, "transfer_leadership"); len(a) != 2 || a[0].Detail != "to d" || a[0].Reason != "because" {
		t.Errorf("audit of the transfers: %+v", a)
	}

	// A removal that costs the majority needs force; the leader removes itself by
	// handing over first.
	must(t, d.stop(t))
	waitUntil(t, "d is missed", func() bool { return !leader.reachable(d.dir.id.raftID()) })
	must(t, leader.RemoveMember(ctx, "d", false, "gone for good", "ann"))
	waitVoters(t, leader, "a b c")
	must(t, followers[0].stop(t))
	waitUntil(t, "one is missed", func() bool { return !leader.reachable(followers[0].dir.id.raftID()) })
	if err := leader.RemoveMember(ctx, followers[1].cfg.NodeID, false, "", "ann"); !errors.Is(err, ErrQuorum) {
		t.Errorf("removing one of two that are left: %v", err)
	}
	must(t, leader.RemoveMember(ctx, followers[0].cfg.NodeID, false, "", "ann"))
	was := leader.cfg.NodeID
	must(t, followers[1].RemoveMember(ctx, was, false, "", "ann"))
	waitUntil(t, "the other leads alone", func() bool {
		return followers[1].IsLeader() && voterNames(followers[1].Node) == followers[1].cfg.NodeID
	})
	if err := followers[1].RemoveMember(ctx, followers[1].cfg.NodeID, true, "", "ann"); !errors.Is(err, ErrQuorum) {
		t.Errorf("removing the last: %v", err)
	}
	waitUntil(t, "who was removed knows", func() bool { return leader.Status().Removed })
}

// TestB095LostDiskComesBackUnderANewID: an empty node in the place of a member is
// not taken for it (it has forgotten its votes), but replaces it by itself.
func TestB095LostDiskComesBackUnderANewID(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	must(t, leader.SavePosition(testContext(t), "orders", Session{Term: leader.term(), ID: "r"}, at(5)))
	lost := followers[0]
	must(t, lost.stop(t))
	c := lost.cfg
	c.Listener, c.DataDir = nil, t.TempDir()
	empty := start(t, c)
	waitVoters(t, leader, "a b c")
	waitUntil(t, "the new id has the vote", func() bool {
		return leader.hasVote(empty.dir.id.raftID()) && !leader.knows(lost.dir.id.raftID())
	})
	waitUntil(t, "it has the state", func() bool { st, _ := empty.Connector("orders"); return st.Position.Seq == 5 })
	if a := audited(leader.Node, "add_member"); len(a) != 1 || !strings.Contains(a[0].Detail,
		"in place of "+string(lost.dir.id.raftID())) {
		t.Errorf("audit: %+v", a)
	}
	// The old disk is found again: it is no member, and says so.
	must(t, empty.stop(t))
	c.DataDir = lost.cfg.DataDir
	old := start(t, c)
	waitUntil(t, "the old node knows that it was replaced", func() bool { return old.Status().Removed })
	if s := leader.Status(); s.Role != Leader {
		t.Errorf("a node that was replaced has ended the leadership: %+v", s)
	}
}

// TestGrowFromOneToThree: the nodes are listed and started, no more is needed.
func TestGrowFromOneToThree(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	lone := DefaultConfig()
	lone.NodeID, lone.DataDir = "a", configs[0].DataDir
	n := start(t, lone)
	n.waitReady(t)
	must(t, n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(7)))
	must(t, n.stop(t))
	nodes := startAll(t, configs)
	waitVoters(t, nodes[0], "a b c")
	must(t, nodes[0].stop(t))
	leader, _ := leaderOf(t, nodes[1:])
	if st, _ := leader.Connector("orders"); st.Position.Seq != 7 {
		t.Errorf("the others lead without the position: %+v", st)
	}
}

// TestB093AllAddressesChange: a full stop, every node elsewhere, and they find
// each other by name.
func TestB093AllAddressesChange(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	nodes := startAll(t, configs)
	leader, _ := leaderOf(t, nodes)
	must(t, leader.SavePosition(testContext(t), "orders", Session{Term: leader.term(), ID: "r"}, at(5)))
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	moved := clusterOf(t, 3, nil)
	for i := range moved {
		moved[i].DataDir = configs[i].DataDir
	}
	nodes = startAll(t, moved)
	leader, others := leaderOf(t, nodes)
	must(t, others[0].SetRunState(testContext(t), "orders", Paused, "", "ann"))
	waitUntil(t, "raft's configuration has the new addresses", func() bool {
		for _, s := range leader.members.servers() {
			if p, _ := peer(leader.cfg.Peers, nodeName(s.ID)); p.Addr != string(s.Address) {
				return false
			}
		}
		return true
	})
	if voterNames(leader.Node) != "a b c" {
		t.Errorf("voters: %s", voterNames(leader.Node))
	}
}

// TestJoinNeedsACertificate: with TLS, who is not listed gets in with the role's
// name or when an operator has added it, and else not at all.
func TestJoinNeedsACertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	configs := quickly(clusterOf(t, 3, ca))
	for i := range configs {
		configs[i].TLS.Role = "outbox.cluster.test"
	}
	nodes := startAll(t, configs)
	leader, _ := leaderOf(t, nodes)
	stranger := joining(t, "d", configs)
	ca.issue(t, "d", []string{"127.0.0.1"}) // nobody else's: the others' names are their CertNames
	stranger.TLS = ca.files("d")
	d := start(t, stranger)
	if err := d.askToJoin(testContext(t)); err == nil {
		t.Error("a node without the role's name was let in")
	}
	guest := joining(t, "e", configs)
	guest.Advertise = strings.Replace(guest.Advertise, "127.0.0.1", "localhost", 1)
	ca.issue(t, "e", []string{"localhost", "outbox.cluster.test"})
	guest.TLS = ca.files("e")
	start(t, guest)
	waitVoters(t, leader, "a b c e")
	must(t, leader.AddMember(testContext(t), "d", stranger.Advertise, "welcome", "ann"))
	waitVoters(t, leader, "a b c d e")
}

// TestWitnessNeverLeads: it votes, and passes on what it is elected to.
func TestWitnessNeverLeads(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	configs[0].Witness = true // the one that bootstraps
	nodes := startAll(t, configs)
	witness := nodes[0]
	var wg sync.WaitGroup
	led := make(chan string, 64)
	for _, n := range nodes {
		wg.Go(func() {
			_ = n.Lead(context.Background(), func(ctx context.Context, _ uint64) error { // ends with the node
				led <- n.cfg.NodeID
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	first := receive(t, "a leader", led)
	leader, _ := leaderOf(t, nodes[1:])
	must(t, leader.transfer(testContext(t), witness.self())) // as an election might
	second := receive(t, "the next leader", led)
	if first == "a" || second == "a" {
		t.Errorf("the witness leads: %s, %s", first, second)
	}
	// With one data node left it still makes the majority, and the leader.
	leader, others := leaderOf(t, nodes[1:])
	must(t, leader.stop(t))
	third := receive(t, "the last leader", led)
	if third != others[0].cfg.NodeID {
		t.Errorf("%s leads, want %s", third, others[0].cfg.NodeID)
	}
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	wg.Wait()
}

// TestWitnessDoesNotWork: should it find nobody to pass the leadership on to, a
// witness still does not call f.
func TestWitnessDoesNotWork(t *testing.T) {
	n := &Node{cfg: Config{Witness: true}, lead: newLeaderTracker(), log: quiet()}
	n.lead.establish(n.lead.gain(), 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := n.Lead(ctx, func(context.Context, uint64) error { t.Error("a witness works"); return nil }); err != nil {
		t.Errorf("Lead: %v", err)
	}
}

// TestNodesThatAllFailDoNotPingPong: neither reaches Kafka, so one of them keeps
// the leadership and tries again, until the other's cool-down is over.
func TestNodesThatAllFailDoNotPingPong(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	for i := range configs {
		configs[i].StepDownCooldown = time.Hour
	}
	nodes := startAll(t, configs)
	ctx, cancel := context.WithCancel(testContext(t))
	var wg sync.WaitGroup
	var healed atomic.Bool
	calls := make(chan string, 1024)
	for _, n := range nodes {
		wg.Go(func() {
			_ = n.Lead(ctx, func(leadership context.Context, _ uint64) error {
				ctx := either(ctx, leadership)
				calls <- n.cfg.NodeID
				if healed.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return fmt.Errorf("kafka is out of reach: %w", ErrStepDown)
			})
		})
	}
	var seen []string
	changes, last := 0, ""
	for len(seen) < 8 { // three nodes fail once each, then one goes on trying
		now := receive(t, "an attempt", calls)
		seen = append(seen, now)
		if now != last && last != "" {
			changes++
		}
		last = now
	}
	if changes != 2 {
		t.Errorf("the leadership changed %d times: %v", changes, seen)
	}
	// One of the others may lead again: it gets it.
	for _, n := range nodes {
		if n.cfg.NodeID != last {
			healed.Store(true)
			n.cooling.begin(0)
			break
		}
	}
	waitUntil(t, "a node works", func() bool {
		leader, _ := leaderOf(t, nodes)
		return leader.Status().Ready
	})
	cancel()
	wg.Wait()
}
