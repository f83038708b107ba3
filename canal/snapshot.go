package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Snapshot hands on the rows that stood in the outbox tables at the start, each as a
// transaction of its own whose commit position says how far they are done, and after the
// last of them what was committed since. It does not reconnect.
//
// Next is for one goroutine at a time; Close and Status for any.
type Snapshot struct {
	cfg       Config
	from      position.Position
	watermark *Stream
	queue     *queue

	dialer *dialer
	cancel context.CancelFunc
	ended  chan struct{} // closed when the reading of snapshot rows has ended

	mu     sync.Mutex
	state  SnapshotStatus
	stream *Stream // after the last snapshot row
	closed bool
}

// SnapshotStatus says how far the snapshot rows are.
type SnapshotStatus struct {
	// Table is the one being read; Tables is the number of all, Done of those that
	// are done.
	Table        schema.Name
	Tables, Done int
	// Rows were handed on, also by earlier streams from the same start. Estimate is
	// what the server believes to be in all tables.
	Rows, Estimate uint64
	// Removals counts the statements that took rows of a table away before they were
	// published, as TRUNCATE does: how many rows that were the server does not tell.
	Removals uint64
	// Finished is set when all are done and Config.SnapshotOnly asks for no more.
	Finished bool
}

// OpenSnapshot goes on with the rows that stood in the outbox tables at from, as
// from.Snapshot says. It needs SELECT on the tables beyond what Open needs.
//
// ctx bounds the opening only. Errors are *Error, or the context's cause.
func OpenSnapshot(ctx context.Context, cfg Config, from position.Position) (*Snapshot, error) {
	cfg = cfg.withDefaults()
	s := &Snapshot{
		cfg: cfg, from: from, queue: newQueue(cfg.QueueBytes),
		dialer: newDialer(cfg.Dialer), ended: make(chan struct{}), cancel: func() {},
	}
	switch {
	case from.Snapshot == nil && cfg.SnapshotOnly:
		close(s.ended)
		s.state.Finished = true
		return s, nil
	case from.Snapshot == nil:
		return nil, newError(BadConfig, nil, "the position has no snapshot rows to come")
	}
	s.from.Snapshot = nil
	s.state.Rows = from.Snapshot.Rows
	look := cfg
	look.watermark = &watermark{}
	look.Heartbeat = min(cfg.Heartbeat, watermarkBeat)
	look.Updates = true
	look.Origins = nil // whose an inserted row is does not matter: it was not there at the start
	watermark, err := Open(ctx, look, s.from)
	if err != nil {
		return nil, err
	}
	s.watermark = watermark
	if watermark.learnt != "" { // for the stream that begins at the start, too
		if err := s.queue.put(txn.Transaction{Commit: position.Commit{Columns: watermark.learnt}, Final: true}); err != nil {
			return nil, errors.Join(err, watermark.Close())
		}
	}
	sel := &selector{
		cfg: cfg.at(watermark.at), dialer: s.dialer, server: watermark.server, needed: cfg.Needed,
		tableVersions: map[schema.Name]*selectedTable{},
	}
	s.dialer.dial = sel.cfg.Dialer
	w, err := s.prepare(ctx, sel, *from.Snapshot)
	if err != nil {
		sel.close()
		return nil, errors.Join(err, watermark.Close())
	}
	var run context.Context
	run, s.cancel = context.WithCancel(context.Background())
	cfg.Metrics.attachSnapshot(s)
	go s.read(run, w, sel, look.watermark)
	return s, nil
}

// prepare looks at the tables and sets the snapshot reader up.
func (s *Snapshot) prepare(ctx context.Context, sel *selector, at position.Snapshot) (*snapshotReader, error) {
	stop := context.AfterFunc(ctx, s.dialer.close)
	defer stop()
	// What is gone on with has waited for that when it began, but for another server.
	if at.Table == "" || s.watermark.server.Flavor == position.MariaDB {
		if err := sel.settle(ctx, s.from.HasGTID()); err != nil {
			return nil, err
		}
	}
	s.cfg.progress("looking at the outbox tables")
	tables, estimate, err := sel.tables(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := openChangeBuffer(s.cfg.SpoolDir)
	if err != nil {
		return nil, bufferFailed(err)
	}
	s.state.Tables, s.state.Estimate = len(tables), estimate
	s.cfg.Logger.Info("reading the rows that stood in the outbox tables at the start", slog.Int("tables", len(tables)),
		slog.Uint64("estimated_rows", estimate), slog.Uint64("rows_done", at.Rows), slog.String("start", s.from.String()))
	s.missed(tables, at)
	return &snapshotReader{tables: tables, changeBuffer: changes, emit: s.put, begin: s.began, at: at}, nil
}

// missed tells of a table that is gone in the middle.
func (s *Snapshot) missed(tables []*snapshotTable, at position.Snapshot) {
	if at.Table == "" {
		return
	}
	for _, t := range tables {
		if t.name.Database == at.Database && t.name.Table == at.Table {
			return
		}
	}
	s.cfg.Logger.Warn("an outbox table is gone whose snapshot rows were not done; what is missing of them can't be had "+
		"any more",
		slog.String("table", at.Database+"."+at.Table))
}

// put hands a transaction on and notes how far that is.
func (s *Snapshot) put(tx txn.Transaction) error {
	if err := s.queue.put(tx); err != nil {
		return err
	}
	at := tx.Commit.Snapshot
	name := schema.Name{Database: at.Database, Table: at.Table}
	if len(tx.Rows) > 0 {
		s.cfg.Metrics.snapshotRow(name.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Rows, s.state.Table = at.Rows, name
	return nil
}

// removed tells of rows that went before their turn and can't be published: of tables that
// are not done, and of those that went as a whole.
func (s *Snapshot) removed(tables []*snapshotTable, st *schema.Statement) {
	s.mu.Lock()
	done := s.state.Done
	s.mu.Unlock()
	var names []schema.Name
	for _, t := range tables[done:] {
		if st.Touches(t.name) {
			names = append(names, t.name)
		}
	}
	for _, n := range st.Tables {
		known := slices.ContainsFunc(tables, func(t *snapshotTable) bool {
			return strings.EqualFold(t.name.String(),
				n.String())
		})
		// A name that can't be matched in time may be one.
		if ours, err := s.cfg.Tables.Match(n.Database, n.Table); !known && (ours || err != nil) {
			names = append(names, n)
		}
	}
	for _, n := range names {
		s.mu.Lock()
		s.state.Removals++
		rows := s.state.Rows
		s.mu.Unlock()
		s.cfg.Metrics.snapshotRemoved(n.String())
		s.cfg.Logger.Warn("rows that stood in an outbox table at the start went before all of them were read, by TRUNCATE, "+
			"DROP, a delete in statement format or the like: "+
			"the binlog does not hold them, so what was not read can't be published", slog.String("table", n.String()),
			slog.Uint64("rows_done", rows))
	}
}

// began notes that a table's turn has come.
func (s *Snapshot) began(t *snapshotTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Table, s.state.Done = t.name, t.index
}

func (s *Snapshot) progress() SnapshotStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// read runs the snapshot reader to its end.
func (s *Snapshot) read(ctx context.Context, w *snapshotReader, sel *selector, sc *watermark) {
	defer close(s.ended)
	defer s.cfg.Metrics.detachSnapshot(s)
	src := &snapshotServer{selector: sel, stream: s.watermark, watermark: sc, needed: s.cfg.Needed,
		removed: func(st *schema.Statement) { s.removed(w.tables, st) }}
	w.source = src
	err := w.run(ctx)
	sel.close()
	if e := s.watermark.Close(); e != nil && err == nil {
		err = e
	}
	if e := w.changeBuffer.close(); e != nil {
		s.cfg.Logger.Warn("removing a file of snapshot rows", slog.Any("error", e))
	}
	switch {
	case err == nil:
		s.cfg.Logger.Info("all rows that stood in the outbox tables at the start are read", slog.Uint64("rows", w.at.Rows))
	case ctx.Err() != nil:
		s.queue.fail(ErrClosed)
	default:
		s.queue.fail(err)
	}
}

// snapshotServer is what the snapshot reader asks for: rows by a selector, changes by a watermark reader.
type snapshotServer struct {
	*selector
	stream    *Stream
	watermark *watermark
	needed    func(*schema.Table) []int
	// removed is told of statements that took rows away which no row event brings.
	removed func(*schema.Statement)
}

func (s *snapshotServer) catchUp(ctx context.Context, f func([]schema.Row) error) error {
	file, pos, err := s.now(ctx)
	if err != nil {
		return err
	}
	if err := s.stream.changesUpTo(ctx, s.watermark, file, pos, f); err != nil {
		return err
	}
	for _, st := range s.watermark.take() {
		s.removed(st)
	}
	return nil
}

// whole refuses an image without a column that is needed: the row is not to be had
// any more.
func (s *snapshotServer) whole(t *snapshotTable, table *schema.Table, image []any) error {
	for i, v := range image {
		if v != schema.Missing {
			continue
		}
		for _, n := range neededOf(table, s.needed) {
			if n == i {
				return newError(MissingColumn, nil, "a row of outbox table %s that stood there at the start was deleted before "+
					"it was published, and logged without the needed column %s: "+
					"the session that deleted it has binlog_row_image other than FULL", t.name, table.Columns[i].Name)
			}
		}
	}
	return nil
}

func neededOf(table *schema.Table, needed func(*schema.Table) []int) []int {
	if needed != nil {
		return needed(table)
	}
	all := make([]int, len(table.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// Next blocks until at least one transaction waits and returns all that wait, as
// Stream.Next does.
func (s *Snapshot) Next(ctx context.Context) ([]txn.Transaction, error) {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if stream != nil {
		return stream.Next(ctx)
	}
	select {
	case <-s.ended:
		// Everything is in the queue, or was.
		all, err, some := s.queue.take()
		if some {
			return all, err
		}
		if stream, err = s.follow(ctx); err != nil {
			return nil, err
		}
		return stream.Next(ctx)
	default:
		return s.wait(ctx)
	}
}

// wait is Next while snapshot rows are read.
func (s *Snapshot) wait(ctx context.Context) ([]txn.Transaction, error) {
	for {
		if all, err, some := s.queue.take(); some {
			return all, err
		}
		select {
		case <-s.queue.ready:
		case <-s.ended:
			return s.Next(ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// follow opens the stream of what was committed since the start.
func (s *Snapshot) follow(ctx context.Context) (*Stream, error) {
	if s.cfg.SnapshotOnly {
		s.mu.Lock()
		s.state.Finished = true
		s.mu.Unlock()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	stream, err := Open(ctx, s.cfg, s.from)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed := s.closed
	s.stream = stream
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, stream.Close())
	}
	return stream, nil
}

// Status returns the present numbers; Snapshot is nil when all snapshot rows are read.
func (s *Snapshot) Status() Status {
	s.mu.Lock()
	stream, state := s.stream, s.state
	s.mu.Unlock()
	switch {
	case stream != nil:
		return stream.Status()
	case s.watermark == nil:
		return Status{Snapshot: &state}
	}
	st := s.watermark.Status()
	// The watermark reader's place is not how far the connector is.
	st.Snapshot, st.Last, st.File, st.Pos = &state, position.Commit{}, "", 0
	_, _, st.Waiting, st.WaitingBytes = s.queue.snapshot()
	return st
}

// Close ends the reading at once and waits for its goroutines.
func (s *Snapshot) Close() error {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	s.cancel()
	s.queue.close()
	s.dialer.close()
	var err error
	if s.watermark != nil {
		err = s.watermark.Close()
	}
	<-s.ended
	if stream != nil {
		err = errors.Join(err, stream.Close())
	}
	if err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}
