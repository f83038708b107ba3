package kafkatest

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster is a Kafka cluster in this process (franz-go's kfake), behind a network
// that can be cut and stopped. Faults of the protocol are those of kfake.
type Cluster struct {
	*kfake.Cluster
	Network *Network
	t       testing.TB

	mu     sync.Mutex
	faults []*kfake.FaultHandle
}

// Start starts a cluster of one broker, which ends with the test. Options are
// kfake's: NumBrokers, SeedTopics, EnableSASL, MaxVersions, TLS and so on.
func Start(tb testing.TB, opts ...kfake.Opt) *Cluster {
	tb.Helper()
	n := &Network{}
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.ListenFn(n.Listen)}, opts...)...)
	if err != nil {
		tb.Fatalf("starting kfake: %v", err)
	}
	tb.Cleanup(func() {
		n.Resume()
		c.Close()
	})
	return &Cluster{Cluster: c, Network: n, t: tb}
}

// Brokers returns the addresses to begin with.
func (c *Cluster) Brokers() []string { return c.ListenAddrs() }

// Topic creates a topic and returns its name.
func (c *Cluster) Topic(name string, partitions int32, settings map[string]string) string {
	c.t.Helper()
	if err := c.CreateTopic(name, partitions, settings); err != nil {
		c.t.Fatalf("creating topic %s: %v", name, err)
	}
	return name
}

// FailProduce makes the next n produce requests to topic (all topics if empty)
// fail with err; n < 0 means until the handle's Remove. With
// kerr.NotEnoughReplicasAfterAppend and kerr.RequestTimedOut the records are
// stored nevertheless.
func (c *Cluster) FailProduce(topic string, n int, err *kerr.Error) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: err, Count: n})
}

// DropProduce cuts the connection of the next n produce requests instead of
// answering them; the records are not stored.
func (c *Cluster) DropProduce(n int) {
	for range n {
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			return nil, errDropped, true
		})
	}
}

// Reader reads this cluster.
func (c *Cluster) Reader() Reader { return Reader{Brokers: c.Brokers()} }

// Records returns all that a read_committed consumer sees of a topic, by
// partition and offset.
func (c *Cluster) Records(topic string) []Record {
	c.t.Helper()
	return c.read(topic, true)
}

// AllRecords returns all that a read_uncommitted consumer sees.
func (c *Cluster) AllRecords(topic string) []Record {
	c.t.Helper()
	return c.read(topic, false)
}

func (c *Cluster) read(topic string, committed bool) []Record {
	c.t.Helper()
	recs, err := c.Reader().Read(c.t.Context(), topic, committed)
	if err != nil {
		c.t.Fatalf("reading topic %s: %v", topic, err)
	}
	return recs
}

// ClearFaults removes all faults that are set, but not kfake's controls.
func (c *Cluster) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		f.Remove()
	}
	c.faults = nil
}

// Fault is kfake's, remembered for ClearFaults.
func (c *Cluster) Fault(faults ...kfake.Fault) *kfake.FaultHandle {
	h := c.Cluster.Fault(faults...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, h)
	return h
}
