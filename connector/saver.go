package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// saver owns the committed position of a session and brings it to the replicated
// store: with the first batch, then at intervals that grow to the one that is set while
// it moves, after a short quiet when it stands still, and once more at the end. The
// store's latency does not hold up publishing.
type saver struct {
	positions Positions
	every     time.Duration // between saves while the position moves
	quiet     time.Duration // without movement before a save
	timeout   time.Duration // of one save
	metrics   *metrics
	log       *slog.Logger

	mu       sync.Mutex
	position position.Position
	dirty    bool
	moved    time.Time

	wake     chan struct{}
	finished chan struct{}
	first    chan struct{} // closed when the first batch is saved, or could not be
}

// newSaver returns a saver that stands at from. When the sink was ahead of the
// store, from is saved too: the store catches up even if nothing more is published.
func newSaver(p Positions, from position.Position, cfg Config, m *metrics, log *slog.Logger) *saver {
	s := &saver{
		positions: p, position: from, metrics: m, log: log,
		every: cfg.SaveEvery, quiet: cfg.SaveQuiet, timeout: cfg.SaveTimeout,
		wake: make(chan struct{}, 1), finished: make(chan struct{}), first: make(chan struct{}),
	}
	if stored, found := p.Position(); !found || !stored.Covers(from) {
		s.dirty, s.moved = true, time.Now()
	}
	return s
}

// advance moves to p, of which nothing is changed any more.
func (s *saver) advance(p position.Position) {
	s.mu.Lock()
	s.position = p
	s.dirty, s.moved = true, time.Now()
	s.mu.Unlock()
	signal(s.wake)
}

// current returns the committed position.
func (s *saver) current() position.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// awaitFirst waits until the first batch is saved, or could not be, but not longer than
// a save may take its time anyway.
func (s *saver) awaitFirst(ctx context.Context) {
	select {
	case <-s.first:
		return
	default:
	}
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	select {
	case <-s.first:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// finish lets run save what is left and return.
func (s *saver) finish() { close(s.finished) }

// run saves until finish or until ctx ends. A save that fails but may succeed
// later is tried again: in the meantime only a crash would repeat more. A refusal
// (this node is no longer the one to save) ends the session.
func (s *saver) run(ctx context.Context) error {
	// The first batch is saved at once and the next ones soon, so that a session that is
	// cut off early has got on, and repeats no more than it has worked: one that catches
	// up publishes much in the time that is usual between saves. Where the session began
	// can wait a little for it.
	timer := time.NewTimer(s.every / 4)
	defer timer.Stop()
	began := timer.C
	first, last, pause := true, time.Time{}, s.every/16
	ended := sync.OnceFunc(func() { close(s.first) })
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.finished:
			return s.last(ctx)
		case <-s.wake:
			if !first && !s.wait(ctx, last, pause) {
				continue // finished or cancelled: the select above handles it
			}
			first, began = false, nil
		case <-began:
		}
		if err := s.save(ctx); err != nil {
			if errors.Is(err, ErrSuperseded) || !retryable(err) {
				return err
			}
			s.log.Warn("position not saved, trying again", "error", err)
			signal(s.wake)
		}
		if !first {
			ended()
		}
		if !first {
			pause = min(s.every, 2*pause)
		}
		last = time.Now()
	}
}

// last saves what is left, trying again for as long as one save may take: what is
// not saved at an orderly end is what at-least-once delivery repeats.
func (s *saver) last(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		err := s.save(ctx)
		if err == nil || errors.Is(err, ErrSuperseded) || !retryable(err) {
			return err
		}
		timer := time.NewTimer(s.quiet)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// wait returns true when it is time to save: so long has passed since the last save, or
// the position has stood still for the quiet time, but not sooner than that after it.
func (s *saver) wait(ctx context.Context, last time.Time, pause time.Duration) bool {
	earliest, next := last.Add(s.quiet), last.Add(pause)
	for {
		s.mu.Lock()
		due := s.moved.Add(s.quiet)
		s.mu.Unlock()
		if due.Before(earliest) {
			due = earliest
		}
		if next.Before(due) {
			due = next
		}
		d := time.Until(due)
		if d <= 0 {
			return true
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-s.finished:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func (s *saver) save(ctx context.Context) error {
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	p := s.position
	s.dirty = false
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	started := time.Now()
	err := s.positions.SavePosition(ctx, p)
	s.metrics.offsetCommit(err, time.Since(started))
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
		return fmt.Errorf("saving the position: %w", err)
	}
	return nil
}
