package kafka

import (
	"context"
	"fmt"

	"github.com/IBM/sarama"
)

// Latest reads a compacted topic of others: the last committed value of each key that want
// lets pass, nil for one that was deleted. It waits until no transaction is open there.
// Errors are *Error, or the context's cause.
func Latest(ctx context.Context, cfg Config, topic string, want func(key []byte) bool) (map[string][]byte, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readLimit, fmt.Errorf("a transaction is open there, or it is too "+
		"large to be read in %s", readLimit))
	defer cancel()
	d := newDialer(&cfg, true)
	defer d.stop()
	defer context.AfterFunc(ctx, d.stop)()
	sc, err := saramaConfig(ctx, &cfg, "", d, hooks{produceRetry: func() {}, transactionRetry: func() {},
		hopeless: func() bool { return false }})
	if err != nil {
		return nil, err
	}
	client, err := sarama.NewClient(cfg.Brokers, sc)
	if err != nil {
		return nil, latestError(ctx, topic, err)
	}
	defer client.Close() //nolint:errcheck // nothing was written
	partitions, err := client.Partitions(topic)
	if err != nil {
		return nil, latestError(ctx, topic, err)
	}
	out := map[string][]byte{}
	for _, p := range partitions {
		oldest, err := client.GetOffset(topic, p, sarama.OffsetOldest)
		if err != nil {
			return nil, latestError(ctx, topic, err)
		}
		r := committedReader{client: client, at: topicPartition{topic, p}, offset: oldest}
		r.take = func(_ int64, rec *sarama.Record) (bool, error) {
			if want(rec.Key) {
				out[string(rec.Key)] = rec.Value
			}
			return false, nil
		}
		if err := r.read(ctx,
			func(b *sarama.FetchResponseBlock) bool { return r.offset >= b.HighWaterMarkOffset }); err != nil {
			return nil, latestError(ctx, topic, err)
		}
	}
	return out, nil
}

func latestError(ctx context.Context, topic string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("reading topic %s: %w", topic, context.Cause(ctx))
	}
	e := classify("reading it", err)
	if e.Code == NotAuthorized {
		e.Text = "reading it: a right is missing: READ and DESCRIBE on the topic are needed"
	}
	e.Topic = topic
	return e
}
