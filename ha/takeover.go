package ha

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// When a process is killed, its system cuts its connections at once and refuses
// new ones, while raft notices after one to three HeartbeatTimeouts only. A
// follower that loses its connection from the leader therefore asks the leader's
// port, and the other voters to do the same. If a majority finds that nobody
// listens there, the followers begin an election in turn, without raft's usual
// wait. The majority is what keeps a node that alone can't reach the leader from
// deposing it. All this is a hint: without it raft's timeouts do the same later,
// and a wrong one costs an election.
const (
	// turn is what the second follower leaves the first to be elected.
	turn = 60 * time.Millisecond
	// hintTimeout bounds probing and asking.
	hintTimeout = 500 * time.Millisecond
)

// missKilledLeaders acts on cut connections until ctx ends.
func (n *Node) missKilledLeaders(ctx context.Context) {
	for {
		select {
		case id := <-n.mux.lost:
			if err := n.succeed(ctx, id); err != nil && ctx.Err() == nil {
				n.log.Warn("leader seems gone, but no election could be begun early", "leader", nodeName(id), "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// succeed begins an election if gone is the leader, really gone, and it is this
// node's turn.
func (n *Node) succeed(ctx context.Context, gone raft.ServerID) error {
	begin := time.Now()
	if !n.follows(gone) || !n.hasVote(n.dir.id.raftID()) {
		return nil
	}
	if !n.majorityMisses(ctx, gone) {
		return nil
	}
	select {
	case <-time.After(time.Duration(n.place(gone)) * turn):
	case <-ctx.Done():
		return nil
	}
	// Another may have been elected, or have this node's vote, meanwhile.
	if _, leader := n.raft.LeaderWithID(); leader != gone && (leader != "" || n.raft.LastContact().After(begin)) || n.raft.State() != raft.Follower {
		return nil
	}
	n.log.Info("leader is gone, beginning an election", "leader", nodeName(gone), "noticed", time.Since(begin))
	req := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	return n.trans.TimeoutNow(n.dir.id.raftID(), raft.ServerAddress(n.cfg.Advertise), &req, new(raft.TimeoutNowResponse))
}

func (n *Node) follows(id raft.ServerID) bool {
	_, leader := n.raft.LeaderWithID()
	return leader == id && n.raft.State() == raft.Follower
}

func (n *Node) hasVote(id raft.ServerID) bool {
	return slices.ContainsFunc(n.voters(), func(s raft.Server) bool { return s.ID == id })
}

// majorityMisses reports whether a majority of voters, this node included, finds
// nobody at the leader's port.
func (n *Node) majorityMisses(ctx context.Context, gone raft.ServerID) bool {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	if !n.refused(ctx, gone) {
		return false
	}
	voters := n.voters()
	need := int32(len(voters)/2 + 1)
	var missing atomic.Int32
	missing.Add(1)
	var wg sync.WaitGroup
	for _, v := range voters {
		if v.ID == gone || v.ID == n.dir.id.raftID() {
			continue
		}
		wg.Go(func() {
			var resp peerResponse
			addr, _ := n.members.address(v.ID)
			if _, err := n.ask(ctx, addr, &peerRequest{Gone: &goneRequest{gone}}, &resp); err == nil && resp.Gone {
				if missing.Add(1) >= need {
					cancel() // the others need not be waited for
				}
			}
		})
	}
	wg.Wait()
	return missing.Load() >= need
}

// refused reports whether nobody listens at a node's port. It tries three times:
// a dying process may lose its connections before its listener.
func (n *Node) refused(ctx context.Context, id raft.ServerID) bool {
	addr, ok := n.members.address(id)
	for _, pause := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 0} {
		if !ok {
			return false
		}
		err := n.mux.probe(ctx, addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// place is how many voters come before this node when the leader is gone. Those
// that do not want the leadership come last.
func (n *Node) place(gone raft.ServerID) int {
	voters := slices.DeleteFunc(n.voters(), func(s raft.Server) bool { return s.ID == gone })
	slices.SortFunc(voters, func(a, b raft.Server) int { return strings.Compare(string(a.ID), string(b.ID)) })
	at := slices.IndexFunc(voters, func(s raft.Server) bool { return s.ID == n.dir.id.raftID() })
	if !n.willing() {
		at += len(voters)
	}
	return at
}
