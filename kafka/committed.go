package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

// committedReader reads one partition as a read_committed consumer does.
type committedReader struct {
	client sarama.Client
	at     topicPartition
	offset int64 // next to read
	// take gets each record, and says that it was the last one that is wanted.
	take    func(offset int64, rec *sarama.Record) (found bool, err error)
	aborted map[int64]bool // producers whose transaction at this place was aborted
}

// read ends without an error when take has found what it wants, or when end says so of a
// fetch that is taken.
func (r *committedReader) read(ctx context.Context, end func(*sarama.FetchResponseBlock) bool) error {
	r.aborted = map[int64]bool{}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("reading on at offset %d: %w", r.offset, context.Cause(ctx))
		}
		block, err := fetchFrom(r.client, r.at, r.offset, sarama.ReadCommitted)
		switch {
		case isMoving(err):
			if err := r.client.RefreshMetadata(r.at.topic); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		found, err := r.block(block)
		if err != nil || found || end(block) {
			return err
		}
	}
}

// isMoving reports whether the partition's leader is changing.
func isMoving(err error) bool {
	return errors.Is(err, sarama.ErrNotLeaderForPartition) || errors.Is(err, sarama.ErrLeaderNotAvailable) ||
		errors.Is(err, sarama.ErrUnknownTopicOrPartition) || errors.Is(err, sarama.ErrReplicaNotAvailable)
}

func fetchFrom(client sarama.Client, at topicPartition, offset int64,
	isolation sarama.IsolationLevel) (*sarama.FetchResponseBlock, error) {
	leader, err := client.Leader(at.topic, at.id)
	if err != nil {
		return nil, err
	}
	req := &sarama.FetchRequest{Version: fetchVersion, MaxWaitTime: int32(fetchWait.Milliseconds()), MinBytes: 1,
		MaxBytes:  fetchBytes,
		Isolation: isolation, SessionEpoch: -1}
	req.AddBlock(at.topic, at.id, offset, fetchBytes, -1)
	resp, err := leader.Fetch(req)
	if err != nil {
		return nil, err
	}
	block := resp.GetBlock(at.topic, at.id)
	if block == nil {
		return nil, sarama.ErrIncompleteResponse
	}
	if block.Err != sarama.ErrNoError {
		return nil, block.Err
	}
	return block, nil
}

// block reads what one fetch brought. The broker names the aborted transactions
// in it; their records are left out from their first offset to their marker.
func (r *committedReader) block(b *sarama.FetchResponseBlock) (found bool, err error) {
	aborted := b.AbortedTransactions
	slices.SortFunc(aborted, func(x, y *sarama.AbortedTransaction) int { return int(x.FirstOffset - y.FirstOffset) })
	for _, set := range b.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		for ; len(aborted) > 0 && aborted[0].FirstOffset <= batch.LastOffset(); aborted = aborted[1:] {
			r.aborted[aborted[0].ProducerID] = true
		}
		switch {
		case batch.Control:
			if isAbortMarker(batch) {
				delete(r.aborted, batch.ProducerID)
			}
		case batch.IsTransactional && r.aborted[batch.ProducerID]:
		default:
			if found, err = r.records(batch); found || err != nil {
				return found, err
			}
		}
		r.offset = max(r.offset, batch.LastOffset()+1)
	}
	return false, nil
}

func isAbortMarker(b *sarama.RecordBatch) bool {
	return len(b.Records) > 0 && len(b.Records[0].Key) >= 4 && binary.BigEndian.Uint16(b.Records[0].Key[2:]) == 0
}

func (r *committedReader) records(b *sarama.RecordBatch) (found bool, err error) {
	for _, rec := range b.Records {
		offset := b.FirstOffset + rec.OffsetDelta
		if offset < r.offset {
			continue // a fetch begins with the whole batch around its offset
		}
		if found, err := r.take(offset, rec); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
