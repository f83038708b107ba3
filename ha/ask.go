package ha

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// askRequest is a question of the program around the node, to the leader.
type askRequest struct {
	Body []byte `json:"body"`
	// Leader says that only a leader may answer.
	Leader bool `json:"leader,omitempty"`
}

// AskLeader has the leader's Config.Answer answer question, which is not looked at
// here; both may be some megabytes. It works on any node but the leader, which can
// answer itself. ErrNoLeader and ErrNotLeader mean that nobody has looked at it,
// UnknownOutcomeError that somebody may have.
func (n *Node) AskLeader(ctx context.Context, question []byte) ([]byte, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	_, id := n.raft.LeaderWithID()
	if id == "" || id == n.dir.id.raftID() || n.mux == nil {
		return nil, ErrNoLeader
	}
	return n.askFor(ctx, id, &askRequest{Body: question, Leader: true})
}

// AskNode has the Config.Answer of the node with that name answer question, as
// AskLeader does.
func (n *Node) AskNode(ctx context.Context, name string, question []byte) ([]byte, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	for _, v := range n.voters() {
		if nodeName(v.ID) == name && n.mux != nil {
			return n.askFor(ctx, v.ID, &askRequest{Body: question})
		}
	}
	return nil, fmt.Errorf("asking node %s: %w", name, ErrNotMember)
}

func (n *Node) askFor(ctx context.Context, id raft.ServerID, q *askRequest) ([]byte, error) {
	var resp peerResponse
	if err := n.forwardFor(ctx, id, opAsk, &peerRequest{Ask: q}, &resp); err != nil {
		return nil, err
	}
	return resp.Answer, nil
}

// answer answers another node's question.
func (n *Node) answer(ctx context.Context, q *askRequest) ([]byte, error) {
	if q.Leader && n.raft.State() != raft.Leader {
		return nil, ErrNotLeader
	}
	if n.cfg.Answer == nil {
		return nil, fmt.Errorf("%w: this node answers no questions", ErrInvalid)
	}
	return n.cfg.Answer(ctx, q.Body), nil
}
