package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// disturbedLoad is what is written while something is killed: enough that each
// kill cuts through work, little enough that the connector catches up between two.
// It is about 2,400 rows a second.
var disturbedLoad = workload.Load{
	PerSecond: 800, Writers: 4, Batch: 4, MaxRows: 5, Size: 300, RolledBack: 5, Savepoint: 10, Compressed: 5, Foreign: 10,
}

const rowsPerSecond = 2_400

// repeatedAtMost is what one restart may publish again in one partition: the
// position is saved once a second, a batch closes at 10,000 rows, and both are
// spread evenly over the partitions. It is twice the second, since chance is not
// that even.
const repeatedAtMost = (2*rowsPerSecond + 10_000) / partitions

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
	from := time.Now()
	s.disturb(load(p), func() {
		for range scaled(t, times) {
			s.workOrNot()
			s.kill()
			s.start()
		}
	})
	lasted := time.Since(from)
	h := s.finish(s.validators(history.Bound{Rewinds: times, Rows: repeatedAtMost}))
	counts := h.Counts()
	each, second := counts.Repeated/scaled(t, times), int(float64(counts.Rows)/lasted.Seconds())
	t.Logf("%d records repeated in all: %d for each kill, at %d rows a second", counts.Repeated, each, second)
	// On average a kill comes in the middle between two saves; a few of them are
	// allowed to come late.
	if each > second*3/2 {
		t.Errorf("%v: %d records for each kill, %d are written in a second", history.ErrRewindTooLong, each, second)
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
	life, published, further, barren, n := 500*time.Millisecond, 0, 0, 0, 0
	s.disturb(load(p), func() {
		for ; n < scaled(t, lives) || further < 5 && n < most; n++ {
			rows, records := s.tail.Rows()
			s.start()
			time.Sleep(life)
			s.kill()
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
	t.Logf("%d of %d lives have published, %d of them rows that had not come before; the last were of %v", published, n, further, life)
	if further < 5 {
		t.Errorf("in %d lives only %d have got on", n, further)
	}
	s.start()
	s.finish(s.validators(history.Bound{Rewinds: most, Rows: 10 * repeatedAtMost}))
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

// restarts of a server end the connector's work several times until the server is
// there for good: each may repeat what was under way.
const rewindsPerOutage = 6

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
	s.finish(s.validators(history.Bound{Rewinds: times * rewindsPerOutage, Rows: repeatedAtMost}))
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
	s.finish(s.validators(history.Bound{Rewinds: times * rewindsPerOutage, Rows: repeatedAtMost}))
}

// TestKillBoth kills broker and database at once, and the connector in between.
func TestKillBoth(t *testing.T) {
	const times = 5
	p := play{server: mysqlGTID(t)}
	s := newStage(t, p)
	s.start()
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
		}
	})
	s.finish(s.validators(history.Bound{Rewinds: times * 3 * rewindsPerOutage, Rows: repeatedAtMost}))
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
