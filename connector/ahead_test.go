package connector

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// handover is a world whose sink opens only once the source is being opened, and
// which notes where sources begin and whether they are closed.
type handover struct {
	*world
	sunkSeq uint64 // where the sink's position is

	mu     sync.Mutex
	asked  chan struct{} // closed when the source is being opened
	begins []uint64
	open   int
}

func (h *handover) at(seq uint64) position.Position {
	p := position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}
	for n := range seq {
		p.Advance(position.Commit{GTID: position.GTID{SID: simServer, Seq: n + 1}, First: n + 1, File: "b.000001",
			Pos: (n + 1) * 100})
	}
	p.Seq = 1
	return p
}

func (h *handover) Open(ctx context.Context, from position.Position) (Source, error) {
	h.mu.Lock()
	h.begins = append(h.begins, from.Set.Count())
	if len(h.begins) == 1 {
		close(h.asked)
	}
	h.mu.Unlock()
	s, err := h.world.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.open++
	h.mu.Unlock()
	return &handoverSource{s, h}, nil
}

type handoverSource struct {
	Source
	h *handover
}

func (s *handoverSource) Close() error {
	s.h.mu.Lock()
	s.h.open--
	s.h.mu.Unlock()
	return s.Source.Close()
}

func (h *handover) NewSink(term uint64) (Sink, error) {
	s, err := h.world.NewSink(term)
	return &handoverSink{s, h}, err
}

type handoverSink struct {
	Sink
	h *handover
}

func (s *handoverSink) Open(ctx context.Context) (position.Position, bool, error) {
	select {
	case <-s.h.asked:
	case <-ctx.Done():
		return position.Position{}, false, context.Cause(ctx)
	}
	if _, _, err := s.Sink.Open(ctx); err != nil {
		return position.Position{}, false, err
	}
	return s.h.at(s.h.sunkSeq), true, nil
}

// The source opens while the sink does. It is used when the sink says that it
// begins in the right place, and else closed and opened there.
func TestTakeoverOpensTheSourceAhead(t *testing.T) {
	for name, test := range map[string]struct {
		stored, sunk uint64
		begins       []uint64
	}{
		"orderly":  {stored: 5, sunk: 5, begins: []uint64{5}},
		"kill -9":  {stored: 5, sunk: 9, begins: []uint64{5, 9}},
		"behind":   {stored: 9, sunk: 5, begins: []uint64{9}}, // refused
		"at first": {stored: 1, sunk: 1, begins: []uint64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handover{world: newWorld(3, true), sunkSeq: test.sunk, asked: make(chan struct{})}
				h.faults = 0
				h.stored, h.found = h.at(test.stored), true
				h.stored.InKafka = true
				cfg := DefaultConfig()
				cfg.Name = "handover"
				c := New(cfg, h, h, h, h, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
				drain, end := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() { defer close(done); c.Run(drain, context.Background(), 1) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := c.Status(); (s.Phase == "streaming") != (test.sunk >= test.stored) {
					t.Errorf("%s %s: %+v", s.State, s.Phase, s.LastError)
				}
				end()
				<-done
				if h.open != 0 {
					t.Errorf("%d sources are left open", h.open)
				}
				if len(h.begins) != len(test.begins) {
					t.Fatalf("sources began after %v transactions, want %v", h.begins, test.begins)
				}
				for i := range h.begins {
					if h.begins[i] != test.begins[i] {
						t.Errorf("sources began after %v transactions, want %v", h.begins, test.begins)
					}
				}
			})
		})
	}
}
