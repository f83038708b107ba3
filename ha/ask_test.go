package ha

import (
	"context"
	"errors"
	"testing"
)

// Questions go to the leader, or to a node by its name, and to nobody else.
func TestAskOtherNodes(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		id := configs[i].NodeID
		configs[i].Answer = func(_ context.Context, q []byte) []byte { return []byte(id + " heard " + string(q)) }
	}
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	ctx := testContext(t)
	got, err := followers[0].AskLeader(ctx, []byte("hello"))
	if err != nil || string(got) != leader.cfg.NodeID+" heard hello" {
		t.Errorf("the leader answers %q, %v", got, err)
	}
	if _, err := leader.AskLeader(ctx, nil); !errors.Is(err, ErrNoLeader) {
		t.Errorf("the leader asks itself: %v", err)
	}
	for _, n := range followers {
		got, err := leader.AskNode(ctx, n.cfg.NodeID, []byte("you"))
		if err != nil || string(got) != n.cfg.NodeID+" heard you" {
			t.Errorf("node %s answers %q, %v", n.cfg.NodeID, got, err)
		}
	}
	if _, err := leader.AskNode(ctx, "nobody", nil); !errors.Is(err, ErrNotMember) {
		t.Errorf("an unknown node: %v", err)
	}
	// A node that was taken for the leader by mistake does not answer as one.
	if _, err := leader.askFor(ctx, followers[0].dir.id.raftID(), &askRequest{Leader: true}); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower answers for the leader: %v", err)
	}
	gone := followers[1]
	must(t, gone.stop(t))
	if _, err := leader.AskNode(ctx, gone.cfg.NodeID, nil); err == nil {
		t.Error("a node that is gone answers")
	}
}
