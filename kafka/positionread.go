package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

const (
	fetchVersion = 11
	fetchBytes   = 32 << 20
	// fetchWait is how long the broker may wait for something to read. Our own
	// record is committed already; what may lag are the broker's commit markers.
	fetchWait = 10 * time.Millisecond
	// movingPause is how long to wait for a partition's next leader.
	movingPause = 20 * time.Millisecond
	// readLimit bounds the reading of the whole topic.
	readLimit = 30 * time.Second
)

// readPosition reads the position topic, read_committed, up to the open record of
// the given run, which is committed already: that is an exact end. Without a run it
// reads what is committed for now. The last offsets nearly always suffice; if not, it
// reads from the start.
//
// It uses plain fetches, since sarama's consumer waits a fixed 100 ms for each
// subscription.
func readPosition(ctx context.Context, client sarama.Client, topic, run string) (*history, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	newest, err := offsetAt(ctx, client, topic, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	oldest, err := offsetAt(ctx, client, topic, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	from := max(oldest, newest-positionTail)
	for {
		r := positionReader{client: client, topic: topic, run: run, offset: from}
		if err := r.read(ctx); err != nil {
			return nil, err
		}
		if r.history.complete() || from == oldest {
			return &r.history, nil
		}
		from = oldest
	}
}

// offsetAt asks for the beginning or the end of the partition, again while it gets
// another leader: a new one does not tell the end before its followers have followed.
func offsetAt(ctx context.Context, client sarama.Client, topic string, which int64) (int64, error) {
	for {
		offset, err := client.GetOffset(topic, 0, which)
		if err == nil || !isMoving(err) && !errors.Is(err, sarama.ErrOffsetNotAvailable) {
			return offset, err
		}
		select {
		case <-time.After(movingPause):
		case <-ctx.Done():
			return 0, err
		}
		if err := client.RefreshMetadata(topic); err != nil {
			return 0, err
		}
	}
}

func unreadable(topic string, err error) *Error {
	e := newError(PositionUnreadable, "the stored position can't be read, so where to go on is not known: "+
		"restore the topic, or delete it and set the connector's position by hand", err)
	e.Topic, e.Partition = topic, 0
	return e
}

// positionReader is one pass over the partition.
type positionReader struct {
	client  sarama.Client
	topic   string
	run     string
	offset  int64 // next to read
	history history
	aborted map[int64]bool // producers whose transaction at this place was aborted
}

// read ends without an error when it has come to the open record of its run.
func (r *positionReader) read(ctx context.Context) error {
	r.aborted = map[int64]bool{}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("looking for our own record at offset %d: %w", r.offset, context.Cause(ctx))
		}
		block, err := r.fetch()
		switch {
		case isMoving(err):
			if err := r.client.RefreshMetadata(r.topic); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		found, err := r.block(block)
		if err != nil || found || r.run == "" && r.offset >= block.LastStableOffset {
			return err
		}
	}
}

// isMoving reports whether the partition's leader is changing.
func isMoving(err error) bool {
	return errors.Is(err, sarama.ErrNotLeaderForPartition) || errors.Is(err, sarama.ErrLeaderNotAvailable) ||
		errors.Is(err, sarama.ErrUnknownTopicOrPartition) || errors.Is(err, sarama.ErrReplicaNotAvailable)
}

func (r *positionReader) fetch() (*sarama.FetchResponseBlock, error) {
	return fetchFrom(r.client, topicPartition{r.topic, 0}, r.offset, sarama.ReadCommitted)
}

func fetchFrom(client sarama.Client, at topicPartition, offset int64, isolation sarama.IsolationLevel) (*sarama.FetchResponseBlock, error) {
	leader, err := client.Leader(at.topic, at.id)
	if err != nil {
		return nil, err
	}
	req := &sarama.FetchRequest{Version: fetchVersion, MaxWaitTime: int32(fetchWait.Milliseconds()), MinBytes: 1, MaxBytes: fetchBytes,
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
func (r *positionReader) block(b *sarama.FetchResponseBlock) (found bool, err error) {
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

func (r *positionReader) records(b *sarama.RecordBatch) (found bool, err error) {
	for _, rec := range b.Records {
		offset := b.FirstOffset + rec.OffsetDelta
		if offset < r.offset {
			continue // a fetch begins with the whole batch around its offset
		}
		if string(rec.Key) == openKey {
			var o openRecord
			if decodePosition(rec.Value, &o) == nil && o.Run == r.run {
				return true, nil
			}
			continue
		}
		if err := r.history.take(rec.Key, rec.Value); err != nil {
			return false, unreadable(r.topic, fmt.Errorf("record %q at offset %d: %w", rec.Key, offset, err))
		}
	}
	return false, nil
}
