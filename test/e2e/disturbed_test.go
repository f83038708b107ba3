package e2e

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// disturbedLoad is what is written while something is killed: enough that each
// kill cuts through work, little enough that the connector catches up between two.
// It is about 2,400 rows a second.
var disturbedLoad = workload.Load{
	PerSecond: 800, Writers: 4, Batch: 4, MaxRows: 5, Size: 300, RolledBack: 5, Savepoint: 10, Compressed: 5, Foreign: 10,
}

// batchRecords is the most that a batch holds, so the most that the end of a session
// leaves without an acknowledgement.
const batchRecords = 10_000

func load(p play) workload.Load {
	l := disturbedLoad
	if p.server.Flavor() == "mariadb" {
		l.Compressed = 0
	}
	return l
}

// TestKillConnector kills the connector with -9 twenty times under load.
func TestKillConnectorMySQLGTID(t *testing.T) { killConnector(t, play{server: mysqlGTID(t)}) }
func TestKillConnectorMariaDBFile(t *testing.T) {
	killConnector(t, play{server: mariadb(t), positions: "file"})
}

func killConnector(t *testing.T, p play) {
	t.Helper()
	const times = 20
	s := newStage(t, p)
	s.start()
	// A process goes on at the saved position, so nobody after it goes back further
	// than to where it began, however seldom it came to save.
	lives := s.lives()
	s.disturb(load(p), func() {
		for range scaled(t, times) {
			s.workOrNot()
			s.kill()
			lives.ended()
			s.start()
		}
	})
	h := s.finish(nil)
	s.promised(h, history.Bound{Rewinds: s.sessions() - 1, Rows: lives.longest})
	t.Logf("%d records repeated in all: %d for each kill; the most that a process published in a partition, and the one "+
		"before it: %d",
		h.Counts().Repeated, h.Counts().Repeated/scaled(t, times), lives.longest)
}

// lives says how much the processes of a run have published in a partition.
type lives struct {
	stage *stage
	last  map[int32]int64
	// longest is the most of one and of the one before it, the most by which the next
	// one may go back: what was on its way when a process was killed counts as the
	// next one's.
	longest, before int
}

func (s *stage) lives() *lives { return &lives{stage: s, last: s.ends()} }

// ended notes the end of a process.
func (l *lives) ended() {
	ends, most := l.stage.ends(), 0
	for p, end := range ends {
		most = max(most, int(end-l.last[p]))
	}
	l.longest, l.before, l.last = max(l.longest, most+l.before), most, ends
}

// ends are the ends of the topic's partitions; none while it is not there.
func (s *stage) ends() map[int32]int64 {
	s.t.Helper()
	ends, err := harness.Reader([]string{theLab.kafka.Addr()}).Ends(s.t.Context(),
		func(topic string) bool { return topic == s.topic })
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[int32]int64{}
	for _, e := range ends {
		out[e.Partition] = e.High
	}
	return out
}

// sessions is how often the connector has begun to stream, in all its processes. Each
// may have begun before the end of what was published.
func (s *stage) sessions() int {
	s.t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	return bytes.Count(log, []byte(`"msg":"streaming"`))
}

// promised checks a run with restarts, of which s.finish has checked nothing yet.
func (s *stage) promised(h *history.History, bound history.Bound) {
	s.t.Helper()
	if err := history.Validate(h, s.validators(bound)); err != nil {
		s.t.Error(err)
	}
}

// TestShortLives kills the connector half a second after each start, under load: it
// gets on all the same, since the first batch of a life is saved at once.
func TestShortLives(t *testing.T) {
	for _, delivery := range []string{"at_least_once", "exactly_once"} {
		t.Run(delivery, func(t *testing.T) { shortLives(t, play{server: mysqlGTID(t), delivery: delivery}) })
	}
}

func shortLives(t *testing.T, p play) {
	const lives, most = 30, 100
	s := newStage(t, p)
	all := s.lives()
	life, published, further, barren, n := 500*time.Millisecond, 0, 0, 0, 0
	s.disturb(load(p), func() {
		for ; n < scaled(t, lives) || further < 5 && n < most; n++ {
			rows, records := s.tail.Rows()
			s.start()
			time.Sleep(life)
			s.kill()
			all.ended()
			nowRows, nowRecords := s.tail.Rows()
			if nowRecords > records {
				published++
			}
			if barren++; nowRows > rows {
				further++
				barren = 0
			} else if barren == 10 { // on a machine that is busy with other things
				life, barren = 2*life, 0
				t.Logf("lives of %v from now on: none of the last ten has got on", life)
			}
		}
	})
	t.Logf("%d of %d lives have published, %d of them rows that had not come before; the last were of %v", published, n,
		further, life)
	if further < 5 {
		t.Errorf("in %d lives only %d have got on", n, further)
	}
	s.start()
	h := s.finish(nil)
	s.promised(h, history.Bound{Rewinds: s.sessions() - 1, Rows: all.longest})
}

// workOrNot waits for a random time, half of the time from when the connector has
// published something: so the kill falls into the start as well as into the work.
func (s *stage) workOrNot() {
	s.t.Helper()
	if s.random.IntN(2) == 0 {
		_, before := s.tail.Rows()
		deadline := time.Now().Add(silence)
		for {
			if _, now := s.tail.Rows(); now > before {
				break
			}
			s.mustRun()
			if time.Now().After(deadline) {
				s.status()
				s.t.Fatalf("nothing was published for %v", silence)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	s.pause(20*time.Millisecond, 900*time.Millisecond)
}

// TestTerminateConnector ends the connector with SIGTERM twenty times under load:
// it finishes what it has in hand and saves where it is, so nothing comes twice.
func TestTerminateConnectorMySQLGTID(t *testing.T)   { terminateConnector(t, play{server: mysqlGTID(t)}) }
func TestTerminateConnectorMariaDBGTID(t *testing.T) { terminateConnector(t, play{server: mariadb(t)}) }

func terminateConnector(t *testing.T, p play) {
	t.Helper()
	s := newStage(t, p)
	s.start()
	var longest time.Duration
	s.disturb(load(p), func() {
		for range scaled(t, 20) {
			s.workOrNot()
			from := time.Now()
			s.terminate()
			longest = max(longest, time.Since(from))
			s.start()
		}
	})
	s.finish(history.ExactlyOnce)
	t.Logf("the longest SIGTERM took %v", longest.Round(time.Millisecond))
}

func TestKillBroker(t *testing.T) {
	const times = 5
	p := play{server: mysqlGTID(t)}
	s := newStage(t, p)
	s.start()
	s.disturb(load(p), func() {
		for range times {
			s.pause(500*time.Millisecond, 2*time.Second)
			s.killBroker()
		}
	})
	h := s.finish(nil)
	s.promised(h, history.Bound{Rewinds: s.sessions() - 1, Rows: batchRecords})
}

func TestKillMySQL(t *testing.T) {
	const times = 5
	p := play{server: mysqlGTID(t)}
	s := newStage(t, p)
	s.start()
	s.disturb(load(p), func() {
		for range times {
			s.pause(500*time.Millisecond, 2*time.Second)
			s.killDatabase()
		}
	})
	h := s.finish(nil)
	s.promised(h, history.Bound{Rewinds: s.sessions() - 1, Rows: batchRecords})
}

// TestKillBoth kills broker and database at once, and the connector in between.
func TestKillBoth(t *testing.T) {
	const times = 5
	p := play{server: mysqlGTID(t)}
	s := newStage(t, p)
	s.start()
	longest, from := 0, s.ends()
	s.disturb(load(p), func() {
		for i := range times {
			s.pause(500*time.Millisecond, 2*time.Second)
			done := make(chan error, 1)
			go func() { done <- s.restartBroker() }()
			s.pause(0, time.Second)
			if i%2 == 1 {
				s.kill()
				s.start()
			}
			s.killDatabase()
			if err := <-done; err != nil {
				t.Error(err)
				return
			}
			for p, end := range s.ends() {
				longest = max(longest, int(end-from[p]))
			}
		}
	})
	h := s.finish(nil)
	s.promised(h, history.Bound{Rewinds: s.sessions() - 1, Rows: max(longest, batchRecords)})
}

// TestKillWriters kills the shop's own connections: the outcome of what they were
// about is known to the server alone, and the connector must agree with it.
func TestKillWriters(t *testing.T) {
	p := play{server: mysqlGTID(t)}
	s := newStage(t, p)
	s.start()
	s.disturb(load(p), func() {
		for range 50 {
			s.pause(10*time.Millisecond, 60*time.Millisecond)
			if err := s.shop.KillWriter(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	s.finish(history.ExactlyOnce)
}

func (s *stage) killBroker() {
	s.t.Helper()
	if err := s.restartBroker(); err != nil {
		s.t.Fatal(err)
	}
	s.mustRun()
}

func (s *stage) restartBroker() error {
	if err := theLab.kafka.Kill(); err != nil {
		return err
	}
	return theLab.kafka.Restart(s.t.Context())
}

func (s *stage) killDatabase() {
	s.t.Helper()
	if err := s.play.server.Kill(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.play.server.Restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.mustRun()
}

// disturb writes the load for as long as f runs.
func (s *stage) disturb(load workload.Load, f func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	written := make(chan error, 1)
	go func() { written <- s.shop.Write(ctx, load) }()
	defer func() {
		stop()
		if err := <-written; err != nil {
			s.t.Error(err)
		}
	}()
	f()
}
