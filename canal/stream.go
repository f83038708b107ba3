package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Stream is one connection to the binlog. It does not reconnect: after an error
// a new one is opened at the position that its user has made safe.
//
// Next is for one goroutine at a time; Close and Status for any.
type Stream struct {
	server  *Server
	dialer  *dialer
	queue   *queue
	stats   stats
	metrics *Metrics
	log     *slog.Logger

	// What the opening found: where it connected, whether there are other hosts, the
	// server that the position is from if that is another, and what it lacks.
	at       endpoint
	several  bool
	previous string
	lost     *position.Set

	known  *columns // at the event handler's place
	learnt string   // those at the place where it began that the position did not have

	ended chan struct{} // closed when the reading has ended
	close sync.Once
	since time.Time
	why   atomic.Pointer[Error] // the reason for which we ended it
}

// Open connects, checks that the server goes on where the position ends, and
// starts to read there. from.Set is not kept. The zero position is refused: where
// to begin is the caller's decision (CurrentPosition, EarliestPosition).
//
// ctx bounds the opening only. Errors are *Error, or the context's cause.
func Open(ctx context.Context, cfg Config, from position.Position) (*Stream, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, newError(BadConfig, err, "opening the binlog")
	}
	if from.IsZero() {
		return nil, newError(BadConfig, nil, "opening the binlog: no position was given")
	}
	if err := (&spoolDir{path: cfg.SpoolDir}).clean(); err != nil {
		return nil, newError(SpoolFailed, err, "opening the binlog")
	}
	s := &Stream{
		dialer: newDialer(cfg.Dialer), queue: newQueue(cfg.QueueBytes), log: cfg.Logger, metrics: cfg.Metrics,
		ended: make(chan struct{}), since: time.Now(),
	}
	stop := context.AfterFunc(ctx, s.dialer.close)
	if err := s.open(ctx, cfg, from); err != nil {
		s.dialer.close()
		s.metrics.failed(err)
		return nil, ctxOr(ctx, err)
	}
	if !stop() { // the context ended just now, and with it the connection
		_ = s.Close()
		return nil, context.Cause(ctx)
	}
	s.metrics.attach(s)
	s.cameFrom(from)
	s.log.Info("reading the binlog", slog.String("server", s.at.String()), slog.String("version", s.server.Version),
		slog.String("server_uuid", s.server.UUID), slog.String("from", from.String()))
	return s, nil
}

// cameFrom notes whether the server is another one than before.
func (s *Stream) cameFrom(from position.Position) {
	now := s.server.Name()
	s.previous = s.metrics.serving(now)
	if s.previous == "" { // the first stream of this process
		s.previous = from.Server
	}
	if s.previous == now || s.previous == "" {
		s.previous = ""
		return
	}
	s.metrics.changed()
	s.log.Warn("the source is another server than before", slog.String("host", s.at.String()), slog.String("server", now),
		slog.String("before", s.previous))
}

func (s *Stream) open(ctx context.Context, cfg Config, from position.Position) error {
	if err := cfg.movable(from); err != nil {
		return err
	}
	all := cfg
	at, err := choose(ctx, cfg, func(ss *session, server *Server, cfg Config) error {
		cfg.OnLostTransactions = nil // a host without lost transactions is better than one with
		cfg.Logger = slog.New(slog.DiscardHandler)
		_, err := check(ss, server, cfg, from)
		return err
	})
	if err != nil {
		return err
	}
	s.at, s.several = at, len(all.Others) > 0 || at.dial != ""
	cfg = cfg.at(at)
	s.dialer.dial = cfg.Dialer // nothing has been dialled yet
	cfg.progress("connecting to " + at.String())
	var answers map[schema.Name]*asked
	p, err := onSession(ctx, cfg, s.dialer, func(ss *session) (plan, error) {
		if ss.plain {
			cfg.TLS, all.TLS = nil, nil
		}
		server, err := ss.inspect()
		if err != nil {
			return plan{}, err
		}
		s.server = server
		p, err := check(ss, server, cfg, from)
		if err != nil {
			return p, err
		}
		answers, err = s.wanted(ss, cfg, p.from)
		return p, err
	})
	if err != nil {
		return err
	}
	if err := s.accept(ctx, cfg, p.lost); err != nil {
		return err
	}
	if err := s.know(ctx, cfg, p.from, answers); err != nil {
		return err
	}
	if p.proof != nil {
		cfg.progress("comparing the last transaction")
		reading, err := s.prove(ctx, cfg, all, p)
		if reading || err != nil {
			return err
		}
	}
	cfg.progress("asking for the binlog")
	w := s.newEventHandler(cfg, p)
	d, err := s.dump(cfg, p.from, w)
	if err != nil {
		return err
	}
	go s.watch(all, d, w)
	return nil
}

// accept has the loss of transactions accepted.
func (s *Stream) accept(ctx context.Context, cfg Config, lost *position.Set) error {
	if lost == nil {
		return nil
	}
	s.log.Warn("the server lacks transactions of other servers that were published; they are accepted as lost",
		slog.String("server", s.server.UUID), slog.String("gtid_set", lost.String()),
		slog.Uint64("transactions", lost.Count()))
	if err := cfg.OnLostTransactions(ctx, lost.Clone(), s.server.UUID); err != nil {
		return fmt.Errorf("recording the loss of %s: %w", lost, err)
	}
	s.lost = lost
	s.metrics.lostTransactions(lost.Count())
	return nil
}

// prove asks for the binlog without the last published transaction and compares
// that one when it comes. It reports whether the dump can be gone on with: it is
// over if others came before it, if it is large, or if the server can't serve it.
func (s *Stream) prove(ctx context.Context, cfg, all Config, p plan) (reading bool, err error) {
	proven, done := context.WithCancel(context.Background())
	defer done()
	w := s.newEventHandler(cfg, p)
	w.proof = p.proof
	w.proof.proven = done
	gtid := slog.String("gtid", p.proof.gtid.String())
	d, err := s.dump(cfg, p.without, w)
	if err == nil {
		select {
		case <-d.done:
			err = d.err
		case <-proven.Done():
			go s.watch(all, d, w)
			return true, nil
		}
		s.dialer.close()
		s.release(d, w)
	}
	s.dialer.reopen()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	switch {
	case proven.Err() != nil: // it broke right after; what it brought is in the queue
		return false, classify(err, Disconnected, "reading the binlog")
	case errors.Is(err, errProven):
		return false, nil
	case errors.Is(err, errAbsent):
		s.log.Warn("the last published transaction can't be compared with the server's: it is in none of its binlogs", gtid)
		return false, nil
	}
	err = classify(err, Disconnected, "reading the last published transaction")
	var e *Error
	if errors.As(err, &e) && (e.Kind == Purged || e.Kind == Behind) && e.GTID.IsZero() {
		// The server says so of the transaction before the last one. Whether it can
		// go on after the last one it will say next.
		s.log.Warn("the last published transaction can't be compared with the server's: it can't send it again", gtid,
			slog.String("reason", err.Error()))
		return false, nil
	}
	return false, err
}

func (s *Stream) newEventHandler(cfg Config, p plan) *eventHandler {
	from := p.from
	s.stats.arrived = s.dialer.heard.Load
	w := newEventHandler(cfg, s.server.Flavor, from, s.queue.put, &s.stats)
	w.origins.know(from, s.server)
	w.lostTransactions = p.lostTransactions
	if cfg.watermark != nil {
		cfg.watermark.wake = s.queue.wake
	}
	w.tableVersions.columns = func(name schema.Name) (asked, error) {
		return onSession(context.Background(), cfg, s.dialer, func(ss *session) (asked, error) {
			if err := ss.suits(name); err != nil {
				return asked{}, err
			}
			return ss.ask(s.server, name, from.HasGTID())
		})
	}
	w.tableVersions.known = s.known
	w.tableVersions.changes = func(name schema.Name) (bool, error) {
		here := position.Position{File: w.file, Pos: w.pos}
		if w.lost || needsSkip(here) {
			return false, errNoPlace
		}
		touched, err := s.ahead(context.Background(), cfg, here, []schema.Name{name})
		return len(touched) > 0, err
	}
	w.askSuspects = func() (map[string]string, error) {
		return onSession(context.Background(), cfg, s.dialer, func(
			ss *session,
		) (map[string]string, error) {
			return ss.suspects(cfg)
		})
	}
	if from.HasGTID() {
		w.size = func(file string) (uint64, error) {
			return onSession(context.Background(), cfg, s.dialer, func(ss *session) (uint64, error) { return ss.sizeOf(file) })
		}
	}
	if from.HasGTID() && s.server.Flavor == position.MySQL && from.Server == s.server.UUID && from.File != "" {
		// Files and offsets are of this server, so that they tell how far it was read.
		place := position.Position{File: from.File, Pos: from.Pos}
		w.jumped = func(start string) error {
			_, err := onSession(context.Background(), cfg, s.dialer, func(ss *session) (struct{}, error) {
				return struct{}{},
					ss.jumped(place, start)
			})
			return err
		}
	}
	return w
}

// dump asks for the binlog; the events go to w.
func (s *Stream) dump(cfg Config, from position.Position, w *eventHandler) (*dump, error) {
	waiting := s.waiting(cfg, from)
	d, err := guarded(func() (*dump, error) {
		return startDump(cfg, s.dialer, s.server.Flavor, from, s.sameServer,
			waiting)
	})
	if err != nil {
		s.dialer.close()
		return nil, s.refused(classify(err, Unreachable, "starting to read the binlog at "+from.String()), cfg)
	}
	w.found = d.found
	go d.run(w.handle)
	return d, nil
}

// seekLimit is how long a server may take to find a place in its binlogs.
const seekLimit = time.Hour

// waiting judges the silence of a server that has been asked for its binlog and has
// sent no event of it: many, large or cold binlogs take long to search, and asking
// anew begins the search anew. It is waited for as long as it answers elsewhere.
func (s *Stream) waiting(cfg Config, from position.Position) func() bool {
	var since, tell time.Time
	cfg.Logger = slog.New(slog.DiscardHandler)
	return func() bool {
		now := time.Now()
		if since.IsZero() {
			since = now.Add(-cfg.readTimeout())
			tell = now
		}
		searching := now.Sub(since)
		ctx, end := s.dialer.within(context.Background(), answerTimes*cfg.ConnectTimeout)
		defer end()
		server, err := withSession(ctx, cfg, func(ss *session) (*Server, error) { return ss.inspect() })
		if err != nil || server.identity() != s.server.identity() || searching > seekLimit {
			return false
		}
		if !now.Before(tell) {
			tell = now.Add(searching) // at twice the time, and so on
			s.log.Warn("the server is still looking for the place in its binlogs", slog.String("server", s.at.String()),
				slog.String("from", from.String()), slog.Duration("for", searching.Round(time.Millisecond)))
		}
		return true
	}
}

// refused names the right that is missing when the server lets us log in, but not
// read its binlog: it says the same as for a wrong password.
func (s *Stream) refused(err error, cfg Config) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != AccessDenied {
		return err
	}
	return newError(AccessDenied, e.err,
		"user %s may log in but not read the binlog: GRANT REPLICATION SLAVE ON *.* TO %s", cfg.User, cfg.User)
}

// sameServer checks on the dump's own connection that it leads to the server
// that was checked: behind a name or a proxy there may be several.
func (s *Stream) sameServer(ss *session) error {
	now, err := ss.inspect()
	if err != nil {
		return err
	}
	if now.identity() != s.server.identity() {
		return newError(ServerChanged, nil, "the address led to server %s first and to %s then", s.server.identity(),
			now.identity())
	}
	return nil
}

// watch waits for the end of the reading, for whatever reason, and tells Next. The
// goroutine that looks after the server's role is its own.
func (s *Stream) watch(cfg Config, d *dump, w *eventHandler) {
	defer close(s.ended)
	ctx, cancel := context.WithCancel(context.Background())
	var guard sync.WaitGroup
	if s.several && cfg.role() != anyRole && s.server.ReadOnly == "" && cfg.RoleCheck > 0 {
		guard.Go(func() { s.watchRole(ctx, cfg, s.at) })
	}
	<-d.done
	cancel()
	err := s.reason(d.err)
	s.queue.fail(err)
	s.metrics.failed(err)
	s.dialer.close()
	s.release(d, w)
	guard.Wait()
}

// release frees what belongs to one dump. The dialer must be closed.
func (s *Stream) release(d *dump, w *eventHandler) {
	d.close()
	w.inner.close()
	if err := w.hold.reset(0); err != nil {
		s.log.Warn("removing a spool file", slog.Any("error", err))
	}
}

// reason makes an *Error of what ended the reading.
func (s *Stream) reason(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, ErrClosed) || s.queue.isClosed() {
		return ErrClosed
	}
	e, ok := classify(err, Disconnected, "reading the binlog").(*Error) //nolint:errorlint // just made
	if !ok {
		return err
	}
	if why := s.why.Load(); why != nil {
		e = why
	}
	last, _, _, _ := s.queue.snapshot()
	e.GTID, e.File, e.Pos = last.GTID, last.File, last.Pos
	if !e.GTID.IsZero() || e.File != "" {
		e.msg += ", after the transaction named"
	}
	return e
}

// Next blocks until at least one transaction waits and returns all that wait.
// The slice and what it holds belong to the caller. After an error, which comes
// when everything before it is taken, the stream is over: an *Error, ErrClosed,
// or the context's cause, after which Next may be called again.
//
// A transaction whose Final is false is the beginning of one that is handed on
// in parts; all its parts follow without another transaction in between, but
// maybe in later calls.
func (s *Stream) Next(ctx context.Context) ([]txn.Transaction, error) { return s.queue.next(ctx) }

// Close ends the stream at once, whatever the server or the network do, and
// waits for its goroutines. It may be called more than once.
func (s *Stream) Close() error {
	s.close.Do(func() {
		s.metrics.detach(s)
		s.queue.close()
		s.dialer.close()
	})
	<-s.ended
	return nil
}

// Status is a look at a stream.
type Status struct {
	Server Server
	// Address is the host that the stream is connected to, as Config.Prefer takes it.
	Address string
	// Previous is the server that was read before (server_uuid; on MariaDB its
	// server_id), when that was another one.
	Previous string
	// LostTransactions are the transactions whose loss was accepted at the opening; nil for
	// none. The set is shared and not to be changed.
	LostTransactions *position.Set
	// Since is when the opening began; Opened is how long it took until the binlog
	// came, zero before.
	Since  time.Time
	Opened time.Duration
	// Connected is false after an error or Close.
	Connected bool
	// Last is the newest transaction that was read, whether or not Next has
	// handed it on.
	Last position.Commit
	// File and Pos are up to where the server's binlog has been read: the end of Last,
	// or further when nothing but other events and heartbeats came since. File is
	// empty before the first sign.
	File string
	Pos  uint64
	// LastEvent is the source's time of the last transaction; zero before the first.
	LastEvent time.Time
	// Heard is when bytes last came from the server, heartbeats included.
	Heard time.Time
	// Lag is how far behind its source the reading is: the age of the oldest
	// transaction that waits for Next, or else how old the last one was when it came.
	Lag time.Duration
	// Waiting and WaitingBytes are the transactions that wait for Next.
	Waiting, WaitingBytes int
	// Counters since the opening. Inserts are rows; Updates and Deletes are row
	// events of outbox tables, which are counted and otherwise ignored.
	Inserts, Updates, Deletes uint64
	Transactions, RolledBack  uint64
	ReceivedBytes             uint64
	// Snapshot says how far the rows from before the start are; nil when there are none
	// to come.
	Snapshot *SnapshotStatus
	// Filtered are transactions of origins that do not count, UnknownOrigins servers
	// whose transactions came and were not in the position.
	Filtered, UnknownOrigins uint64
	// Unlogged are statements that changed outbox tables without row events: deletes in
	// statement format, and DDL that puts rows in place.
	Unlogged uint64
}

// Status returns the stream's present numbers.
func (s *Stream) Status() Status {
	last, oldest, waiting, bytes := s.queue.snapshot()
	st := Status{
		Server: *s.server, Address: s.at.String(), Previous: s.previous, LostTransactions: s.lost, Since: s.since,
		Connected: !s.queue.isOver(), Last: last, Waiting: waiting, WaitingBytes: bytes,
		Inserts: s.stats.inserts.Load(), Updates: s.stats.updates.Load(), Deletes: s.stats.deletes.Load(),
		Transactions: s.stats.transactions.Load(), RolledBack: s.stats.rolledBack.Load(),
		Filtered: s.stats.filtered.Load(), UnknownOrigins: s.stats.unknown.Load(), Unlogged: s.stats.unlogged.Load(),
		ReceivedBytes: s.dialer.received.Load(), Heard: time.Unix(0, s.dialer.heard.Load()),
	}
	st.File, st.Pos = last.File, last.Pos
	if p := s.stats.sent.Load(); p != nil && (p.file != last.File || p.pos > last.Pos) {
		if order, err := position.CompareFiles(p.file, last.File); last.File == "" || err == nil && order >= 0 {
			st.File, st.Pos = p.file, p.pos
		}
	}
	if seconds := s.stats.lastEvent.Load(); seconds > 0 {
		st.LastEvent = time.Unix(seconds, 0).UTC()
	}
	if first := s.stats.first.Load(); first > 0 {
		st.Opened = time.Unix(0, first).Sub(s.since)
	}
	switch {
	case waiting > 0 && !oldest.Committed.IsZero():
		st.Lag = max(0, time.Since(oldest.Committed))
	case s.stats.lag.Load() > 0:
		st.Lag = time.Duration(s.stats.lag.Load())
	}
	return st
}
