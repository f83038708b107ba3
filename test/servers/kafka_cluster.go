package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
)

// KafkaCluster is a set of brokers, each with a controller in it, so that a majority
// of them must live.
type KafkaCluster struct {
	// Brokers in the order of their ids, which count from 1.
	Brokers []*Kafka
}

// StartKafkaCluster starts n brokers. Topics have min(n, 3) replicas by default, of
// which one may be missing when n is 3 or more.
func StartKafkaCluster(ctx context.Context, n int, options KafkaOptions) (*KafkaCluster, error) {
	if options.Port != 0 {
		return nil, errors.New("servers: a cluster's ports can't be chosen")
	}
	return startBrokers(ctx, n, options)
}

func startBrokers(ctx context.Context, n int, options KafkaOptions) (*KafkaCluster, error) {
	if options.Name == "" {
		options.Name = "kafka"
	}
	dist, err := findKafka(ctx, options.Log)
	if err != nil {
		return nil, fmt.Errorf("getting kafka: %w", err)
	}
	return startBrokersOf(ctx, dist, n, options)
}

func startBrokersOf(ctx context.Context, dist *kafkaDist, n int, options KafkaOptions) (_ *KafkaCluster, err error) {
	c := &KafkaCluster{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting %s: %w", options.Name, err), c.Close())
		}
	}()
	if options.Detached && options.Dir == "" {
		return nil, errors.New("a detached server needs a folder of its own")
	}
	for id := 1; id <= n; id++ {
		one := options
		if n > 1 {
			one.Name = fmt.Sprintf("%s-%d", options.Name, id)
			if options.Dir != "" {
				one.Dir = fmt.Sprintf("%s/%d", options.Dir, id)
			}
		}
		k, err := newBroker(ctx, dist, id, one)
		c.Brokers = append(c.Brokers, k)
		if err != nil {
			return nil, err
		}
	}
	clusterID := newUUID()
	for _, k := range c.Brokers {
		if err := k.configure(ctx, c.Brokers, clusterID); err != nil {
			return nil, err
		}
	}
	var group errgroup.Group
	for _, k := range c.Brokers {
		group.Go(func() error {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.launch(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return c, nil
}

// Addr is the brokers' plain listeners, parted by commas, as clients take them.
func (c *KafkaCluster) Addr() string { return strings.Join(c.Addrs(), ",") }

// Addrs is the brokers' plain listeners.
func (c *KafkaCluster) Addrs() []string {
	var all []string
	for _, k := range c.Brokers {
		all = append(all, k.Addr())
	}
	return all
}

// Close closes all brokers.
func (c *KafkaCluster) Close() error {
	var group errgroup.Group
	for _, k := range c.Brokers {
		group.Go(k.Close)
	}
	return group.Wait()
}
