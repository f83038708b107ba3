package connector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a connector without faults until the test ends.
func (w *world) start(t *testing.T) *Connector {
	t.Helper()
	c := w.connector()
	drain, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(drain, context.Background(), 1) }()
	t.Cleanup(func() { end(); <-done })
	return c
}

// settle lets a minute of virtual time pass.
func settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func quietWorld() *world {
	w := newWorld(3, false)
	w.faults = 0
	return w
}

// A row that can't be routed fails the connector, names its transaction, and
// holds back neither the transactions before it nor the reason. An operator's
// restart tries again from there.
func TestRefusedRowFailsWithItsGTID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.refuse = w.rows / 2
		var gtid position.GTID
		var before uint64
		for _, tx := range w.binlog {
			first := tx.Rows
			if len(first) > 0 && first[0].After[0].(uint64) <= w.refuse {
				gtid = tx.Commit.GTID
				if tx.FirstRow == 0 {
					before = first[0].After[0].(uint64) - 1
				}
			}
		}
		c := w.start(t)
		settle()
		s := c.Status()
		if s.State != Failed || s.LastError == nil || s.LastError.Code != "row_refused" || s.LastError.GTID != gtid ||
			!s.LastError.RetryAt.IsZero() {
			t.Fatalf("state %s, last error %+v, want failed at %s", s.State, s.LastError, gtid)
		}
		w.mu.Lock()
		got := uint64(len(w.log))
		if w.opens != 1 {
			t.Fatalf("a failed connector opened its source %d times", w.opens)
		}
		w.mu.Unlock()
		if got < before || got >= w.refuse {
			t.Fatalf("%d rows arrived, want all %d before the refused transaction and none after %d", got, before, w.refuse)
		}
		w.mu.Lock()
		w.refuse = 0
		w.mu.Unlock()
		c.Restart()
		settle()
		if s := c.Status(); s.State != StateRunning || s.Phase != "streaming" || s.LastError != nil {
			t.Fatalf("after a restart: %s %s %+v", s.State, s.Phase, s.LastError)
		}
		w.check(t, 3)
		if uint64(len(w.log)) != w.rows {
			t.Fatalf("%d records for %d rows", len(w.log), w.rows)
		}
	})
}

// A restart that was asked for while another node led is none of the next session's.
func TestRestartIsForTheRunAtHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		c := w.connector()
		c.Restart()
		drain, end := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(drain, context.Background(), 1) }()
		settle()
		end()
		<-done
		if s := c.Status(); s.Sessions != 1 || w.sinks != 1 {
			t.Errorf("%d sessions streamed, %d were begun", s.Sessions, w.sinks)
		}
	})
}

// A source that is away is waited for, for any time, visibly and without a fast loop.
func TestAwaySourceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.away = errors.New("connection refused")
		c := w.start(t)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		s := c.Status()
		if s.State != StateRunning || s.Phase == "streaming" || s.LastError == nil || s.LastError.RetryAt.IsZero() {
			t.Fatalf("%s, %s, %+v", s.State, s.Phase, s.LastError)
		}
		w.mu.Lock()
		if w.opens > 24*3600/5 {
			t.Fatalf("%d attempts in a day: a fast loop", w.opens)
		}
		w.mu.Unlock()
		if s.Sessions != 0 {
			t.Fatalf("%d sessions streamed without a source", s.Sessions)
		}
		w.mu.Lock()
		w.away = nil
		w.mu.Unlock()
		settle()
		w.check(t, 3)
	})
}

// Paused and stopped publish nothing and say so; resuming repeats nothing.
func TestPauseAndStop(t *testing.T) {
	for _, want := range []State{StatePaused, StateStopped} {
		synctest.Test(t, func(t *testing.T) {
			w := quietWorld()
			c := w.start(t)
			time.Sleep(2 * time.Second)
			w.set(want)
			settle()
			if s := c.Status(); s.State != want || s.Source != nil {
				t.Fatalf("state %s, want %s", s.State, want)
			}
			w.mu.Lock()
			n := len(w.log)
			w.mu.Unlock()
			settle()
			w.mu.Lock()
			if len(w.log) != n {
				t.Errorf("%s, but %d records more", want, len(w.log)-n)
			}
			w.mu.Unlock()
			w.set(StateRunning)
			settle()
			w.check(t, 3)
			if uint64(len(w.log)) != w.rows {
				t.Errorf("%d records for %d rows", len(w.log), w.rows)
			}
		})
	}
}

// A sink whose position does not cover the stored one has lost something: the
// connector stops, names both, and publishes nothing.
func TestPositionRegressionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3, true)
		w.faults = 0
		set := func(text string) position.Position {
			s, err := position.ParseSet(position.MySQL, simServer.String()+text)
			if err != nil {
				t.Fatal(err)
			}
			return position.Position{Flavor: position.MySQL, Set: s}
		}
		w.sunk, w.inSink = set(":1-5"), true
		w.stored, w.found = set(":1-9"), true
		w.stored.InKafka = true
		c := w.start(t)
		settle()
		s := c.Status()
		if s.State != Failed || s.LastError.Code != "position_regression" {
			t.Fatalf("%s %+v", s.State, s.LastError)
		}
		var pe *PositionError
		if _, _, err := reconcile(w.sunk, true, w.stored, true); !errors.As(err, &pe) {
			t.Fatal(err)
		}
		if len(w.log) != 0 {
			t.Fatalf("%d records were published", len(w.log))
		}
	})
}

// What is done about the position in Kafka and the replicated one, in all their
// relations.
func TestReconcile(t *testing.T) {
	chosen := func(p position.Position, override uint64) position.Position {
		p.OffsetOverride = override
		return p
	}
	at := func(text string, inKafka bool) position.Position {
		s, err := position.ParseSet(position.MySQL, text)
		if err != nil {
			t.Fatal(err)
		}
		return position.Position{Flavor: position.MySQL, Set: s, InKafka: inKafka}
	}
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	none := position.Position{}
	for _, test := range []struct {
		name         string
		sunk, stored position.Position
		want         string // of the position to go on from; empty for the start
		stops        bool
	}{
		{name: "set back, while Kafka knows nothing of it", sunk: at(a+":1-5", false), stored: chosen(at(a+":1-3", false), 7),
			want: a + ":1-3"},
		{name: "set forward", sunk: at(a+":1-5", false), stored: chosen(at(a+":1-9", false), 7), want: a + ":1-9"},
		{name: "set beside", sunk: at(a+":1-5", false), stored: chosen(at(b+":1-2", false), 7), want: b + ":1-2"},
		{name: "set again", sunk: chosen(at(a+":1-5", false), 7), stored: chosen(at(a+":1-2", false), 8), want: a + ":1-2"},
		{name: "set when the topic is gone", stored: chosen(at(a+":1-3", false), 7), want: a + ":1-3"},
		{name: "told to start over", sunk: at(a+":1-5", false), stored: chosen(none, 7)},
		{name: "started over", sunk: at(a+":1-5", false), stored: chosen(at(b+":1", false), 7), want: b + ":1"},
		{name: "set back and taken up, the store lags", sunk: chosen(at(a+":1-4", false), 7),
			stored: chosen(at(a+":1-3", false), 7), want: a + ":1-4"},
		{name: "told to start over and taken up", sunk: chosen(at(a+":1-2", false), 7), stored: chosen(none, 7),
			want: a + ":1-2"},
		{name: "set back, taken up and in step", sunk: chosen(at(a+":1-4", false), 7), stored: chosen(at(a+":1-4", true), 7),
			want: a + ":1-4"},
		{name: "set, taken up, then the topic is gone", stored: chosen(at(a+":1-4", true), 7), stops: true},
		{name: "set, taken up, then Kafka lost all since", sunk: at(a+":1-5", false), stored: chosen(at(a+":1-4", true), 7),
			stops: true},
		{name: "set and taken up by at-least-once", sunk: at(a+":1-5", false), stored: chosen(at(a+":1-4", false), 7),
			want: a + ":1-4"},
		{name: "the store is an older one", sunk: chosen(at(a+":1-5", false), 7), stored: at(a+":1-3", true),
			want: a + ":1-5"},
		{name: "the store is an older one that was ahead", sunk: chosen(at(a+":1-5", false), 7), stored: at(a+":1-9", true),
			stops: true},
		{name: "the store is an older one of at-least-once", sunk: chosen(at(a+":1-5", false), 7),
			stored: at(a+":1-9", false), stops: true},
		{name: "set in a store that knows less", sunk: chosen(at(a+":1-5", false), 7), stored: chosen(at(a+":1-3", false), 6),
			stops: true},
		{name: "told to start over in a store that knows less", sunk: chosen(at(a+":1-5", false), 7), stored: chosen(none, 6),
			stops: true},
		{name: "first start"},
		{name: "the store is lost", sunk: at(a+":1-5", false), want: a + ":1-5"},
		{name: "in step", sunk: at(a+":1-5", false), stored: at(a+":1-5", true), want: a + ":1-5"},
		{name: "the store lags", sunk: at(a+":1-5", false), stored: at(a+":1-3", true), want: a + ":1-5"},
		{name: "the store lags behind after at-least-once", sunk: at(a+":1-5", false), stored: at(a+":1-3", false),
			want: a + ":1-5"},
		{name: "the topic is gone", stored: at(a+":1-3", true), stops: true},
		{name: "first start that published nothing", stored: at(a+":1-3", false), want: a + ":1-3"},
		{name: "Kafka has lost records", sunk: at(a+":1-3", false), stored: at(a+":1-5", true), stops: true},
		{name: "at-least-once went on from Kafka's", sunk: at(a+":1-3", false), stored: at(a+":1-5", false),
			want: a + ":1-5"},
		{name: "another source", sunk: at(a+":1-3", false), stored: at(b+":1-3", true), stops: true},
		{name: "another source, at least once", sunk: at(a+":1-3", false), stored: at(b+":1-3", false), stops: true},
	} {
		inSink, inStore := test.sunk.Set != nil, test.stored.Set != nil
		if !inSink {
			test.sunk = none
		}
		from, ok, err := reconcile(test.sunk, inSink, test.stored, inStore)
		var pe *PositionError
		switch {
		case test.stops:
			if !errors.As(err, &pe) || pe.Missing == inSink || !strings.Contains(err.Error(), test.stored.String()) || inSink &&
				!strings.Contains(err.Error(), test.sunk.String()) {
				t.Errorf("%s: %v %v", test.name, from, err)
			}
		case err != nil || ok != (test.want != "") || ok && from.Set.String() != test.want:
			t.Errorf("%s: %v %v %v", test.name, from, ok, err)
		case ok && from.InKafka != (inSink && from.Set.String() == test.sunk.Set.String()):
			t.Errorf("%s: in Kafka: %v", test.name, from.InKafka)
		}
	}
}

// The status of a run that streams is consistent with what is durable.
func TestStatusFollowsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		c := w.start(t)
		settle()
		s := c.Status()
		if s.State != StateRunning || s.Phase != "streaming" || s.Source == nil || s.Published != w.rows ||
			s.Position.Seq != w.rows || s.Position.Set.Count() != 60 || s.QueueRecords != 0 {
			t.Fatalf("%+v", s)
		}
		if got := w.topics.List(); !slices.Equal(got, []string{"t"}) {
			t.Fatalf("topics are %v", got)
		}
		w.topics.Reset()
		if got := w.topics.List(); len(got) > 0 {
			t.Fatalf("topics after a reset are %v", got)
		}
	})
}

// With a limit, that many attempts that never streamed make the connector fail.
func TestMaxAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.away = errors.New("connection refused")
		w.attempts = 3
		c := w.start(t)
		settle()
		if s := c.Status(); s.State != Failed || w.opens != 4 {
			t.Fatalf("%s after %d attempts, want failed after the first and 3 more", s.State, w.opens)
		}
	})
}

// A record that Kafka refuses for good fails the connector with its transaction's
// GTID, and everything that was committed before it has been published.
func TestRefusedRecordHoldsNothingBack(t *testing.T) {
	for _, exactlyOnce := range []bool{false, true} {
		for seed := range uint64(40) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, exactlyOnce)
				w.faults = 0
				w.large = w.rows * 2 / 3
				var gtid position.GTID
				var before uint64
				for _, tx := range w.binlog {
					if tx.FirstRow == 0 && len(tx.Rows) > 0 && tx.Rows[0].After[0].(uint64) <= w.large {
						gtid, before = tx.Commit.GTID, tx.Rows[0].After[0].(uint64)-1
					}
				}
				c := w.start(t)
				settle()
				s := c.Status()
				if s.State != Failed || s.LastError.GTID != gtid || s.LastError.Code != "record_too_large" {
					t.Fatalf("seed %d: %s %+v, want failed at %s", seed, s.State, s.LastError, gtid)
				}
				w.mu.Lock()
				got := uint64(len(w.log))
				w.mu.Unlock()
				if got < before || got >= w.large {
					t.Fatalf("seed %d: %d rows were published, want the %d before the refused transaction", seed, got, before)
				}
			})
		}
	}
}

// A refused record in a part of a transaction fails the connector as any other, also
// where transactions have no number and are known by their place only.
func TestRefusedRecordInAPartFails(t *testing.T) {
	for _, files := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1, true)
			w.faults, w.files, w.rows, w.large = 0, files, 9, 4
			commit := func(n uint64) position.Commit {
				m := position.Commit{File: "b.000001", Pos: n * 100}
				if !files {
					m.GTID, m.First = position.GTID{SID: simServer, Seq: n}, n
				}
				return m
			}
			row := func(id uint64) schema.Row { return schema.Row{Op: schema.Insert, After: []any{id}} }
			part := txn.Transaction{Commit: commit(2)}
			for id := uint64(1); id <= 7; id++ { // fills the batch
				part.Rows = append(part.Rows, row(id))
			}
			rest := txn.Transaction{Commit: commit(2), FirstRow: 7, Final: true, Rows: []schema.Row{row(8), row(9)}}
			w.binlog = []txn.Transaction{{Commit: commit(1), Final: true}, part, rest}
			c := w.start(t)
			settle()
			s := c.Status()
			if s.State != Failed || s.LastError.Code != "record_too_large" ||
				!strings.Contains(s.LastError.Message, place(commit(2))) {
				t.Fatalf("files %v: %s after %d sessions, %+v; want failed at %s", files, s.State, s.Sessions, s.LastError,
					place(commit(2)))
			}
			if w.sunk.Pos != 100 {
				t.Errorf("files %v: the transaction before the refused one is held back: %s", files, w.sunk)
			}
		})
	}
}

// A record that has to wait, for its topic to exist say, holds back nothing that was
// committed before it, and goes out when it can.
func TestWaitingRecordHoldsNothingBack(t *testing.T) {
	for _, exactlyOnce := range []bool{false, true} {
		for seed := range uint64(40) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, exactlyOnce)
				w.faults, w.waits = 0, true
				w.large = w.rows * 2 / 3
				var before uint64
				for _, tx := range w.binlog {
					if tx.FirstRow == 0 && len(tx.Rows) > 0 && tx.Rows[0].After[0].(uint64) <= w.large {
						before = tx.Rows[0].After[0].(uint64) - 1
					}
				}
				c := w.start(t)
				settle()
				if s := c.Status(); s.State != StateRunning {
					t.Fatalf("seed %d: %s %+v", seed, s.State, s.LastError)
				}
				w.mu.Lock()
				if got := uint64(len(w.log)); got < before || got >= w.large {
					t.Errorf("seed %d: %d rows were published, want the %d before the one that waits", seed, got, before)
				}
				w.large = 0
				w.mu.Unlock()
				settle()
				w.check(t, seed)
			})
		}
	}
}

// A process that dies soon after its first batch still gets on: that one is saved at
// once, also where the place at which the session began is to be saved, too.
func TestShortLivesMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3, false)
		w.faults, w.quick = 0, true
		for range 100 {
			c := w.connector()
			drain, end := context.WithCancel(context.Background())
			leadership, cut := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); c.Run(drain, leadership, 1) }()
			time.Sleep(100 * time.Millisecond)
			cut()
			<-done
			end()
		}
		if p, _ := w.Position(); p.Set.Count() != 60 {
			t.Errorf("after 100 lives of 100 ms the stored position is %s", p)
		}
	})
}

// With at-least-once delivery the second batch waits until the first is saved: while
// starts are slow, nothing else would bound what each of them repeats. Kafka knows
// where the first ended with exactly-once.
func TestSecondBatchWaitsForTheFirstSave(t *testing.T) {
	for _, exactlyOnce := range []bool{false, true} {
		early := 0
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, exactlyOnce)
				w.faults = 0
				w.life(w.connector(), 20*time.Second, true)
				if w.savesAtSecond < 2 { // where it began, and the first batch
					early++
				}
			})
		}
		if early > 0 != exactlyOnce {
			t.Errorf("exactly once %t: in %d of 20 sessions the second batch was published before the first was saved",
				exactlyOnce, early)
		}
	}
}

// drain takes batches without an idle tick until p is closed.
func drain(t *testing.T, p *pipe, look func(*batch)) {
	t.Helper()
	for {
		b, ended, err := p.take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			return
		}
		look(b)
		p.put(b)
	}
}

// Transactions without rows that can't be joined don't pile up until
// the idle commit: so many of them are committed by themselves.
func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(Limits{Rows: 7, Bytes: 1 << 20}, &world{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range uint64(2*maxGroups + 5) {
				sid := simServer
				sid[0] = byte(n % 2)
				g := position.GTID{SID: sid, Seq: n + 1}
				if err := p.add(t.Context(), &txn.Transaction{Commit: position.Commit{GTID: g, First: g.Seq}, Final: true},
					nil); err != nil {
					t.Error(err)
				}
			}
			p.close(nil)
		}()
		total := 0
		drain(t, p, func(b *batch) {
			total += len(b.Groups)
			if len(b.Groups) > maxGroups {
				t.Errorf("a batch of %d groups", len(b.Groups))
			}
		})
		<-done
		if total != 2*maxGroups+5 {
			t.Errorf("%d groups came out of %d", total, 2*maxGroups+5)
		}
	})
}

// refuser can't encode any row.
type refuser struct{ *world }

func (refuser) Encode(*txn.Arena, *schema.Row) (txn.Record, bool, error) {
	return txn.Record{}, false, errors.New("no such topic")
}

// A batch that is full of rows that are skipped does not wait for the idle commit.
func TestSkippedRowsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enc := refuser{&world{}}
		p := newPipe(Limits{Rows: 7, Bytes: 1 << 20}, enc)
		p.onError = &errorHandler{policy: Errors{Row: Skip}, enc: enc, now: time.Now}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range uint64(20) {
				tx := &txn.Transaction{
					Commit: position.Commit{GTID: position.GTID{SID: simServer, Seq: n + 1}, First: n + 1}, Final: true,
					Rows: []schema.Row{{Op: schema.Insert, After: []any{n}}},
				}
				if err := p.add(t.Context(), tx, nil); err != nil {
					t.Error(err)
				}
			}
			p.close(nil)
		}()
		skipped := 0
		drain(t, p, func(b *batch) { skipped += len(b.unpublished) })
		<-done
		if skipped != 20 {
			t.Errorf("%d of 20 rows were skipped", skipped)
		}
	})
}

// The memory of large batches is given up when nothing comes any more, and not
// before.
func TestLargeBatchesAreGivenUpWhenIdle(t *testing.T) {
	w := quietWorld()
	p := newPipe(Limits{Rows: 4000, Bytes: 64 << 20}, w)
	var tx txn.Transaction
	for i := range w.binlog {
		if len(w.binlog[i].Rows) > 0 {
			tx = w.binlog[i]
			break
		}
	}
	tx.Final, tx.FirstRow = true, 0
	for len(tx.Rows) < 2000 {
		tx.Rows = append(tx.Rows, tx.Rows[0])
	}
	tick := make(chan time.Time, 1)
	for range 2 {
		if err := p.add(t.Context(), &tx, nil); err != nil {
			t.Fatal(err)
		}
		b, _, err := p.take(t.Context(), tick)
		if err != nil {
			t.Fatal(err)
		}
		p.put(b)
	}
	if cap(p.filling.records) < 2000 || cap(p.spare.records) < 2000 {
		t.Errorf("room for %d and %d records while there is work, want it kept", cap(p.filling.records), cap(p.spare.records))
	}
	tick <- time.Now()
	if b, _, err := p.take(t.Context(), tick); b != nil || err != nil {
		t.Fatal(b, err)
	}
	if n := cap(p.filling.records) + cap(p.spare.records); n > 2*smallBatch {
		t.Errorf("room for %d records is kept while nothing comes", n)
	}
}
