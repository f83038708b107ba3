package connector

import (
	"context"
	"fmt"
	"time"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Heart is what an Encoder may implement to have heartbeat records sent. It may be
// called while Encode is at work.
type Heart interface {
	Heartbeat(mem *txn.Arena, at time.Time) (txn.Record, error)
}

// heartbeats sends the heartbeat records of one session. Each has a batch of its own, which
// carries the position: they are no outbox rows, count as none, and are never sent
// without what stands before them. It belongs to the publishing goroutine.
type heartbeats struct {
	heart Heart
	every time.Duration
	due   time.Time
	batch batch // of one record
}

// newHeartbeats returns nil when no heartbeats are wanted.
func (t *session) newHeartbeats() *heartbeats {
	heart, ok := t.encoder.(Heart)
	if !ok || t.cfg.HeartbeatEvery <= 0 {
		return nil
	}
	return &heartbeats{
		heart: heart, every: t.cfg.HeartbeatEvery, due: time.Now().Add(t.cfg.HeartbeatEvery),
	}
}

// interval is how often the publisher looks around when nothing comes.
func (b *heartbeats) interval(idle time.Duration) time.Duration {
	if b == nil {
		return idle
	}
	return min(idle, b.every)
}

// send publishes a heartbeat if one is due.
func (b *heartbeats) send(ctx context.Context, t *session, sink Sink) error {
	now := time.Now()
	if b == nil || now.Before(b.due) {
		return nil
	}
	b.due = now.Add(b.every)
	b.batch.reset()
	rec, err := b.heart.Heartbeat(&b.batch.memory, now)
	if err != nil {
		return fmt.Errorf("making a heartbeat record: %w", err)
	}
	b.batch.Groups = append(b.batch.Groups, txn.Group{Records: []txn.Record{rec}})
	b.batch.Position = t.at
	b.batch.Position.InKafka = t.sinks.KeepsPosition()
	if _, err := sink.Commit(ctx, &b.batch.Batch); err != nil {
		return fmt.Errorf("publishing a heartbeat record: %w", err)
	}
	return nil
}
