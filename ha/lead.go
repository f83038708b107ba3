package ha

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// leadership is one stretch of time in which this node leads.
type leadership struct {
	// ready is closed when the leadership has taken effect: everything that was
	// committed before it is applied here. term is valid from then on.
	ready chan struct{}
	term  uint64
	// The context ends with it, and has a cause.
	context.Context //nolint:containedctx // it is one

	end context.CancelCauseFunc
}

// leaderTracker holds the present leadership, if any.
type leaderTracker struct {
	mu      sync.Mutex
	cur     *leadership
	changed chan struct{} // closed and replaced at each change
	closed  error         // set at the end: no more leaderships
	active  sync.WaitGroup
}

func newLeaderTracker() *leaderTracker { return &leaderTracker{changed: make(chan struct{})} }

func (t *leaderTracker) bump() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// gain begins a leadership; nil when the node has ended.
func (t *leaderTracker) gain() *leadership {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(ErrLeadershipLost) // should the loss have been passed over
	if t.closed != nil {
		return nil
	}
	t.cur = &leadership{ready: make(chan struct{})}
	t.cur.Context, t.cur.end = context.WithCancelCause(context.Background())
	t.bump()
	return t.cur
}

func (t *leaderTracker) lose(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(cause)
}

func (t *leaderTracker) end(cause error) {
	if t.cur == nil {
		return
	}
	t.cur.end(cause)
	t.cur = nil
	t.bump()
}

func (t *leaderTracker) establish(l *leadership, term uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cur != l {
		return false
	}
	l.term = term
	close(l.ready)
	t.bump()
	return true
}

// close ends the present leadership and lets no other begin.
func (t *leaderTracker) close(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed == nil {
		t.closed = cause
	}
	t.end(cause)
	t.bump()
}

// next waits for an established leadership other than last, and counts the
// caller as active under it. It returns nil, nil when ctx ends.
func (t *leaderTracker) next(ctx context.Context, last *leadership) (*leadership, error) {
	for {
		t.mu.Lock()
		if t.closed != nil {
			defer t.mu.Unlock()
			return nil, t.closed
		}
		cur, changed := t.cur, t.changed
		if cur != nil && cur != last && ctx.Err() == nil {
			select {
			case <-cur.ready:
				t.active.Add(1) // under the lock, so before close can wait
				t.mu.Unlock()
				return cur, nil
			default:
			}
		}
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// Lead calls f each time this node has become the leader and everything that was
// committed before is applied here. It blocks until ctx ends (nil, or what f
// then returned), the node ends (ErrShuttingDown, or why it failed), or f fails.
//
// f's context ends the moment the leadership ends, with the cause
// ErrLeadershipLost, ErrShuttingDown or why the node failed, and not with ctx: f is
// to look at that itself, and may bring its work to an orderly end then. f is never
// called again before it has returned. While the node shuts down it waits for f, and
// writes under a context of f's own still work. term is the Raft term, for Run.Term.
//
// When f returns while this node still leads: nil means that there is nothing
// to do in this term; an error that wraps ErrStepDown makes the node hand its
// leadership to another voter, and not take it back for Config.StepDownCooldown
// while another can have it; where there is none, f is called again after
// Config.StepDownPause. Any other error ends Lead.
//
// A witness never calls f.
//
// Being the leader is no fence: a node that was paused believes in its
// leadership for some time after another has taken over.
func (n *Node) Lead(ctx context.Context, f func(leadership context.Context, term uint64) error) error {
	var last, failing *leadership
	var pause time.Duration
	for {
		l, err := n.lead.next(ctx, last)
		if l == nil {
			return err
		}
		if n.cfg.Witness {
			n.lead.active.Done()
			last = l
			continue
		}
		began := time.Now()
		err = n.leadOnce(l, f)
		switch {
		case ctx.Err() != nil:
			if errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) {
				return nil
			}
			return err
		case l.Err() != nil:
			n.log.Info("leadership over", "term", l.term, "cause", context.Cause(l), "error", err)
			last = l
		case errors.Is(err, ErrStepDown):
			pause = min(2*pause, 8*n.cfg.StepDownPause)
			if l != failing || time.Since(began) > n.cfg.StepDownCooldown {
				failing, pause = l, n.cfg.StepDownPause
			}
			n.stepDown(ctx, l, err, pause)
		case err != nil:
			return err
		default:
			last = l
		}
	}
}

func (n *Node) leadOnce(l *leadership, f func(leadership context.Context, term uint64) error) error {
	defer n.lead.active.Done()
	leadership, end := context.WithCancel(l)
	defer end()
	return f(leadership, l.term)
}

// trackLeadership follows raft's notices until ctx ends. Raft waits for the
// reader of its channel, so nothing here may block.
func (n *Node) trackLeadership(ctx context.Context) {
	var establishing sync.WaitGroup
	defer establishing.Wait()
	defer n.lead.lose(ErrShuttingDown)
	for {
		select {
		case leads := <-n.notify:
			n.metrics.leadershipChanges.Inc()
			n.unreachable.Clear()
			if !leads {
				n.lead.lose(ErrLeadershipLost)
				continue
			}
			if l := n.lead.gain(); l != nil {
				establishing.Go(func() {
					ctx, cancel := both(ctx, l)
					defer cancel()
					if n.establish(ctx, l) {
						n.lookAfter(ctx)
					}
				})
			}
		case <-ctx.Done():
			return
		}
	}
}

// establish brings a leadership into effect with an entry of its own: once that
// is applied, all earlier ones are (it is raft's Barrier and more), writes of
// earlier terms are refused, and the term is known for sure. It reports whether
// this node leads then.
func (n *Node) establish(ctx context.Context, l *leadership) bool {
	const longest = 2 * time.Second
	if n.offer(ctx) {
		return false
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		cluster := n.fsm.cluster()
		if cluster == "" {
			cluster = uuid.NewString()
		}
		data, err := n.encode(&command{Op: opLead, Cluster: cluster})
		if err == nil {
			var res applied
			if res, err = n.applyLocal(ctx, opLead, data); err == nil {
				if n.lead.establish(l, res.term) {
					n.log.Info("this node leads", "term", res.term, "cluster", n.fsm.cluster())
				}
				return true
			}
		}
		if !sleep(ctx, pause) {
			return false
		}
		n.log.Warn("leadership has not taken effect yet", "error", err)
	}
}
