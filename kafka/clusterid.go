package kafka

import (
	"context"

	"github.com/IBM/sarama"
)

// ClusterID asks the first broker that answers which cluster it belongs to.
func ClusterID(ctx context.Context, cfg Config) (string, error) {
	if err := cfg.Validate(); err != nil {
		return "", err
	}
	d := newDialer(&cfg, true)
	defer d.stop()
	defer context.AfterFunc(ctx, d.stop)()
	sc, err := saramaConfig(ctx, &cfg, "", d, hooks{produceRetry: func() {}, transactionRetry: func() {},
		hopeless: func() bool { return false }})
	if err != nil {
		return "", err
	}
	for _, addr := range cfg.Brokers {
		id, e := clusterIDOf(sarama.NewBroker(addr), sc)
		if e == nil {
			return id, nil
		}
		err = classify("asking broker "+addr+" for its cluster", e)
	}
	return "", err
}

func clusterIDOf(b *sarama.Broker, sc *sarama.Config) (string, error) {
	if err := b.Open(sc); err != nil {
		return "", err
	}
	defer b.Close() //nolint:errcheck // only read from
	// An empty list would ask for all topics.
	resp, err := b.GetMetadata(&sarama.MetadataRequest{Version: 7, Topics: []string{"__consumer_offsets"}})
	if err != nil {
		return "", err
	}
	if resp.ClusterID == nil {
		return "", sarama.ErrIncompleteResponse
	}
	return *resp.ClusterID, nil
}
