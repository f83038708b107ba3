package canal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
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

	syncer *replication.BinlogSyncer
	ended  chan struct{} // closed when the reading has ended
	close  sync.Once
	since  time.Time
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
	s.log.Info("reading the binlog", slog.String("server", cfg.address()), slog.String("version", s.server.Version),
		slog.String("server_uuid", s.server.UUID), slog.String("from", from.String()))
	return s, nil
}

func (s *Stream) open(ctx context.Context, cfg Config, from position.Position) error {
	server, err := onSession(ctx, cfg, s.dialer, func(ss *session) (*Server, error) {
		server, err := ss.inspect()
		if err != nil {
			return nil, err
		}
		return server, check(ss, server, cfg, from)
	})
	if err != nil {
		return err
	}
	s.server = server
	s.stats.arrived = s.dialer.heard.Load
	w := newWalker(cfg, server.Flavor, from, s.queue.put, &s.stats)
	w.shapes.columns = func(name schema.Name) ([]schema.ColumnInfo, error) {
		return onSession(context.Background(), cfg, s.dialer, func(ss *session) ([]schema.ColumnInfo, error) { return ss.columns(name) })
	}
	if from.HasGTID() && server.Flavor == position.MySQL && from.Server == server.UUID && from.File != "" {
		// Files and offsets are of this server, so that they tell how far it was read.
		place := position.Position{File: from.File, Pos: from.Pos}
		w.jumped = func(start string) error {
			_, err := onSession(context.Background(), cfg, s.dialer, func(ss *session) (struct{}, error) { return struct{}{}, ss.jumped(place, start) })
			return err
		}
	}
	s.syncer = replication.NewBinlogSyncer(s.syncerConfig(cfg, w))
	streamer, err := guarded(func() (*replication.BinlogStreamer, error) { return s.start(from) })
	if err != nil {
		s.dialer.close() // before the syncer, which would open a connection to KILL the old one
		s.syncer.Close()
		return classify(err, Unreachable, "starting to read the binlog at "+from.String())
	}
	// From now on two heartbeats may get lost, no more.
	s.dialer.setReadTimeout(cfg.readTimeout())
	go s.watch(streamer, w)
	return nil
}

// syncerConfig sets go-mysql up as a reader of packets and nothing else: no
// decoding, no retry of its own, no GTID book-keeping, no KILL of old
// connections (the dialer refuses it one), no semi-sync acknowledgements.
func (s *Stream) syncerConfig(cfg Config, w *walker) replication.BinlogSyncerConfig {
	return replication.BinlogSyncerConfig{
		ServerID: cfg.ServerID, Flavor: string(s.server.Flavor),
		Host: cfg.Host, Port: uint16(cfg.Port), User: cfg.User, Password: cfg.Password, TLSConfig: cfg.tls(),
		RawModeEnabled:          true,
		SynchronousEventHandler: handlerFunc(func(e *replication.BinlogEvent) error { return w.handle(e.RawData) }),
		HeartbeatPeriod:         cfg.Heartbeat,
		DisableRetrySync:        true,
		DiscardGTIDSet:          true,
		EventCacheCount:         16,
		Dialer:                  s.dialer.open(max(cfg.ConnectTimeout, cfg.readTimeout())),
		Logger:                  slog.New(quiet{cfg.Logger.Handler()}),
		Option:                  s.sameServer,
	}
}

type handlerFunc func(*replication.BinlogEvent) error

func (f handlerFunc) HandleEvent(e *replication.BinlogEvent) error { return f(e) }

// sameServer checks on the dump's own connection that it leads to the server
// that was checked: behind a name or a proxy there may be several.
func (s *Stream) sameServer(c *client.Conn) error {
	now, err := (&session{conn: c, maria: s.server.Flavor == position.MariaDB}).inspect()
	if err != nil {
		return err
	}
	if now.identity() != s.server.identity() {
		return newError(ServerChanged, nil, "the address led to server %s first and to %s then", s.server.identity(), now.identity())
	}
	return nil
}

func (s *Stream) start(from position.Position) (*replication.BinlogStreamer, error) {
	if !from.HasGTID() {
		pos := from.Pos
		if needsSkip(from) {
			pos = 4
		}
		return s.syncer.StartSync(mysql.Position{Name: from.File, Pos: uint32(pos)})
	}
	// Through text: go-mysql must not get hold of our set, it would add to it.
	set, err := mysql.ParseGTIDSet(string(s.server.Flavor), from.Set.String())
	if err != nil {
		return nil, newError(BadConfig, err, "handing on the position")
	}
	return s.syncer.StartSyncGTID(set)
}

// watch waits for the end of the reading, for whatever reason, and tells Next.
func (s *Stream) watch(streamer *replication.BinlogStreamer, w *walker) {
	defer close(s.ended)
	// The events go to the handler, so that all that ever comes here is the end.
	_, err := streamer.GetEvent(context.Background())
	err = s.reason(err)
	s.queue.fail(err)
	s.metrics.failed(err)
	s.dialer.close()
	s.syncer.Close() // waits for go-mysql's goroutine
	w.inner.close()
	if err := w.hold.reset(0); err != nil {
		s.log.Warn("removing a spool file", slog.Any("error", err))
	}
}

// reason makes an *Error of what ended the reading. It does not look at the
// walker: go-mysql's goroutine may still be on its way out.
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
func (s *Stream) Next(ctx context.Context) ([]Transaction, error) { return s.queue.next(ctx) }

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
	// Since is when the stream was opened.
	Since time.Time
	// Connected is false after an error or Close.
	Connected bool
	// Last is the newest transaction that was read, whether or not Next has
	// handed it on.
	Last position.Mark
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
}

// Status returns the stream's present numbers.
func (s *Stream) Status() Status {
	last, oldest, waiting, bytes := s.queue.snapshot()
	st := Status{
		Server: *s.server, Since: s.since, Connected: !s.queue.isOver(), Last: last, Waiting: waiting, WaitingBytes: bytes,
		Inserts: s.stats.inserts.Load(), Updates: s.stats.updates.Load(), Deletes: s.stats.deletes.Load(),
		Transactions: s.stats.transactions.Load(), RolledBack: s.stats.rolledBack.Load(),
		ReceivedBytes: s.dialer.received.Load(), Heard: time.Unix(0, s.dialer.heard.Load()),
	}
	if seconds := s.stats.lastEvent.Load(); seconds > 0 {
		st.LastEvent = time.Unix(seconds, 0).UTC()
	}
	switch {
	case waiting > 0 && !oldest.Committed.IsZero():
		st.Lag = max(0, time.Since(oldest.Committed))
	case s.stats.lag.Load() > 0:
		st.Lag = time.Duration(s.stats.lag.Load())
	}
	return st
}

// quiet passes go-mysql's warnings and errors on as debug lines: each of them
// comes back as an error of ours as well. Its informational lines hold the whole
// configuration, TLS keys included.
type quiet struct{ to slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.to.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	line := slog.NewRecord(r.Time, slog.LevelDebug, "go-mysql: "+r.Message, r.PC)
	return q.to.Handle(ctx, line)
}

func (q quiet) WithAttrs([]slog.Attr) slog.Handler { return q }
func (q quiet) WithGroup(string) slog.Handler      { return q }
