package connector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are one connector's. The registerer adds the connector label.
type metrics struct {
	latency       prometheus.Histogram
	commitSeconds prometheus.Histogram
	saves         *prometheus.CounterVec
	saveSeconds   prometheus.Histogram
	lastSave      prometheus.Gauge
	termsEnded    *prometheus.CounterVec
	takeover      *prometheus.HistogramVec
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	})
}

func newMetrics(reg prometheus.Registerer, c *Connector) *metrics {
	fine := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	m := &metrics{
		latency:       histogram("binlog_outbox_end_to_end_latency_seconds", "Time from the commit in MySQL to the acknowledgement by Kafka, one observation a transaction.", fine),
		commitSeconds: histogram("binlog_outbox_batch_commit_duration_seconds", "Time to make one batch durable in Kafka.", fine),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_offset_commits_total", Help: "Saves of the position in the replicated store, by outcome.",
		}, []string{"outcome"}),
		saveSeconds: histogram("binlog_outbox_offset_commit_duration_seconds", "Time to save the position in the replicated store.", fine),
		lastSave: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "binlog_outbox_offset_last_commit_timestamp_seconds", Help: "When the position was last saved, in seconds since the epoch.",
		}),
		termsEnded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_terms_ended_total", Help: "Terms that ended with an error, by its code.",
		}, []string{"code"}),
	}
	m.takeover = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binlog_outbox_takeover_seconds", Help: "Time of each phase from the start of a term until it streams.",
		Buckets: fine, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}, []string{"phase"})
	for _, outcome := range []string{"ok", "error"} {
		m.saves.WithLabelValues(outcome)
	}
	if reg != nil {
		reg.MustRegister(m.latency, m.commitSeconds, m.saves, m.saveSeconds, m.lastSave, m.termsEnded, m.takeover, &collector{status: c.Status, limits: c.cfg.Limits})
	}
	return m
}

func (m *metrics) offsetCommit(err error, d time.Duration) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	} else {
		m.lastSave.SetToCurrentTime()
	}
	m.saves.WithLabelValues(outcome).Inc()
	m.saveSeconds.Observe(d.Seconds())
}

func (m *metrics) termEnded(err error) { m.termsEnded.WithLabelValues(code(err)).Inc() }

var (
	descState = prometheus.NewDesc("binlog_outbox_connector_state", "1 for the state that the connector is in on this node.", []string{"state"}, nil)
	descQueue = prometheus.NewDesc("binlog_outbox_queue_records", "Records that wait to be published.", nil, nil)
	descBytes = prometheus.NewDesc("binlog_outbox_queue_bytes", "Bytes of records that wait to be published.", nil, nil)
	descCap   = prometheus.NewDesc("binlog_outbox_queue_capacity_records", "Records at which reading waits for publishing.", nil, nil)
	descCapB  = prometheus.NewDesc("binlog_outbox_queue_capacity_bytes", "Bytes at which reading waits for publishing.", nil, nil)
)

// collector gives the states at the time of the scrape.
type collector struct {
	status func() Status
	limits Limits
}

func (col *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descState, descQueue, descBytes, descCap, descCapB} {
		ch <- d
	}
}

func (col *collector) Collect(ch chan<- prometheus.Metric) {
	s := col.status()
	if s.State == Unassigned {
		return // the node that runs it reports
	}
	for _, state := range []State{StateRunning, StatePaused, StateStopped, Failed} {
		v := 0.0
		if s.State == state {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(descState, prometheus.GaugeValue, v, string(state))
	}
	if s.Source == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(descQueue, prometheus.GaugeValue, float64(s.QueueRecords))
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(s.QueueBytes))
	ch <- prometheus.MustNewConstMetric(descCap, prometheus.GaugeValue, float64(col.limits.Rows))
	ch <- prometheus.MustNewConstMetric(descCapB, prometheus.GaugeValue, float64(col.limits.Bytes))
}
