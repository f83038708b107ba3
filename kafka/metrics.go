package kafka

import (
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// maxTopicLabels bounds the values of the label topic; the rest is "other".
const (
	maxTopicLabels = 200
	otherTopics    = "other"
)

// Metrics are what a connector's sink tells Prometheus. One Metrics serves all
// sessions of a connector; the label connector is the injected registerer's.
type Metrics struct {
	records      *prometheus.CounterVec
	bytes        *prometheus.CounterVec
	retries      prometheus.Counter
	duration     prometheus.Histogram
	inflight     prometheus.Gauge
	transactions *prometheus.CounterVec
	fenced       prometheus.Counter
	tainted      prometheus.Counter
	leftovers    prometheus.Counter
	throttled    prometheus.Counter

	mu     sync.Mutex
	topics map[string]*topicCounters
}

type topicCounters struct {
	ok, failed           prometheus.Counter
	okBytes, failedBytes prometheus.Counter
}

// NewMetrics makes the metrics and registers them with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_publish_records_total",
			Help: "Records handed to Kafka, by topic (the first 200, then \"other\") and by whether they were acknowledged. " +
				"With exactly-once, ok means committed.",
		}, []string{"topic", "outcome"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_publish_bytes_total",
			Help: "Bytes of key, value and headers of those records before compression.",
		}, []string{"topic", "outcome"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "binlog_outbox_publish_retries_total",
			Help: "Times the Kafka client waited before sending something again.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                            "binlog_outbox_publish_duration_seconds",
			Help:                            "Time to publish one batch, from its first record until all of it was durable.",
			Buckets:                         []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}),
		inflight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "binlog_outbox_publish_inflight_records",
			Help: "Records of the batch that is being published.",
		}),
		transactions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_kafka_transactions_total",
			Help: "Kafka transactions of this connector, by outcome. After an abort the connector opens its sink anew.",
		}, []string{"outcome"}),
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "binlog_outbox_producer_fenced_total",
			Help: "Times this node found that another writer had taken over its transactional id.",
		}),
		tainted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "binlog_outbox_kafka_transactions_tainted_total",
			Help: "Commits that the Kafka client had to repeat, after which the producer takes a new epoch.",
		}),
		throttled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "binlog_outbox_kafka_throttled_seconds_total",
			Help: "Time for which the brokers made this connector wait, as they do beyond a quota.",
		}),
		leftovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "binlog_outbox_kafka_markers_repaired_total",
			Help: "Partitions in which Kafka had ended a transaction without its marker, and which got one then.",
		}),
		topics: map[string]*topicCounters{},
	}
	if reg != nil {
		reg.MustRegister(m.records, m.bytes, m.retries, m.duration, m.inflight, m.transactions, m.fenced, m.tainted,
			m.leftovers, m.throttled)
	}
	return m
}

// topic returns the counters of one topic.
func (m *Metrics) topic(name string) *topicCounters {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.topics[name]
	if c != nil {
		return c
	}
	if len(m.topics) >= maxTopicLabels || !utf8.ValidString(name) { // a label must be text
		name = otherTopics
		if c = m.topics[name]; c != nil {
			return c
		}
	}
	c = &topicCounters{
		ok: m.records.WithLabelValues(name, "ok"), failed: m.records.WithLabelValues(name, "error"),
		okBytes: m.bytes.WithLabelValues(name, "ok"), failedBytes: m.bytes.WithLabelValues(name, "error"),
	}
	m.topics[name] = c
	return c
}

// count adds the first sent records, which were handed over: those of the first done
// groups as published, the rest as failed.
func (m *Metrics) count(groups []txn.Group, done, sent int) {
	topic, n, size := "", 0, 0
	add := func(ok bool) {
		if n == 0 {
			return
		}
		c := m.topic(topic)
		if ok {
			c.ok.Add(float64(n))
			c.okBytes.Add(float64(size))
		} else {
			c.failed.Add(float64(n))
			c.failedBytes.Add(float64(size))
		}
		n, size = 0, 0
	}
	for i := range groups {
		if i == done {
			add(true)
		}
		recs := groups[i].Records
		recs = recs[:min(len(recs), sent)]
		sent -= len(recs)
		for j := range recs {
			if recs[j].Topic != topic {
				add(i < done)
				topic = recs[j].Topic
			}
			n++
			size += payloadBytes(&recs[j])
		}
	}
	add(done >= len(groups))
}

func payloadBytes(r *txn.Record) int {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}
