package ha

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func recovery(c Config) Recovery {
	return Recovery{NodeID: c.NodeID, DataDir: c.DataDir, Reason: "two nodes burnt", By: "ann", Logger: quiet()}
}

// TestB094RecoverAfterQuorumLoss: two of three are gone for good; the one that is
// left goes on with all it has, and new ones take the others' place.
func TestB094RecoverAfterQuorumLoss(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 3, nil))
	nodes := startAll(t, configs)
	leader, _ := leaderOf(t, nodes)
	for seq := range uint64(9) {
		must(t, leader.SavePosition(testContext(t), "orders", Session{Term: leader.term(), ID: "r"}, at(seq+1)))
	}
	for _, n := range nodes {
		waitUntil(t, "all have the position", func() bool { st, _ := n.Connector("orders"); return st.Position.Seq == 9 })
	}
	if _, err := Recover(testContext(t), recovery(configs[0])); !errors.Is(err, ErrDataDirInUse) {
		t.Errorf("recovery of a running node: %v", err)
	}
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	r := recovery(configs[0])
	r.DryRun = true
	plan, err := Recover(testContext(t), r)
	must(t, err)
	if plan.Positions["orders"].Seq != 9 || plan.LastTerm == 0 || strings.Join(plan.Before, "") != "abc" ||
		strings.Join(plan.After, "") != "a" {
		t.Errorf("plan: %+v", plan)
	}
	r.DryRun, r.NodeID = false, ""
	done, err := Recover(testContext(t), r)
	must(t, err)
	if done.Positions["orders"].Seq != 9 || done.LastIndex != plan.LastIndex || done.NodeID != "a" {
		t.Errorf("done: %+v, planned %+v", done, plan)
	}
	for i := range configs {
		configs[i].Listener = nil
		if i > 0 {
			configs[i].DataDir = t.TempDir()
		}
	}
	a := start(t, configs[0])
	a.waitReady(t)
	must(t, a.SavePosition(testContext(t), "orders", Session{Term: a.term(), ID: "r"}, at(10)))
	if e := audited(a.Node, "recover"); len(e) != 1 || e[0].By != "ann" || e[0].Reason != "two nodes burnt" {
		t.Errorf("audit: %+v", a.Audit())
	}
	b, c := start(t, configs[1]), start(t, configs[2])
	b.waitReady(t)
	c.waitReady(t)
	waitVoters(t, a, "a b c")
	waitUntil(t, "a new node has the state", func() bool { st, _ := b.Connector("orders"); return st.Position.Seq == 10 })
}

func TestB094RecoverTwoOfFive(t *testing.T) {
	t.Parallel()
	configs := quickly(clusterOf(t, 5, nil))
	nodes := startAll(t, configs)
	leader, _ := leaderOf(t, nodes)
	must(t, leader.SetRunState(testContext(t), "orders", Paused, "", "ann"))
	for _, n := range nodes {
		waitUntil(t, "all have it", func() bool { st, _ := n.Connector("orders"); return st.RunState.State == Paused })
	}
	for _, n := range nodes {
		must(t, n.stop(t))
	}
	for i := range 2 {
		r := recovery(configs[i])
		r.Survivors = []string{"b", "a"}
		_, err := Recover(testContext(t), r)
		must(t, err)
		configs[i].Listener = nil
	}
	left := startAll(t, configs[:2])
	leader, _ = leaderOf(t, left)
	must(t, leader.SetRunState(testContext(t), "orders", Running, "", "ann"))
	if got := voterNames(leader.Node); got != "a b" {
		t.Errorf("voters: %s", got)
	}
}

func TestB094RecoverRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := Recovery{DataDir: dir, By: "ann", Logger: quiet()}
	if _, err := Recover(testContext(t), missing); !errors.Is(err, ErrIncomplete) {
		t.Errorf("an empty directory: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a refusal left %v, %v", left, err)
	}
	configs := clusterOf(t, 3, nil) // a node of a cluster that never began
	must(t, start(t, configs[0]).stop(t))
	if _, err := Recover(testContext(t), recovery(configs[0])); !errors.Is(err, ErrIncomplete) {
		t.Errorf("an empty log: %v", err)
	}
	n := alone(t, t.TempDir())
	must(t, n.stop(t))
	for name, r := range map[string]Recovery{
		"foreign directory": {NodeID: "x", DataDir: n.cfg.DataDir, By: "ann"},
		"nobody asks":       {DataDir: n.cfg.DataDir},
		"not a survivor":    {DataDir: n.cfg.DataDir, By: "ann", Survivors: []string{"n2"}},
		"unknown survivor":  {DataDir: n.cfg.DataDir, By: "ann", Survivors: []string{"n1", "n2"}},
	} {
		r.Logger = quiet()
		if _, err := Recover(testContext(t), r); !errors.Is(err, ErrForeignState) && !errors.Is(err, ErrInvalid) &&
			!errors.Is(err, ErrNotMember) {
			t.Errorf("%s: %v", name, err)
		}
	}
	again := alone(t, n.cfg.DataDir) // none of them has touched it
	must(t, again.stop(t))
}

// TestSnapshotSaveAndRestore takes the state to a new machine.
func TestSnapshotSaveAndRestore(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	ctx := testContext(t)
	for i := range uint64(3) { // several terms
		must(t, n.SavePosition(ctx, "orders", Session{Term: n.term(), ID: "r"}, at(i+1)))
		must(t, n.stop(t))
		n = alone(t, n.cfg.DataDir)
	}
	var saved bytes.Buffer
	must(t, n.Snapshot(ctx, &saved, "new machine", "ann"))
	term, cluster := n.term(), n.Status().Cluster
	must(t, n.stop(t))
	image := saved.Bytes()
	restore := Restoration{NodeID: "n9", DataDir: t.TempDir(), From: bytes.NewReader(image), Reason: "new machine",
		By: "ann", Logger: quiet()}
	got, err := Restore(ctx, restore)
	must(t, err)
	if got.Positions["orders"].Seq != 3 || got.Cluster != cluster {
		t.Errorf("restored: %+v", got)
	}
	c := testConfig(t, restore.DataDir)
	c.NodeID = "n9"
	again := start(t, c)
	again.waitReady(t)
	if st, _ := again.Connector("orders"); st.Position.Seq != 3 || again.term() <= term {
		t.Errorf("state %+v, term %d after %d", st, again.term(), term)
	}
	must(t, again.SavePosition(ctx, "orders", Session{Term: again.term(), ID: "r"}, at(4)))
	if e := audited(again.Node, "restore"); len(e) != 1 || len(audited(again.Node, "snapshot")) != 1 {
		t.Errorf("audit: %+v", again.Audit())
	}
	must(t, again.stop(t))
	restore.From = bytes.NewReader(image)
	if _, err := Restore(ctx, restore); err == nil || !strings.Contains(err.Error(), "has state already") {
		t.Errorf("restoring over state: %v", err)
	}
	image[len(image)-2] ^= 1
	restore.From, restore.DataDir = bytes.NewReader(image), t.TempDir()
	if _, err := Restore(ctx, restore); !errors.Is(err, ErrCorrupt) {
		t.Errorf("restoring a damaged snapshot: %v", err)
	}
}
