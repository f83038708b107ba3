package ha

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// either ends with one of two contexts, with its cause.
func either(a, b context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(a)
	context.AfterFunc(b, func() { cancel(context.Cause(b)) })
	return ctx
}

// leading runs Lead and hands out what f was called with.
type leading struct {
	began chan uint64 // terms
	ended chan error  // causes
	done  chan error  // what Lead returned
}

// leadUntil runs Lead with an f that waits for its context and returns its cause.
func leadUntil(ctx context.Context, n *Node) *leading {
	l := &leading{make(chan uint64, 64), make(chan error, 64), make(chan error, 1)}
	go func() {
		l.done <- n.Lead(ctx, func(leadership context.Context, term uint64) error {
			ctx := either(ctx, leadership)
			l.began <- term
			<-ctx.Done()
			l.ended <- context.Cause(ctx)
			return context.Cause(ctx)
		})
	}()
	return l
}

func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("gave up waiting for %s", what)
		panic("unreachable")
	}
}

func TestLeadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	l := leadUntil(ctx, n.Node)
	if term := receive(t, "the term", l.began); term != n.term() {
		t.Errorf("term %d, want %d", term, n.term())
	}
	cancel(stop)
	if cause := receive(t, "the end", l.ended); !errors.Is(cause, stop) {
		t.Errorf("cause %v", cause)
	}
	if err := receive(t, "Lead", l.done); err != nil {
		t.Errorf("Lead: %v", err)
	}
}

// TestLeadCanSaveDuringShutdown: Run waits for f, and f's last save still works.
func TestLeadCanSaveDuringShutdown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := alone(t, dir)
	saved := make(chan error, 1)
	done := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		done <- n.Lead(context.Background(), func(ctx context.Context, term uint64) error {
			close(began)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, ErrShuttingDown) {
				t.Errorf("cause %v", cause)
			}
			saved <- n.SavePosition(context.WithoutCancel(ctx), "orders", Session{Term: term, ID: "r"}, at(9))
			return nil
		})
	}()
	receive(t, "f", began)
	must(t, n.stop(t))
	must(t, receive(t, "the save", saved))
	if err := receive(t, "Lead", done); !errors.Is(err, ErrShuttingDown) {
		t.Errorf("Lead: %v", err)
	}
	n = alone(t, dir)
	if st, _ := n.Connector("orders"); st.Position.Seq != 9 {
		t.Errorf("the last save is gone: %+v", st)
	}
}

func TestLeadReturnsErrors(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	broken := errors.New("broken")
	calls := 0
	err := n.Lead(testContext(t), func(context.Context, uint64) error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("Lead: %v after %d calls", err, calls)
	}
}

// TestLeadReportsTheLastSave: an error of f after the caller's own stop is not
// swallowed.
func TestLeadReportsTheLastSave(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	broken := errors.New("last save failed")
	ctx, cancel := context.WithCancel(context.Background())
	err := n.Lead(ctx, func(leadership context.Context, _ uint64) error {
		ctx := either(ctx, leadership)
		cancel()
		<-ctx.Done()
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("Lead: %v", err)
	}
}

// TestLeadLetsWorkEndInOrder: the end of the caller's context is not the end of the
// leadership, and what f saves then is stored.
func TestLeadLetsWorkEndInOrder(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	err := n.Lead(ctx, func(leadership context.Context, term uint64) error {
		cancel()
		select {
		case <-leadership.Done():
			t.Error("leadership ends before the work does")
		case <-time.After(50 * time.Millisecond):
		}
		run, _ := n.NewSession("orders", term)
		if err := n.SavePosition(leadership, "orders", run, at(10)); err != nil {
			t.Error(err)
		}
		return leadership.Err()
	})
	if err != nil {
		t.Errorf("Lead: %v", err)
	}
	if s, _ := n.Connector("orders"); s.Position.IsZero() {
		t.Error("nothing was stored")
	}
}

func TestStepDownAloneCallsAgainAfterPause(t *testing.T) {
	t.Parallel()
	c := testConfig(t, t.TempDir())
	c.StepDownPause = 50 * time.Millisecond
	n := start(t, c)
	n.waitReady(t)
	var calls atomic.Int32
	enough := errors.New("enough")
	begin := time.Now()
	err := n.Lead(testContext(t), func(context.Context, uint64) error {
		if calls.Add(1) == 3 {
			return enough
		}
		return errors.Join(errors.New("Kafka is away"), ErrStepDown)
	})
	if !errors.Is(err, enough) || time.Since(begin) < 2*c.StepDownPause {
		t.Errorf("Lead: %v after %s", err, time.Since(begin))
	}
}

func TestLeadEndsWithTheNodesFailure(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	l := leadUntil(context.Background(), n.Node)
	receive(t, "f", l.began)
	broken := &StoreError{Path: "raft.db", Err: errors.New("no space left on device"), Remedy: "free space"}
	n.fail(broken)
	if cause := receive(t, "the end", l.ended); !errors.Is(cause, broken) {
		t.Errorf("cause %v", cause)
	}
	if err := receive(t, "Lead", l.done); !errors.Is(err, broken) {
		t.Errorf("Lead: %v", err)
	}
	if err := n.stop(t); !errors.Is(err, broken) {
		t.Errorf("Run: %v", err)
	}
}

// TestB089TrackerNeverMissesALoss: notices come in any rhythm, f runs once at a
// time and each of its contexts ends with the loss.
func TestB089TrackerNeverMissesALoss(t *testing.T) {
	t.Parallel()
	tr := newLeaderTracker()
	n := &Node{lead: tr, log: quiet()}
	ctx, cancel := context.WithCancel(context.Background())
	var running, calls, causes atomic.Int32
	done := make(chan error, 1)
	go func() {
		done <- n.Lead(ctx, func(leadership context.Context, term uint64) error {
			ctx := either(ctx, leadership)
			if running.Add(1) != 1 {
				t.Error("f runs twice at once")
			}
			defer running.Add(-1)
			calls.Add(1)
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), ErrLeadershipLost) {
				causes.Add(1)
			}
			return ctx.Err()
		})
	}()
	for i := range uint64(2000) {
		before := calls.Load()
		l := tr.gain()
		tr.establish(l, i+1)
		if i%50 == 0 { // let f begin now and then; otherwise it is passed over
			waitUntil(t, "f begins", func() bool { return calls.Load() > before })
		}
		if i%3 != 0 { // a loss that was not told ends with the next gain
			tr.lose(ErrLeadershipLost)
			if l.Err() == nil {
				t.Fatal("a lost leadership goes on")
			}
		}
	}
	tr.lose(ErrLeadershipLost)
	waitUntil(t, "f ends", func() bool { return running.Load() == 0 })
	cancel()
	if err := receive(t, "Lead", done); err != nil {
		t.Error(err)
	}
	if calls.Load() < 40 || calls.Load() != causes.Load() {
		t.Errorf("%d calls, %d ended by a loss", calls.Load(), causes.Load())
	}
}

func BenchmarkSavePosition(b *testing.B) {
	c := testConfig(b, b.TempDir())
	n, err := Open(c, quiet(), nil)
	if err != nil {
		b.Fatal(err)
	}
	r := run(b, n)
	r.waitReady(b)
	set := Session{Term: r.term(), ID: "r"}
	seq := uint64(0)
	for b.Loop() {
		seq++
		if err := r.SavePosition(context.Background(), "orders", set, at(seq)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTimeToLeader(b *testing.B) {
	for b.Loop() {
		n, err := Open(testConfig(b, b.TempDir()), quiet(), nil)
		if err != nil {
			b.Fatal(err)
		}
		r := run(b, n)
		r.waitReady(b)
		b.StopTimer()
		if err := r.stop(b); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// Raft never answers a transfer that it is asked for just as it shuts down: nobody waits
// for it, and no goroutine is left.
func TestTransferAsTheNodeEnds(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	must(t, n.Shutdown(testContext(t)))
	for range 20 { // raft takes the first that it can store, by chance
		if err := n.transfer(context.Background(), raft.Server{}); !errors.Is(err, ErrShuttingDown) {
			t.Fatalf("transferring at the end: %v", err)
		}
	}
}
