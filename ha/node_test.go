package ha

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestAloneLeadsSoonAndKeepsState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now()
	n := alone(t, dir)
	t.Logf("time to leader: %s", time.Since(begin))
	ctx := testContext(t)
	if err := n.SavePosition(ctx, "orders", Session{Term: n.term(), ID: "r1"}, at(7)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		n.SetRunState(ctx, "orders", Paused, "maintenance", "ann"),
		n.PutConfig(ctx, "orders", json.RawMessage(`{"name":"orders"}`), "created", "ann"),
		n.AppendDecision(ctx, "orders", Decision{Kind: "skip", Version: 1, Key: testSID + ":9",
			Data: json.RawMessage(`{"rows":2}`), By: "bob", Reason: "broken row"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster, raftID := n.Status().Cluster, n.Status().RaftID
	if err := n.stop(t); err != nil {
		t.Fatalf("Run: %v", err)
	}

	n = alone(t, dir)
	st, ok := n.Connector("orders")
	if !ok || st.Position.Seq != 7 || !st.Position.Covers(at(7)) || !at(7).Covers(st.Position) {
		t.Errorf("position after restart: %v %s", ok, st.Position)
	}
	if st.RunState.State != Paused || st.RunState.By != "ann" || string(st.Config) != `{"name":"orders"}` ||
		len(st.Decisions) != 1 || st.Decisions[0].Key != testSID+":9" || st.Decisions[0].At.IsZero() {
		t.Errorf("state after restart: %+v", st)
	}
	if audit := n.Audit(); len(audit) != 3 || audit[0].Action != "set_run_state" || audit[2].By != "bob" {
		t.Errorf("audit after restart: %+v", audit)
	}
	s := n.Status()
	if s.Cluster != cluster || s.RaftID != raftID || cluster == "" || !strings.HasPrefix(raftID, "n1/") {
		t.Errorf("identity after restart: %+v, before %s %s", s, cluster, raftID)
	}
	if s.Role != Leader || s.LeaderID != "n1" || !s.Ready || len(s.Members) != 1 || s.LastContact == nil ||
		*s.LastContact != 0 {
		t.Errorf("status: %+v", s)
	}
	if err := n.VerifyLeader(ctx); err != nil {
		t.Error(err)
	}
	if err := n.TransferLeadership(ctx, "", "test", "ann"); !errors.Is(err, ErrNoOtherVoter) {
		t.Errorf("TransferLeadership: %v", err)
	}
}

func TestShutdownWithoutRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := Open(testConfig(t, dir), testLogger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Shutdown(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := n.SetRunState(testContext(t), "orders", Paused, "", "ann"); !errors.Is(err, ErrShuttingDown) {
		t.Errorf("write after shutdown: %v", err)
	}
	if err := n.Run(context.Background()); err != nil {
		t.Errorf("Run after Shutdown: %v", err)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	ctx := testContext(t)
	if err := n.SavePosition(ctx, "orders", Session{Term: n.term(), ID: "r1"}, at(1)); err != nil {
		t.Fatal(err)
	}
	got, _ := n.Connector("orders")
	got.Position.Advance(markTo(5))
	again, _ := n.Connector("orders")
	if again.Position.Covers(at(5)) {
		t.Error("changing a returned position changed the store")
	}
}

// TestSetPositionHoldsAgainstRunsThatHaveRead: also against one that has not saved
// yet, and not against one that reads it.
func TestSetPositionHoldsAgainstRunsThatHaveRead(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	ctx := testContext(t)
	must(t, n.SavePosition(ctx, "orders", Session{Term: n.term(), ID: "earlier"}, at(5)))
	before, st := n.NewSession("orders", n.term())
	if st.Position.Seq != 5 {
		t.Fatalf("the run goes on from %+v", st)
	}
	must(t, n.SetRunState(ctx, "orders", Stopped, "replay", "ann"))
	must(t, n.SetPosition(ctx, "orders", at(2), "replay", "ann"))
	if err := n.SavePosition(ctx, "orders", before, at(6)); reasonOf(err) != ReasonOlderSession {
		t.Errorf("a run that has not read the new position saved: %v", err)
	}
	after, st := n.NewSession("orders", n.term())
	if !st.Position.Set.Equal(at(2).Set) || after.ID == before.ID {
		t.Errorf("the next run %+v goes on from %+v", after, st)
	}
	must(t, n.SavePosition(ctx, "orders", after, at(3)))
}

func TestWatchTellsOfChanges(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	changed, stop := n.Watch()
	defer stop()
	for i := range 10 { // never read: must not block, must leave one notice
		if err := n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r1"}, at(uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("no notice")
	}
	select {
	case <-changed:
		t.Error("more than one notice was kept")
	default:
	}
}

func TestWritesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	ctx := testContext(t)
	for name, err := range map[string]error{
		"no connector":  n.SavePosition(ctx, "", Session{Term: 1, ID: "r"}, at(1)),
		"no run":        n.SavePosition(ctx, "c", Session{Term: 1, ID: ""}, at(1)),
		"no term":       n.SavePosition(ctx, "c", Session{Term: 0, ID: "r"}, at(1)),
		"no author":     n.SetRunState(ctx, "c", Paused, "why", ""),
		"no such state": n.SetRunState(ctx, "c", "asleep", "why", "ann"),
		"not JSON":      n.PutConfig(ctx, "c", json.RawMessage("{"), "why", "ann"),
		"no kind":       n.AppendDecision(ctx, "c", Decision{By: "ann"}),
		"too large":     n.PutConfig(ctx, "c", json.RawMessage(`"`+strings.Repeat("x", maxCommand)+`"`), "why", "ann"),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	var unknown *UnknownOutcomeError
	if err := n.SavePosition(ended, "c", Session{Term: n.term(), ID: "r"}, at(1)); !errors.Is(err, context.Canceled) ||
		errors.As(err, &unknown) {
		t.Errorf("ended context: %v", err)
	}
	if s := n.fsm.connectors(); len(s) != 0 {
		t.Errorf("something was stored: %+v", s)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	node, err := Open(testConfig(t, t.TempDir()), testLogger(t), reg)
	if err != nil {
		t.Fatal(err)
	}
	n := run(t, node)
	n.waitReady(t)
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	for name, want := range map[string]float64{
		"is_leader": 1, "voters": 1, "reachable_voters": 1, "last_contact_seconds": 0,
		"leadership_changes_total": 1, "apply_duration_seconds": 1,
	} {
		if v, ok := got["binlog_outbox_raft_"+name]; !ok || v != want {
			t.Errorf("%s = %v (%t), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{"term", "commit_index", "applied_index"} {
		if got["binlog_outbox_raft_"+name] < 1 {
			t.Errorf("%s = %v", name, got["binlog_outbox_raft_"+name])
		}
	}
	if err := n.stop(t); err != nil {
		t.Fatal(err)
	}
	if left, err := reg.Gather(); err != nil || len(left) > 0 {
		t.Errorf("left in the registry after shutdown: %v %v", left, err)
	}
}

// child is what the test binary does as another process.
func child(mode string) int {
	if mode == "member" {
		return memberMain()
	}
	for mode == "burn" { //nolint:staticcheck // until it is killed
	}
	c := DefaultConfig()
	c.NodeID, c.DataDir = "n1", os.Getenv("HA_TEST_DIR")
	log := quiet()
	if mode == "full-disk" {
		// A file size limit is a full disk that needs no rights to set up.
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 200 << 10, Max: 200 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println("setrlimit:", err)
			return 3
		}
	}
	n, err := Open(c, log, nil)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	for !n.Status().Ready {
		time.Sleep(time.Millisecond)
	}
	var from uint64
	if st, ok := n.Connector("orders"); ok {
		from = st.Position.Seq
	}
	run := Session{Term: n.Status().Term, ID: "child-" + strconv.Itoa(os.Getpid())}
	for seq := from + 1; seq <= from+1000; seq++ {
		if err := n.SavePosition(context.Background(), "orders", run, at(seq)); err != nil {
			fmt.Println("save:", err)
			break
		}
		fmt.Println("saved", seq)
	}
	if mode == "full-disk" {
		select {
		case err := <-done:
			fmt.Println("run:", err)
		case <-time.After(20 * time.Second):
			fmt.Println("run: still running")
		}
		return 0
	}
	<-done // wait for the kill
	return 0
}

func startChild(t *testing.T, mode, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HA_TEST_CHILD="+mode, "HA_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// TestB092KillLosesNothingAcknowledged kills a node with SIGKILL at random places
// of a thousand writes, several times on the same directory.
func TestB092KillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var last uint64
	for round := range 5 {
		cmd, lines := startChild(t, "save", dir)
		acked, killAt := 0, 1+rand.IntN(999)
		for lines.Scan() {
			seq, err := strconv.ParseUint(strings.TrimPrefix(lines.Text(), "saved "), 10, 64)
			if err != nil {
				t.Fatalf("child says %q", lines.Text())
			}
			last = seq
			if acked++; acked == killAt {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		if acked < killAt {
			t.Fatalf("round %d: child ended after %d of %d writes", round, acked, killAt)
		}
		n := alone(t, dir)
		st, _ := n.Connector("orders")
		// One write more may have been committed without its answer.
		if st.Position.Seq < last || st.Position.Seq > last+1 {
			t.Fatalf("round %d: acknowledged %d, stored %d", round, last, st.Position.Seq)
		}
		last = st.Position.Seq
		if err := n.stop(t); err != nil {
			t.Fatal(err)
		}
	}
}

// TestB092FullDiskStopsTheNode: a cluster of one must not elect itself again and
// again while nothing can be stored.
func TestB092FullDiskStopsTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, lines := startChild(t, "full-disk", dir)
	var last uint64
	var text []string
	for lines.Scan() {
		if s, ok := strings.CutPrefix(lines.Text(), "saved "); ok {
			last, _ = strconv.ParseUint(s, 10, 64)
			continue
		}
		text = append(text, lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("child: %v, said %q", err, text)
	}
	said := strings.Join(text, "\n")
	t.Log(said)
	for _, want := range []string{"save: save_position: outcome unknown", "run: running node n1: ", "raft.db",
		"free space"} {
		if !strings.Contains(said, want) {
			t.Errorf("the node's last words lack %q", want)
		}
	}
	if last == 0 {
		t.Error("the disk was full before the first write: the test proves nothing")
	}
	n := alone(t, dir) // with space again
	if st, _ := n.Connector("orders"); st.Position.Seq < last {
		t.Errorf("acknowledged %d, stored %d", last, st.Position.Seq)
	}
}
