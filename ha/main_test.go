package ha

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/binlog-outbox/binlog-outbox/position"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain runs the test binary as a node of its own when a test asks for it.
func TestMain(m *testing.M) {
	if mode := os.Getenv("HA_TEST_CHILD"); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

// testLogger writes to the test's log; silent unless it fails or -v is given.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func testConfig(t testing.TB, dir string) Config {
	t.Helper()
	c := DefaultConfig()
	c.NodeID, c.DataDir = "n1", dir
	c.ShutdownTimeout = 2 * time.Minute // a busy disk is no fault of the node's
	return c
}

// runningNode is a node with its Run.
type runningNode struct {
	*Node
	cancel context.CancelFunc
	done   chan error
}

func start(t testing.TB, c Config) *runningNode {
	t.Helper()
	n, err := Open(c, testLogger(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, n)
}

func run(t testing.TB, n *Node) *runningNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &runningNode{n, cancel, make(chan error, 1)}
	go func() { r.done <- n.Run(ctx) }()
	t.Cleanup(func() { r.stop(t) })
	return r
}

func (r *runningNode) stop(t testing.TB) error {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(3 * time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("the node did not stop:\n%s", stacks[:runtime.Stack(stacks, true)])
		return nil
	}
}

func (r *runningNode) waitReady(t testing.TB) {
	t.Helper()
	for late := time.After(30 * time.Second); !r.Status().Ready; {
		select {
		case <-time.After(time.Millisecond):
		case err := <-r.done:
			r.done <- err
			t.Fatalf("node ended: %v", err)
		case <-late:
			t.Fatalf("no leader: %+v", r.Status())
		}
	}
}

// alone starts a node of a cluster of one and waits until it leads.
func alone(t testing.TB, dir string) *runningNode {
	t.Helper()
	r := start(t, testConfig(t, dir))
	r.waitReady(t)
	return r
}

func (r *runningNode) term() uint64 { return r.Status().Term }

const testSID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// at is the position after the transactions 1..seq.
func at(seq uint64) position.Position {
	p := position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}
	g, err := position.ParseGTID(testSID + ":1")
	if err != nil {
		panic(err)
	}
	g.Seq = seq
	if seq > 0 {
		p.Advance(position.Commit{GTID: g, First: 1, File: "binlog.000001", Pos: 100 + seq,
			Committed: time.Unix(1_700_000_000, 0).UTC()})
	}
	p.Seq = seq
	return p
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func markTo(seq uint64) position.Commit {
	g, err := position.ParseGTID(testSID + ":1")
	if err != nil {
		panic(err)
	}
	g.Seq = seq
	return position.Commit{GTID: g, First: 1, File: "binlog.000001", Pos: 100 + seq}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
