package canal

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Metrics are the binlog_outbox_source_* series of one connector, over the
// streams that it opens one after the other. Between streams connected is 0 and
// the other gauges are absent. Before the first attempt to open one, and after
// Standby, all series are absent, so that a standby node says nothing.
//
// A nil *Metrics is one that counts nothing.
type Metrics struct {
	mu     sync.Mutex
	stream *Stream // open now
	// initial is what hands on snapshot rows now; read are those that were handed on,
	// by table.
	snapshot *Snapshot
	read     map[string]uint64
	removed  map[string]uint64 // statements that took snapshot rows away
	past     Status            // sums of the streams before
	used     bool              // this node reads, or tries to
	server   string            // that was read last

	changes atomic.Uint64
	lost    atomic.Uint64

	disconnects [len(kinds)]atomic.Uint64
}

const (
	metricPrefix  = "binlog_outbox_source_"
	initialPrefix = "binlog_outbox_snapshot_"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(metricPrefix+name, help, labels, nil)
}

func snapshotDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(initialPrefix+name, help, labels, nil)
}

// The descriptions are constants in all but name.
var (
	descConnected = desc("connected", "1 while the binlog connection stands, else 0.")
	descLastEvent = desc("last_event_timestamp_seconds", "The source's time of the last transaction read.")
	descHeard     = desc("last_heard_timestamp_seconds",
		"When bytes last came from the source, heartbeats included.")
	descEvents = desc("events_total",
		"Outbox changes seen: inserted rows, and row events of updates and deletes.", "operation")
	descCommitted  = desc("transactions_total", "Committed transactions read, with and without outbox rows.")
	descRolledBack = desc("rolled_back_transactions_total",
		"Transactions in the binlog that ended in ROLLBACK or did not end.")
	descReceived    = desc("received_bytes_total", "Bytes received from the source.")
	descDisconnects = desc("disconnects_total", "Binlog connections that ended or could not be opened, by reason.",
		"reason")
	descFile             = desc("binlog_file_number", "The number of the binlog file being read.")
	descPos              = desc("binlog_position_bytes", "The offset in the binlog file after the last transaction read.")
	descChanges          = desc("server_changes_total", "Times that the source was another server than before.")
	descLostTransactions = desc("lost_transactions_total",
		"Published transactions that a failed primary took with it, accepted as lost.")
	descUnknown  = desc("unknown_origin_total", "Servers whose transactions came and had not been seen before.")
	descFiltered = desc("filtered_transactions_total",
		"Transactions passed over because their origin does not count.")
	descUnlogged = desc("unlogged_statements_total",
		"Statements that changed outbox tables without row events: deletes in statement format, and DDL that puts rows in "+
			"place, which are not published.")
	descRunning = snapshotDesc("running",
		"1 while rows that stood in the outbox tables at the start are read, else 0.")
	descTables    = snapshotDesc("tables", "Outbox tables whose snapshot rows are read.")
	descRemaining = snapshotDesc("remaining_tables", "Those of them that are not done.")
	descEstimate  = snapshotDesc("estimated_rows", "Rows in these tables, as the server estimates.")
	descDone      = snapshotDesc("done_rows", "Snapshot rows handed on since the start, by whatever node.")
	descSnapshot  = snapshotDesc("rows_total", "Snapshot rows handed on by this node.", "table")
	descRemoved   = snapshotDesc("removals_total",
		"Statements (TRUNCATE, DROP, deletes in statement format) that took snapshot rows away before they were published, "+
			"by table.", "table")
	descGTID = desc("gtid_enabled", "1 when the source has GTIDs on, else 0.")
)

// NewMetrics registers the series with r; nil means that nobody will read them.
// The connector's name comes from the labels with which the caller wraps r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{}
	if r != nil {
		r.MustRegister(m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descConnected, descLastEvent, descHeard, descEvents, descCommitted, descRolledBack,
		descReceived, descDisconnects, descFile, descPos, descGTID,
		descChanges, descLostTransactions, descUnknown, descFiltered, descUnlogged,
		descRunning, descTables, descRemaining, descEstimate, descDone, descSnapshot, descRemoved,
	} {
		c <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.used {
		return
	}
	for k := range m.disconnects {
		if n := m.disconnects[k].Load(); n > 0 {
			c <- prometheus.MustNewConstMetric(descDisconnects, prometheus.CounterValue, float64(n), Kind(k).String())
		}
	}
	c <- prometheus.MustNewConstMetric(descChanges, prometheus.CounterValue, float64(m.changes.Load()))
	c <- prometheus.MustNewConstMetric(descLostTransactions, prometheus.CounterValue, float64(m.lost.Load()))
	m.collectSnapshot(c)
	sum := m.past
	if m.stream == nil {
		collectCounters(c, &sum)
		c <- prometheus.MustNewConstMetric(descConnected, prometheus.GaugeValue, 0)
		return
	}
	now := m.stream.Status()
	sum.add(&now)
	collectCounters(c, &sum)
	collectGauges(c, &now)
}

func (m *Metrics) collectSnapshot(c chan<- prometheus.Metric) {
	for table, n := range m.read {
		c <- prometheus.MustNewConstMetric(descSnapshot, prometheus.CounterValue, float64(n), table)
	}
	for table, n := range m.removed {
		c <- prometheus.MustNewConstMetric(descRemoved, prometheus.CounterValue, float64(n), table)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	if m.snapshot == nil {
		gauge(descRunning, 0)
		return
	}
	s := m.snapshot.progress()
	gauge(descRunning, 1)
	gauge(descTables, float64(s.Tables))
	gauge(descRemaining, float64(s.Tables-s.Done))
	gauge(descEstimate, float64(s.Estimate))
	gauge(descDone, float64(s.Rows))
}

func collectCounters(c chan<- prometheus.Metric, s *Status) {
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	count(descEvents, s.Inserts, "insert")
	count(descEvents, s.Updates, "update")
	count(descEvents, s.Deletes, "delete")
	count(descCommitted, s.Transactions)
	count(descRolledBack, s.RolledBack)
	count(descReceived, s.ReceivedBytes)
	count(descUnknown, s.UnknownOrigins)
	count(descFiltered, s.Filtered)
	count(descUnlogged, s.Unlogged)
}

func collectGauges(c chan<- prometheus.Metric, s *Status) {
	gauge := func(d *prometheus.Desc, v float64) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	flag := func(d *prometheus.Desc, v bool) {
		if v {
			gauge(d, 1)
		} else {
			gauge(d, 0)
		}
	}
	flag(descConnected, s.Connected)
	flag(descGTID, s.Server.GTIDMode == "ON")
	gauge(descHeard, float64(s.Heard.UnixMilli())/1000)
	if !s.LastEvent.IsZero() {
		gauge(descLastEvent, float64(s.LastEvent.Unix()))
	}
	if s.Last.File != "" {
		gauge(descFile, float64(position.FileNumber(s.Last.File)))
		gauge(descPos, float64(s.Last.Pos))
	}
}

// Standby takes the series away until a stream is opened again: for a node that
// stops leading.
func (m *Metrics) Standby() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = m.stream != nil
}

func (s *Status) add(o *Status) {
	s.Inserts += o.Inserts
	s.Updates += o.Updates
	s.Deletes += o.Deletes
	s.Transactions += o.Transactions
	s.RolledBack += o.RolledBack
	s.ReceivedBytes += o.ReceivedBytes
	s.UnknownOrigins += o.UnknownOrigins
	s.Filtered += o.Filtered
	s.Unlogged += o.Unlogged
}

func (m *Metrics) attach(s *Stream) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stream, m.used = s, true
}

func (m *Metrics) detach(s *Stream) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stream == s {
		now := s.Status()
		m.past.add(&now)
		m.stream = nil
	}
}

func (m *Metrics) attachSnapshot(s *Snapshot) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshot, m.used = s, true
}

func (m *Metrics) detachSnapshot(s *Snapshot) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshot == s {
		m.snapshot = nil
	}
}

// snapshotRow counts a row of a table.
func (m *Metrics) snapshotRow(table string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		m.read = map[string]uint64{}
	}
	m.read[table]++
}

// snapshotRemoved counts a statement that took snapshot rows of a table away.
func (m *Metrics) snapshotRemoved(table string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.removed == nil {
		m.removed = map[string]uint64{}
	}
	m.removed[table]++
}

// failed counts the end of a stream or of the attempt to open one.
func (m *Metrics) failed(err error) {
	var e *Error
	if m == nil || !errors.As(err, &e) {
		return
	}
	m.disconnects[e.Kind].Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = true
}

// serving notes the server that is read now, and returns the one before.
func (m *Metrics) serving(server string) (previous string) {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	previous, m.server = m.server, server
	return previous
}

func (m *Metrics) changed() {
	if m != nil {
		m.changes.Add(1)
	}
}

func (m *Metrics) lostTransactions(n uint64) {
	if m != nil {
		m.lost.Add(n)
	}
}
