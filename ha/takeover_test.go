package ha

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// TestHintNeedsAMajority: a follower whose connection was cut does not depose a
// leader that is there, nor one that only it can't reach.
func TestHintNeedsAMajority(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	id := leader.dir.id.raftID()
	ctx := testContext(t)
	if _, missing := followers[0].majorityMisses(ctx, id); missing {
		t.Error("the leader is missed while it listens")
	}
	must(t, followers[0].succeed(ctx, id))

	must(t, followers[0].stop(t))
	c := followers[0].cfg
	c.Listener, c.Peers = nil, slices.Clone(c.Peers)
	for i, p := range c.Peers {
		if p.ID == leader.cfg.NodeID {
			c.Peers[i].Addr = freePorts(t, 1)[0] // as if a firewall refused it
		}
	}
	blind := start(t, c)
	blind.waitReady(t)
	if !blind.refused(ctx, id) {
		t.Fatal("the blind follower reaches the leader: the test proves nothing")
	}
	if _, missing := blind.majorityMisses(ctx, id); missing {
		t.Error("one of two followers is no majority")
	}
	term := leader.term()
	must(t, blind.succeed(ctx, id))
	must(t, leader.SetRunState(ctx, "orders", Paused, "", "ann"))
	if s := leader.Status(); s.Term != term || s.Role != Leader {
		t.Errorf("the leader was deposed: %+v", s)
	}
}

func TestOrderOfBids(t *testing.T) {
	bids := []bid{
		{RaftID: "w", LastIndex: 9},
		{RaftID: "c", LastIndex: 7, Willing: true},
		{RaftID: "b", LastIndex: 8, Willing: true},
		{RaftID: "a", LastIndex: 7, Willing: true},
	}
	slices.SortFunc(bids, func(a, b bid) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return cmp.Compare(a.RaftID, b.RaftID)
	})
	var got []string
	for _, b := range bids {
		got = append(got, string(b.RaftID))
	}
	if s := strings.Join(got, ""); s != "bacw" {
		t.Errorf("order %s, want bacw", s)
	}
}

// pretend answers every request at a loopback address with a hello.
func pretend(t testing.TB, h hello) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = ln.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if _, err := readPreamble(conn); err == nil {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n")
				_ = json.NewEncoder(conn).Encode(&h) // the asker may be gone
			}
			_ = conn.Close()
		}
	}()
	return ln.Addr().String()
}

// TestB097WhoIsLetIn: nodes that could not work in the cluster are refused before
// they are added, and those of a newer release are not.
func TestB097WhoIsLetIn(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	leader, _ := leaderOf(t, startAll(t, configs))
	ours := leader.Status().Cluster
	tests := []struct {
		name  string
		hello hello
		want  string // of the error; empty for none
	}{
		{"older release", hello{Name: "x", UUID: "1"}, "upgrade it first"},
		{"another cluster's state", hello{Name: "x", UUID: "1", Commands: commandVersion, HasState: true, Cluster: "theirs"},
			"empty its data directory"},
		{"a member's name", hello{Name: leader.cfg.NodeID, UUID: "1", Commands: commandVersion},
			"two nodes can't have one name"},
		{"newer release", hello{Name: "x", UUID: "1", Commands: 99}, ""},
		{"same again", hello{Name: "x", UUID: "1", Commands: commandVersion, HasState: true, Cluster: ours}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := leader.AddMember(testContext(t), tt.hello.Name, pretend(t, tt.hello), "", "ann")
			if tt.want == "" {
				must(t, err)
				if !leader.knows(tt.hello.raftID()) {
					t.Error("it was not added")
				}
				return
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		addr string
		id   raft.ServerID
		host string
	}{
		{"a/u@host:1", "a/u", "host:1"}, {"host:1", "", "host:1"}, {"a/u@[::1]:1", "a/u", "[::1]:1"},
	} {
		if id, host := target(tt.addr); id != tt.id || host != tt.host {
			t.Errorf("%s: %q %q", tt.addr, id, host)
		}
	}
}
