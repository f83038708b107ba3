package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// judgePosition decides about a transaction that is open in the position topic though
// its coordinator has ended it: whether the position in it was committed. The
// coordinator remembers the last transaction, and where the position's records lie the
// marker behind them tells.
//
// An open state before the claim says nothing: it may have been committed since.
func (s *ExactlyOnce) judgePosition(ctx context.Context, h hanging) (verdict, error) {
	written, err := s.positionsFrom(ctx, h)
	if err != nil {
		return undecided, classify("reading the position whose transaction is open", err)
	}
	switch {
	case len(written) == 0:
		return toAbort, nil // it holds open records alone
	case len(written) > 1 || written[0] == nil:
		return undecided, nil
	}
	own := map[topicPartition]ending{}
	for at, e := range written[0].endings() {
		if e.producer == h.producer && int32(e.epoch) == h.epoch && !e.aborted && !e.earlier {
			own[at] = e
		}
	}
	if len(own) == 0 && !written[0].Unnamed {
		return toCommit, nil // no rows come with it
	}
	last := s.parts.before
	switch {
	case last.ProducerID != h.producer:
	case strings.HasSuffix(last.TransactionState, "Commit") && int32(last.ProducerEpoch) == h.epoch:
		return toCommit, nil
	case strings.HasSuffix(last.TransactionState, "Abort") && (int32(last.ProducerEpoch) == h.epoch ||
		int32(last.ProducerEpoch) == h.epoch+1):
		return toAbort, nil
	}
	for _, at := range sorted(own) {
		if v := s.markerBehind(ctx, at, own[at]); v != undecided {
			return v, nil
		}
	}
	return undecided, nil
}

// positionsFrom returns what the position records of an open transaction say beside
// the positions.
func (s *ExactlyOnce) positionsFrom(ctx context.Context, h hanging) (all []*trace, err error) {
	err = s.batches(ctx, s.positionPartition(), h.start, func(b *sarama.RecordBatch) (bool, error) {
		if b.Control || b.ProducerID != h.producer {
			return false, nil
		}
		for _, r := range b.Records {
			if b.FirstOffset+r.OffsetDelta < h.start || string(r.Key) == openKey {
				continue
			}
			one := &history{}
			if err := one.take(r.Key, r.Value); err != nil {
				return false, unreadable(s.pub.cfg.PositionTopic(), err)
			}
			t, err := one.trace()
			if err != nil {
				return false, unreadable(s.pub.cfg.PositionTopic(), err)
			}
			all = append(all, t)
		}
		return false, nil
	})
	return all, err
}

// markerBehind returns what the first marker of the producer behind an ending says;
// undecided when none is found, since another partition may tell.
func (s *ExactlyOnce) markerBehind(ctx context.Context, at topicPartition, e ending) (v verdict) {
	if e.offset < 0 {
		return undecided
	}
	err := s.batches(ctx, at, e.offset+1, func(b *sarama.RecordBatch) (bool, error) {
		switch {
		case b.ProducerID != e.producer || b.LastOffset() <= e.offset:
			return false, nil
		case !b.Control: // records of another transaction before any marker
		case isAbortMarker(b):
			v = toAbort
		default:
			v = toCommit
		}
		return true, nil
	})
	if err != nil {
		s.pub.log.Debug("no marker is found", "topic", at.topic, "partition", at.id, "error", err)
		return undecided
	}
	return v
}

// batches hands over the batches of a partition from an offset on, committed or not,
// until f is content or what stood there at the first look is read: others may go on
// writing.
func (s *ExactlyOnce) batches(ctx context.Context, at topicPartition, offset int64,
	f func(*sarama.RecordBatch) (done bool, err error)) error {
	end := int64(-1)
	for until := time.Now().Add(readLimit); ; {
		block, err := fetchFrom(s.p.client, at, offset, sarama.ReadUncommitted)
		if err != nil {
			return err
		}
		if end < 0 {
			end = block.HighWaterMarkOffset
		}
		before := offset
		for _, set := range block.RecordsSet {
			b := set.RecordBatch
			if b == nil || b.PartialTrailingRecord {
				continue
			}
			if done, err := f(b); done || err != nil {
				return err
			}
			offset = max(offset, b.LastOffset()+1)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case offset >= end:
			return nil
		case offset == before && time.Now().After(until):
			return sarama.ErrRequestTimedOut
		}
	}
}
