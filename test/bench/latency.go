package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const live = "live"

func prepareLive(ctx context.Context, l *lab) error {
	_, err := l.begin(ctx, l.mysql, live, 1)
	return err
}

func runLatency(ctx context.Context, l *lab) error {
	err := turns(l.rounds, l.field(oursExactly, oursAtLeast, debDefault, debTuned, debExactly), func(c contestant) error {
		return l.pace(ctx, c, 1000)
	})
	if err != nil {
		return err
	}
	if l.quick {
		return nil
	}
	return turns(1, l.field(oursExactly, oursAtLeast, debTuned), func(c contestant) error {
		return l.pace(ctx, c,
			highRate)
	})
}

// highRate is more than an outbox mostly sees.
const highRate = 10_000

const warmUp = 4 // seconds of load before what counts

// pace lets rows be written at a rate and notes how long each took from the commit's
// answer to the consumer.
func (l *lab) pace(ctx context.Context, c contestant, rate int) error {
	s := l.spans[live]
	if err := s.server.Exec(ctx, "TRUNCATE TABLE "+s.database()+".outbox"); err != nil {
		return err
	}
	measured := l.size(8, 5)
	rows := rate * (warmUp + measured)
	committed, arrived := make([]time.Time, rows+1), make([]time.Time, rows+1)
	var reading atomic.Bool
	each := func(n int, at time.Time) {
		if n == 0 {
			reading.Store(true)
		} else if n <= rows {
			arrived[n] = at
		}
	}
	return l.race(ctx, c, s, false, rows, partitions, each, func(ctx context.Context, r *running, read *consumer) error {
		if err := l.probe(ctx, s, &reading); err != nil {
			return err
		}
		if rate == 1000 && !l.results.has("latency 1000", c.name, "idle") {
			if err := l.idle(ctx, c, r); err != nil {
				return err
			}
		}
		before, err := usageOf(r.pid)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := writeAt(ctx, s, rate, committed); err != nil {
			return err
		}
		kept := float64(rows) / time.Since(began).Seconds() / float64(rate)
		if err := read.wait(ctx, rows); err != nil {
			return err
		}
		used, err := usageOf(r.pid)
		if err != nil {
			return err
		}
		// The reader writes arrived under its lock, which wait has taken since.
		var took []float64
		for n := rate*warmUp + 1; n <= rows; n++ {
			took = append(took, max(0, arrived[n].Sub(committed[n]).Seconds()*1000))
		}
		slices.Sort(took)
		name := fmt.Sprintf("latency %d", rate)
		for _, q := range quantiles() {
			l.note(name, c, q.name, took[int(float64(len(took)-1)*q.at)])
		}
		l.note(name, c, "kept", kept*100)
		l.note(name, c, "cpu", (used.cpu-before.cpu).Seconds()/time.Since(began).Seconds()*100)
		l.note(name, c, "rss", float64(used.rss)/(1<<20))
		return nil
	})
}

type quantile struct {
	name string
	at   float64
}

func quantiles() []quantile { return []quantile{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} }

// probe writes rows that count for nothing until the contestant publishes one.
func (l *lab) probe(ctx context.Context, s *span, reading *atomic.Bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stall, fmt.Errorf("nothing is published after %v", stall))
	defer cancel()
	for !reading.Load() {
		err := s.server.Exec(ctx, "INSERT INTO "+s.database()+".outbox VALUES (UUID(), 'order', 'probe', 'Probe', "+
			"'{\"n\":0}')")
		if err != nil {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// idle notes what a contestant needs while nothing is written.
func (l *lab) idle(ctx context.Context, c contestant, r *running) error {
	sleep(ctx, 2*time.Second) // the last probes
	before, err := usageOf(r.pid)
	if err != nil {
		return err
	}
	began := time.Now()
	sleep(ctx, time.Duration(l.size(5, 3))*time.Second)
	after, err := usageOf(r.pid)
	if err != nil {
		return err
	}
	l.note("latency 1000", c, "idle", (after.cpu-before.cpu).Seconds()/time.Since(began).Seconds()*100)
	return nil
}

// writeAt writes one row a transaction at a rate over several connections, and notes
// when each commit was answered.
func writeAt(ctx context.Context, s *span, rate int, committed []time.Time) error {
	g, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for w := range writers {
		g.Go(func() error {
			conn, err := s.server.Conn(ctx, s.database())
			if err != nil {
				return err
			}
			defer conn.Close()
			for n := w + 1; n < len(committed); n += writers {
				if !sleep(ctx, time.Until(began.Add(time.Duration(n)*time.Second/time.Duration(rate)))) {
					return context.Cause(ctx)
				}
				if _, err := conn.Execute(insert("outbox", strconv.Itoa(n), payloadSize)); err != nil {
					return err
				}
				committed[n] = time.Now()
			}
			return nil
		})
	}
	return g.Wait()
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func reportLatency(l *lab) string {
	out := "## Latency\n\nOne outbox row a transaction at a steady rate; milliseconds from the answer to the COMMIT to " +
		"the read_committed consumer.\n\n"
	metrics := []metric{{"p50", "p50, ms", 1, -1}, {"p99", "p99, ms", 1, -1}, {"p99.9", "p99.9, ms", 1, -1},
		{"kept", "rate kept, %", 0, 0}, {"cpu", "CPU, % of a core", 1, -1}, {"rss", "resident, MiB", 0, -1}}
	out += "1,000 rows/s:\n\n" + l.table("latency 1000", []string{oursExactly, oursAtLeast, debDefault, debTuned,
		debExactly}, append(metrics, metric{"idle", "CPU when idle, % of a core", 2, 0}))
	if t := l.table(fmt.Sprintf("latency %d", highRate), []string{oursExactly, oursAtLeast, debTuned}, metrics); t != "" {
		out += fmt.Sprintf("\n%s rows/s, one round:\n\n%s", figure(highRate, 0), t)
	}
	return out
}
