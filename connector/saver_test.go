package connector

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// savedAt notes when positions are saved.
type savedAt struct {
	Positions

	mu    sync.Mutex
	times []time.Time
}

func (s *savedAt) Position() (position.Position, bool) { return position.Position{}, true }

func (s *savedAt) SavePosition(context.Context, position.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, time.Now())
	return nil
}

// A session that is cut off early repeats no more than it has worked: it saves its first
// batch at once, and the next ones at intervals that grow to the usual one.
func TestSavesOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &savedAt{}
		cfg := DefaultConfig()
		s := newSaver(store, position.Position{}, cfg, newMetrics(nil, &Connector{}), slog.New(slog.DiscardHandler))
		done := make(chan error, 1)
		go func() { done <- s.run(t.Context()) }()
		began := time.Now()
		for time.Since(began) < 5*time.Second { // a batch every 10 ms
			time.Sleep(10 * time.Millisecond)
			s.advance(position.Position{})
		}
		s.finish()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		var gaps []time.Duration
		for i, at := range store.times {
			before := began
			if i > 0 {
				before = store.times[i-1]
			}
			gaps = append(gaps, at.Sub(before))
		}
		ms := time.Millisecond
		want := []time.Duration{10 * ms, 125 * ms, 250 * ms, 500 * ms, 1000 * ms}
		if len(gaps) < len(want) || !slices.Equal(gaps[:len(want)], want) {
			t.Errorf("saved after %v, want it to begin with %v", gaps, want)
		}
		if longest := slices.Max(gaps); longest > cfg.SaveEvery {
			t.Errorf("%v between two saves", longest)
		}
	})
}
