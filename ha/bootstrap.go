package ha

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A static cluster begins when all listed nodes have met and none of them has
// any state: then, and only then, the first by name writes the configuration, and
// the others get it from raft. One writer, since a node's id is new with a new
// disk: two writers could have met two generations of a third node. If any node
// has state, a cluster exists already, and an empty node waits to be added.

func (n *Node) hello() hello {
	id := n.dir.id
	return hello{Name: id.Name, UUID: id.UUID, Cluster: n.fsm.cluster(), HasState: n.raft.LastIndex() > 0, Peers: peerList(n.cfg.Peers)}
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
		met, err := n.meet(ctx)
		switch {
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
		select {
		case <-time.After(pause):
		case <-ctx.Done():
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
	var mu sync.Mutex
	var wg sync.WaitGroup
	met := map[string]hello{own.Name: own}
	var problems []string
	for _, p := range n.cfg.Peers {
		if p.ID == own.Name {
			continue
		}
		wg.Go(func() {
			h, err := n.greet(ctx, p, &own)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, err.Error())
				return
			}
			met[p.ID] = *h
		})
	}
	wg.Wait()
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, errors.New(strings.Join(problems, "; "))
	}
	return met, nil
}

func (n *Node) greet(ctx context.Context, p Peer, own *hello) (*hello, error) {
	var resp peerResponse
	if _, err := n.ask(ctx, p.Addr, &peerRequest{Hello: own}, &resp); err != nil {
		return nil, fmt.Errorf("peer %s: %w", p.ID, err)
	}
	switch h := resp.Hello; {
	case h == nil:
		return nil, fmt.Errorf("peer %s at %s gave no answer that this release understands", p.ID, p.Addr)
	case h.Name != p.ID:
		return nil, fmt.Errorf("peer %s: at %s is node %q", p.ID, p.Addr, h.Name)
	case h.HasState:
		return nil, fmt.Errorf("peer %s belongs to cluster %q already; this node waits to be added to it", p.ID, h.Cluster)
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
