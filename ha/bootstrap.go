package ha

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// A static cluster begins when all listed nodes have met and none of them has
// any state: then, and only then, the first by name writes the configuration, and
// the others get it from raft. One writer, since a node's id is new with a new
// disk: two writers could have met two generations of a third node. If any node
// has state, a cluster exists already, and an empty node asks its leader to be
// added: under its new id, without a vote at first, and in place of the one with
// its name that has lost its disk.

func (n *Node) hello() hello {
	id := n.dir.id
	last := n.raft.LastIndex()
	return hello{
		Name: id.Name, UUID: id.UUID, Cluster: n.fsm.cluster(), HasState: last > 0, Peers: peerList(n.cfg.Peers),
		Commands: commandVersion, LastIndex: last,
		Witness: n.cfg.Witness, Cooling: n.cooling.left() > 0, Failed: n.usable() != nil,
	}
}

func peerList(peers []Peer) []string {
	out := make([]string, len(peers))
	for i, p := range peers {
		out[i] = p.ID + "=" + p.Addr
	}
	slices.Sort(out)
	return out
}

// bootstrap runs until the node has state of its own or ctx ends.
func (n *Node) bootstrap(ctx context.Context) {
	const shortest, longest = 50 * time.Millisecond, 2 * time.Second
	said := ""
	for pause := shortest; n.raft.LastIndex() == 0; pause = min(2*pause, longest) {
		var met map[string]hello
		err := errExists
		if _, listed := peer(n.cfg.Peers, n.cfg.NodeID); listed {
			met, err = n.meet(ctx)
		}
		switch {
		case errors.Is(err, errExists):
			if err = n.askToJoin(ctx); err == nil {
				err = errors.New("the leader has added this node and is about to send its state")
			}
		case err == nil && n.bootstrapper():
			err = n.raft.BootstrapCluster(n.configuration(met)).Error()
			if err == nil {
				n.log.Info("cluster bootstrapped", "peers", peerList(n.cfg.Peers))
				return
			}
		case err == nil:
			err = errors.New("all peers have met; the first of them is about to begin")
		}
		if ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			n.log.Info("waiting for the cluster", "reason", said)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (n *Node) bootstrapper() bool {
	for _, p := range n.cfg.Peers {
		if p.ID < n.cfg.NodeID {
			return false
		}
	}
	return true
}

// meet asks all peers who they are. The error says what keeps a cluster from
// being begun.
func (n *Node) meet(ctx context.Context) (map[string]hello, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.networkTimeout())
	defer cancel()
	own := n.hello()
	others := slices.DeleteFunc(slices.Clone(n.cfg.Peers), func(p Peer) bool { return p.ID == own.Name })
	type answer struct {
		*hello
		error
	}
	met := map[string]hello{own.Name: own}
	var problems []error
	for _, a := range poll(ctx, others, len(others), func(ctx context.Context, p Peer) (answer, bool) {
		h, err := n.greet(ctx, p, &own)
		return answer{h, err}, true
	}) {
		if a.error == nil {
			met[a.Name] = *a.hello
		} else {
			problems = append(problems, a.error)
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(problems) > 0 {
		return nil, sentence(problems)
	}
	return met, nil
}

// sentence is errors.Join on one line.
type sentence []error

func (s sentence) Unwrap() []error { return s }

func (s sentence) Error() string {
	text := make([]string, len(s))
	for i, err := range s {
		text[i] = err.Error()
	}
	return strings.Join(text, "; ")
}

// errExists: a peer has state, so there is a cluster already.
var errExists = errors.New("the cluster exists already")

// hail asks the node at addr who it is.
func (n *Node) hail(ctx context.Context, addr string) (*hello, error) {
	var h hello
	_, err := n.post(ctx, addr, pathHello, n.hello(), &h)
	return &h, err
}

func (n *Node) greet(ctx context.Context, p Peer, own *hello) (*hello, error) {
	h, err := n.hail(ctx, p.Addr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("peer %s: %w", p.ID, err)
	case h.Name != p.ID:
		return nil, fmt.Errorf("peer %s: at %s is node %q", p.ID, p.Addr, h.Name)
	case h.HasState:
		return nil, fmt.Errorf("%w: peer %s belongs to cluster %q", errExists, p.ID, h.Cluster)
	case !slices.Equal(h.Peers, own.Peers):
		return nil, fmt.Errorf("peer %s has other peers configured: %v, here %v", p.ID, h.Peers, own.Peers)
	default:
		return h, nil
	}
}

func (n *Node) configuration(met map[string]hello) raft.Configuration {
	var c raft.Configuration
	for _, p := range n.cfg.Peers {
		id := identity{Name: p.ID, UUID: met[p.ID].UUID}
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: id.raftID(), Address: raft.ServerAddress(p.Addr)})
	}
	slices.SortFunc(c.Servers, func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return c
}

// askToJoin asks all peers to let this node in; one of them may be the leader.
func (n *Node) askToJoin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.EnqueueTimeout+n.cfg.ApplyTimeout)
	defer cancel()
	var problems []error
	for _, p := range n.cfg.Peers {
		if p.ID == n.cfg.NodeID {
			continue
		}
		_, err := n.post(ctx, p.Addr, pathJoin, &memberRequest{ID: n.cfg.NodeID, Addr: n.cfg.Advertise}, new(struct{}))
		if err == nil {
			return nil
		}
		problems = append(problems, fmt.Errorf("peer %s: %w", p.ID, err))
	}
	return sentence(problems)
}

// admit lets a node in that asks for it. Whether it may ask at all was decided
// by its certificate.
func (n *Node) admit(ctx context.Context, j *memberRequest) error {
	r := &memberRequest{Op: opAddMember, ID: j.ID, Addr: j.Addr, Reason: "asked to join with an empty data directory",
		By: byCluster}
	if p, ok := peer(n.cfg.Peers, j.ID); ok {
		r.Addr = p.Addr
	}
	if !validName(r.ID) || !validAddr(r.Addr) {
		return fmt.Errorf("%w: %q at %q can't join", ErrInvalid, r.ID, r.Addr)
	}
	return n.changeHere(ctx, r)
}

// knows reports whether a node is a member as far as this node knows.
func (n *Node) knows(id raft.ServerID) bool {
	return slices.ContainsFunc(n.members.servers(), func(s raft.Server) bool { return s.ID == id })
}

// noticeRemoval asks around when this node has state but hears of no leader: it
// may be that it is no member any more, and nobody else would tell it.
func (n *Node) noticeRemoval(ctx context.Context) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if _, leader := n.raft.LeaderWithID(); leader != "" || n.raft.LastIndex() == 0 {
			n.removed.Store(false)
			continue
		}
		removed := n.othersMissNot(ctx)
		if removed && !n.removed.Swap(true) {
			n.log.Error("the others say that this node is no member of the cluster; stop it, or have it added", "raft_id",
				string(n.dir.id.raftID()))
		}
	}
}

// othersMissNot reports whether a node with a leader says that this one is no member.
func (n *Node) othersMissNot(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.networkTimeout())
	defer cancel()
	for _, s := range n.members.servers() {
		addr, ok := n.members.address(s.ID)
		if !ok || s.ID == n.dir.id.raftID() {
			continue
		}
		if h, err := n.hail(ctx, addr); err == nil && h.Member != nil && !*h.Member {
			return true
		}
	}
	return false
}
