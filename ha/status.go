package ha

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Role is what a node is at the moment.
type Role string

// The roles, which are raft's.
const (
	Leader    Role = "leader"
	Follower  Role = "follower"
	Candidate Role = "candidate"
	Down      Role = "shutdown"
)

// Status is what this node knows of the cluster; on a follower it may be old. As JSON it is
// the answer of the API about the cluster, without what is the node's own business.
type Status struct {
	// Cluster is the cluster's id, empty until it is known; NodeID the node's name, RaftID
	// the name with the id of its data directory.
	Cluster string `json:"id,omitempty"`
	NodeID  string `json:"node"`
	RaftID  string `json:"-"`
	Role    Role   `json:"role"`
	// LeaderID is the name of the leader, empty when none is known.
	LeaderID string `json:"leader"`
	Term     uint64 `json:"term"`
	// The indexes are of the replicated log, as this node has it.
	CommitIndex  uint64 `json:"commit_index"`
	AppliedIndex uint64 `json:"applied_index"`
	LastIndex    uint64 `json:"last_index"`
	// LastContact is how long ago the leader was heard of, in seconds: 0 on the leader,
	// nil for never.
	LastContact *float64 `json:"last_contact_seconds,omitempty"`
	// Ready is true while a leader is known that can take writes.
	Ready bool `json:"ready"`
	// Error is why the node has failed, if it has.
	Error string `json:"error,omitempty"`
	// Members are the nodes of the cluster, never nil.
	Members []Member `json:"members"`
	// Witness is true for a node that never leads. CoolDown is how much longer this
	// one does not want the leadership, having given it away.
	Witness  bool          `json:"-"`
	CoolDown time.Duration `json:"-"`
	// Removed is true when the others say that this node is no member any more.
	Removed bool `json:"-"`
}

// Status returns the present state of the node.
func (n *Node) Status() Status {
	s := Status{
		NodeID: n.cfg.NodeID, RaftID: string(n.dir.id.raftID()), Cluster: n.fsm.cluster(),
		Role: Role(strings.ToLower(n.raft.State().String())), Term: n.raft.CurrentTerm(),
		CommitIndex: n.raft.CommitIndex(), AppliedIndex: n.raft.AppliedIndex(), LastIndex: n.raft.LastIndex(),
		Members: n.Members(), Witness: n.cfg.Witness, CoolDown: n.cooling.left(), Removed: n.removed.Load(),
	}
	_, leader := n.raft.LeaderWithID()
	s.LeaderID = nodeName(leader)
	if d := n.lastContact(); d >= 0 {
		s.LastContact = new(d.Seconds())
	}
	err := n.Err()
	if err != nil {
		s.Error = err.Error()
	}
	// The role was read before: it may have been won since.
	leads := s.Role == Leader || leader == n.dir.id.raftID()
	s.Ready = err == nil && s.LeaderID != "" && (!leads || n.lead.established())
	return s
}

func (t *leaderTracker) established() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cur == nil {
		return false
	}
	select {
	case <-t.cur.ready:
		return true
	default:
		return false
	}
}

// IsLeader reports whether this node believes that it leads. It is for display:
// work that needs the leadership belongs into Lead.
func (n *Node) IsLeader() bool { return n.raft.State() == raft.Leader }

// Connector returns what this node knows of a connector. On a follower it may
// be old; the leader is up to date inside a Lead function.
func (n *Node) Connector(name string) (State, bool) { return n.fsm.connector(name) }

// Configs returns the configurations that PutConfig has stored, by connector. The
// texts are shared: they must not be written to.
func (n *Node) Configs() map[string]json.RawMessage { return n.fsm.configs() }

// Audit returns the last operator commands, oldest first; never nil.
func (n *Node) Audit() []AuditEntry { return n.fsm.auditLog() }

// Watch returns a channel that gets a value whenever any connector's state may
// have changed on this node: read the state after each one. Changes that come
// faster than they are read are told once. Call stop when done; the channel is
// never closed.
func (n *Node) Watch() (changed <-chan struct{}, stop func()) { return n.fsm.watchers.watch() }
