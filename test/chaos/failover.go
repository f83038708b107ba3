package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// Failovers are the times of one way to lose a leader.
type Failovers struct {
	How string
	// Gap is the time without delivery, as a read_committed consumer sees it: from the
	// last records of the old leader to the first of the new one.
	Gap []time.Duration
	// Phases are the parts of it that the new leader has measured.
	Phases map[string][]time.Duration
}

// FailoverOptions say how failovers are measured.
type FailoverOptions struct {
	Options
	Times, PerSecond int
}

// BenchFailover ends the leader again and again while rows are written, first with
// kill -9 and then with SIGTERM, and measures how long consumers wait.
func BenchFailover(ctx context.Context, o FailoverOptions) (_ []Failovers, err error) {
	o.Direct = true // proxies would answer for nodes that are gone
	s, err := NewStage(ctx, o.Options)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err != nil {
		return nil, fmt.Errorf("setting the stage: %w", err)
	}
	w, err := startWatch(ctx, s.addrs())
	if err != nil {
		return nil, err
	}
	defer w.stop()
	writing, stop := context.WithCancel(ctx)
	written := make(chan error, 1)
	go func() {
		written <- s.shop.Write(writing, workload.Load{PerSecond: o.PerSecond, Writers: 4, Batch: 1, MaxRows: 1, Size: 250})
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-written)
	}()
	var all []Failovers
	for _, how := range []string{"kill -9", "SIGTERM"} {
		f := Failovers{How: how, Phases: map[string][]time.Duration{}}
		for range o.Times {
			if err := s.failover(ctx, w, &f); err != nil {
				return all, fmt.Errorf("%s, round %d: %w", how, len(f.Gap)+1, err)
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// failover ends the leader once.
func (s *Stage) failover(ctx context.Context, w *watch, f *Failovers) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("nobody took over within a minute"))
	defer cancel()
	old, err := s.awaitStreaming(ctx)
	if err != nil {
		return err
	}
	// Followers that have just been started need a moment, and so does the machine.
	if !sleep(ctx, 2*time.Second+time.Duration(s.random.IntN(500))*time.Millisecond) {
		return context.Cause(ctx)
	}
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		if f.How == "kill -9" {
			done <- old.kill()
			return
		}
		_, err := old.terminate(20 * time.Second)
		done <- err
	}()
	leader, err := s.newLeader(ctx, old)
	if err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	streaming := time.Now()
	for w.arrivedAfter(streaming).IsZero() {
		if !sleep(ctx, 5*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	first := w.arrivedAfter(streaming)
	f.Gap = append(f.Gap, w.longestGap(began.Add(-100*time.Millisecond), first))
	phases, err := leader.phases(ctx, began, first)
	if err != nil {
		return err
	}
	for name, d := range phases {
		f.Phases[name] = append(f.Phases[name], d)
	}
	return old.start()
}

func (s *Stage) newLeader(ctx context.Context, old *node) (*node, error) {
	for {
		for _, n := range s.nodes {
			if n == old {
				continue
			}
			if st, _, err := n.status(ctx); err == nil && st.Role == "leader" && st.Connectors[0].Phase == "streaming" {
				return n, nil
			}
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// phases are how long each part of the takeover took: until this node led, with
// everything applied; each phase of its term; and from there to the first record.
func (n *node) phases(ctx context.Context, began, first time.Time) (map[string]time.Duration, error) {
	s, _, err := n.status(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]time.Duration{}
	for name, seconds := range s.Connectors[0].Takeover {
		out["term: "+name] = time.Duration(seconds * float64(time.Second))
	}
	log, err := n.running().Log()
	if err != nil {
		return nil, err
	}
	for raw := range bytes.Lines(log) {
		var line struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
		}
		if json.Unmarshal(raw, &line) != nil || line.Time.Before(began) {
			continue
		}
		switch line.Msg {
		case "this node leads":
			out["elect and barrier"] = line.Time.Sub(began)
		case "streaming":
			out["first batch"] = first.Sub(line.Time)
		}
	}
	return out, nil
}

// longestGap is the longest time without a record in the stretch from to until.
func (w *watch) longestGap(from, until time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := from
	for _, at := range w.arrivals {
		if at.Before(from) {
			last = at
			continue
		}
		longest = max(longest, at.Sub(last))
		last = at
		if at.After(until) {
			break
		}
	}
	return longest
}

// String prints the times: median and worst, and the phases' medians.
func (f Failovers) String() string {
	if len(f.Gap) == 0 {
		return f.How + " was not measured"
	}
	out := fmt.Sprintf("%-8s %3d times: without delivery median %v, worst %v", f.How, len(f.Gap), rounded(median(f.Gap)),
		rounded(slices.Max(f.Gap)))
	for _, name := range slices.Sorted(maps.Keys(f.Phases)) {
		out += fmt.Sprintf("; %s %v", name, rounded(median(f.Phases[name])))
	}
	return out
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
