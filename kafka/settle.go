package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// Settle commits or aborts what a transaction of this connector has left open in one
// partition, after an Error with TransactionHanging. It claims the transactional id, so
// a connector that runs is fenced: it is to be stopped or failed. found is false when
// nothing of this connector is open there that can't be decided without a choice; what
// can be is ended as it must be.
func (p *Publisher) Settle(ctx context.Context, topic string, partition int32, commit bool) (found bool, err error) {
	s := p.ExactlyOnce(0)
	s.choice = &choice{at: topicPartition{topic, partition}, verdict: toAbort}
	if commit {
		s.choice.verdict = toCommit
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		_ = s.Close(end) // all that was to be done is done or has failed
	}()
	if _, _, err := s.Open(ctx); err != nil {
		var e *Error
		if s.choice.found && errors.As(err, &e) && e.Code == TransactionHanging {
			p.log.Warn("something is open elsewhere, too", "error", err)
			return true, nil
		}
		return s.choice.found, err
	}
	err = s.p.within(ctx, func() error {
		if !s.sees() || s.parts.unseen[topic] {
			return onTopic(newError(NotAuthorized, "what is open can't be seen without the right READ on the topic, or the "+
				"brokers don't tell", nil), topic)
		}
		return s.settle(ctx, []topicPartition{s.choice.at})
	})
	return s.choice.found, err
}

// obeyBeforeClaim carries an administrator's choice out that the claim would take away:
// it concerns all of the open transaction.
func (s *ExactlyOnce) obeyBeforeClaim(state sarama.TransactionState, coordinator *sarama.Broker) error {
	s.choice.found = true
	if s.choice.verdict != toCommit || state.TransactionState != "Ongoing" {
		return nil // the claim aborts it, or it is ending already
	}
	s.parts.id = producerID{state.ProducerID, state.ProducerEpoch}
	if err := s.endRaw(coordinator, true); err != nil {
		return fmt.Errorf("committing the open transaction: %w", err)
	}
	return nil
}
