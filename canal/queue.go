package canal

import (
	"context"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// emptyBytes is what a transaction without rows counts in the queue's bound.
const emptyBytes = 160

// queue holds the transactions that wait for Next, bounded in bytes. Consecutive
// transactions without rows become one, so a busy server with an idle outbox
// costs one entry. One goroutine puts, any may take.
type queue struct {
	limit int

	mu      sync.Mutex
	space   sync.Cond // waited on by put
	pending []txn.Transaction
	usual   int // how many were taken last, and so how many to make room for
	bytes   int
	last    position.Commit // of the newest transaction put
	err     error           // ends the stream once pending is taken
	closed  bool
	ready   chan struct{} // holds a token while pending or err may be there to take
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, ready: make(chan struct{}, 1)}
	q.space.L = &q.mu
	return q
}

// put adds a transaction and blocks while the queue is full. It returns
// ErrClosed after close.
func (q *queue) put(t txn.Transaction) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes >= q.limit && !q.closed {
		q.space.Wait()
	}
	if q.closed {
		return ErrClosed
	}
	if !t.Commit.OnlyColumns() {
		q.last = t.Commit
	}
	if n := len(q.pending); n > 0 && joinable(&q.pending[n-1]) && joinable(&t) && q.pending[n-1].Commit.Join(t.Commit) {
		return nil
	}
	if q.pending == nil {
		q.pending = make([]txn.Transaction, 0, q.usual)
	}
	q.pending = append(q.pending, t)
	q.bytes += t.Bytes + emptyBytes
	q.wake()
	return nil
}

func joinable(t *txn.Transaction) bool { return t.Final && len(t.Rows) == 0 && t.FirstRow == 0 }

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// fail makes next return err once everything before it is taken. The first
// error stays.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.wake()
}

// close lets put and next return ErrClosed at once.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.pending, q.bytes = true, nil, 0
	q.space.Broadcast()
	q.wake()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// isOver reports whether nothing more will be put.
func (q *queue) isOver() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed || q.err != nil
}

// next waits for at least one transaction and takes all.
func (q *queue) next(ctx context.Context) ([]txn.Transaction, error) {
	for {
		if all, err, ok := q.take(); ok {
			return all, err
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (q *queue) take() (all []txn.Transaction, err error, ok bool) { //nolint:revive // ok says whether the other two count
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		q.wake() // for other waiters
		return nil, ErrClosed, true
	case len(q.pending) > 0:
		all, q.pending, q.bytes, q.usual = q.pending, nil, 0, len(q.pending)
		q.space.Broadcast()
		return all, nil, true
	case q.err != nil:
		q.wake()
		return nil, q.err, true
	}
	return nil, nil, false
}

// snapshot returns the newest commit position and what waits.
func (q *queue) snapshot() (last position.Commit, oldest position.Commit, waiting, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) > 0 {
		oldest = q.pending[0].Commit
	}
	return q.last, oldest, len(q.pending), q.bytes
}
