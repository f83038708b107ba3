package kafka

import (
	"context"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// AtLeastOnce publishes with an idempotent producer: retries inside it neither
// double nor reorder, but nothing fences another writer, and what was on its way
// when a session ends is sent again by the next. Per partition the records are a
// chain of runs, each in order and beginning at or before the end of the last: a
// record never gets in front of an earlier one that failed.
//
// One goroutine uses it, for one session.
type AtLeastOnce struct {
	pub  *Publisher
	p    *producer // nil before Open and after Close
	dead bool
}

// Open connects and obtains a producer id. It returns found false: the position
// is kept elsewhere.
func (s *AtLeastOnce) Open(ctx context.Context) (pos position.Position, found bool, err error) {
	if s.p != nil || s.dead {
		return pos, false, newError(SinkClosed, "opening the sink a second time", nil)
	}
	s.dead = true
	p, err := s.pub.connect(ctx, "", func() {})
	if err != nil {
		return pos, false, err
	}
	s.p = p
	if err := p.within(ctx, p.start); err != nil {
		if ctx.Err() != nil {
			return pos, false, context.Cause(ctx)
		}
		return pos, false, classify("obtaining a producer id", err)
	}
	s.dead = false
	return pos, false, nil
}

// Commit publishes the batch and blocks until all of it is acknowledged. On an
// error done is the number of leading groups whose records all are; a record that
// can't be published does not keep those of earlier groups back. The sink is dead
// afterwards.
func (s *AtLeastOnce) Commit(ctx context.Context, b *txn.Batch) (done int, err error) {
	if s.dead || s.p == nil {
		return 0, newError(SinkClosed, "publishing after an error or before the sink was opened", nil)
	}
	if txn.Count(b.Groups) == 0 {
		return len(b.Groups), nil
	}
	begin := time.Now()
	admitted, refusal := 0, (*Error)(nil)
	if err := s.p.within(ctx, func() error {
		admitted, refusal = s.p.topics.admit(ctx, b)
		return nil
	}); err != nil {
		return s.fail(0, err)
	}
	groups := b.Groups[:admitted]
	f := newFlight(groups)
	defer f.detach()
	s.pub.metrics.inflight.Set(float64(txn.Count(groups)))
	defer s.pub.metrics.inflight.Set(0)
	sent, err := s.p.publish(ctx, groups, f)
	if err != nil {
		err = s.p.cause(f, sent, err)
		s.p.stop() // before anything behind the failed record gets out
		f.settle(sent, settleLimit)
	}
	done, _ = f.result()
	if err != nil {
		s.pub.metrics.count(groups, done, sent)
		return s.fail(done, err)
	}
	s.pub.metrics.count(groups, admitted, sent)
	if refusal != nil {
		return s.fail(done, refusal)
	}
	s.pub.metrics.duration.Observe(time.Since(begin).Seconds())
	return len(b.Groups), nil
}

func (s *AtLeastOnce) fail(done int, err error) (int, error) {
	s.dead = true
	s.p.stop()
	return done, err
}

// Close frees the sink within ctx. Nothing is in flight between Commits, so there
// is nothing to wait for but connections.
func (s *AtLeastOnce) Close(ctx context.Context) error {
	s.dead = true
	if s.p == nil {
		return nil
	}
	p := s.p
	s.p = nil
	return p.close(ctx)
}
