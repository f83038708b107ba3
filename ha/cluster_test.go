package ha

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// authority signs certificates for tests.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", nil)
	return a
}

func (a *authority) issue(t testing.TB, file string, names []string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: file},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: names,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(crand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(ext, kind string, b []byte) {
		data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
		if err := os.WriteFile(filepath.Join(a.dir, file+ext), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".crt", "CERTIFICATE", der)
	write(".key", "PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) files(name string) *TLS {
	return &TLS{
		CertFile: filepath.Join(a.dir, name+".crt"), KeyFile: filepath.Join(a.dir, name+".key"),
		CAFile: filepath.Join(a.dir, "ca.crt"),
	}
}

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
		c.NodeID, c.DataDir, c.listener = id, t.TempDir(), ln
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
	configs := clusterOf(t, 3, newAuthority(t))
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	ctx := testContext(t)

	must(t, leader.SavePosition(ctx, "orders", Run{leader.term(), "r"}, at(5)))
	must(t, leader.VerifyLeader(ctx))
	f := followers[0]
	if err := f.SavePosition(ctx, "orders", Run{leader.term(), "r"}, at(6)); !errors.Is(err, ErrNotLeader) {
		t.Errorf("SavePosition at a follower: %v", err)
	}
	if err := f.VerifyLeader(ctx); !errors.Is(err, ErrNotLeader) {
		t.Errorf("VerifyLeader at a follower: %v", err)
	}
	// Operators may talk to any node.
	must(t, f.SetRunState(ctx, "orders", Stopped, "maintenance", "ann"))
	var rejected *RejectedError
	if err := f.SetPosition(ctx, "orders", at(1), false, "again", "ann"); !errors.As(err, &rejected) || rejected.Reason != ReasonBehind || rejected.Have.Position.Seq != 5 {
		t.Errorf("a refusal by way of a follower: %v", err)
	}
	for _, n := range nodes {
		waitUntil(t, "all nodes have the state", func() bool {
			st, _ := n.Connector("orders")
			return st.Position.Seq == 5 && st.RunState.State == Stopped
		})
	}
	cluster := leader.Status().Cluster
	for _, n := range nodes {
		s := n.Status()
		if s.Cluster != cluster || s.LeaderID != leader.cfg.NodeID || len(s.Voters) != 3 || s.LastContact < 0 || !s.Ready {
			t.Errorf("status of %s: %+v", s.NodeID, s)
		}
	}
	for _, v := range leader.Status().Voters {
		if v.Reachable == nil || !*v.Reachable {
			t.Errorf("voter %s is not reachable", v.ID)
		}
	}

	// A node that is gone is seen to be, comes back under its id, and catches up.
	gone := followers[1]
	must(t, gone.stop(t))
	waitUntil(t, "the leader misses the node", func() bool { return leader.unreachable.has(gone.dir.id.raftID()) })
	must(t, leader.AppendDecision(ctx, "orders", Decision{Kind: "skip", By: "ann"}))
	c := gone.cfg
	c.listener = nil
	back := start(t, c)
	waitUntil(t, "the node has caught up", func() bool {
		st, _ := back.Connector("orders")
		return len(st.Decisions) == 1
	})
	if back.dir.id.raftID() != gone.dir.id.raftID() {
		t.Errorf("identity %v, before %v", back.dir.id, gone.dir.id)
	}
	waitUntil(t, "the leader sees it again", func() bool { return !leader.unreachable.has(gone.dir.id.raftID()) })
}

// TestB089LeadershipMoves stops leaders in turn: a new one leads under a higher
// term, no two f run at once, and every context ends with a cause.
func TestB089LeadershipMoves(t *testing.T) {
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
		must(t, n.SavePosition(testContext(t), "orders", Run{now.term, fmt.Sprint(round)}, at(round+1)))
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
		c.listener = nil
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
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		configs[i].HeartbeatTimeout = 2 * time.Second
	}
	leader, others := leaderOf(t, startAll(t, configs))
	must(t, leader.SavePosition(testContext(t), "orders", Run{leader.term(), "r"}, at(1)))
	begin := time.Now()
	must(t, leader.stop(t))
	leaderOf(t, others)
	if took := time.Since(begin); took >= configs[0].HeartbeatTimeout {
		t.Errorf("the next leader took %s: it was elected, not handed over to", took)
	}
}

// TestStepDownHandsOver: a leader that can't work gives way to one that can.
func TestStepDownHandsOver(t *testing.T) {
	nodes := startAll(t, clusterOf(t, 3, nil))
	leader, _ := leaderOf(t, nodes)
	blind := leader.cfg.NodeID
	ctx, cancel := context.WithCancel(testContext(t))
	found := make(chan string, 1)
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			_ = n.Lead(ctx, func(ctx context.Context, _ uint64) error {
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
	nodes := startAll(t, clusterOf(t, 3, nil))
	leader, followers := leaderOf(t, nodes)
	l := leadUntil(testContext(t), leader.Node)
	receive(t, "f", l.began)
	leader.mux.close() // as if its network card died
	if cause := receive(t, "the end", l.ended); !errors.Is(cause, ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	next, _ := leaderOf(t, followers)
	must(t, next.SetRunState(testContext(t), "orders", Paused, "", "ann"))
	if err := leader.SetRunState(testContext(t), "orders", Running, "", "ann"); !Retryable(err) {
		t.Errorf("a write at the node that was cut off: %v", err)
	}
}

// TestNoBootstrapWithoutAllPeers: a cluster does not begin before its nodes have
// met, and an empty node beside a cluster waits.
func TestNoBootstrapWithoutAllPeers(t *testing.T) {
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
	again.listener, again.DataDir = nil, t.TempDir()
	empty := start(t, again)
	if _, err := empty.meet(testContext(t)); err == nil {
		t.Error("a node that lost its disk would begin a cluster of its own")
	} else {
		t.Log(err)
	}
	if empty.dir.id.raftID() == lost.dir.id.raftID() {
		t.Error("a node that has forgotten its votes has its old id")
	}
	must(t, leader.SetRunState(testContext(t), "orders", Running, "", "ann"))
	if s := empty.Status(); s.LastIndex != 0 {
		t.Errorf("status of the empty node: %+v", s)
	}
}

func TestSnapshotReachesALateNode(t *testing.T) {
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		configs[i].TrailingLogs = 1
	}
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	late := followers[0]
	must(t, late.stop(t))
	for i := range uint64(40) {
		must(t, leader.SavePosition(testContext(t), "orders", Run{leader.term(), "r"}, at(i+1)))
	}
	must(t, leader.raft.Snapshot().Error())
	c := late.cfg
	c.listener = nil
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

// TestStrangersAreRefused: who is signed by the same authority but is not in the
// list of peers must not speak raft (and neither who has no certificate).
func TestStrangersAreRefused(t *testing.T) {
	ca := newAuthority(t)
	configs := clusterOf(t, 3, ca)
	n := start(t, configs[0])
	addr := configs[0].Peers[0].Addr
	ca.issue(t, "stranger", []string{"payroll.test"})
	evil := newAuthority(t)
	evil.issue(t, "b", []string{"b.nodes.test"})
	client := func(cert *TLS) *tls.Config {
		conf := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // the client is the attacker
		if cert != nil {
			pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{pair}
		}
		return conf
	}
	tests := []struct {
		name   string
		conf   *tls.Config
		welcom bool
	}{
		{"a peer", client(configs[1].TLS), true},
		{"signed, not listed", client(ca.files("stranger")), false},
		{"listed name, other authority", client(evil.files("b")), false},
		{"no certificate", client(nil), false},
		{"plain TCP", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			must(t, err)
			defer conn.Close()
			if tt.conf != nil {
				conn = tls.Client(conn, tt.conf)
			}
			must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
			_, err = conn.Write([]byte{kindRequest, 0})
			if err == nil {
				err = writeMessage(conn, &peerRequest{Hello: &hello{Name: "b"}})
			}
			var resp peerResponse
			if err == nil {
				err = readMessage(conn, &resp)
			}
			if welcome := err == nil && resp.Hello != nil; welcome != tt.welcom {
				t.Errorf("answered: %t (%v), want %t", welcome, err, tt.welcom)
			}
		})
	}
	t.Run("another node behind a peer's address", func(t *testing.T) {
		ln, err := tls.Listen("tcp", "127.0.0.1:0", client(ca.files("stranger")))
		must(t, err)
		defer ln.Close()
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, c) // drives the handshake
				_ = c.Close()
			}
		}()
		n.mux.creds.peers = append([]Peer{{ID: "x", Addr: ln.Addr().String(), CertName: "b.nodes.test"}}, n.mux.creds.peers...)
		if _, err := n.mux.dial(testContext(t), ln.Addr().String(), kindRaft); err == nil {
			t.Error("dialed a node whose certificate has another name")
		}
	})
}

// TestOtherClusterIsRefused: raft connections between two clusters end at once.
func TestOtherClusterIsRefused(t *testing.T) {
	configs := clusterOf(t, 3, nil)
	n := start(t, configs[0])
	n.fsm.mu.Lock()
	n.fsm.img.Cluster = "ours"
	n.fsm.mu.Unlock()
	for cluster, want := range map[string]bool{"ours": true, "": true, "theirs": false} {
		conn, err := net.Dial("tcp", configs[0].Peers[0].Addr)
		must(t, err)
		_, err = conn.Write(append([]byte{kindRaft, byte(len(cluster))}, cluster...))
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
		_, err = conn.Read(make([]byte, 1))
		var timeout net.Error
		if open := errors.As(err, &timeout) && timeout.Timeout(); open != want {
			t.Errorf("cluster %q: kept open %t (%v), want %t", cluster, open, err, want)
		}
		must(t, conn.Close())
	}
}

// TestHandshakeSurvivesGarbage throws bytes at the listener.
func TestHandshakeSurvivesGarbage(t *testing.T) {
	configs := clusterOf(t, 3, nil)
	n := start(t, configs[0])
	for _, data := range []string{"", "R", "R\xff", "GET / HTTP/1.1\r\n\r\n", "Q\x00\xff\xff\xff\xff", "Q\x00\x00\x00\x00\x02{}", "Q\x00\x00\x00\x00\x02}}", "R\x00\xff\xff\xff\xff\xff"} {
		conn, err := net.Dial("tcp", configs[0].Peers[0].Addr)
		must(t, err)
		_, err = io.WriteString(conn, data)
		must(t, err)
		must(t, conn.Close())
	}
	var resp peerResponse
	_, err := n.ask(testContext(t), configs[0].Peers[0].Addr, &peerRequest{Hello: &hello{}}, &resp)
	if err != nil || resp.Hello == nil || resp.Hello.Name != "a" {
		t.Errorf("after garbage: %+v %v", resp, err)
	}
	bad := &command{Version: 1, Op: opLead, Node: "x"}
	data, err := bad.encode()
	must(t, err)
	for name, req := range map[string]applyRequest{"leadership": {opLead, data}, "nonsense": {opDecision, []byte("nonsense")}, "newer": {"x", sealed(`{"v":9,"op":"x"}`)}} {
		if err := n.applyForPeer(testContext(t), &req); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s from a peer: %v", name, err)
		}
	}
}

// TestAloneRefusesAClustersDirectory: forgetting to list the peers must not look
// like a hang.
func TestAloneRefusesAClustersDirectory(t *testing.T) {
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

func TestAddressesFollowTheConfiguration(t *testing.T) {
	a := addresses{[]Peer{{ID: "a", Addr: "new:1"}}}
	if got, err := a.ServerAddr("a/some-uuid"); err != nil || got != "new:1" {
		t.Errorf("B093: %q %v", got, err)
	}
	if _, err := a.ServerAddr(raft.ServerID("b/x")); err == nil {
		t.Error("an address for a node that nobody knows")
	}
}

func TestWireErrors(t *testing.T) {
	for _, err := range []error{ErrNotLeader, ErrNoLeader, ErrBusy, ErrInvalid} {
		if got := toWire(fmt.Errorf("x: %w", err)).toError("op"); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	var unknown *UnknownOutcomeError
	for _, err := range []error{errors.New("anything"), &UnknownOutcomeError{"x", errors.New("y")}} {
		if got := toWire(err).toError("op"); !errors.As(got, &unknown) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
