package ha

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Member is one node of the cluster.
type Member struct {
	// ID is the node's name.
	ID      string `json:"id"`
	Address string `json:"address"`
	// Voter is false for a node that was added and has no vote yet.
	Voter  bool `json:"voter"`
	Leader bool `json:"leader"`
	// Reachable is what the leader knows; nil on other nodes.
	Reachable *bool `json:"reachable,omitempty"`
}

// Members returns the nodes of the cluster as this node knows them; never nil.
func (n *Node) Members() []Member {
	_, leader := n.raft.LeaderWithID()
	out := []Member{}
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		addr, _ := n.members.address(s.ID)
		m := Member{ID: nodeName(s.ID), Address: addr, Voter: s.Suffrage == raft.Voter, Leader: s.ID == leader}
		if n.raft.State() == raft.Leader {
			ok := n.reachable(s.ID)
			m.Reachable = &ok
		}
		out = append(out, m)
	}
	return out
}

func (n *Node) self() raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: n.dir.id.raftID(), Address: raft.ServerAddress(n.cfg.Advertise)}
}

func (n *Node) reachable(id raft.ServerID) bool {
	_, lost := n.unreachable.Load(id)
	return !lost || id == n.dir.id.raftID()
}

// The changes of members below may be asked for at any node; the leader makes
// them. Each goes into the audit list before it is tried, with its reason and who
// asked for it. Asking twice is asking once. Errors are as for all writes, and
// ErrNotMember, ErrQuorum and ErrNoOtherVoter mean that nothing was changed.

// AddMember adds the node with the name id at addr (host:port), without a vote
// at first: it gets that when it has caught up and was in contact for
// Config.PromoteAfter. The node must be running with the cluster's nodes as its
// Peers, and without state of another cluster. An entry of the same name or
// address whose disk is gone is replaced; one that is in contact is not.
func (n *Node) AddMember(ctx context.Context, id, addr, reason, by string) error {
	return n.changeMembers(ctx, &memberRequest{Op: opAddMember, ID: id, Addr: addr, Reason: reason, By: by})
}

// RemoveMember removes a node. It is refused with ErrQuorum when fewer than a
// majority of the voters that would be left are in contact, unless it is forced.
// The leader hands over first when it is the one. A node that runs on is told,
// and should be stopped; for good, take it out of the others' Peers too.
func (n *Node) RemoveMember(ctx context.Context, id string, force bool, reason, by string) error {
	return n.changeMembers(ctx, &memberRequest{Op: opRemoveMember, ID: id, Force: force, Reason: reason, By: by})
}

// Promote gives a node its vote without waiting until it has proved itself. It
// must have caught up.
func (n *Node) Promote(ctx context.Context, id, reason, by string) error {
	return n.changeMembers(ctx, &memberRequest{Op: opPromoteMember, ID: id, Reason: reason, By: by})
}

// TransferLeadership hands the leadership to the voter with the name to, or to
// the best one when to is empty, and returns when this leader has given it up.
// ErrNoOtherVoter means that there is nobody to take it.
func (n *Node) TransferLeadership(ctx context.Context, to, reason, by string) error {
	return n.changeMembers(ctx, &memberRequest{Op: opTransfer, ID: to, Reason: reason, By: by})
}

// Snapshot writes the state that this node has to w, in the format of its own
// snapshots: Restore begins a new data directory from it. On a follower it may be
// old.
func (n *Node) Snapshot(ctx context.Context, w io.Writer, reason, by string) error {
	if by == "" {
		return fmt.Errorf("%w: a snapshot needs who asks for it", ErrInvalid)
	}
	if err := n.note(ctx, "snapshot", n.cfg.NodeID, reason, by); err != nil {
		return err
	}
	snap, err := n.fsm.Snapshot()
	if err != nil {
		return fmt.Errorf("taking snapshot: %w", err)
	}
	return writeImage(w, snap.(fsmSnapshot).img)
}

// note adds to the audit list what no other command tells.
func (n *Node) note(ctx context.Context, action, detail, reason, by string) error {
	data, err := n.encode(&command{Op: opNote, Action: action, Detail: detail, Reason: reason, By: by})
	if err != nil {
		return err
	}
	return n.propose(ctx, opNote, data)
}

const (
	opAddMember     op = "add_member"
	opRemoveMember  op = "remove_member"
	opPromoteMember op = "promote_member"
	opTransfer      op = "transfer_leadership"
)

// changeMembers brings a change to the leader.
func (n *Node) changeMembers(ctx context.Context, r *memberRequest) error {
	if r.By == "" || r.ID == "" && r.Op != opTransfer || r.Op == opAddMember && (!validName(r.ID) || !validAddr(r.Addr)) {
		return fmt.Errorf("%w: %s needs a node (and its host:port to add it) and who asks for it", ErrInvalid, r.Op)
	}
	return n.atLeader(ctx, r.Op, func(ctx context.Context) error { return n.changeHere(ctx, r) }, pathMembers, r)
}

// changeHere makes a change as the leader.
func (n *Node) changeHere(ctx context.Context, r *memberRequest) error {
	if n.raft.State() != raft.Leader || !n.lead.established() {
		return ErrNotLeader
	}
	if n.mux == nil {
		if r.Op == opTransfer {
			return ErrNoOtherVoter
		}
		return fmt.Errorf("%w: this node is alone; give it and its peers a cluster configuration", ErrInvalid)
	}
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Op, err)
	}
	defer unlock()
	switch r.Op {
	case opAddMember:
		return n.addMember(ctx, r)
	case opRemoveMember:
		return n.removeMember(ctx, r)
	case opPromoteMember:
		return n.promoteMember(ctx, r)
	case opTransfer:
		return n.transferTo(ctx, r)
	default:
		return fmt.Errorf("%w: unknown request %q", ErrInvalid, r.Op)
	}
}

// lockMembers lets one change of members at a time look at them and act on it.
func (n *Node) lockMembers(ctx context.Context) (unlock func(), err error) {
	select {
	case n.changing <- struct{}{}:
		return func() { <-n.changing }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrBusy, context.Cause(ctx))
	}
}

func (n *Node) member(name string) (raft.Server, bool) {
	for _, s := range n.members.servers() {
		if nodeName(s.ID) == name {
			return s, true
		}
	}
	return raft.Server{}, false
}

// addMember admits a node that answers at an address.
func (n *Node) addMember(ctx context.Context, r *memberRequest) error {
	h, err := n.hail(ctx, r.Addr)
	ours := n.fsm.cluster()
	switch {
	case err != nil:
		return fmt.Errorf("%w: the node does not answer: %w", ErrInvalid, err)
	case h.Name != r.ID:
		return fmt.Errorf("%w: at %s is node %q, not %q", ErrInvalid, r.Addr, h.Name, r.ID)
	case h.HasState && h.Cluster != ours:
		return fmt.Errorf("%w: node %q has state of cluster %q, this is cluster %q; empty its data directory", ErrInvalid,
			h.Name, h.Cluster, ours)
	case h.Commands < commandVersion:
		return fmt.Errorf("%w: node %q understands commands up to version %d, this cluster writes version %d; "+
			"upgrade it first", ErrInvalid, h.Name, h.Commands, commandVersion)
	}
	id := h.raftID()
	var stale []raft.Server
	for _, s := range n.members.servers() {
		addr, _ := n.members.address(s.ID)
		switch {
		case s.ID == id && addr == r.Addr:
			return nil // it is here already
		case s.ID == id:
		case nodeName(s.ID) == h.Name || addr == r.Addr:
			stale = append(stale, s)
		}
	}
	for _, s := range stale {
		if n.reachable(s.ID) {
			return fmt.Errorf("%w: node %s is in contact; two nodes can't have one name or address", ErrInvalid, s.ID)
		}
	}
	if err := n.note(ctx, string(r.Op), fmt.Sprintf("%s at %s%s", id, r.Addr, replacing(stale)), r.Reason,
		r.By); err != nil {
		return err
	}
	for _, s := range stale {
		if err := n.reconfigure(ctx, r.Op, func() raft.IndexFuture {
			return n.raft.RemoveServer(s.ID, 0,
				n.cfg.EnqueueTimeout)
		}); err != nil {
			return err
		}
	}
	n.log.Info("adding node", "peer", string(id), "address", r.Addr, "by", r.By, "replaces", len(stale))
	return n.reconfigure(ctx, r.Op, func() raft.IndexFuture {
		return n.raft.AddNonvoter(id, raft.ServerAddress(r.Addr), 0, n.cfg.EnqueueTimeout)
	})
}

func replacing(stale []raft.Server) string {
	var ids []string
	for _, s := range stale {
		ids = append(ids, string(s.ID))
	}
	if len(ids) == 0 {
		return ""
	}
	return " in place of " + strings.Join(ids, ", ")
}

func (n *Node) removeMember(ctx context.Context, r *memberRequest) error {
	s, ok := n.member(r.ID)
	if !ok {
		return fmt.Errorf("%w: %q", ErrNotMember, r.ID)
	}
	if s.ID == n.dir.id.raftID() {
		if len(n.voters()) == 1 {
			return fmt.Errorf("%w: %q is the only voter", ErrQuorum, r.ID)
		}
		if err := n.handOver(ctx); err != nil {
			return err
		}
		return ErrNotLeader // the next leader removes it
	}
	if left, healthy := n.without(s.ID); s.Suffrage == raft.Voter && healthy < left/2+1 && !r.Force {
		return fmt.Errorf("%w: without %q %d voters are left, and %d of them in contact", ErrQuorum, r.ID, left, healthy)
	}
	if err := n.note(ctx, string(r.Op), fmt.Sprintf("%s, forced=%t", s.ID, r.Force), r.Reason, r.By); err != nil {
		return err
	}
	n.log.Info("removing node", "peer", string(s.ID), "by", r.By)
	return n.reconfigure(ctx, r.Op, func() raft.IndexFuture {
		return n.raft.RemoveServer(s.ID, 0, n.cfg.EnqueueTimeout)
	})
}

// without counts the voters that are left without one, and those in contact.
func (n *Node) without(id raft.ServerID) (left, healthy int) {
	for _, v := range n.voters() {
		if v.ID == id {
			continue
		}
		left++
		if n.reachable(v.ID) {
			healthy++
		}
	}
	return left, healthy
}

func (n *Node) promoteMember(ctx context.Context, r *memberRequest) error {
	s, ok := n.member(r.ID)
	switch {
	case !ok:
		return fmt.Errorf("%w: %q", ErrNotMember, r.ID)
	case s.Suffrage == raft.Voter:
		return nil
	}
	if err := n.caughtUp(ctx, s); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return n.promote(ctx, s, r.Reason, r.By)
}

func (n *Node) promote(ctx context.Context, s raft.Server, reason, by string) error {
	if err := n.note(ctx, string(opPromoteMember), string(s.ID), reason, by); err != nil {
		return err
	}
	n.log.Info("giving node its vote", "peer", string(s.ID), "by", by)
	return n.reconfigure(ctx, opPromoteMember, func() raft.IndexFuture {
		return n.raft.AddVoter(s.ID, s.Address, 0, n.cfg.EnqueueTimeout)
	})
}

// caughtUp reports what keeps a node from being given a vote.
func (n *Node) caughtUp(ctx context.Context, s raft.Server) error {
	const behind = 64 // entries; there may be writes under way
	addr, _ := n.members.address(s.ID)
	ctx, cancel := context.WithTimeout(ctx, n.cfg.networkTimeout())
	defer cancel()
	h, err := n.hail(ctx, addr)
	switch {
	case err != nil:
		return err
	case h.raftID() != s.ID:
		return fmt.Errorf("at %s is node %s, not %s", addr, h.raftID(), s.ID)
	case !n.reachable(s.ID):
		return fmt.Errorf("node %s is out of reach", s.ID)
	case h.Failed:
		return fmt.Errorf("node %s has failed", s.ID)
	case h.LastIndex+behind < n.raft.CommitIndex():
		return fmt.Errorf("node %s has %d of %d log entries", s.ID, h.LastIndex, n.raft.CommitIndex())
	}
	return nil
}

// promoteReady gives their vote to nodes that have been well for long enough.
// since is when each of them was first seen to be.
func (n *Node) promoteReady(ctx context.Context, since map[raft.ServerID]time.Time) {
	for _, s := range n.members.servers() {
		if s.Suffrage == raft.Voter {
			continue
		}
		if err := n.caughtUp(ctx, s); err != nil {
			n.log.Debug("node has no vote yet", "peer", string(s.ID), "reason", err)
			delete(since, s.ID)
			continue
		}
		if since[s.ID].IsZero() {
			since[s.ID] = time.Now()
		}
		if time.Since(since[s.ID]) < n.cfg.PromoteAfter {
			continue
		}
		err := n.changeMembers(ctx, &memberRequest{
			Op: opPromoteMember, ID: nodeName(s.ID), By: byCluster,
			Reason: fmt.Sprintf("caught up and in contact for %s", n.cfg.PromoteAfter),
		})
		if err != nil && ctx.Err() == nil {
			n.log.Warn("node could not be given its vote", "peer", string(s.ID), "error", err)
		}
	}
}

// byCluster is who asks for what nodes do by themselves.
const byCluster = "cluster"

// updateAddresses writes down where the configured peers are now. Raft itself
// does not need it; nodes that know a peer from raft's configuration only do.
func (n *Node) updateAddresses(ctx context.Context) error {
	unlock, err := n.lockMembers(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range n.members.servers() {
		addr, ok := n.members.address(s.ID)
		if !ok || addr == string(s.Address) {
			continue
		}
		if err := n.reconfigure(ctx, "update_address", func() raft.IndexFuture {
			// Keeps a vote that is there.
			return n.raft.AddNonvoter(s.ID, raft.ServerAddress(addr), 0, n.cfg.EnqueueTimeout)
		}); err != nil {
			return err
		}
		n.log.Info("node has a new address", "peer", string(s.ID), "address", addr, "was", string(s.Address))
	}
	return nil
}

func (n *Node) transferTo(ctx context.Context, r *memberRequest) error {
	var to raft.Server
	if r.ID != "" {
		s, ok := n.member(r.ID)
		switch {
		case !ok || s.Suffrage != raft.Voter:
			return fmt.Errorf("%w: %q has no vote", ErrNotMember, r.ID)
		case s.ID == n.dir.id.raftID():
			return nil
		}
		to = s
	} else if len(n.voters()) < 2 {
		return ErrNoOtherVoter
	}
	if err := n.note(ctx, string(r.Op), "to "+r.ID, r.Reason, r.By); err != nil {
		return err
	}
	if r.ID == "" {
		return n.handOver(ctx)
	}
	return n.transfer(ctx, to)
}

// reconfigure changes raft's configuration; the caller has lockMembers.
func (n *Node) reconfigure(ctx context.Context, o op, change func() raft.IndexFuture) error {
	ctx, cancel := n.inTime(ctx)
	defer cancel()
	err, late := within(ctx, func() error { return change().Error() }) // ends with the leadership at the latest
	switch {
	case late != nil:
		return &UnknownOutcomeError{string(o), late}
	case err != nil:
		return n.applyError(o, err)
	}
	return nil
}
