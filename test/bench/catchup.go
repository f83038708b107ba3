package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	catchUp     = "catchup"
	partitions  = 6
	payloadSize = 250
)

// coldRows is how many rows of the catch-up count for the start from nothing.
func (l *lab) coldRows() int { return l.size(200_000, 50_000) }

func prepareCatchUp(ctx context.Context, l *lab) error {
	_, err := l.write(ctx, l.mysql, catchUp, shape{rows: l.size(1_000_000, 200_000), tables: 1, each: 1,
		size: payloadSize})
	return err
}

func runCatchUp(ctx context.Context, l *lab) error {
	s := l.spans[catchUp]
	run := func(c contestant) error {
		return l.race(ctx, c, s, true, s.rows, partitions, nil, func(ctx context.Context, r *running, read *consumer) error {
			stop := l.profileRun(ctx, r)
			defer stop()
			if err := read.wait(ctx, s.rows); err != nil {
				return err
			}
			used, err := usageOf(r.pid)
			if err != nil {
				return err
			}
			cold, end := read.noteOf(l.coldRows()), read.after(s.rows)
			if c.coldStart {
				l.note(catchUp, c, "all", float64(s.rows)/end.Sub(r.began).Seconds())
				l.note(catchUp, c, "cold", float64(cold.rows)/cold.at.Sub(r.began).Seconds())
			}
			l.note(catchUp, c, "warm", float64(s.rows-cold.rows)/end.Sub(cold.at).Seconds())
			l.note(catchUp, c, "cpu", used.cpu.Seconds()/float64(s.rows)*1e6)
			l.note(catchUp, c, "peak", float64(used.peak)/(1<<20))
			return nil
		})
	}
	if err := turns(l.rounds, l.field(oursExactly, oursAtLeast, debDefault, debTuned), run); err != nil {
		return err
	}
	if l.quick {
		return nil
	}
	return turns(1, l.field(debExactly), run)
}

func reportCatchUp(l *lab) string {
	s := l.spans[catchUp]
	return fmt.Sprintf("## Catch-up\n\n%d transactions of one outbox row wait in the binlog (JSON payload of %d bytes, "+
		"%d partitions). The clock starts with the process, JVM included; "+
		"a distributed worker can't be started with its connector, so its times begin with the connector and are not "+
		"compared.\n\n", s.rows, payloadSize, partitions) +
		l.table(catchUp, []string{oursExactly, oursAtLeast, debDefault, debTuned, debExactly}, []metric{
			{"all", "rows/s, process start to last row", 0, 1}, {"cold", fmt.Sprintf("rows/s, first %d", l.coldRows()), 0, 1},
			{"warm", "rows/s, the rest", 0, 1},
			{"cpu", "CPU seconds a million rows", 1, -1}, {"peak", "peak resident, MiB", 0, -1},
		})
}

// profileRun takes a CPU profile of this program while it catches up, if asked to.
func (l *lab) profileRun(ctx context.Context, r *running) (stop func()) {
	if l.profile == "" || r.admin == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.fetchProfile(ctx, r); err != nil {
			l.say("taking a profile: %v", err)
		}
	}()
	return func() { <-done }
}

const profileSeconds = 4

func (l *lab) fetchProfile(ctx context.Context, r *running) error {
	address, err := r.admin(ctx)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d",
		address, profileSeconds), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.profile, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.profile, fmt.Sprintf("cpu-%03d-%d.pprof", l.runs, time.Now().Unix())), body, 0o644)
}
