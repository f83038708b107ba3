package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/trail"
)

// fleet is all connectors of this node: those of its file, which stay as they are,
// and those that the replicated store holds, which come, change and go. Every node
// builds them all, so that each can say what is wrong with one here; the leader
// runs them.
type fleet struct {
	cfg      *config.Config
	node     *ha.Node
	notices  *notices
	reg      prometheus.Registerer
	log      *slog.Logger
	compiler *Compiler
	dial     dialer
	// remembered is what the trails of all connectors hold together.
	remembered *trail.Budget

	memory *memoryLimit // nil leaves the collector alone

	mu      sync.Mutex
	runners map[string]*runner
	// topics outlive a change of a connector, not its deletion.
	topics map[string]*connector.Topics
	// changed is closed, and replaced, when runners is another set.
	changed chan struct{}
}

// runner is one connector with what it is made of.
type runner struct {
	name   string
	worker worker
	// config is nil for a connector that can't be built.
	config *config.Connector
	// stored is what the replicated store holds, nil when the connector is one of
	// the file alone.
	stored json.RawMessage
	// clash is set when file and store both have the name.
	clash bool
	// conflict is set when it shares what it may not share with another one, which
	// may go away.
	conflict bool
	metrics  *registrations
	trail    *trail.Trail
	// standby takes the source's series away while another node runs it.
	standby func()
}

// worker is a connector at work, or one that can't be.
type worker interface {
	Run(stop, lease context.Context, leaderTerm uint64)
	Status() connector.Status
	Restart()
}

// newFleet builds the connectors of the file; its error is about one of them.
func newFleet(cfg *config.Config, node *ha.Node, n *notices, reg prometheus.Registerer, log *slog.Logger, c *Compiler) (*fleet, error) {
	f := &fleet{cfg: cfg, node: node, notices: n, reg: reg, log: log, compiler: c, remembered: trail.NewBudget(cfg.Node.TraceIDs), runners: map[string]*runner{}, topics: map[string]*connector.Topics{}, changed: make(chan struct{})}
	for i := range cfg.Connectors {
		c := &cfg.Connectors[i]
		r, err := f.newRunner(c)
		if err != nil {
			return nil, fmt.Errorf("connector %s: %w", c.Name, unveiled(c, err))
		}
		f.runners[c.Name] = r
	}
	return f, nil
}

func (f *fleet) newRunner(c *config.Connector) (_ *runner, err error) {
	metrics := f.registrations(c.Name)
	defer func() {
		if err != nil {
			metrics.unregister()
		}
	}()
	base := veiled(f.log, c)
	log := base.With("connector", c.Name)
	route, err := newRoute(c, metrics)
	if err != nil {
		return nil, err
	}
	route.PassedOver = newUpdateLog(log, c.Outbox.OnUpdate).note
	in := surroundings{metrics: metrics, log: log, dial: f.dial}
	src, err := newSources(f.cfg, c, route, in)
	if err != nil {
		return nil, err
	}
	src.decisions = &decisions{node: f.node, name: c.Name}
	snk, err := newSinks(f.cfg, c, f.node.VerifyLeader, in)
	if err != nil {
		return nil, err
	}
	pos := &positions{node: f.node, notices: f.notices, name: c.Name, declared: f.fromFile(c.Name) != nil, counts: countsOf(c)}
	cc := connectorConfig(f.cfg, c)
	if cc.Topics = f.topics[c.Name]; cc.Topics == nil {
		cc.Topics = &connector.Topics{}
		f.topics[c.Name] = cc.Topics
	}
	cc.Trail = f.remembered.New(c.Trace.IDs)
	return &runner{
		name: c.Name, config: c, metrics: metrics, trail: cc.Trail, standby: src.canal.Metrics.Standby,
		worker: connector.New(cc, src, snk, route, pos, metrics, base),
	}, nil
}

// refuse is the runner of a connector that can't be built.
func (f *fleet) refuse(name string, err error) *runner {
	f.log.Error("connector can't be built; the others are not affected", "connector", name, "error", err)
	metrics := f.registrations(name)
	return &runner{name: name, worker: connector.NewRefused(name, err, metrics), metrics: metrics, standby: func() {}}
}

func (f *fleet) registrations(name string) *registrations {
	return &registrations{Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"connector": name}, f.reg)}
}

// fromFile returns the connector that the node's file declares under name.
func (f *fleet) fromFile(name string) *config.Connector {
	for i := range f.cfg.Connectors {
		if f.cfg.Connectors[i].Name == name {
			return &f.cfg.Connectors[i]
		}
	}
	return nil
}

// limitMemory makes m follow the number of connectors. It is called before the fleet is
// at work.
func (f *fleet) limitMemory(m *memoryLimit) {
	f.memory = m
	m.connectors(len(f.runners))
}

// follow keeps the fleet as the store has it until ctx ends.
func (f *fleet) follow(ctx context.Context) {
	for {
		changed := f.notices.next()
		f.reconcile()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// reconcile makes the fleet what the file and the store say at this moment.
func (f *fleet) reconcile() {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored := f.node.Configs() // under the lock: an older answer must not win
	different := false
	for name, have := range f.runners {
		keys, kept := stored[name]
		declared := f.fromFile(name) != nil
		if declared && !kept && have.stored == nil || kept && slices.Equal(keys, have.stored) && declared == have.clash {
			continue
		}
		have.release() // the series of its successor have the same names
		delete(f.runners, name)
		different = true
		switch {
		case declared && !kept:
			f.runners[name] = f.declared(name)
		case !kept:
			delete(f.topics, name)
		}
	}
	for name, have := range f.runners {
		if different && have.conflict {
			have.release()
			delete(f.runners, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if f.runners[name] == nil {
			f.runners[name] = f.fromStore(name, stored[name])
			different = true
		}
	}
	if different {
		f.memory.connectors(len(f.runners))
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// release gives back what a runner that is replaced holds of the node; it may still be
// at work.
func (r *runner) release() {
	r.metrics.unregister()
	r.trail.Forget()
}

// declared builds a connector of the file again, which a clash had put aside.
func (f *fleet) declared(name string) *runner {
	c := f.fromFile(name)
	r, err := f.newRunner(c)
	if err != nil {
		return f.refuse(name, unveiled(c, err))
	}
	return r
}

func (f *fleet) fromStore(name string, stored json.RawMessage) *runner {
	clash := f.fromFile(name) != nil
	c, err := f.compiler.Compile(name, stored)
	if err == nil {
		err = f.conflict(c)
	}
	var r *runner
	switch {
	case clash:
		r = f.refuse(name, errClash)
	case err != nil:
		r = f.refuse(name, err)
	default:
		if r, err = f.newRunner(c); err != nil {
			r = f.refuse(name, unveiled(c, err))
		}
	}
	r.stored, r.clash = stored, clash
	_, r.conflict = errors.AsType[*config.FieldError](err)
	return r
}

// conflict says why c can't run beside the others; f.mu is held.
func (f *fleet) conflict(c *config.Connector) error {
	for _, name := range slices.Sorted(maps.Keys(f.runners)) {
		if o := f.runners[name]; name != c.Name && o.config != nil {
			if err := c.ConflictWith(o.config); err != nil {
				return err
			}
		}
	}
	return nil
}

// errClash is a name in two places, of which neither may win: nodes with another
// file would run another connector on the same position.
var errClash = errors.New("a connector of this name stands in this node's file and was also put over the REST API: delete the one that was put, or take it out of the file")

// check says what would become of a connector's keys beside the other connectors,
// and all that is wrong. It builds nothing that stays. blind looks for nothing on this
// node that the keys name.
func (f *fleet) check(keys map[string]string, blind bool) ([]debezium.Line, config.Problems) {
	text, err := json.Marshal(keys)
	if err != nil {
		return nil, config.Problems{{Message: err.Error()}}
	}
	var c *config.Connector
	conversion, err := f.compiler.convert(keys["name"], text)
	if err == nil {
		c, err = f.compiler.build(conversion, blind)
	}
	if err == nil {
		f.mu.Lock()
		err = f.conflict(c)
		f.mu.Unlock()
	}
	field, isField := errors.AsType[*config.FieldError](err)
	problems, areProblems := errors.AsType[config.Problems](err)
	switch {
	case areProblems, err == nil:
	case isField:
		problems = config.Problems{{Path: ownSection + field.Path, Message: field.Err.Error()}}
	default:
		problems = config.Problems{{Message: err.Error()}}
	}
	return conversion.Lines, problems
}

// list returns the connectors, those of the file first and then by name, and a
// channel that is closed when they are no longer these.
func (f *fleet) list() ([]*runner, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*runner, 0, len(f.runners))
	for i := range f.cfg.Connectors {
		if r := f.runners[f.cfg.Connectors[i].Name]; r != nil {
			out = append(out, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.runners)) {
		if f.fromFile(name) == nil {
			out = append(out, f.runners[name])
		}
	}
	return out, f.changed
}

// all returns the connectors as list does.
func (f *fleet) all() []*runner {
	out, _ := f.list()
	return out
}

// named returns the connector of a name; nil when there is none.
func (f *fleet) named(name string) *runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runners[name]
}

// topicsOf returns the topics of a connector; nil when it has had none here.
func (f *fleet) topicsOf(name string) *connector.Topics {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[name]
}

// job is one runner at work.
type job struct {
	runner *runner
	end    context.CancelFunc
	done   chan struct{}
}

func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// work runs the connectors under one leadership until stop or lease ends, and
// returns when all have ended. A connector that has changed begins when the one
// before it has drained; the others go on meanwhile.
func (f *fleet) work(stop, lease context.Context, term uint64) {
	f.reconcile() // a new leader must not begin with what its predecessor has replaced
	runAll(stop, lease, term, f.list)
}

// runAll does so with the runners that list returns, again when its channel is closed.
func runAll(stop, lease context.Context, term uint64, list func() ([]*runner, <-chan struct{})) {
	var wg sync.WaitGroup
	defer wg.Wait()
	jobs := map[string]*job{}
	for {
		runners, changed := list()
		wanted := map[string]*runner{}
		for _, r := range runners {
			wanted[r.name] = r
		}
		for name, j := range jobs {
			if wanted[name] != j.runner {
				j.end()
			}
			if wanted[name] == nil && j.over() {
				delete(jobs, name)
			}
		}
		for _, r := range runners {
			before := jobs[r.name]
			if before != nil && before.runner == r {
				continue
			}
			ctx, end := context.WithCancel(stop)
			j := &job{runner: r, end: end, done: make(chan struct{})}
			jobs[r.name] = j
			wg.Go(func() {
				defer end()
				defer close(j.done)
				if before != nil {
					<-before.done
				}
				defer r.standby()
				r.worker.Run(ctx, lease, term)
			})
		}
		select {
		case <-changed:
		case <-stop.Done():
			return
		case <-lease.Done():
			return
		}
	}
}

// registrations remembers what was registered, so that it can go together.
type registrations struct {
	prometheus.Registerer

	list []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registrations) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(c)
	if err == nil {
		r.list = append(r.list, c)
	}
	return err
}

// MustRegister implements prometheus.Registerer.
func (r *registrations) MustRegister(cs ...prometheus.Collector) {
	r.Registerer.MustRegister(cs...)
	r.list = append(r.list, cs...)
}

func (r *registrations) unregister() {
	for _, c := range r.list {
		r.Unregister(c)
	}
	r.list = nil
}
