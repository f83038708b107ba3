package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/judge"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

var quiet = slog.New(slog.DiscardHandler)

// load is what is written while faults come: little enough that a machine of two
// cores keeps up, of every sort of transaction.
func load(o Options) workload.Load {
	l := workload.Load{PerSecond: 250, Writers: 4, Batch: 2, MaxRows: 5, Size: 200, RolledBack: 5, Savepoint: 10,
		Compressed: 5, Foreign: 10, Tidy: 5}
	if o.PerSecond > 0 {
		l.PerSecond = o.PerSecond
	}
	if o.MariaDB {
		l.Compressed = 0
	}
	l.Large, l.LargeRows = 2000, largeRows
	return l
}

// Done is one fault as it happened.
type Done struct {
	plan.Step
	On    string
	Began time.Time
}

// Run plays a plan on a new stage and judges what is left. The error says that it
// could not be played to its end; broken promises are in the report.
func Run(ctx context.Context, o Options, p plan.Plan, length time.Duration) (_ *Report, err error) {
	stage, err := NewStage(ctx, o)
	defer func() { err = errors.Join(err, stage.Close()) }()
	if err != nil {
		return nil, fmt.Errorf("setting the stage: %w", err)
	}
	r := &run{Stage: stage, began: time.Now(), report: &Report{Seed: p.Seed, Brokers: len(stage.kafka.Brokers),
		Nodes: len(stage.nodes)}}
	if r.watch, err = startWatch(ctx, stage.addrs()); err != nil {
		return nil, err
	}
	if err := r.play(ctx, p, length); err != nil {
		r.watch.stop()
		return nil, err
	}
	if err := r.gather(ctx); err != nil {
		return nil, err
	}
	r.report.Length = time.Since(r.began)
	return r.report, nil
}

// run is one run.
type run struct {
	*Stage
	began    time.Time
	watch    *watch
	report   *Report
	evidence judge.Evidence
	ledger   []history.LedgerRow

	processes, brokers, databases sync.Mutex // held for a fault of these

	mu      sync.Mutex
	done    []Done
	samples []judge.Sample
}

// locksOf are what a kind of fault must have for itself, in the order in which they
// are taken.
func (r *run) locksOf(kind plan.Kind) []*sync.Mutex {
	switch kind {
	case plan.KillNode, plan.StopNode, plan.PauseNode, plan.SleepNode, plan.FullDisk, plan.SilentHosts, plan.ChangeTables:
		return []*sync.Mutex{&r.processes}
	case plan.KillBroker, plan.PauseBroker, plan.SleepBroker:
		return []*sync.Mutex{&r.brokers}
	case plan.Leaderless:
		return []*sync.Mutex{&r.processes, &r.brokers}
	case plan.KillMySQL, plan.PauseMySQL, plan.SwitchSource:
		return []*sync.Mutex{&r.databases}
	}
	return nil
}

// play writes and lets the faults come, and ends with nodes that have published all
// and hold the same position, or have not managed to in time.
func (r *run) play(ctx context.Context, p plan.Plan, length time.Duration) error {
	sampling, stopSampling := context.WithCancel(ctx)
	var sampler sync.WaitGroup
	for _, n := range r.nodes {
		sampler.Go(func() { r.sample(sampling, n) })
	}
	defer func() {
		stopSampling()
		sampler.Wait()
		r.evidence.Samples = r.samples
	}()
	writing, stopWriting := context.WithCancel(ctx)
	written := make(chan error, 1)
	go func() { written <- r.shop.Write(writing, load(r.options)) }()
	err := r.disturb(ctx, p, length)
	stopWriting()
	if err := errors.Join(err, <-written); err != nil {
		return err
	}
	return r.settle(ctx)
}

// disturb plays the plan while the writers write.
func (r *run) disturb(ctx context.Context, p plan.Plan, length time.Duration) error {
	if !sleep(ctx, 4*time.Second) {
		return context.Cause(ctx)
	}
	before, err := r.usages(ctx)
	if err != nil {
		return fmt.Errorf("measuring the nodes before the faults: %w", err)
	}
	r.logf("%v", p)
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var faults sync.WaitGroup
	for _, step := range p.Steps {
		if !sleep(ctx, time.Until(start.Add(step.At))) {
			break
		}
		if r.unable(step) {
			r.logf("left out, since the disks can't be filled here: %v", step)
			continue
		}
		faults.Go(func() {
			if err := r.fault(ctx, step); err != nil {
				cancel(fmt.Errorf("%s: %w", step.Kind, err))
			}
		})
		for _, n := range r.nodes {
			if err := n.died(); err != nil {
				cancel(err)
			}
		}
	}
	faults.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sleep(ctx, max(5*time.Second, time.Until(start.Add(length))))
	if _, err := r.awaitStreaming(ctx); err != nil {
		return err
	}
	after, err := r.usages(ctx)
	if err != nil {
		return fmt.Errorf("measuring the nodes after the faults: %w", err)
	}
	// Leading costs more than following, and anybody may lead now.
	var most judge.Usage
	for _, u := range before {
		most = judge.Usage{Goroutines: max(most.Goroutines, u.Goroutines), Files: max(most.Files, u.Files),
			RSS: max(most.RSS, u.RSS)}
	}
	for i, n := range r.nodes {
		r.evidence.Processes = append(r.evidence.Processes, judge.Process{Node: n.name, Before: most, After: after[i]})
	}
	return nil
}

func (r *run) usages(ctx context.Context) (out []judge.Usage, err error) {
	for _, n := range r.nodes {
		u, err := n.usage(ctx)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.name, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// fault does one step and undoes it. Faults that would undo each other wait: what
// takes longer than planned on a busy machine may reach into the next round.
func (r *run) fault(ctx context.Context, step plan.Step) error {
	for _, lock := range r.locksOf(step.Kind) {
		lock.Lock()
		defer lock.Unlock()
	}
	if ctx.Err() != nil {
		return nil
	}
	began := time.Now()
	begin := r.begin
	if step.Kind == plan.ChangeTables {
		begin = r.changeTables
	}
	end, on, err := begin(ctx, step)
	r.mu.Lock()
	r.done = append(r.done, Done{Step: step, On: on, Began: began})
	r.mu.Unlock()
	r.logf("%8.3f  %s: %s for %v", time.Since(r.began).Seconds(), on, step.Kind, step.For.Round(10*time.Millisecond))
	if err != nil {
		return err
	}
	sleep(ctx, step.For)
	// Also when the run is given up: what was stopped must go on to be ended.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	return end(ending)
}

// sample asks a node for the replicated position until ctx ends. A node that runs
// the connector tells what is committed instead, which may be ahead of it.
func (r *run) sample(ctx context.Context, n *node) {
	flavor := position.Flavor(r.source().Flavor())
	for sleep(ctx, 150*time.Millisecond) {
		s, life, err := n.status(ctx)
		at := time.Now()
		if err != nil || s.Connectors[0].State != "unassigned" || s.Connectors[0].Position.GTIDSet == "" {
			continue
		}
		if set, err := position.ParseSet(flavor, s.Connectors[0].Position.GTIDSet); err == nil {
			r.mu.Lock()
			r.samples = append(r.samples, judge.Sample{Node: n.name, Life: life, At: at, Set: set})
			r.mu.Unlock()
		}
	}
}

// patience is how long nothing new may be published at the end, and how long the
// nodes may take to agree.
const patience = 45 * time.Second

// settle waits until all is published and every node holds the source's position.
func (r *run) settle(ctx context.Context) error {
	var err error
	if r.ledger, err = r.shop.Settle(ctx); err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	written, err := history.New(partitions, r.shop.Journal(), r.ledger, nil)
	if err != nil {
		return err
	}
	rows := written.Counts().Rows
	for last, since := -1, time.Now(); r.watch.records() < rows && time.Since(since) < patience; {
		if n := r.watch.records(); n != last {
			last, since = n, time.Now()
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	executed, err := r.executed(ctx)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !r.agree(ctx, executed); {
		if !sleep(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// agree notes the nodes' positions and reports whether all are the source's.
func (r *run) agree(ctx context.Context, executed *position.Set) bool {
	r.evidence.Final = map[string]*position.Set{}
	all := true
	for _, n := range r.nodes {
		var set *position.Set
		if s, _, err := n.status(ctx); err == nil {
			set, _ = position.ParseSet(executed.Flavor(), s.Connectors[0].Position.GTIDSet)
		}
		r.evidence.Final[n.name] = set
		all = all && set != nil && set.Equal(executed)
	}
	return all
}

func (s *Stage) executed(ctx context.Context) (*position.Set, error) {
	statement := "SELECT @@GLOBAL.gtid_executed"
	if s.options.MariaDB {
		statement = "SELECT @@GLOBAL.gtid_binlog_pos"
	}
	text, err := s.source().Value(ctx, statement)
	if err != nil {
		return nil, err
	}
	return position.ParseSet(position.Flavor(s.source().Flavor()), text)
}

// gather ends the nodes, reads everything and judges it.
func (r *run) gather(ctx context.Context) error {
	var broken []error
	for _, n := range r.nodes {
		orderly, err := n.terminate(endsWithin)
		if err == nil && !orderly {
			err = fmt.Errorf("node %s did not end within %v of SIGTERM", n.name, endsWithin)
		}
		broken = append(broken, err, panicked(n))
	}
	e := &r.evidence
	e.Live = r.watch.stop()
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute,
		errors.New("reading the topics took too long: is a transaction open?"))
	defer cancel()
	var seen []history.Seen
	e.Data = make([][]judge.Entry, partitions)
	ends, err := readTopic(ctx, r.addrs(), topic, func(rec *kgo.Record) error {
		x := entry(rec)
		e.Data[rec.Partition] = append(e.Data[rec.Partition], x)
		if !x.Control {
			seen = append(seen, see(rec))
		}
		return nil
	})
	if err != nil {
		return err
	}
	reader := positionReader{flavor: position.Flavor(r.source().Flavor()), full: map[string]*position.Set{}}
	positionEnds, err := readTopic(ctx, r.addrs(), positions, func(rec *kgo.Record) (err error) {
		x := entry(rec)
		if !x.Control {
			x.Mark, err = reader.mark(rec)
		}
		e.Positions = append(e.Positions, x)
		return err
	})
	if err != nil {
		return err
	}
	e.Ends = append(ends, positionEnds...)
	if e.Binlog, e.Executed, err = r.readBinlog(ctx); err != nil {
		return err
	}
	e.Journal = map[uint64]*history.Txn{}
	for _, t := range r.shop.Journal() {
		e.Journal[t.ID] = t
	}
	h, err := history.New(partitions, r.shop.Journal(), r.ledger, seen)
	if err != nil {
		return err
	}
	verdict := errors.Join(history.Validate(h, history.ExactlyOnce), judge.Validate(e))
	if verdict != nil {
		verdict = errors.Join(verdict, keep(filepath.Join(r.options.Dir, "topics.json"), e), r.keepLogs())
	}
	r.report.fill(r.done, e, h.Counts())
	r.report.Broken = errors.Join(append(broken, verdict)...)
	return nil
}

// keepLogs copies the brokers' logs, which go with the stage too.
func (r *run) keepLogs() error {
	var errs []error
	for _, k := range r.kafka.Brokers {
		raw, err := os.ReadFile(k.LogPath())
		if err == nil {
			err = os.WriteFile(filepath.Join(r.options.Dir, fmt.Sprintf("broker-%d.log", k.NodeID())), raw, 0o600)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// keep writes what was read of the topics, markers included, for whoever looks
// into a broken promise: the broker's data goes with the stage.
func keep(path string, e *judge.Evidence) error {
	raw, err := json.Marshal(map[string]any{"data": e.Data, "positions": e.Positions, "live": e.Live, "ends": e.Ends})
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// panicked looks for what no log may hold.
func panicked(n *node) error {
	b, err := os.ReadFile(n.logPath())
	if err != nil {
		return err
	}
	for _, bad := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if i := strings.Index(string(b), bad); i >= 0 {
			return fmt.Errorf("broken promise: no node panics; node %s: %.600s", n.name, b[i:])
		}
	}
	return nil
}

func see(r *kgo.Record) history.Seen {
	rec := history.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
		Headers: make([]history.Header, len(r.Headers)), Timestamp: r.Timestamp.UnixMilli(),
	}
	for i, h := range r.Headers {
		rec.Headers[i] = history.Header{Key: h.Key, Value: h.Value}
	}
	return history.See(&rec)
}

// Without are the kinds of faults that a stage of these options can't do.
func (o Options) Without() (kinds []plan.Kind) {
	if o.Sources < 2 {
		kinds = append(kinds, plan.SwitchSource)
	}
	if o.Brokers < 3 || !o.Unreplicated {
		kinds = append(kinds, plan.Leaderless)
	}
	return kinds
}

// unable drops the steps that need a small disk when there is none.
func (s *Stage) unable(step plan.Step) bool {
	return step.Kind == plan.FullDisk && !slices.ContainsFunc(s.nodes, func(n *node) bool { return n.small })
}
