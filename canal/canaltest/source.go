package canaltest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Source plays a server with a log of committed transactions, without a network:
// streams opened on it hand on what is in the log and then what is appended.
// Faults can be set at any time, from any goroutine.
type Source struct {
	// SID is the server's UUID; set by NewSource.
	SID uuid.UUID
	// PartRows splits transactions with more rows into parts; 0 means never.
	PartRows int

	mu       sync.Mutex
	log      []canal.Transaction
	last     uint64
	changed  chan struct{} // closed and replaced at each change
	cuts     int           // streams opened before this many cuts are over
	cutErr   error
	cutAt    map[position.GTID]error
	failOpen []error
	opens    []position.Position
}

// NewSource returns a source with an empty log.
func NewSource() *Source {
	return &Source{
		SID: uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562"), changed: make(chan struct{}), cutAt: map[position.GTID]error{},
	}
}

// Table returns a table of BIGINT id and text columns, fit for Row.
func (*Source) Table(name schema.Name, columns ...string) *schema.Table {
	t := &schema.Table{Name: name, PrimaryKey: []int{0}, Columns: []schema.Column{{Name: "id", Type: schema.BigInt}}}
	for _, c := range columns {
		t.Columns = append(t.Columns, schema.Column{Name: c, Type: schema.VarChar, Length: 255, Charset: "utf8mb4", Nullable: true})
	}
	return t
}

// Row makes an inserted row.
func (*Source) Row(t *schema.Table, values ...any) schema.Row {
	if len(values) != len(t.Columns) {
		panic(fmt.Sprintf("canaltest: %d values for the %d columns of %s", len(values), len(t.Columns), t.Name))
	}
	return schema.Row{Table: t, Op: schema.Insert, After: values}
}

// Commit appends a transaction with these rows, none for a foreign one, and
// returns its GTID. The values must not be changed afterwards.
func (s *Source) Commit(rows ...schema.Row) position.GTID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	g := position.GTID{SID: s.SID, Seq: s.last}
	s.append(g, rows)
	return g
}

// CommitAs appends a transaction with any GTID, to make gaps or a second sequence.
func (s *Source) CommitAs(g position.GTID, rows ...schema.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.SID == s.SID && g.Tag == "" {
		s.last = max(s.last, g.Seq)
	}
	s.append(g, rows)
}

func (s *Source) append(g position.GTID, rows []schema.Row) {
	pos := uint64(4)
	if n := len(s.log); n > 0 {
		pos = s.log[n-1].Mark.Pos
	}
	t := canal.Transaction{
		Mark:  position.Mark{GTID: g, First: g.Seq, File: "binlog.000001", Pos: pos + 100, Committed: time.UnixMicro(int64(1_700_000_000_000_000 + pos)).UTC()},
		Rows:  rows,
		Final: true,
		Bytes: 100 * len(rows),
	}
	s.log = append(s.log, t)
	s.wake()
}

func (s *Source) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Now is the position after everything in the log.
func (s *Source) Now() position.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.start()
	for _, t := range s.log {
		p.Advance(t.Mark)
	}
	return p
}

// Start is the position before everything.
func (s *Source) Start() position.Position { return s.start() }

func (s *Source) start() position.Position {
	return position.Position{Flavor: position.MySQL, Server: s.SID.String(), Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: 4}
}

// Cut ends all open streams with err once they have handed on what they took.
func (s *Source) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts++
	s.cutErr = err
	s.wake()
}

// CutAt ends the first stream that comes to this transaction before it is handed
// on.
func (s *Source) CutAt(g position.GTID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAt[g] = err
}

// FailOpen lets the next opens fail, one with each error.
func (s *Source) FailOpen(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failOpen = append(s.failOpen, errs...)
}

// Opens are the positions from which streams were asked for, also in vain.
func (s *Source) Opens() []position.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]position.Position(nil), s.opens...)
}

// Open is canal.Open on the log: it refuses the zero position and one that
// knows transactions which the log does not have.
func (s *Source) Open(ctx context.Context, from position.Position) (*Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens = append(s.opens, from.Clone())
	if len(s.failOpen) > 0 {
		err := s.failOpen[0]
		s.failOpen = s.failOpen[1:]
		return nil, err
	}
	if from.IsZero() || !from.HasGTID() {
		return nil, &canal.Error{Kind: canal.BadConfig}
	}
	p := s.start()
	for _, t := range s.log {
		p.Advance(t.Mark)
	}
	if lacks := from.Set.Subtract(p.Set); !lacks.IsEmpty() {
		return nil, &canal.Error{Kind: canal.Behind, Difference: lacks.String()}
	}
	return &Stream{s: s, have: from.Set.Clone(), cuts: s.cuts, closed: make(chan struct{})}, nil
}

// Stream reads a Source as canal.Stream reads a server.
type Stream struct {
	s    *Source
	have *position.Set
	cuts int

	// Of the goroutine that calls Next.
	at  int // in the log
	err error

	close  sync.Once
	closed chan struct{}
}

// Next blocks until there is something and returns all there is.
func (st *Stream) Next(ctx context.Context) ([]canal.Transaction, error) {
	for {
		select {
		case <-st.closed:
			return nil, canal.ErrClosed
		default:
		}
		all, changed, err := st.take()
		if len(all) > 0 || err != nil {
			return all, err
		}
		select {
		case <-changed:
		case <-st.closed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (st *Stream) take() (all []canal.Transaction, changed chan struct{}, err error) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.err == nil && st.cuts < s.cuts {
		st.err = s.cutErr
	}
	for ; st.err == nil && st.at < len(s.log); st.at++ {
		t := s.log[st.at]
		if st.have.Has(t.Mark.GTID) {
			continue
		}
		if err, ok := s.cutAt[t.Mark.GTID]; ok {
			delete(s.cutAt, t.Mark.GTID)
			st.err = err
			break
		}
		all = append(all, s.parts(t)...)
	}
	if len(all) > 0 {
		return all, nil, nil
	}
	return nil, s.changed, st.err
}

func (s *Source) parts(t canal.Transaction) []canal.Transaction {
	if s.PartRows == 0 || len(t.Rows) <= s.PartRows {
		return []canal.Transaction{t}
	}
	var all []canal.Transaction
	for first := 0; first < len(t.Rows); first += s.PartRows {
		end := min(first+s.PartRows, len(t.Rows))
		part := t
		part.Rows, part.FirstRow, part.Final, part.Bytes = t.Rows[first:end:end], uint64(first), end == len(t.Rows), 100*(end-first)
		all = append(all, part)
	}
	return all
}

// Close ends the stream.
func (st *Stream) Close() error {
	st.close.Do(func() { close(st.closed) })
	return nil
}

// Status says what a test may want to see of it.
func (st *Stream) Status() canal.Status {
	connected := true
	select {
	case <-st.closed:
		connected = false
	default:
	}
	return canal.Status{
		Server:    canal.Server{Flavor: position.MySQL, Version: "8.4.0", UUID: st.s.SID.String(), GTIDMode: "ON"},
		Connected: connected,
	}
}
