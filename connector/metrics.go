package connector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are one connector's. The registerer adds the connector label.
type metrics struct {
	latency         prometheus.Histogram
	commitSeconds   prometheus.Histogram
	saves           *prometheus.CounterVec
	saveSeconds     prometheus.Histogram
	lastSave        prometheus.Gauge
	sessionsEnded   *prometheus.CounterVec
	takeover        *prometheus.HistogramVec
	rowsUnpublished *prometheus.CounterVec
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
		latency: histogram("binlog_outbox_end_to_end_latency_seconds",
			"Time from the commit in MySQL to the acknowledgement by Kafka, one observation a transaction.", fine),
		commitSeconds: histogram("binlog_outbox_batch_commit_duration_seconds", "Time to make one batch durable in Kafka.",
			fine),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_offset_commits_total", Help: "Saves of the position in the replicated store, by outcome.",
		}, []string{"outcome"}),
		saveSeconds: histogram("binlog_outbox_offset_commit_duration_seconds",
			"Time to save the position in the replicated store.", fine),
		lastSave: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "binlog_outbox_offset_last_commit_timestamp_seconds",
			Help: "When the position was last saved, in seconds since the epoch.",
		}),
		sessionsEnded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "binlog_outbox_sessions_ended_total", Help: "Sessions that ended with an error, by its code.",
		}, []string{"code"}),
	}
	m.rowsUnpublished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "binlog_outbox_rows_unpublished_total",
		Help: "Rows that could not be published and were skipped or dead-lettered, by the code of the error and by what " +
			"was done (dead_letter or skip).",
	}, []string{"cause", "action"})
	m.takeover = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binlog_outbox_takeover_seconds", Help: "Time of each phase from the start of a session until it streams.",
		Buckets: fine, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}, []string{"phase"})
	for _, outcome := range []string{"ok", "error"} {
		m.saves.WithLabelValues(outcome)
	}
	if reg != nil {
		reg.MustRegister(m.latency, m.commitSeconds, m.saves, m.saveSeconds, m.lastSave, m.sessionsEnded, m.takeover,
			m.rowsUnpublished, &collector{status: c.Status, limits: c.cfg.Limits})
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

func (m *metrics) sessionEnded(err error) { m.sessionsEnded.WithLabelValues(code(err)).Inc() }

var (
	descState = prometheus.NewDesc("binlog_outbox_connector_state",
		"1 for the state that the connector is in on this node.", []string{"state"}, nil)
	descQueue = prometheus.NewDesc("binlog_outbox_queue_records", "Records that wait to be published.", nil, nil)
	descBytes = prometheus.NewDesc("binlog_outbox_queue_bytes", "Bytes of records that wait to be published.", nil, nil)
	descCap   = prometheus.NewDesc("binlog_outbox_queue_capacity_records",
		"Records at which reading waits for publishing.", nil, nil)
	descLag = prometheus.NewDesc("binlog_outbox_source_lag_seconds",
		"Age of the oldest transaction that the source has committed and that is not published; 0 when there is none, and "+
			"the time since the last sign of life of a source that does not answer.", nil, nil)
	descAhead = prometheus.NewDesc("binlog_outbox_source_backlog_transactions",
		"Transactions that the source has committed and the connector has not read. Absent without GTIDs, and while the "+
			"source does not answer.", nil, nil)
	descAfter = prometheus.NewDesc("binlog_outbox_source_backlog_bytes",
		"Bytes of the source's binlogs after the place that was read. Absent when the source does not list its binlogs, or "+
			"does not answer.", nil, nil)
	descLeft = prometheus.NewDesc("binlog_outbox_source_binlog_headroom_seconds",
		"Least time until the source may purge the binlog that is needed next; 0 when it has. Absent when it keeps binlogs "+
			"for ever.", nil, nil)
	descHeld = prometheus.NewDesc("binlog_outbox_source_binlog_headroom_bytes",
		"Bytes of binlog that the source still has and the connector no longer needs. Absent when the source does not list "+
			"its binlogs, or does not answer.", nil, nil)
	descKeeps = prometheus.NewDesc("binlog_outbox_source_binlog_retention_seconds",
		"How long the source keeps a binlog after its last event. Absent when it keeps binlogs for ever.", nil, nil)
	descAsked = prometheus.NewDesc("binlog_outbox_source_polled_timestamp_seconds",
		"When the source last said how far it has come, in seconds since the epoch.", nil, nil)
	descRuns = prometheus.NewDesc("binlog_outbox_connector_streaming",
		"1 while a session has its source and its sink open, else 0.", nil, nil)
	descCapB = prometheus.NewDesc("binlog_outbox_queue_capacity_bytes", "Bytes at which reading waits for publishing.",
		nil, nil)
)

// collector gives the states at the time of the scrape.
type collector struct {
	status func() Status
	limits Limits
}

func (col *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descState, descRuns, descQueue, descBytes, descCap, descCapB, descLag, descAhead, descAfter, descLeft, descHeld,
		descKeeps, descAsked,
	} {
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
	gauge := func(d *prometheus.Desc, known bool, v float64) {
		if known {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
		}
	}
	gauge(descLag, s.LagKnown, s.Lag.Seconds())
	if b := s.Backlog; b != nil {
		gaugeOf(ch, descAhead, b.Transactions)
		gaugeOf(ch, descAfter, b.Bytes)
		gaugeOf(ch, descHeld, b.HeadroomBytes)
		gaugeOf(ch, descLeft, b.HeadroomSeconds)
		gaugeOf(ch, descKeeps, b.RetentionSeconds)
		gauge(descAsked, true, float64(b.At.UnixMilli())/1000)
	}
	if s.Source == nil {
		gauge(descRuns, true, 0)
		return
	}
	gauge(descRuns, true, 1)
	gauge(descQueue, true, float64(s.QueueRecords))
	gauge(descBytes, true, float64(s.QueueBytes))
	gauge(descCap, true, float64(col.limits.Rows))
	gauge(descCapB, true, float64(col.limits.Bytes))
}

// gaugeOf sends a value that is known.
func gaugeOf[T uint64 | float64](ch chan<- prometheus.Metric, d *prometheus.Desc, v *T) {
	if v != nil {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(*v))
	}
}
