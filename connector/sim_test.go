package connector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// world is a whole connector with everything around it scripted from one seed: a
// binlog, a source that breaks, a sink that breaks, a store that breaks, crashes,
// pauses and orderly stops, all in virtual time.
type world struct {
	topics      Topics
	exactlyOnce bool
	files       bool   // positions are a file and an offset
	snapshot    uint64 // ids 1..snapshot stood there at the start
	rows        uint64 // ids 1..rows were inserted
	binlog      []txn.Transaction

	mu         sync.Mutex
	rnd        *rand.Rand
	faults     float64       // chance of a fault at each opportunity
	large      uint64        // id of a row that Kafka refuses; 0 for none
	waits      bool          // the refusal may pass
	quick      bool          // everything takes a fortieth of the time
	refuse     uint64        // id of a row that can't be encoded; 0 for none
	heartbeats []time.Time   // heartbeat records that are in the log
	beat       time.Duration // Config.HeartbeatEvery
	busy       bool          // the store refuses every other save
	recent     int           // of Config.Recent, in ids
	saves      int
	// savesAtSecond is how many saves there had been when a session published its second
	// batch.
	savesAtSecond int
	tended        int // how often sinks were asked to look after what they have published
	// attempts is Config.MaxAttempts when it is above 0.
	attempts int
	bad      badRows
	opens    int   // times the source was opened
	unclosed int   // sources that are open
	sinks    int   // sinks that were made
	away     error // what opening the source answers while it is set
	// encoderAway is set while rows can't be encoded, whatever they are.
	encoderAway bool

	// What is durable.
	log      []uint64
	logged   []time.Time // when each came
	seqs     []uint64    // the number of each
	wrongSeq []string
	sunk     position.Position
	inSink   bool
	stored   position.Position
	found    bool
	want     State
	change   chan struct{}
}

var simServer = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

func newWorld(seed uint64, exactlyOnce bool) *world {
	w := &world{exactlyOnce: exactlyOnce, rnd: rand.New(rand.NewPCG(seed, 7)), faults: .12, want: StateRunning,
		change: make(chan struct{})}
	for n := uint64(1); n <= 60; n++ {
		g := position.GTID{SID: simServer, Seq: n}
		tx := txn.Transaction{Commit: position.Commit{GTID: g, First: n, File: "b.000001", Pos: n * 100}, Final: true}
		rows := 0
		if w.rnd.IntN(3) > 0 {
			rows = 1 + w.rnd.IntN(6)
		}
		for range rows {
			w.rows++
			tx.Rows = append(tx.Rows, schema.Row{Op: schema.Insert, After: []any{w.rows}})
		}
		// Every tenth large one comes in parts, of up to two rows.
		if rows > 2 && w.rnd.IntN(10) == 0 {
			for first := 0; first < rows; {
				part := tx
				end := min(rows, first+1+w.rnd.IntN(2))
				part.Rows, part.FirstRow, part.Final = tx.Rows[first:end], uint64(first), end == rows
				w.binlog = append(w.binlog, part)
				first = end
			}
			continue
		}
		w.binlog = append(w.binlog, tx)
	}
	return w
}

// withoutGTIDs makes the world one of files and offsets.
func (w *world) withoutGTIDs() {
	w.files = true
	for i := range w.binlog {
		m := &w.binlog[i].Commit
		m.GTID, m.First = position.GTID{}, 0
	}
}

// stood puts n rows into the table before the start.
func (w *world) stood(n uint64) {
	w.snapshot = n
	w.rows += n
	for _, tx := range w.binlog {
		for _, r := range tx.Rows {
			r.After[0] = r.After[0].(uint64) + n
		}
	}
}

var errSim = errors.New("scripted fault")

// chance rolls the dice and lets some virtual time pass.
func (w *world) chance() bool {
	w.mu.Lock()
	pause := time.Duration(w.rnd.IntN(400)) * time.Millisecond
	if w.quick {
		pause /= 40
	}
	hit := w.rnd.Float64() < w.faults
	w.mu.Unlock()
	time.Sleep(pause)
	return hit
}

func (w *world) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(n)
}

// --- source

type simSource struct {
	w    *world
	rest []txn.Transaction
}

func (w *world) Open(_ context.Context, from position.Position) (Source, error) {
	w.mu.Lock()
	w.opens++
	w.mu.Unlock()
	if w.chance() {
		return nil, errSim
	}
	w.mu.Lock()
	away := w.away
	w.mu.Unlock()
	if away != nil {
		return nil, away
	}
	s := &simSource{w: w}
	if from.Snapshot != nil {
		s.snapshot(*from.Snapshot)
	}
	for _, tx := range w.binlog {
		if w.files && tx.Commit.Pos > from.Pos || !w.files && !from.Set.Has(tx.Commit.GTID) {
			s.rest = append(s.rest, tx)
		}
	}
	w.mu.Lock()
	w.unclosed++
	w.mu.Unlock()
	return s, nil
}

// snapshot adds the snapshot rows that are to come, and now and then a step over none.
func (s *simSource) snapshot(at position.Snapshot) {
	step := func(rows ...schema.Row) {
		next := at
		s.rest = append(s.rest, txn.Transaction{Commit: position.Commit{Snapshot: &next}, Rows: rows, Final: true})
	}
	for at.Rows < s.w.snapshot {
		if s.w.intn(10) == 0 {
			step()
		}
		at.Rows++
		at.Database, at.Table, at.Key = "shop", "outbox", []string{strconv.FormatUint(at.Rows, 10)}
		step(schema.Row{Op: schema.Read, After: []any{at.Rows}})
	}
	at.Done = true
	step()
}

func (w *world) Start(context.Context) (position.Position, error) {
	if w.chance() {
		return position.Position{}, errSim
	}
	p := position.Position{Flavor: position.MySQL, File: "b.000001", Pos: 4}
	if w.files {
		server := new(simSource).Status().Server
		p.Server = server.Name()
	} else {
		p.Set = position.NewSet(position.MySQL)
	}
	if w.snapshot > 0 {
		p.Snapshot = &position.Snapshot{}
	}
	return p, nil
}

func (s *simSource) Next(ctx context.Context) ([]txn.Transaction, error) {
	if s.w.chance() {
		return nil, errSim
	}
	if len(s.rest) == 0 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	n := min(len(s.rest), 1+s.w.intn(8))
	out := s.rest[:n]
	s.rest = s.rest[n:]
	return out, nil
}

func (s *simSource) Status() canal.Status { return canal.Status{} }

func (s *simSource) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.unclosed--
	return nil
}

// --- sink

type simSink struct {
	w       *world
	opened  bool
	dead    bool
	commits int
}

func (w *world) NewSink(uint64) (Sink, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sinks++
	return &simSink{w: w}, nil
}

func (w *world) KeepsPosition() bool           { return w.exactlyOnce }
func (w *world) IdleCommit() time.Duration     { return time.Second }
func (s *simSink) Close(context.Context) error { s.dead = true; return nil }

func (s *simSink) Tend(context.Context) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.tended++
	return nil
}

func (s *simSink) Open(context.Context) (position.Position, bool, error) {
	if s.w.chance() {
		return position.Position{}, false, errSim
	}
	s.opened = true
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.sunk, s.w.exactlyOnce && s.w.inSink, nil
}

func (s *simSink) Commit(ctx context.Context, b *txn.Batch) (int, error) {
	if s.dead || !s.opened {
		return 0, errors.New("a sink was used after an error or before it was opened")
	}
	s.w.mu.Lock()
	if s.commits++; s.commits == 2 {
		s.w.savesAtSecond = s.w.saves
	}
	s.w.mu.Unlock()
	broken := s.w.chance()
	if ctx.Err() != nil {
		s.dead = true
		return 0, context.Cause(ctx)
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			if !s.w.refuses(b.Groups[i].Records[j]) {
				continue
			}
			s.dead = true
			done := 0
			if !s.w.exactlyOnce {
				done = s.w.take(b.Groups[:i], math.MaxInt)
			}
			if s.w.waits {
				return done, &kafka.Error{Code: kafka.TopicMissing, Group: i, Record: j, Retry: true}
			}
			return done, &kafka.Error{Code: kafka.RecordTooLarge, Group: i, Record: j, Poison: true}
		}
	}
	acked := math.MaxInt
	if broken {
		s.dead = true
		acked = s.w.rnd.IntN(txn.Count(b.Groups) + 1)
		if s.w.exactlyOnce && s.w.rnd.IntN(2) == 0 {
			return 0, errSim // aborted
		}
	}
	if s.w.exactlyOnce {
		acked = math.MaxInt // committed, perhaps without an answer
		s.w.sunk, s.w.inSink = b.Position, true
	}
	done := s.w.take(b.Groups, acked)
	if !broken {
		return done, nil
	}
	if s.w.exactlyOnce {
		done = 0
	}
	return done, errSim
}

// take takes the first n records into the log, whose index is their place, and returns
// how many groups have all of theirs there.
func (w *world) take(groups []txn.Group, n int) (done int) {
	for i := range groups {
		for j := range groups[i].Records {
			if n == 0 {
				return i
			}
			n--
			groups[i].Records[j].PartitionOffset = txn.PartitionOffset{Offset: int64(len(w.log))}
			w.note(groups[i].Records[j])
		}
	}
	return len(groups)
}

// note takes a record into the log. Ids are counted from 1 as the rows were
// inserted, so a record's seq header must be its id, also when it comes again.
func (w *world) note(r txn.Record) {
	if r.Topic == "heartbeats" {
		w.heartbeats = append(w.heartbeats, time.Now())
		return
	}
	id := binary.BigEndian.Uint64(r.Key)
	w.log, w.logged, w.seqs = append(w.log, id), append(w.logged, time.Now()), append(w.seqs, seqOf(r))
	if w.bad.noted(id, r) {
		return
	}
	if seq := seqOf(r); seq != id && seq != 0 {
		w.wrongSeq = append(w.wrongSeq, fmt.Sprintf("%d on row %d", seq, id))
	}
	if len(r.Headers) != 4 {
		w.wrongSeq = append(w.wrongSeq, fmt.Sprintf("%d headers on row %d", len(r.Headers), id))
	}
}

// seqOf is the number that a record's header gives its row; 0 without one.
func seqOf(r txn.Record) (seq uint64) {
	for _, h := range r.Headers {
		if h.Key == HeaderSeq {
			seq, _ = strconv.ParseUint(string(h.Value), 10, 64)
		}
	}
	return seq
}

// --- encoder and store

// registryAwayError is an encoder's error that passes.
type registryAwayError struct{}

func (registryAwayError) Error() string   { return "the registry is away" }
func (registryAwayError) Retryable() bool { return true }

func (w *world) Encode(mem *txn.Arena, row *schema.Row) (txn.Record, bool, error) {
	w.mu.Lock()
	refuse, away := w.refuse, w.encoderAway
	w.mu.Unlock()
	if away {
		return txn.Record{}, false, registryAwayError{}
	}
	if row.After[0] == refuse || w.bad.row[row.After[0].(uint64)] {
		return txn.Record{}, false, errors.New("no such topic")
	}
	key := mem.Keep(binary.BigEndian.AppendUint64(mem.Room(), row.After[0].(uint64)))
	return txn.Record{Topic: "t", Partition: -1, Key: key, Value: key}, true, nil
}

func (w *world) Heartbeat(*txn.Arena, time.Time) (txn.Record, error) {
	return txn.Record{Topic: "heartbeats", Key: []byte("no row's")}, nil
}

func (w *world) Begin(uint64) (position.Position, bool) { return w.Position() }

func (w *world) Position() (position.Position, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored, w.found
}

func (w *world) SavePosition(ctx context.Context, p position.Position) error {
	if w.chance() {
		return errSim
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saves++; w.busy && w.saves%2 == 1 {
		return errSim
	}
	if !p.Covers(w.stored) {
		return fmt.Errorf("stored position went back from %s to %s", w.stored, p)
	}
	w.stored, w.found = p, true
	w.notify()
	return nil
}

func (w *world) Wanted() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.want
}

func (w *world) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change
}

func (w *world) set(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.want = s
	w.notify()
}

// notify wakes whoever waits for a change; w.mu is held.
func (w *world) notify() {
	close(w.change)
	w.change = make(chan struct{})
}

// --- the run

func (w *world) connector() *Connector {
	cfg := DefaultConfig()
	cfg.Name = "sim"
	cfg.SequenceHeaders = true
	cfg.Recent = recent.NewBudget(w.recent).New(w.recent)
	cfg.Topics = &w.topics
	cfg.Errors = w.bad.policy
	cfg.Limits = Limits{Rows: 7, Bytes: 1 << 20}
	cfg.HeartbeatEvery = w.beat
	if w.attempts > 0 {
		cfg.MaxAttempts = w.attempts
	}
	return New(cfg, w, w, w, w, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// life starts a connector, lets it work for a while, and ends it by a crash or in
// an orderly way, with a pause in between now and then.
func (w *world) life(c *Connector, work time.Duration, crash bool) {
	drain, end := context.WithCancel(context.Background())
	leadership, cut := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(drain, leadership, 1) }()
	time.Sleep(work / 2)
	switch w.intn(4) {
	case 0:
		w.set(StatePaused)
		time.Sleep(time.Second)
		w.set(StateRunning)
	case 1:
		c.Restart()
	}
	time.Sleep(work / 2)
	if crash {
		cut()
	}
	end()
	<-done
	cut()
}

func (w *world) check(t *testing.T, seed uint64) {
	t.Helper()
	if len(w.wrongSeq) > 0 {
		t.Fatalf("seed %d: wrong sequence headers: %v", seed, w.wrongSeq)
	}
	high := uint64(0)
	for i, id := range w.log {
		if id > high+1 {
			t.Fatalf("seed %d: a gap: %d after %d (record %d of %v)", seed, id, high, i, w.log)
		}
		if w.exactlyOnce && id != high+1 {
			t.Fatalf("seed %d: %d twice (record %d of %v)", seed, id, i, w.log)
		}
		if id <= high && i > 0 && id > w.log[i-1]+1 {
			t.Fatalf("seed %d: a gap inside a repeat: %d after %d in %v", seed, id, w.log[i-1], w.log)
		}
		high = max(high, id)
	}
	if high != w.rows {
		t.Fatalf("seed %d: %d of %d rows arrived", seed, high, w.rows)
	}
}

func testSchedules(t *testing.T, exactlyOnce bool) {
	seeds := uint64(1500)
	if testing.Short() {
		seeds = 200 // under the race detector
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed, exactlyOnce)
			w.beat = time.Duration(seed%2) * time.Second
			if seed%3 == 2 {
				w.withoutGTIDs()
			}
			if seed%2 == 0 {
				w.stood(uint64(w.rnd.IntN(80)))
			}
			for range 4 {
				w.life(w.connector(), time.Duration(1+w.intn(20))*time.Second, w.intn(2) == 0)
			}
			w.faults = 0
			c := w.connector()
			w.life(c, 60*time.Second, false)
			w.check(t, seed)
			if p, _ := w.Position(); p.Pos != 6000 || !w.files && p.Set.Count() != 60 {
				t.Fatalf("seed %d: after an orderly end the stored position is %s", seed, p)
			}
			if w.unclosed != 0 {
				t.Fatalf("seed %d: %d sources are left open", seed, w.unclosed)
			}
			if s := c.Status(); s.State != Unassigned || s.Source != nil {
				t.Fatalf("seed %d: after the end the state is %s", seed, s.State)
			}
		})
	}
}

// Over scripted faults of all parts, a stream per partition only ever rewinds:
// nothing is lost and there is never a gap.
func TestAtLeastOnceSchedules(t *testing.T) { testSchedules(t, false) }

// With a sink that commits rows and position together, each row comes once.
func TestExactlyOnceSchedules(t *testing.T) { testSchedules(t, true) }

// Without other faults than a busy store an orderly end repeats nothing, whatever
// the delivery (B083).
func TestB083NoRepeatAfterAnOrderlyEnd(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed, false)
			w.stood(seed % 3 * 40)
			w.faults, w.busy = 0, seed%2 == 1
			for range 5 {
				w.life(w.connector(), time.Duration(1+w.intn(6))*time.Second, false)
			}
			w.life(w.connector(), time.Minute, false)
			w.check(t, seed)
			if uint64(len(w.log)) != w.rows {
				t.Fatalf("seed %d: %d records for %d rows", seed, len(w.log), w.rows)
			}
		})
	}
}
