package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

const (
	// flushMessages is the largest number of records in one request. Nothing waits
	// for it: what has arrived when the last request is answered goes out.
	flushMessages = 20000
	// channelBuffer is the length of sarama's channels per topic and partition.
	channelBuffer = 1024

	metadataRetries = 5
	metadataBackoff = 20 * time.Millisecond
	// transactionRetries is about 12 s against a dead broker, each attempt also
	// going through the metadata retries. The producer's constructor takes no
	// context, so this bounds it.
	transactionRetries = 100
)

// transactionBackoff is 1, 2, 4 ... 20 ms. The coordinator answers
// CONCURRENT_TRANSACTIONS for a few milliseconds after each transaction; sarama's
// default of 100 ms is what makes transactions look slow.
func transactionBackoff(retries, _ int) time.Duration {
	return min(time.Millisecond<<min(max(retries, 0), 5), 20*time.Millisecond)
}

// produceBackoff is 5, 10, 20 ... 100 ms: 30 of them last through an election.
func produceBackoff(retries, _ int) time.Duration {
	return min(5*time.Millisecond<<min(max(retries, 0), 5), 100*time.Millisecond)
}

// hooks are called by sarama's goroutines before they wait for a retry.
type hooks struct {
	produceRetry     func()
	transactionRetry func()
	// hopeless reports that the transaction has failed already. sarama repeats
	// what belongs to it all the same; then it need not take its time.
	hopeless func() bool
	// throttled is called when a broker asks to wait.
	throttled func(time.Duration)
}

// saramaConfig translates cfg. With a transactional id the producer is
// transactional. Credentials are read here, so each session has fresh ones.
func saramaConfig(ctx context.Context, cfg *Config, transactionalID string, d *dialer,
	h hooks) (*sarama.Config, error) {
	c := sarama.NewConfig()
	version, err := sarama.ParseKafkaVersion(cfg.Version)
	if err != nil {
		return nil, newError(Unsupported, "reading the configured Kafka version", err)
	}
	c.Version, c.ClientID, c.ChannelBufferSize, c.MetricRegistry = version, cfg.ClientID, channelBuffer,
		noMetrics{h.throttled}

	c.Net.MaxOpenRequests = 1 // sarama demands it for idempotence
	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = cfg.DialTimeout, cfg.RequestTimeout, cfg.RequestTimeout
	// Our dialer speaks TLS itself, so sarama sees plain connections.
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, d

	c.Metadata.Full, c.Metadata.AllowAutoTopicCreation = false, false // see topics.autoCreate
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = metadataRetries, metadataBackoff

	p := &c.Producer
	p.Idempotent, p.RequiredAcks, p.Partitioner = true, sarama.WaitForAll, newPartitioner
	p.Return.Successes, p.Return.Errors = true, true
	p.MaxMessageBytes, p.Timeout, p.Flush.MaxMessages = cfg.MaxMessageBytes, cfg.AckTimeout, flushMessages
	if p.Compression, err = codec(cfg.Compression); err != nil {
		return nil, newError(Unsupported, "reading the configured compression", err)
	}
	p.Retry.Max = cfg.MaxRetries
	p.Retry.BackoffFunc = func(n, limit int) time.Duration {
		if d.isStopped() || h.hopeless() {
			return 0 // sarama waits for each record by itself before it lets go
		}
		h.produceRetry()
		return produceBackoff(n, limit)
	}
	p.Transaction.ID, p.Transaction.Timeout, p.Transaction.Retry.Max = transactionalID, cfg.TransactionTimeout,
		transactionRetries
	p.Transaction.Retry.BackoffFunc = func(n, limit int) time.Duration {
		if d.isStopped() {
			return 0
		}
		h.transactionRetry()
		return transactionBackoff(n, limit)
	}
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	if cfg.SASL != nil {
		if err := cfg.SASL.apply(ctx, c, cfg); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// newPartitioner makes the partitioner of one topic: the record's own partition
// if it has one, else what the Java producer would take.
func newPartitioner(topic string) sarama.Partitioner {
	return partitioner{sarama.NewMurmur2Partitioner(topic)}
}

type partitioner struct{ byKey sarama.Partitioner }

// Partition implements sarama.Partitioner.
func (p partitioner) Partition(m *sarama.ProducerMessage, n int32) (int32, error) {
	if o, ok := m.Metadata.(*outgoing); ok && o.partition >= 0 {
		return o.partition, nil // sarama answers ErrInvalidPartition if it is too large
	}
	return p.byKey.Partition(m, n)
}

// RequiresConsistency implements sarama.Partitioner.
func (p partitioner) RequiresConsistency() bool { return true }

// MessageRequiresConsistency lets only records without key avoid partitions that
// have no leader at the moment.
func (p partitioner) MessageRequiresConsistency(m *sarama.ProducerMessage) bool {
	o, ok := m.Metadata.(*outgoing)
	return m.Key != nil || ok && o.partition >= 0
}

// noMetrics is a go-metrics registry that measures nothing, since sarama's own metrics
// cost a goroutine and a lock per request and nobody reads them; but what it would
// measure of being throttled, sarama tells nobody else.
type noMetrics struct{ throttled func(time.Duration) }

// throttleTimes is a histogram of milliseconds that hands them on.
type throttleTimes struct {
	metrics.NilHistogram
	throttled func(time.Duration)
}

// Update implements metrics.Histogram.
func (t throttleTimes) Update(ms int64) { t.throttled(time.Duration(ms) * time.Millisecond) }

func (noMetrics) Each(func(string, any))            {}
func (noMetrics) Get(string) any                    { return nil }
func (noMetrics) GetAll() map[string]map[string]any { return nil }
func (noMetrics) Register(string, any) error        { return nil }
func (noMetrics) RunHealthchecks()                  {}
func (noMetrics) Unregister(string)                 {}
func (noMetrics) UnregisterAll()                    {}
func (n noMetrics) GetOrRegister(name string, metric any) any {
	if n.throttled != nil && strings.HasPrefix(name, "throttle-time-in-ms") {
		return throttleTimes{throttled: n.throttled}
	}
	switch m := metric.(type) {
	case func() metrics.Counter:
		return metrics.NilCounter{}
	case func() metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Timer:
		return metrics.NilTimer{}
	case func() metrics.Gauge:
		return metrics.NilGauge{}
	default:
		return m
	}
}
