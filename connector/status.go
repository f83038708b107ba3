package connector

import (
	"errors"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// State is what a connector does on this node.
type State string

// The states of a connector. Unassigned means that another node runs it.
const (
	Unassigned   State = "unassigned"
	StateRunning State = "running"
	StatePaused  State = "paused"
	StateStopped State = "stopped"
	Failed       State = "failed"
)

// The phases in which a connector works. Snapshot rows are those that stood in the
// tables at the start; a connector that is to publish nothing else then finishes.
const (
	Streaming     = "streaming"
	SnapshotRows  = "snapshot rows"
	Finished      = "finished"
	openingSource = "opening source"
)

// LastError is why the last session ended, also as JSON in the API.
type LastError struct {
	Code    string        `json:"code"`
	Message string        `json:"message"`
	GTID    position.GTID `json:"gtid,omitzero"`
	// Transaction and Row are where the row is that is to blame, as a decision to skip or
	// dead-letter it names it: the transaction as position.Row writes it, and the number among its
	// outbox rows, from 1. They are zero when no single row is.
	Transaction string    `json:"transaction,omitempty"`
	Row         uint64    `json:"row,omitempty"`
	At          time.Time `json:"at"`
	// RetryAt is the time of the next attempt; zero when an operator must act.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// Phase is how long one step from the start of a session until it streamed took.
type Phase struct {
	Name string
	Took time.Duration
}

// Status is a copy of what is known about a connector at one moment.
type Status struct {
	Name  string
	State State
	// Phase is what a running connector is at: "opening sink", "finding the start",
	// "opening source" (with what exactly, behind a colon, if the source says so),
	// "snapshot rows", "streaming", "finished", "waiting to retry".
	Phase string
	Since time.Time
	// LastError stays until the next session streams.
	LastError *LastError
	// Position is the last one made durable; Saved is false before the first.
	Position position.Position
	// Source is the open stream's state; nil when none is open.
	Source *canal.Status
	// Published and Sessions count since the process started.
	Published uint64
	Sessions  uint64
	// RowDecision counts the rows that were skipped or dead-lettered since the process started;
	// LastUnpublished are the last of them, in their order.
	Unpublished     uint64
	LastUnpublished []UnpublishedRow
	// Takeover are the phases of the session that streams, or streamed last.
	Takeover []Phase
	// Lag is the age of the oldest transaction that the source has committed and that
	// is not published, zero when there is none. LagKnown is false while nothing is
	// known of the source.
	Lag      time.Duration
	LagKnown bool
	// Backlog is nil until the source was asked for the first time.
	Backlog *Backlog
	// UnseenTopics are those of which the sink can't see what a transaction left open in
	// a partition without a leader; "*" stands for all.
	UnseenTopics []string
	// QueueRecords and QueueBytes wait for the sink.
	QueueRecords, QueueBytes int
}

// streamState is what Status needs of a streaming session.
type streamState struct {
	source Source
	pipe   *pipe
	saver  *saver
	read   *readSet
}

// Status returns a copy; it never waits for the network.
func (c *Connector) Status() Status {
	c.mu.Lock()
	s, stream := c.status, c.stream
	c.mu.Unlock()
	if u, ok := c.sinks.(interface{ UnseenTopics() []string }); ok {
		s.UnseenTopics = u.UnseenTopics()
	}
	if stream == nil {
		if o, ok := c.sources.(Opening); ok && s.Phase == openingSource {
			if step := o.Opening(); step != "" {
				s.Phase += ": " + step
			}
		}
		if p, ok := c.positions.Position(); ok {
			s.Position = p
		}
		c.compare(&s, nil)
		return s
	}
	src := stream.source.Status()
	s.Source = &src
	s.Position = stream.saver.current()
	s.QueueRecords, s.QueueBytes = stream.pipe.waiting()
	c.compare(&s, stream)
	switch {
	case src.Snapshot == nil || s.Phase != Streaming:
	case src.Snapshot.Finished:
		s.Phase = Finished
	default:
		s.Phase = SnapshotRows
	}
	return s
}

// Works reports whether the connector does what it is for.
func (s Status) Works() bool {
	return s.State == StateRunning && (s.Phase == Streaming || s.Phase == SnapshotRows || s.Phase == Finished)
}

func (c *Connector) setState(s State, last *LastError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.State != s {
		c.status.State, c.status.Since = s, time.Now()
		c.log.Info("connector state", "state", string(s))
	}
	if last != nil {
		c.status.LastError = last
	}
	if s != StateRunning {
		c.status.Phase = ""
	}
}

func (c *Connector) setPhase(phase string) {
	c.mu.Lock()
	c.status.Phase = phase
	c.mu.Unlock()
}

// fail enters the failed state, which only an operator or a new leader ends.
func (c *Connector) fail(err error) {
	c.metrics.sessionEnded(err)
	c.log.Error("connector failed", "code", code(err), "error", err)
	c.setState(Failed, c.lastError(err, time.Time{}))
}

func (c *Connector) retrying(err error, pause time.Duration) {
	c.metrics.sessionEnded(err)
	c.log.Warn("session ended, trying again", "code", code(err), "error", err, "pause",
		pause.Round(time.Millisecond).String())
	c.setState(StateRunning, c.lastError(err, time.Now().Add(pause)))
	c.setPhase("waiting to retry")
}

func (c *Connector) lastError(err error, next time.Time) *LastError {
	e := &LastError{Code: code(err), Message: err.Error(), At: time.Now(), RetryAt: next}
	var sent *RecordError
	var read *canal.Error
	row, known := rowOf(err)
	switch {
	case known:
		e.GTID, e.Row, e.Transaction = row.GTID, row.N+1, row.TransactionID()
	case errors.As(err, &sent):
		e.GTID = sent.Commit.GTID
	case errors.As(err, &read):
		e.GTID = read.GTID
	}
	return e
}

// streaming notes that a session has its sink and source open.
func (t *session) streaming(source Source, from position.Position, phases []Phase) {
	t.pipe = newPipe(t.cfg.Limits, t.encoder)
	t.pipe.alone = t.alone
	t.pipe.ids = newIdentify(t.encoder, t.recent)
	t.resumeRecent(from)
	if t.cfg.SequenceHeaders {
		t.pipe.sequence = newSequence(from, t.number)
	}
	t.taken = newReadSet(from)
	t.saver = newSaver(t.positions, from, t.cfg, t.metrics, t.log)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream = &streamState{source: source, pipe: t.pipe, saver: t.saver, read: t.taken}
	t.status.Phase, t.status.LastError = Streaming, nil
	t.status.Sessions++
	t.status.Takeover = phases
	attrs := []any{"position", from.String(), "term", t.number}
	for _, p := range phases {
		t.metrics.takeover.WithLabelValues(p.Name).Observe(p.Took.Seconds())
		attrs = append(attrs, p.Name, p.Took.Round(10*time.Microsecond).String())
	}
	t.log.Info("streaming", attrs...)
}

func (t *session) streamEnded() {
	t.flushUnpublished()
	t.mu.Lock()
	t.stream = nil
	t.mu.Unlock()
}

// published notes that the batch's first done groups are durable.
func (t *session) published(b *batch, done int, started time.Time) {
	t.metrics.commitSeconds.Observe(time.Since(started).Seconds())
	now := time.Now()
	for i := range b.Groups[:done] {
		g := &b.Groups[i]
		for j := range g.Records {
			if t.cfg.Topics != nil {
				t.cfg.Topics.add(g.Records[j].Topic)
			}
		}
		// One observation a transaction: its rows became durable together.
		if len(g.Records) > 0 && g.Final() && !g.Commit.Committed.IsZero() {
			t.metrics.latency.Observe(max(0, now.Sub(g.Commit.Committed).Seconds()))
		}
	}
	t.remember(b, done, now)
	deadLetters := t.noteUnpublished(b, done)
	t.mu.Lock()
	t.status.Published += uint64(txn.Count(b.Groups[:done])) - deadLetters
	t.mu.Unlock()
}
