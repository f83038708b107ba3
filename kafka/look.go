package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// Requests of which not every service that speaks Kafka's protocol knows.
const (
	describeProducersKey    = 61 // Kafka 2.8
	describeTransactionsKey = 65 // Kafka 3.0

	errTransactionalIDNotFound sarama.KError = 105 // which sarama does not name

	maxLookWait = 20 * time.Millisecond
)

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// transaction asks the coordinator about the connector's transactional id. ready is
// false when there is no coordinator at the moment.
func (s *ExactlyOnce) transaction() (state sarama.TransactionState, coordinator *sarama.Broker, ready bool, err error) {
	id := s.pub.cfg.TransactionalID()
	coordinator, err = s.p.client.TransactionCoordinator(id)
	if err != nil {
		return state, nil, false, err
	}
	answer, err := coordinator.DescribeTransactions(&sarama.DescribeTransactionsRequest{TransactionalIDs: []string{id}})
	if err != nil {
		return state, nil, false, err
	}
	if len(answer.TransactionStates) != 1 {
		return state, nil, false, sarama.ErrIncompleteResponse
	}
	state = answer.TransactionStates[0]
	switch state.ErrorCode {
	case sarama.ErrNoError:
		return state, coordinator, true, nil
	case sarama.ErrNotCoordinatorForConsumer, sarama.ErrOffsetsLoadInProgress, sarama.ErrConsumerCoordinatorNotAvailable:
		return state, nil, false, s.p.client.RefreshTransactionCoordinator(id)
	case errTransactionalIDNotFound:
		return sarama.TransactionState{ProducerID: -1}, coordinator, true, nil
	default:
		return state, nil, false, state.ErrorCode
	}
}

// isEnded reports whether the coordinator believes that all markers are written.
func isEnded(state sarama.TransactionState) bool {
	switch state.TransactionState {
	case "Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence":
		return false
	}
	return true
}

// seen is what the leaders of partitions say of open transactions.
type seen struct {
	open map[topicPartition][]hanging
	// away are partitions whose leader could not be asked.
	away map[topicPartition]error
	// unseen are topics that we may not read, so that nobody tells.
	unseen map[string]bool
}

// look asks the leaders of partitions for open transactions, all at the same time.
func look(client sarama.Client, parts []topicPartition) seen {
	found := seen{map[topicPartition][]hanging{}, map[topicPartition]error{}, map[string]bool{}}
	at := map[*sarama.Broker][]topicPartition{}
	for _, p := range parts {
		leader, err := client.Leader(p.topic, p.id)
		switch {
		case errors.Is(err, sarama.ErrUnknownTopicOrPartition): // it was deleted with all that was open
		case err != nil:
			found.away[p] = err
		default:
			at[leader] = append(at[leader], p)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for leader, parts := range at {
		wg.Go(func() {
			req := &sarama.DescribeProducersRequest{}
			for topic, ids := range byTopic(parts) {
				req.Topics = append(req.Topics, sarama.DescribeProducersRequestTopic{Name: topic, PartitionIndexes: ids})
			}
			answer, err := leader.DescribeProducers(req)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				for _, p := range parts {
					found.away[p] = err
				}
				return
			}
			told := found.add(answer)
			for _, p := range parts {
				if !told[p] {
					found.away[p] = sarama.ErrIncompleteResponse
				}
			}
		})
	}
	wg.Wait()
	return found
}

// add takes an answer in and returns the partitions that it speaks of.
func (f *seen) add(answer *sarama.DescribeProducersResponse) (told map[topicPartition]bool) {
	told = map[topicPartition]bool{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			at := topicPartition{t.Name, p.PartitionIndex}
			told[at] = true
			switch p.ErrorCode {
			case sarama.ErrNoError:
			case sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, sarama.ErrUnsupportedVersion:
				f.unseen[t.Name] = true
			default:
				f.away[at] = p.ErrorCode
			}
			for _, a := range p.ActiveProducers {
				if a.CurrentTxnStartOffset >= 0 {
					f.open[at] = append(f.open[at], hanging{a.ProducerID, a.ProducerEpoch, a.LastSequence, a.CurrentTxnStartOffset})
				}
			}
		}
	}
	return told
}

// refresh has the client ask anew who leads the topics of partitions.
func refresh(client sarama.Client, parts map[topicPartition]error) {
	topics := map[string]bool{}
	for p := range parts {
		topics[p.topic] = true
	}
	_ = client.RefreshMetadata(slices.Sorted(maps.Keys(topics))...) // the next look says more
}

// endOnly commits or aborts a transaction that holds nothing but these partitions: its
// markers close what an earlier one of the same producer id has left open there.
func (s *ExactlyOnce) endOnly(ctx context.Context, parts []topicPartition, commit bool) error {
	id := s.pub.cfg.TransactionalID()
	coordinator, err := s.p.client.TransactionCoordinator(id)
	if err != nil {
		return err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, maxLookWait) {
		added, err := coordinator.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{
			TransactionalID: id, ProducerID: s.parts.id.producer, ProducerEpoch: s.parts.id.epoch,
			TopicPartitions: byTopic(parts),
		})
		if err == nil {
			err = firstError(added)
		}
		if errors.Is(err, sarama.ErrConcurrentTransactions) {
			if err := pause(ctx, wait); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		return s.endRaw(coordinator, commit)
	}
}

func firstError(added *sarama.AddPartitionsToTxnResponse) error {
	for _, errs := range added.Errors {
		for _, e := range errs {
			if e.Err != sarama.ErrNoError && e.Err != sarama.ErrOperationNotAttempted {
				return e.Err
			}
		}
	}
	return nil
}

// abortRaw aborts the open transaction, if this epoch's id is known.
func (s *ExactlyOnce) abortRaw() error {
	if s.parts.id.producer < 0 {
		return nil
	}
	coordinator, err := s.p.client.TransactionCoordinator(s.pub.cfg.TransactionalID())
	if err != nil {
		return err
	}
	return s.endRaw(coordinator, false)
}

// endRaw ends the open transaction of a producer without the client library's knowledge.
func (s *ExactlyOnce) endRaw(coordinator *sarama.Broker, commit bool) error {
	ended, err := coordinator.EndTxn(&sarama.EndTxnRequest{
		TransactionalID: s.pub.cfg.TransactionalID(), ProducerID: s.parts.id.producer, ProducerEpoch: s.parts.id.epoch,
		TransactionResult: commit,
	})
	if err != nil {
		return err
	}
	if ended.Err != sarama.ErrNoError {
		return ended.Err
	}
	return nil
}
