package connector

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Files and offsets of one server say nothing on another.
func TestF14PositionMovesToAnotherServer(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	set, err := position.ParseSet(position.MySQL, a+":1-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		from position.Position
		to   string
		file string
	}{
		{"the same server", position.Position{Server: a, Set: set, File: "binlog.000007", Pos: 9}, a, "binlog.000007"},
		{"another server", position.Position{Server: a, Set: set, File: "binlog.000007", Pos: 9}, b, ""},
		{"of no known server", position.Position{Set: set, File: "binlog.000007", Pos: 9}, b, "binlog.000007"},
		{"by file", position.Position{Server: a, File: "binlog.000007", Pos: 9}, b, "binlog.000007"},
		{"nothing but a file", position.Position{Server: a, Set: position.NewSet(position.MySQL), File: "binlog.000007",
			Pos: 9}, b, "binlog.000007"},
	} {
		got := onServer(c.from, c.to)
		if got.Server != c.to || got.File != c.file || (got.Pos == 9) != (c.file != "") || got.IsZero() {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// anewSources can't go on from any position but a new start's.
type anewSources struct {
	*world
	start position.Position
}

func (s *anewSources) Open(ctx context.Context, from position.Position) (Source, error) {
	if !from.Set.Contains(s.start.Set) {
		return nil, &BeginAnew{Err: errSim}
	}
	return s.world.Open(ctx, from)
}

func (s *anewSources) Start(context.Context) (position.Position, error) { return s.start, nil }

// When the source no longer has what comes next, a connector that may begins anew: at
// a new start, with the rows that stand there, counting on; Kafka learns of the new
// start before the replicated store does.
func TestBeginAnew(t *testing.T) {
	for _, exactlyOnce := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1, exactlyOnce)
			w.stood(30)
			w.faults = 0
			old, err := position.ParseSet(position.MySQL, simServer.String()+":1-3")
			if err != nil {
				t.Fatal(err)
			}
			w.stored, w.found = position.Position{Flavor: position.MySQL, Set: old, Seq: 0}, true
			w.sunk, w.inSink = w.stored, exactlyOnce
			start := position.Position{Flavor: position.MySQL, Set: old.Clone(), Snapshot: &position.Snapshot{}}
			start.Set.Add(position.GTID{SID: simServer, Seq: 4})
			cfg := DefaultConfig()
			cfg.Name, cfg.SequenceHeaders = "sim", true
			sources := &anewSources{world: w, start: start}
			c := New(cfg, sources, w, w, w, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			w.away = errSim // the source is gone as soon as it was asked for a start
			w.life(c, time.Second, true)
			if exactlyOnce && w.sunk.Snapshot == nil {
				t.Errorf("Kafka does not know of the new start: %s", w.sunk)
			}
			w.away = nil
			w.life(c, time.Minute, false)
			if p, _ := w.Position(); p.Set.Count() != 60 || p.Snapshot != nil {
				t.Errorf("exactly once %t: the position is %s", exactlyOnce, p)
			}
			if len(w.log) < 30 || w.log[0] != 1 || w.log[29] != 30 {
				t.Errorf("exactly once %t: published %v", exactlyOnce, w.log)
			}
			// What was published before and not saved may have had the numbers up to there.
			if want := map[bool]uint64{true: 1, false: position.SeqGap + 1}[exactlyOnce]; w.seqs[0] != want {
				t.Errorf("exactly once %t: the first row has number %d, want %d", exactlyOnce, w.seqs[0], want)
			}
		})
	}
}
