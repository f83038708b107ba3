package connector

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// choose sets the position as an operator does: everything up to transaction n of
// the binlog counts as published; -1 starts over. It returns the id of the row that
// comes next.
func (w *world) choose(n int, override uint64) (next uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored = position.Position{Seq: w.stored.Seq + position.SeqGap, OffsetOverride: override}
	if w.found = n >= 0; w.found {
		w.stored.Flavor, w.stored.Set = position.MySQL, position.NewSet(position.MySQL)
		if n > 0 {
			w.stored.Set.AddRange(position.GTID{SID: simServer, Seq: uint64(n)}, 1)
		}
	}
	for _, tx := range w.binlog {
		if int(tx.Commit.GTID.Seq) <= n {
			next += uint64(len(tx.Rows))
		}
	}
	return next + 1
}

// Over scripted faults, each position that an operator sets is gone on from exactly
// once, whether it lies back or ahead and whatever Kafka still holds: nothing is
// lost, and twice comes only what the choice says.
func TestOffsetOverrideSchedules(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 100 // under the race detector
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(seed, true)
			turns := map[int]uint64{} // length of the log at a choice to the id that comes next
			for n := range uint64(4) {
				for range 1 + w.intn(2) {
					w.life(w.connector(), time.Duration(1+w.intn(12))*time.Second, w.intn(2) == 0)
				}
				if w.intn(3) == 0 { // the topic is gone as well
					w.sunk, w.inSink = position.Position{}, false
				}
				turns[len(w.log)] = w.choose(w.intn(50)-1, n+1)
			}
			w.faults = 0
			w.life(w.connector(), 90*time.Second, false)
			next := uint64(1)
			for i, id := range w.log {
				if turn, ok := turns[i]; ok {
					next = turn
				}
				if id != next {
					t.Fatalf("seed %d: record %d is row %d, want %d; choices %v, log %v", seed, i, id, next, turns, w.log)
				}
				next++
			}
			if turn, ok := turns[len(w.log)]; ok {
				next = turn
			}
			if next != w.rows+1 {
				t.Fatalf("seed %d: ended before row %d of %d; choices %v", seed, next, w.rows, turns)
			}
		})
	}
}

// No sequence number is given to two rows, nor to one row before and after an
// operator's choice: consumers would drop the second as a repetition. What was
// published after the last save counts, too.
func TestNumbersAreNotGivenAgain(t *testing.T) {
	for _, exactlyOnce := range []bool{true, false} {
		for seed := range uint64(200) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed, exactlyOnce)
				var turns []int // lengths of the log at the choices
				for n := range uint64(4) {
					w.life(w.connector(), time.Duration(1+w.intn(12))*time.Second, w.intn(3) > 0)
					if w.intn(3) == 0 {
						w.sunk, w.inSink = position.Position{}, false
					}
					turns = append(turns, len(w.log))
					w.choose(w.intn(50)-1, n+1)
				}
				w.faults = 0
				w.life(w.connector(), 90*time.Second, false)
				type given struct {
					id   uint64
					turn int
				}
				first := map[uint64]given{}
				for i, seq := range w.seqs {
					turn, _ := slices.BinarySearch(turns, i+1)
					g := given{w.log[i], turn}
					if was, ok := first[seq]; ok && (was != g || exactlyOnce) {
						t.Fatalf("seed %d: number %d is of row %d after choice %d, and of row %d after choice %d; choices at %v", seed,
							seq, was.id, was.turn, g.id, g.turn, turns)
					}
					first[seq] = g
				}
			})
		}
	}
}

// Whichever position counts, the larger number does: the replicated one is saved
// after Kafka's, and an operator's has that of the last save.
func TestReconcileKeepsTheLargerNumber(t *testing.T) {
	at := func(n, seq, override uint64) position.Position {
		p := position.Position{Set: position.NewSet(position.MySQL), Seq: seq, OffsetOverride: override}
		p.Set.AddRange(position.GTID{SID: simServer, Seq: n}, 1)
		return p
	}
	reset := position.Position{Seq: 950, OffsetOverride: 7}
	for name, c := range map[string]struct {
		stored  position.Position
		inStore bool
	}{
		"a position set":  {at(2000, 950, 7), true},
		"to start over":   {reset, false},
		"a late save":     {at(900, 950, 0), true},
		"nothing stored":  {position.Position{}, false},
		"written further": {at(1100, 950, 0), true},
	} {
		if from, _, err := reconcile(at(1000, 1000, 0), true, c.stored, c.inStore); err != nil || from.Seq != 1000 {
			t.Errorf("%s: goes on from number %d, %v", name, from.Seq, err)
		}
	}
}
