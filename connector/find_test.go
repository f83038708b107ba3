package connector

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// AppendID implements Identifier.
func (w *world) AppendID(dst []byte, row *schema.Row) []byte {
	return strconv.AppendUint(append(dst, "event-"...), row.After[0].(uint64), 10)
}

func eventOf(id uint64) string { return "event-" + strconv.FormatUint(id, 10) }

// commitOfRow is the transaction of a row of the world.
func (w *world) commitOfRow(id uint64) position.Commit {
	for _, tx := range w.binlog {
		for _, row := range tx.Rows {
			if row.After[0] == id {
				return tx.Commit
			}
		}
	}
	return position.Commit{}
}

// Every event is found at its transaction and at each place where it was published,
// and those that were skipped or dead-lettered with the reason, over scripted faults and sessions.
func TestFindKnowsAllEvents(t *testing.T) {
	found, lost := 0, 0
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed, seed%2 == 0)
			w.recent = 1000
			if seed%3 == 2 {
				w.withoutGTIDs()
			}
			w.spoil()
			w.bad.policy = Errors{Row: DeadLetter, Record: Skip, DeadLetterTopic: deadTopic}
			c := w.connector()
			if seed%4 == 0 { // one leadership, with all its faults
				w.life(c, 10*time.Minute, false)
			} else {
				for range 3 {
					w.life(c, time.Duration(1+w.intn(20))*time.Second, w.intn(2) == 0)
				}
				w.faults = 0
				w.life(c, 2*time.Minute, false)
			}
			for id := uint64(1); id <= w.rows; id++ {
				f := c.Find(eventOf(id))
				want := w.commitOfRow(id)
				if f.Where == NotSeen && w.exactlyOnce {
					// A commit whose answer was lost is known by the next session only as
					// a position, which is then what is known since.
					lost++
					at := slices.Index(w.log, id)
					if at >= 0 && !w.bad.refused(id) && !f.Since.After(w.logged[at]) {
						t.Fatalf("seed %d: event %d was published at %v and is not found, but all since %v are said to be", seed, id,
							w.logged[at], f.Since)
					}
					continue
				}
				found++
				if f.Commit.GTID != want.GTID || f.Commit.File != want.File || f.Commit.Pos != want.Pos {
					t.Fatalf("seed %d: event %d is found at %+v, want %+v", seed, id, f.Commit, want)
				}
				if w.bad.refused(id) {
					if f.Where != Unpublished || f.Unpublished == nil || f.Unpublished.Cause == "" || f.Unpublished.Message == "" ||
						(f.Unpublished.Topic == deadTopic) != w.bad.row[id] || len(f.Published) > 0 {
						t.Fatalf("seed %d: event %d is found as %+v, %+v; it was skipped or dead-lettered", seed, id, f, f.Unpublished)
					}
					continue
				}
				if f.Where != Published || len(f.Published) == 0 {
					t.Fatalf("seed %d: event %d is %s", seed, id, f.Where)
				}
				for _, p := range f.Published {
					if p.Topic != "t" || p.Offset >= 0 && w.log[p.Offset] != id {
						t.Fatalf("seed %d: event %d is said to be at %+v", seed, id, p)
					}
				}
				if w.exactlyOnce && (len(f.Published) != 1 || f.Published[0].Offset < 0) {
					t.Fatalf("seed %d: event %d has places %+v", seed, id, f.Published)
				}
			}
			if f := c.Find("event-0"); f.Where != NotSeen || f.Since.IsZero() || f.Known == 0 || f.Off {
				t.Fatalf("seed %d: what is not there: %+v", seed, f)
			}
		})
	}
	if found < 20*lost {
		t.Errorf("%d events are found, %d are not", found, lost)
	}
}

// What is known begins with the first session that streams, whichever that is.
func TestFindKnowsSinceWhenAfterFailedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.recent = 1000
		w.away = errors.New("connection refused")
		c := w.start(t)
		settle()
		w.mu.Lock()
		w.away = nil
		w.mu.Unlock()
		settle()
		if f := c.Find("another"); f.Known == 0 || f.Since.IsZero() {
			t.Errorf("%d events are known since %v", f.Known, f.Since)
		}
	})
}

// While the sink is busy, what it has and what comes behind it are found as waiting,
// with the transactions before them counted.
func TestFindKnowsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.recent = 1000
		c := w.connector()
		enc := newPipe(Limits{Rows: 1000, Bytes: 1 << 20}, w)
		enc.ids = newIdentify(w, c.recent)
		c.stream = &streamState{pipe: enc, saver: &saver{}}
		with := 0
		var ids []uint64
		for i := range w.binlog {
			if err := enc.add(t.Context(), &w.binlog[i], nil); err != nil {
				t.Fatal(err)
			}
			if len(w.binlog[i].Rows) > 0 && w.binlog[i].FirstRow == 0 {
				with++
				ids = append(ids, w.binlog[i].Rows[0].After[0].(uint64))
			}
			if with == 5 {
				if _, _, err := enc.take(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				with++
			}
		}
		for n, id := range ids {
			f := c.Find(eventOf(id))
			ahead := uint64(n)
			if n < 5 {
				ahead = 0 // they are on their way together
			}
			if f.Where != Waiting || f.Ahead != ahead || f.Commit != w.commitOfRow(id) {
				t.Errorf("event %d is %s behind %d at %v, want waiting behind %d", id, f.Where, f.Ahead, f.Commit, ahead)
			}
		}
	})
}

// Looking does not disturb the pipe, nor is what is looked at reused meanwhile; the
// race detector watches.
func TestFindBesideTheWork(t *testing.T) {
	w := quietWorld()
	w.recent = 1000
	c := w.connector()
	p := newPipe(Limits{Rows: 1000, Bytes: 1 << 20}, w)
	p.ids = newIdentify(w, c.recent)
	c.stream = &streamState{pipe: p, saver: &saver{}}
	looked, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-end:
				return
			default:
				c.Find(eventOf(w.rows))
			}
		}
	}()
	for range 50 {
		for i := range w.binlog {
			if err := p.add(t.Context(), &w.binlog[i], nil); err != nil {
				t.Fatal(err)
			}
			if len(w.binlog[i].Rows) == 0 {
				continue
			}
			b, _, err := p.take(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.take(b.Groups, math.MaxInt)
			p.put(b)
		}
	}
	close(end)
	<-looked
}

// Without a memory nothing is known, and that is said.
func TestFindSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		c := w.connector()
		w.life(c, time.Minute, false)
		if f := c.Find(eventOf(1)); !f.Off || f.Where != NotSeen {
			t.Errorf("%+v", f)
		}
	})
}

// A leader that was another one's follower for a while does not say that it knows of
// what was published then.
func TestFindKnowsSinceItsLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.recent = 1000
		c := w.connector()
		w.life(c, time.Minute, false)
		time.Sleep(time.Hour)
		again := time.Now()
		drain, end := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(drain, context.Background(), 2) }()
		settle()
		if f := c.Find("another"); f.Since.Before(again) {
			t.Errorf("known since %v, before this leadership at %v", f.Since, again)
		}
		if f := c.Find(eventOf(1)); f.Where != Published {
			t.Errorf("what it published itself is %s", f.Where)
		}
		end()
		<-done
	})
}

// People write binary ids as UUIDs or in hexadecimal digits, and UUIDs in either case.
func TestSpellings(t *testing.T) {
	const id = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	raw, err := hex.DecodeString("3e11fa4771ca11e19e33c80aa9429562")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		id:                                     {id, "3E11FA47-71CA-11E1-9E33-C80AA9429562", string(raw)},
		"3E11FA47-71CA-11E1-9E33-C80AA9429562": {id, "3E11FA47-71CA-11E1-9E33-C80AA9429562", string(raw)},
		"0x3e11fa4771ca11e19e33c80aa9429562":   {"0x3e11fa4771ca11e19e33c80aa9429562", string(raw)},
		"42":                                   {"42"},
		"order 7":                              {"order 7"},
	} {
		got := Spellings(text)
		for _, w := range want {
			if !slices.ContainsFunc(got, func(b []byte) bool { return string(b) == w }) {
				t.Errorf("%s: %q, want also %q", text, got, w)
			}
		}
	}
}
