package kafka

import (
	"context"
	"errors"
	"fmt"
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
func readPosition(ctx context.Context, client sarama.Client, topic, session string) (*history, error) {
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
		r := positionReader{committedReader: committedReader{client: client, at: topicPartition{topic, 0}, offset: from},
			session: session}
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
	committedReader
	session string
	history history
}

// read ends without an error when it has come to the open record of its run, or without a
// run to the end of what is committed.
func (r *positionReader) read(ctx context.Context) error {
	r.take = r.record
	return r.committedReader.read(ctx, func(b *sarama.FetchResponseBlock) bool {
		return r.session == "" &&
			r.offset >= b.LastStableOffset
	})
}

// record takes one record; found says that it is the open record of the run.
func (r *positionReader) record(offset int64, rec *sarama.Record) (found bool, err error) {
	if string(rec.Key) == openKey {
		var o openRecord
		return decodePosition(rec.Value, &o) == nil && o.Session == r.session, nil
	}
	if err := r.history.take(rec.Key, rec.Value); err != nil {
		return false, unreadable(r.at.topic, fmt.Errorf("record %q at offset %d: %w", rec.Key, offset, err))
	}
	return false, nil
}
