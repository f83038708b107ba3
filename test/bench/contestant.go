package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// contestant is one program in one configuration.
type contestant struct {
	name string
	// coldStart is false when it can only be started in steps, so that the time from
	// its start to the first record means nothing.
	coldStart bool
	// start starts it on a job. It is to publish what is in the job's span, or what is
	// written from now on.
	start func(context.Context, *lab, job) (*running, error)
}

// job says what a contestant is to do.
type job struct {
	dir    string // for its files
	topic  string
	span   *span
	replay bool // begin where the span does, not at the end of the binlog
}

// running is a contestant at work.
type running struct {
	pid   int
	began time.Time
	log   string
	stop  func() error
	admin func(context.Context) (string, error) // address of the admin server; nil without
}

const (
	oursExactly = "binlog-outbox, exactly_once"
	oursAtLeast = "binlog-outbox, at_least_once"
	debDefault  = "Debezium, defaults"
	debTuned    = "Debezium, tuned"
	debExactly  = "Debezium, tuned, exactly once"
)

func ours(name string) contestant {
	delivery := strings.TrimPrefix(name, "binlog-outbox, ")
	return contestant{name: name, coldStart: true, start: func(ctx context.Context, l *lab, j job) (*running, error) {
		return l.startOurs(ctx, j, delivery)
	}}
}

func debezium(name string) contestant {
	switch name {
	case debExactly:
		return contestant{name: name, start: func(
			ctx context.Context, l *lab, j job,
		) (*running, error) {
			return l.startDistributed(ctx, j)
		}}
	case debTuned:
		return contestant{name: name, coldStart: true, start: func(ctx context.Context, l *lab, j job) (*running, error) {
			return l.startDebezium(ctx, j, tuned())
		}}
	}
	return contestant{name: name, coldStart: true, start: func(ctx context.Context, l *lab, j job) (*running, error) {
		return l.startDebezium(ctx, j, nil)
	}}
}

// field is the contestants of those names, without those that are not asked for.
func (l *lab) field(names ...string) []contestant {
	var out []contestant
	for _, n := range names {
		if strings.HasPrefix(n, "binlog-outbox") {
			out = append(out, ours(n))
		} else if l.against == "debezium" {
			out = append(out, debezium(n))
		}
	}
	return out
}

// usage is what a process has used.
type usage struct {
	cpu  time.Duration
	rss  int64 // bytes, now
	peak int64 // bytes, ever
}

// ticks is the kernel's USER_HZ, which is 100 on every Linux.
const ticks = 100

func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The name in brackets may hold anything; utime and stime are fields 14 and 15.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var spent int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, err
		}
		spent += n
	}
	u.cpu = time.Duration(spent) * time.Second / ticks
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.rss = kb << 10
		case "VmHWM":
			u.peak = kb << 10
		}
	}
	return u, nil
}

// race lets a contestant do a job on a topic of its own. do is called when it is
// started and the consumer reads; what it returns is the outcome. The run counts
// only if every row arrived once.
func (l *lab) race(ctx context.Context, c contestant, s *span, replay bool, rows int, partitions int32,
	each func(int, time.Time), do func(context.Context, *running, *consumer) error,
) (err error) {
	topic, err := l.topic(partitions)
	if err != nil {
		return err
	}
	dir := filepath.Join(l.dir, topic)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		} else if !l.keep {
			err = os.RemoveAll(dir)
		}
	}()
	reader, err := consume(ctx, l.kafka.Addr(), topic, rows, each)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			reader.stop()
		}
	}()
	r, err := c.start(ctx, l, job{dir: dir, topic: topic, span: s, replay: replay})
	if err != nil {
		return err
	}
	err = do(ctx, r, reader)
	if err == nil {
		err = reader.check(ctx)
	}
	if e := r.stop(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%w; its log is %s", err, r.log)
	}
	return l.dropTopic(topic)
}

// turns calls do for each contestant in each round, beginning each round with
// another one.
func turns(rounds int, field []contestant, do func(contestant) error) error {
	for round := range rounds {
		for i := range field {
			if err := do(field[(round+i)%len(field)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// median of a list that is not empty.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
