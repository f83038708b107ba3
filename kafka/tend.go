package kafka

import (
	"context"
	"time"
)

// Tend is for when there is nothing to commit: batches that Kafka has ended without
// their marker get it, since read_committed consumers see neither them nor what is behind
// them before. It asks nobody when all markers are known to be there. The sink is dead
// after an error.
func (s *ExactlyOnce) Tend(ctx context.Context) error {
	if s.dead || s.p == nil {
		return newError(SinkClosed, "looking at partitions after an error or before the sink was opened", nil)
	}
	if len(s.parts.pending) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(float64(s.timeout)*batchShare), errDelivery)
	defer cancel()
	var err error
	if s.tainted {
		err = s.renew(ctx) // which settles
	} else {
		err = s.p.within(ctx, func() error { return s.settle(ctx, nil) })
	}
	if err == nil {
		return nil
	}
	s.dead = true
	if s.p != nil {
		s.p.stop()
	}
	return s.noticed(deliveryError(err))
}
