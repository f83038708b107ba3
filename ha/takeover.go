package ha

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// When a process is killed, its system cuts its connections at once and refuses
// new ones, while raft notices after one to three HeartbeatTimeouts only. A
// follower that loses its last connection from the leader therefore asks the
// leader's port, and the other voters to do the same. If a majority finds that nobody
// listens there, the followers begin an election in turn, without raft's usual
// wait. The majority is what keeps a node that alone can't reach the leader from
// deposing it. All this is a hint: without it raft's timeouts do the same later,
// and a wrong one (a leader that lives but is cut off by a firewall that refuses)
// costs an election, with two that lead until the old one's lease is over.
const (
	// turn is what the second follower leaves the first to be elected: two slow
	// disk writes.
	turn = 150 * time.Millisecond
	// hintTimeout bounds probing and asking.
	hintTimeout = 500 * time.Millisecond
	// lateAnswer is how long to wait for more answers than are needed.
	lateAnswer = 20 * time.Millisecond
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
	place, missing := n.majorityMisses(ctx, gone)
	if !missing {
		return nil
	}
	if !sleep(ctx, time.Duration(place)*turn) || !n.follows(gone) { // or another election has begun
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

// bid is what a voter says about a leader that seems gone, and itself.
type bid struct {
	Gone      bool          `json:"gone"`
	RaftID    raft.ServerID `json:"raft_id"`
	LastIndex uint64        `json:"last_index"`
	Willing   bool          `json:"willing"`
}

func (n *Node) bid(ctx context.Context, gone raft.ServerID) bid {
	return bid{n.knows(gone) && n.refused(ctx, gone), n.dir.id.raftID(), n.raft.LastIndex(), n.willing()}
}

// before orders bids: who may not want the leadership comes last, and else who
// has most of the log first, since only that one can be elected for sure.
func (b bid) before(o bid) bool {
	switch {
	case b.Willing != o.Willing:
		return b.Willing
	case b.LastIndex != o.LastIndex:
		return b.LastIndex > o.LastIndex
	default:
		return b.RaftID < o.RaftID
	}
}

// majorityMisses reports whether a majority of voters, this node included, finds
// nobody at the leader's port, and how many of them should try before this node.
func (n *Node) majorityMisses(ctx context.Context, gone raft.ServerID) (place int, missing bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	own := n.bid(ctx, gone)
	if !own.Gone {
		return 0, false
	}
	voters := n.voters()
	others := len(voters) / 2 // that make a majority with this node
	bids := poll(ctx, voters, others, func(ctx context.Context, v raft.Server) (b bid, ok bool) {
		if v.ID == gone || v.ID == own.RaftID {
			return b, false
		}
		addr, _ := n.members.address(v.ID)
		_, err := n.post(ctx, addr, pathGone, gone, &b)
		return b, err == nil && b.Gone
	})
	for _, b := range bids {
		if b.before(own) {
			place++
		}
	}
	return place, len(bids) >= others
}

// poll asks nodes at a time, and returns what those say that answer. As soon as enough
// have, the others have lateAnswer left.
func poll[N, A any](ctx context.Context, nodes []N, enough int, ask func(context.Context, N) (A, bool)) (answers []A) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, node := range nodes {
		wg.Go(func() {
			a, ok := ask(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				return
			}
			if answers = append(answers, a); len(answers) == enough {
				time.AfterFunc(lateAnswer, cancel)
			}
		})
	}
	wg.Wait()
	return answers
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
		if !sleep(ctx, pause) {
			return false
		}
	}
	return false
}
