package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// broadcast turns the store's "something changed" into channels that are closed at
// the next change, which any number of goroutines can wait for.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (n *broadcast) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}

// run forwards changes until ctx ends.
func (n *broadcast) run(ctx context.Context, node *ha.Node) {
	changed, stop := node.Watch()
	defer stop()
	for {
		select {
		case <-changed:
			n.mu.Lock()
			close(n.ch)
			n.ch = make(chan struct{})
			n.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// positions is one connector's part of the replicated store.
type positions struct {
	store   *ha.Node
	changes *broadcast
	name    string
	// declared is set when the node's file has the connector, false when only the
	// store has it.
	declared bool
	counts   string // countsOf the connector's configuration
	mu       sync.Mutex
	run      ha.Session
}

// Begin starts a run under the leadership of term.
func (p *positions) Begin(term uint64) (position.Position, bool) {
	run, state := p.store.NewSession(p.name, term)
	p.mu.Lock()
	p.run = run
	p.mu.Unlock()
	return state.Position, !state.Position.IsZero()
}

func (p *positions) Position() (position.Position, bool) {
	s, ok := p.store.Connector(p.name)
	return s.Position, ok && !s.Position.IsZero()
}

func (p *positions) SavePosition(ctx context.Context, pos position.Position) error {
	p.mu.Lock()
	run := p.run
	p.mu.Unlock()
	err := p.store.SavePosition(ctx, p.name, run, pos)
	var refused *ha.RejectedError
	if errors.As(err, &refused) {
		if refused.Reason == ha.ReasonBehind {
			return refusal{refused}
		}
		return fmt.Errorf("%w: %w", connector.ErrSuperseded, err)
	}
	return err
}

// refusal is a position that the store says is behind what it has: a defect or a
// second writer, and nothing that time heals.
type refusal struct{ *ha.RejectedError }

func (refusal) Retryable() bool { return false }
func (refusal) ErrCode() string { return "position_refused" }
func (r refusal) Unwrap() error { return r.RejectedError }

func (p *positions) Wanted() connector.State {
	s, _ := p.store.Connector(p.name)
	if !p.declared && s.Config == nil {
		return connector.StateStopped // it is deleted, and its run state with it
	}
	if s.RunState.State == "" {
		return connector.StateRunning
	}
	return connector.State(s.RunState.State)
}

func (p *positions) Changed() <-chan struct{} { return p.changes.next() }
