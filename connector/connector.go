package connector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
)

// Config is one connector's own settings.
type Config struct {
	Name   string
	Limits Limits
	// SaveEvery is the least time between two saves of a moving position (default
	// 1 s); SaveQuiet is how long it must stand still to be saved at once (200 ms).
	SaveEvery, SaveQuiet time.Duration
	// SaveTimeout bounds one save, CloseTimeout the closing of the sink.
	SaveTimeout, CloseTimeout time.Duration
	// DrainTimeout bounds what an orderly end may take to publish what was read.
	DrainTimeout time.Duration
	// RetryInitial and RetryMax bound the pause between sessions.
	RetrySnapshot, RetryMax time.Duration
	// HeartbeatEvery is how often a heartbeat record is sent, where Encoder is a Heart;
	// zero is never.
	HeartbeatEvery time.Duration
	// StatusPollEvery is how often the source is asked how far it has come, where Sources
	// is a StatusPoller.
	StatusPollEvery time.Duration
	// Errors says what becomes of rows that can't be published.
	Errors Errors
	// SequenceHeaders adds to every record where it stands in its transaction and in
	// the life of the connector; see HeaderSeq.
	SequenceHeaders bool
	// Recent is told of all that is published, and Find asks it; nil remembers nothing.
	Recent *recent.Index
	// Topics is told what is published to; nil when nobody wants to know.
	Topics *Topics
	// MaxAttempts is how many sessions in a row may fail before they stream anything
	// until the connector fails; negative means any number.
	MaxAttempts int
}

// DefaultConfig returns the defaults of all fields but Name.
func DefaultConfig() Config {
	return Config{
		Limits:    Limits{Rows: 10_000, Bytes: 8 << 20},
		SaveEvery: time.Second, SaveQuiet: 200 * time.Millisecond, SaveTimeout: 10 * time.Second,
		CloseTimeout: 5 * time.Second, DrainTimeout: 15 * time.Second,
		RetrySnapshot: 300 * time.Millisecond, RetryMax: 10 * time.Second, MaxAttempts: -1,
		StatusPollEvery: 10 * time.Second,
	}
}

// Connector runs one connector while this node leads. Run is called by one
// goroutine at a time; Status, Restart and the collectors may be called at any time.
type Connector struct {
	cfg       Config
	sources   Sources
	sinks     Sinks
	encoder   Encoder
	positions Positions
	metrics   *metrics
	log       *slog.Logger
	polls     polls
	recent    *recent.Index // nil remembers nothing
	// remembered is the sequence number of the last row that the index knows of, or could;
	// negative before the first session of a leadership that streams. Only Run and the
	// sessions use it.
	remembered int64

	restart chan struct{}
	// alone is the transaction that the next session publishes by itself. Only Run
	// and what it calls use it.
	alone position.Commit
	// decided is what the last session knew of decisions about single rows, refusedDeadLetter
	// the size in bytes of the smallest dead letter that its topic has refused. Only
	// Run and what it calls use them.
	decided           map[position.Row]RowDecision
	refusedDeadLetter int

	mu     sync.Mutex
	status Status
	stream *streamState
}

// New returns a connector that is not running yet. reg should add the connector's
// name as a label; it may be nil.
func New(cfg Config, sources Sources, sinks Sinks, enc Encoder, pos Positions, reg prometheus.Registerer,
	log *slog.Logger) *Connector {
	c := &Connector{
		cfg: cfg, sources: sources, sinks: sinks, encoder: enc, positions: pos,
		log: log.With("connector", cfg.Name), restart: make(chan struct{}, 1),
		status: Status{Name: cfg.Name, State: Unassigned, Since: time.Now()},
	}
	if _, ok := enc.(Identifier); ok {
		c.recent = cfg.Recent
	}
	c.metrics = newMetrics(reg, c)
	return c
}

// Restart ends the failed state, or the pause before the next session, or the session
// that is running; the next session starts at once.
func (c *Connector) Restart() { signal(c.restart) }

// Run works through sessions until drain or leadership ends. When drain ends, the session in
// hand publishes and saves what it has read; when leadership ends (the node no longer
// leads), it is cut off at once. leaderTerm goes into what is stored. Run returns
// only when all goroutines of the connector have ended.
func (c *Connector) Run(drain, leadership context.Context, leaderTerm uint64) {
	defer c.setState(Unassigned, nil)
	c.remembered = -1 // others may have published meanwhile
	// A restart that was asked for while another node worked is over.
	select {
	case <-c.restart:
	default:
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = c.cfg.RetrySnapshot, c.cfg.RetryMax
	open, cancel := either(drain, leadership)
	var polling sync.WaitGroup
	polling.Go(func() { c.poll(open) })
	defer func() {
		cancel()
		polling.Wait()
		c.polls.forget()
	}()
	attempts, first := 0, true
	for drain.Err() == nil && leadership.Err() == nil {
		if want := c.positions.Wanted(); want != StateRunning {
			c.setState(want, nil)
			c.waitWhile(open, want, 0, nil)
			pause.Reset()
			attempts = 0
			continue
		}
		c.setState(StateRunning, nil)
		began := time.Now()
		streamed := c.Status().Sessions
		err := c.runSession(drain, leadership, leaderTerm, first)
		first = false
		switch {
		case err == nil, drain.Err() != nil, leadership.Err() != nil, errors.Is(err, errSessionRestart):
			// The contexts themselves are asked: open follows them a moment later.
			if drain.Err() != nil && err != nil && !errors.Is(err, context.Cause(drain)) && leadership.Err() == nil {
				c.log.Warn("session ended by shutdown before it had drained", "error", err)
			}
			continue
		}
		if c.Status().Sessions > streamed {
			attempts = 0
		}
		var past bool
		if past, err = c.passes(open, err); past {
			continue
		}
		if commit, holds := holdsBack(err); holds && c.alone != commit {
			// What stands before it in the batch is in order: let it go first, at once
			// if waiting will not help.
			c.alone = commit
			if !retryable(err) {
				c.log.Warn("a record is refused; publishing what comes before it", "code", code(err), "gtid", commit.GTID.String())
				continue
			}
		}
		attempts++
		if !retryable(err) || c.cfg.MaxAttempts >= 0 && attempts > c.cfg.MaxAttempts {
			c.fail(err)
			c.waitWhile(open, StateRunning, 0, func() bool { return c.newlyDecided(err) })
			pause.Reset()
			attempts = 0
			continue
		}
		if time.Since(began) > c.cfg.RetryMax {
			pause.Reset()
		}
		d := pause.NextBackOff()
		c.retrying(err, d)
		c.waitWhile(open, StateRunning, d, nil)
	}
}

// errSessionRestart ends a session because the wanted run state changed or a restart
// was asked for.
var errSessionRestart = errors.New("session ended by an operator")

// runSession runs one session and ends it in an orderly way when the wanted state changes.
func (c *Connector) runSession(drain, leadership context.Context, leaderTerm uint64, first bool) error {
	drain, end := context.WithCancelCause(drain)
	defer end(nil)
	work, cut := context.WithCancelCause(leadership)
	defer cut(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for drain.Err() == nil {
			changed := c.positions.Changed()
			if c.positions.Wanted() != StateRunning {
				end(errSessionRestart)
			}
			select {
			case <-changed:
			case <-c.restart:
				end(errSessionRestart)
			case <-drain.Done():
			case <-work.Done():
				return
			}
		}
		// An orderly end may not last for ever: the broker may be away.
		select {
		case <-time.After(c.cfg.DrainTimeout):
			cut(errDrain)
		case <-work.Done():
		}
	}()
	t := &session{Connector: c, number: leaderTerm, takeover: first, log: c.log}
	err := t.run(drain, work)
	cut(nil)
	<-watching
	if cause := context.Cause(drain); errors.Is(cause, errSessionRestart) &&
		(err == nil || errors.Is(err, errSessionRestart)) {
		return errSessionRestart
	}
	return err
}

// errDrain cuts a session whose orderly end took too long.
var errDrain error = &sentinel{"drain_timeout", "what had been read could not be published in time"}

// waitWhile returns when the wanted state is no longer the given one, a restart
// was asked for, ctx ended, after d if that is not zero, or when something in the
// store has changed and helped reports true.
func (c *Connector) waitWhile(ctx context.Context, state State, d time.Duration, helped func() bool) {
	var after <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	for {
		changed := c.positions.Changed()
		if c.positions.Wanted() != state || helped != nil && helped() {
			return
		}
		select {
		case <-changed: // perhaps something else: positions are in the same store
		case <-after:
			return
		case <-c.restart:
			return
		case <-ctx.Done():
			return
		}
	}
}
