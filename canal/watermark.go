package canal

import (
	"context"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// watermarkBeat is how soon an idle server tells where it stands.
const watermarkBeat = 200 * time.Millisecond

// watermark is the place up to which a stream has handed on everything, in the files
// and offsets of its server. The event handler sets it, another goroutine asks. A nil
// *watermark takes no notes.
type watermark struct {
	wake func()

	mu   sync.Mutex
	file string
	pos  uint64
	gone []*schema.Statement // that took rows away which no row event brings
}

// removed notes a statement that took rows away.
func (s *watermark) removed(st *schema.Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = append(s.gone, st)
}

// take returns the statements since the last call.
func (s *watermark) take() []*schema.Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.gone
	s.gone = nil
	return gone
}

// reached notes the place behind an event. Inside a transaction there is none:
// nothing of it has been handed on.
func (s *watermark) reached(w *eventHandler, h header) {
	if s == nil || w.group.known || w.lost {
		return
	}
	pos := w.pos
	if h.kind == replication.HEARTBEAT_EVENT || h.kind == replication.HEARTBEAT_LOG_EVENT_V2 {
		// Behind transactions that the reader knows nothing else comes.
		pos = max(pos, w.pos&^(1<<32-1)|uint64(h.pos))
	}
	s.mu.Lock()
	s.file, s.pos = w.file, pos
	s.mu.Unlock()
	s.wake()
}

// has reports whether the place is at or behind file and pos.
func (s *watermark) has(file string, pos uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return false, nil
	}
	order, err := position.CompareFiles(s.file, file)
	return order > 0 || order == 0 && s.pos >= pos, err
}

// changesUpTo hands f the rows of all that comes up to file and pos, and maybe of some
// that comes behind.
func (s *Stream) changesUpTo(ctx context.Context, sc *watermark, file string, pos uint64,
	f func([]schema.Row) error) error {
	for {
		// The place first: what was handed on before it then lies in the queue.
		there, err := sc.has(file, pos)
		if err != nil {
			return newError(WrongHistory, err, "comparing places in the binlog")
		}
		all, err, some := s.queue.take()
		switch {
		case err != nil:
			return err
		case some:
			for i := range all {
				if err := f(all[i].Rows); err != nil {
					return err
				}
			}
		}
		if there {
			return nil
		}
		if some {
			continue
		}
		select {
		case <-s.queue.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
