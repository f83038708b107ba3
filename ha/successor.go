package ha

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// coolDown is the time in which a node that gave its leadership away does not
// want it back.
type coolDown struct {
	mu    sync.Mutex
	until time.Time
}

func (c *coolDown) begin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
}

func (c *coolDown) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.until))
}

// willing reports whether this node would lead if it could choose.
func (n *Node) willing() bool {
	return !n.cfg.Witness && n.cooling.left() == 0 && n.usable() == nil
}

// successor asks the voters in reach who wants the leadership, and returns the
// one that has most of the log. With cooling, also one that gave its leadership
// away a short time ago will do; a witness never does.
func (n *Node) successor(ctx context.Context, cooling bool) (best raft.Server, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	type answer struct {
		raft.Server
		hello
	}
	// One that hangs must not hold up the others.
	answers := poll(ctx, n.voters(), 1, func(ctx context.Context, v raft.Server) (a answer, ok bool) {
		if v.ID == n.dir.id.raftID() || n.mux == nil || !n.reachable(v.ID) {
			return a, false
		}
		addr, _ := n.members.address(v.ID)
		h, err := n.hail(ctx, addr)
		if err != nil || h.raftID() != v.ID || h.Witness || h.Failed || h.Cooling && !cooling {
			return a, false
		}
		return answer{v, *h}, true
	})
	if len(answers) == 0 {
		return best, false
	}
	return slices.MaxFunc(answers, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.LastIndex, b.LastIndex), cmp.Compare(b.Name, a.Name))
	}).Server, true
}

// handOver gives the leadership to whoever is best for it: one who wants it,
// else one that will not lead for long, which still is faster than an election.
func (n *Node) handOver(ctx context.Context) error {
	if len(n.voters()) < 2 {
		return ErrNoOtherVoter
	}
	for _, cooling := range []bool{false, true} {
		if s, ok := n.successor(ctx, cooling); ok {
			return n.transfer(ctx, s)
		}
	}
	return n.transfer(ctx, raft.Server{})
}

// transfer hands the leadership to one voter, or to the one that raft thinks
// best. It returns nil when this node does not lead any more, and waits no longer than
// raft takes for three elections, and a slow disk for one write.
func (n *Node) transfer(ctx context.Context, to raft.Server) (err error) {
	call := n.raft.LeadershipTransfer
	if to.ID != "" {
		call = func() raft.Future { return n.raft.LeadershipTransferToServer(to.ID, to.Address) }
	}
	// The follower may just be catching up: Consul tries three times, too.
	ctx, cancel := context.WithTimeoutCause(ctx, 3*n.cfg.ElectionTimeout+n.cfg.ApplyTimeout,
		errors.New("raft gives no answer"))
	defer cancel()
	for range 3 {
		if !n.beginTransfer() {
			return fmt.Errorf("transferring leadership: %w", ErrShuttingDown)
		}
		answer, ended := within(ctx, func() error {
			defer n.transfers.Done()
			return call().Error() // within raft's election timeout
		})
		if err = cmp.Or(ended, answer); err == nil || n.raft.State() != raft.Leader {
			return nil
		}
		if ended != nil {
			break
		}
	}
	return fmt.Errorf("transferring leadership: %w", err)
}

// beginTransfer reports whether raft may still be asked: it never answers a transfer
// that it is asked for just as it shuts down.
func (n *Node) beginTransfer() bool {
	n.writeMu.Lock()
	defer n.writeMu.Unlock()
	if !n.transfersClosed {
		n.transfers.Add(1)
	}
	return !n.transfersClosed
}

// offer tries to pass on a leadership that this node was elected to and does not
// want. It reports whether it is rid of it, when ctx ends with it.
func (n *Node) offer(ctx context.Context) bool {
	if n.willing() {
		return false
	}
	s, ok := n.successor(ctx, n.cfg.Witness)
	if !ok {
		return false
	}
	n.log.Info("passing on leadership", "to", nodeName(s.ID), "witness", n.cfg.Witness, "cool_down", n.cooling.left())
	if err := n.transfer(ctx, s); err != nil {
		n.log.Warn("leadership could not be passed on", "to", nodeName(s.ID), "error", err)
		return false
	}
	<-ctx.Done()
	return true
}

// stepDown gives the leadership to a node that may do better, and returns when
// it is gone or when it is time to try again here.
func (n *Node) stepDown(ctx context.Context, l *leadership, why error, pause time.Duration) {
	n.cooling.begin(n.cfg.StepDownCooldown)
	switch s, ok := n.successor(ctx, false); {
	case ok:
		n.log.Warn("handing over leadership", "term", l.term, "to", nodeName(s.ID), "reason", why)
		if err := n.transfer(ctx, s); err != nil {
			n.log.Warn("leadership could not be handed over", "term", l.term, "error", err)
		}
	default:
		n.log.Warn("no other node can take the leadership; trying again here", "term", l.term, "pause", pause, "reason", why)
	}
	ctx, cancel := both(ctx, l)
	defer cancel()
	sleep(ctx, pause)
}

// lookAfter does what only a leader does, until ctx ends with the leadership:
// a witness looks for somebody else, new nodes get their vote, and addresses that
// have changed are written down.
func (n *Node) lookAfter(ctx context.Context) {
	if n.mux == nil {
		return
	}
	tick := time.NewTicker(min(time.Second, n.cfg.PromoteAfter))
	defer tick.Stop()
	healthy := map[raft.ServerID]time.Time{}
	for {
		if n.cfg.Witness && n.offer(ctx) {
			return
		}
		n.promoteReady(ctx, healthy)
		if err := n.updateAddresses(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotLeader) {
			n.log.Debug("the new address of a node could not be written down", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
