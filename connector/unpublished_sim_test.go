package connector

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// badRows are the rows of a world that can't be published, by id, and what is done
// about them.
type badRows struct {
	policy     Errors
	row        map[uint64]bool // can't be encoded
	known      map[uint64]bool // Check refuses their records
	record     map[uint64]bool // Kafka refuses their records
	deadLetter map[uint64]bool // Kafka refuses their dead letters with a value
	bare       map[uint64]bool // and without

	decisions   []RowDecision // the store's
	deadLetters map[uint64]int
	wrong       []string
}

const deadTopic = "dead"

// refuses reports whether the sink refuses a record for good.
func (w *world) refuses(r txn.Record) bool {
	id := binary.BigEndian.Uint64(r.Key)
	if r.Topic == deadTopic {
		return w.bad.bare[id] || w.bad.deadLetter[id] && r.Value != nil
	}
	return id == w.large || w.bad.record[id] || w.bad.known[id]
}

func (w *world) Check(r *txn.Record) error {
	if r.Topic != deadTopic && w.bad.known[binary.BigEndian.Uint64(r.Key)] {
		return &kafka.Error{Code: kafka.TopicInvalid, Group: -1, Record: -1, Poison: true}
	}
	return nil
}

func (*world) RawFallback(row *schema.Row) (key, value []byte) {
	key = binary.BigEndian.AppendUint64(nil, row.After[0].(uint64))
	return key, key
}

func (w *world) RowDecisions() ([]RowDecision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.bad.decisions), nil
}

func (w *world) DecideRow(_ context.Context, d RowDecision) error {
	if w.chance() {
		return errSim
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad.decisions = slices.DeleteFunc(w.bad.decisions, func(o RowDecision) bool { return o.Row == d.Row })
	w.bad.decisions = append(w.bad.decisions, d)
	w.notify()
	return nil
}

// refused reports whether a row can't be published.
func (b *badRows) refused(id uint64) bool { return b.row[id] || b.known[id] || b.record[id] }

// noted takes note of a record and reports whether it is a dead letter.
func (b *badRows) noted(id uint64, r txn.Record) bool {
	if r.Topic != deadTopic {
		if b.refused(id) {
			b.wrong = append(b.wrong, fmt.Sprintf("row %d was published", id))
		}
		return false
	}
	if b.deadLetters == nil {
		b.deadLetters = map[uint64]int{}
	}
	b.deadLetters[id]++
	head := map[string]string{}
	for _, h := range r.Headers {
		head[h.Key] = string(h.Value)
	}
	causes := []string{"record_too_large"}
	switch {
	case b.row[id]:
		causes = []string{"row_refused"}
	case b.known[id]:
		causes = append(causes, "topic_invalid") // after an operator's decision
	}
	_, routed := head[HeaderErrorTopic]
	placed := head[HeaderErrorFile] == "b.000001" && head[HeaderErrorPos] != "" && head[HeaderErrorPos] != "0"
	if number := head[HeaderErrorSnapshot]; number != "" {
		placed = head[HeaderErrorFile] == "" && head[HeaderErrorGTID] == "" && number == strconv.FormatUint(id, 10)
	}
	_, omitted := head[HeaderErrorOmitted]
	ok := b.refused(id) && slices.Contains(causes, head[HeaderErrorCause]) &&
		head[HeaderSeq] == strconv.FormatUint(id, 10) && head[HeaderErrorRow] == head[HeaderOrdinal] &&
		head[HeaderErrorConnector] == "sim" && head[HeaderErrorMessage] != "" && head[HeaderErrorTime] != "" && placed &&
		routed != b.row[id] && omitted == (r.Value == nil) && (omitted || bytes.Equal(r.Value, r.Key))
	if !ok {
		b.wrong = append(b.wrong, fmt.Sprintf("the dead letter of row %d: %+v", id, r))
	}
	return true
}

// spoil makes some rows of the world such that they can't be published.
func (w *world) spoil() {
	b := &w.bad
	b.row, b.known, b.record, b.deadLetter = map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for id := uint64(1); id <= w.rows; id++ {
		switch w.intn(24) {
		case 0:
			b.row[id] = true
		case 1:
			b.record[id] = true
		case 2:
			b.known[id] = true
		default:
			continue
		}
		if w.intn(3) == 0 {
			b.deadLetter[id] = true
		}
	}
}

// operate decides about the row that has failed a connector, as an operator would,
// until stop is closed.
func (w *world) operate(c *Connector, action Action, drain <-chan struct{}) {
	for {
		select {
		case <-drain:
			return
		case <-time.After(time.Second):
		}
		s := c.Status()
		if s.State != Failed || s.LastError == nil || s.LastError.Row == 0 {
			continue
		}
		row, err := position.RowOf(s.LastError.Transaction, s.LastError.Row-1)
		if err != nil {
			panic(err)
		}
		_ = w.DecideRow(context.Background(), RowDecision{Row: row, Action: action, Cause: s.LastError.Code,
			Message: "by hand", Reason: "test", By: "operator"})
	}
}

// checkUnpublished checks that every row has come as often as it should, in order, and
// where it should.
func (w *world) checkUnpublished(t *testing.T, seed uint64, skipped func(id uint64) bool) {
	t.Helper()
	if len(w.bad.wrong) > 0 || len(w.wrongSeq) > 0 {
		t.Fatalf("seed %d: %v %v", seed, w.bad.wrong, w.wrongSeq)
	}
	var want []uint64
	at := map[uint64]int{}
	for id := uint64(1); id <= w.rows; id++ {
		if skipped(id) {
			continue
		}
		at[id] = len(want)
		want = append(want, id)
		if w.bad.refused(id) != (w.bad.deadLetters[id] > 0) {
			t.Fatalf("seed %d: row %d has %d dead letters", seed, id, w.bad.deadLetters[id])
		}
	}
	next := 0 // of want
	last := -1
	for _, id := range w.log {
		i, ok := at[id]
		switch {
		case !ok:
			t.Fatalf("seed %d: row %d came, which was skipped", seed, id)
		case i > next, i < next && w.exactlyOnce, i < next && i > last+1:
			t.Fatalf("seed %d: row %d came out of turn in %v", seed, id, w.log)
		case i == next:
			next++
		}
		last = i
	}
	if next != len(want) {
		t.Fatalf("seed %d: %d of %d rows came", seed, next, len(want))
	}
}

// Over scripted faults, with rows that can't be routed, records that Kafka refuses,
// and dead letters that are too large: each row comes where the policy or the
// operator says, the others come as if these were not there, and every number of the
// sequence stays the row's own.
func TestUnpublishedRowsSchedules(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 40 // under the race detector
	}
	actions := []Action{Stop, DeadLetter, Skip}
	for _, exactlyOnce := range []bool{false, true} {
		for _, policy := range []Errors{{Row: Stop, Record: Stop}, {Row: DeadLetter, Record: DeadLetter},
			{Row: Skip, Record: Skip}, {}} {
			t.Run(fmt.Sprintf("exactly once %t, %s, %s", exactlyOnce, policy.Row, policy.Record), func(t *testing.T) {
				for seed := range seeds {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(seed, exactlyOnce)
						if seed%4 == 3 {
							w.withoutGTIDs()
						}
						if seed%5 == 1 {
							w.stood(uint64(w.intn(80)))
						}
						w.spoil()
						w.bad.policy = policy
						if policy.Row == "" {
							w.bad.policy = Errors{Row: actions[w.intn(3)], Record: actions[w.intn(3)]}
						}
						w.bad.policy.DeadLetterTopic = deadTopic
						operator := actions[1+w.intn(2)]
						run := func(work time.Duration, crash bool) *Connector {
							c := w.connector()
							drain, done := make(chan struct{}), make(chan struct{})
							go func() { defer close(done); w.operate(c, operator, drain) }()
							w.life(c, work, crash)
							close(drain)
							<-done
							return c
						}
						for range 4 {
							run(time.Duration(1+w.intn(20))*time.Second, w.intn(2) == 0)
						}
						w.faults = 0
						run(5*time.Minute, false)
						w.checkUnpublished(t, seed, func(id uint64) bool {
							action := w.bad.policy.Record
							if w.bad.row[id] {
								action = w.bad.policy.Row
							}
							if action == Stop {
								action = operator
							}
							return w.bad.refused(id) && action == Skip
						})
						if p, _ := w.Position(); p.Seq != w.rows || p.Pos != 6000 {
							t.Fatalf("seed %d: after an orderly end the stored position is %s, seq %d of %d", seed, p, p.Seq, w.rows)
						}
					})
				}
			})
		}
	}
}

// A dead letter that is refused also without its value fails the connector, which
// says what is wrong with what; what comes before it is published. An operator may
// skip the row.
func TestRefusedDeadLetterFails(t *testing.T) {
	for n := range 40 {
		seed := uint64(n / 2)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed, n%2 == 1)
			w.faults = 0
			id := w.rows / 2
			var before uint64
			for _, tx := range w.binlog {
				if tx.FirstRow == 0 && len(tx.Rows) > 0 && tx.Rows[0].After[0].(uint64) <= id {
					before = tx.Rows[0].After[0].(uint64) - 1
				}
			}
			w.bad.record, w.bad.bare = map[uint64]bool{id: true}, map[uint64]bool{id: true}
			w.bad.policy = Errors{Record: DeadLetter, DeadLetterTopic: deadTopic}
			c := w.start(t)
			settle()
			s := c.Status()
			if s.State != Failed || s.LastError.Code != "dead_letter_refused" || s.LastError.Row == 0 ||
				s.LastError.GTID.IsZero() {
				t.Fatalf("%s %+v", s.State, s.LastError)
			}
			w.mu.Lock()
			if n := uint64(len(w.log)); n < before || n >= id {
				t.Errorf("seed %d: %d rows came, want the %d before the transaction of row %d", seed, n, before, id)
			}
			w.mu.Unlock()
			row, err := position.RowOf(s.LastError.Transaction, s.LastError.Row-1)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.DecideRow(t.Context(), RowDecision{Row: row, Action: Skip, Cause: "record_too_large", Message: "by hand",
				By: "operator"}); err != nil {
				t.Fatal(err)
			}
			settle()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.checkUnpublished(t, seed, func(r uint64) bool { return r == id })
		})
	}
}

// What was skipped or dead-lettered is told: counted, listed without a payload, and bounded.
func TestStatusListsUnpublishedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.bad.row = map[uint64]bool{}
		for id := uint64(1); id <= w.rows; id += 3 {
			w.bad.row[id] = true
		}
		w.bad.policy = Errors{Row: Skip}
		c := w.start(t)
		settle()
		s := c.Status()
		if s.Unpublished != uint64(len(w.bad.row)) || len(s.LastUnpublished) != maxLastUnpublished ||
			s.Published != w.rows-s.Unpublished {
			t.Fatalf("%d not published, %d listed, %d published of %d", s.Unpublished, len(s.LastUnpublished), s.Published,
				w.rows)
		}
		for _, r := range s.LastUnpublished {
			if r.GTID.IsZero() || r.Cause != "row_refused" || r.Message != "no such topic" || r.Action != Skip || r.At.IsZero() {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// A connector that was given no decision about a row does not invent one: only the
// row that was decided about is passed.
func TestDecisionPassesOneRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		first, second := w.rows/3, w.rows*2/3
		w.bad.row = map[uint64]bool{first: true, second: true}
		c := w.start(t)
		settle()
		failed := c.Status()
		if failed.State != Failed || failed.LastError.Row == 0 {
			t.Fatalf("%s %+v", failed.State, failed.LastError)
		}
		row, err := position.RowOf(failed.LastError.Transaction, failed.LastError.Row-1)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.DecideRow(t.Context(), RowDecision{Row: row, Action: Skip, By: "operator"}); err != nil {
			t.Fatal(err)
		}
		settle() // without a restart: the decision is what it waited for
		s := c.Status()
		if s.State != Failed || s.LastError.Transaction == failed.LastError.Transaction {
			t.Fatalf("%s %+v, want failed at the second row", s.State, s.LastError)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.Contains(w.log, first) || slices.Contains(w.log, second) || !slices.Contains(w.log, first+1) {
			t.Errorf("rows %d and %d can't be published: %v", first, second, w.log)
		}
	})
}

// The store may refuse to keep the policy's decision: the row is not passed before it does.
func TestDecisionIsStoredFirst(t *testing.T) {
	w := newWorld(3, true)
	w.faults = 1
	w.quick = true
	w.bad.policy = Errors{Record: Skip}
	c := w.connector()
	refused := &RecordError{Commit: w.binlog[0].Commit, RowKnown: true, Poison: true, Err: errSim}
	if past, err := c.passes(t.Context(), refused); past || !errors.Is(err, errSim) || errors.As(err, new(*RecordError)) ||
		!retryable(err) {
		t.Errorf("passed %v, %v", past, err)
	}
	w.faults = 0
	if past, err := c.passes(t.Context(), refused); !past || len(w.bad.decisions) != 1 {
		t.Errorf("passed %v, %v, decisions %v", past, err, w.bad.decisions)
	}
}

// A transaction all of whose rows are skipped has a group of its own, so that its rows
// count exactly when it is durable.
func TestSkippedRowsCountWithTheirMark(t *testing.T) {
	w := newWorld(1, false)
	w.bad.row = map[uint64]bool{1: true, 2: true}
	p := newPipe(Limits{Rows: 7, Bytes: 1 << 20}, w)
	p.onError = &errorHandler{policy: Errors{Row: Skip}, check: w.Check, enc: w, now: time.Now}
	for n, ids := range [][]uint64{{}, {1}, {}, {2}, {3}, {}} {
		g := position.GTID{SID: simServer, Seq: uint64(n + 1)}
		tx := txn.Transaction{Commit: position.Commit{GTID: g, First: g.Seq}, Final: true}
		for _, id := range ids {
			tx.Rows = append(tx.Rows, schema.Row{Op: schema.Insert, After: []any{id}})
		}
		if err := p.add(t.Context(), &tx, nil); err != nil {
			t.Fatal(err)
		}
	}
	b := p.filling
	counted := map[uint64]uint64{} // rows, by the last transaction that is durable
	for done, g := range b.Groups {
		p, err := txn.Over(position.Position{}, b.Groups[:done+1])
		if err != nil {
			t.Fatal(err)
		}
		counted[g.Commit.GTID.Seq] = p.Seq
	}
	for _, want := range [][2]uint64{{2, 1}, {4, 2}, {5, 3}} {
		if got, ok := counted[want[0]]; !ok || got != want[1] {
			t.Errorf("after transaction %d: %d rows (%v), want %d; groups %v", want[0], got, ok, want[1], b.Groups)
		}
	}
}

// What the encoder can't do for now says nothing about the row: it is tried again, and
// neither skipped or dead-lettered nor a failure.
func TestRowsWaitForTheEncoder(t *testing.T) {
	for _, policy := range []Action{Stop, Skip, DeadLetter} {
		synctest.Test(t, func(t *testing.T) {
			w := quietWorld()
			w.encoderAway = true
			w.bad.policy = Errors{Row: policy, Record: policy, DeadLetterTopic: deadTopic}
			c := w.start(t)
			settle()
			s := c.Status()
			for end := time.Now().Add(time.Minute); s.LastError == nil && time.Now().Before(end); s = c.Status() {
				time.Sleep(100 * time.Millisecond) // a session is at work just now
				synctest.Wait()
			}
			if s.State != StateRunning || s.Unpublished != 0 || s.LastError == nil || s.LastError.Code != "row_refused" ||
				s.LastError.RetryAt.IsZero() {
				t.Errorf("%s: %s, %d not published, %+v", policy, s.State, s.Unpublished, s.LastError)
			}
			w.mu.Lock()
			w.encoderAway = false
			w.mu.Unlock()
			settle()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.check(t, 0)
		})
	}
}
