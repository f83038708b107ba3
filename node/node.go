//go:generate go test -run ^TestMetricsPageIsCurrent$ . -write

// Package node runs one node: its part of the cluster, its connectors, and the server
// that operators ask. A process may run several, as tests do.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/recent"
)

// Options are what a node gets beside its configuration. The zero value is a node that
// logs nothing and compiles connectors without a worker's file. What tests have
// otherwise than the machine has it is below the others.
type Options struct {
	// Compiler makes connectors of what comes over Kafka Connect's REST API.
	Compiler *Compiler
	// Logger may be one of NewLogger, whose levels can be changed at work.
	Logger *slog.Logger
	// Metrics takes the metrics and gives them out.
	Metrics Registry
	// LimitMemory lets the collector keep to what the node and its connectors need. It is
	// for the one node of a process.
	LimitMemory bool

	// Peers takes the place of listening on cluster.listen, and is closed by the node.
	Peers net.Listener
	// Dial makes all connections to sources, Kafka and peers, as
	// net.Dialer.DialContext does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// BeforeWrite is asked before each write to the cluster's log on disk; its error
	// counts as one of the disk.
	BeforeWrite func() error
	// Now is the clock of decisions, log levels and searches.
	Now func() time.Time
}

// Registry takes metrics and gives them out.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

func (o Options) withDefaults() Options {
	if o.Compiler == nil {
		o.Compiler = &Compiler{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Node is one node of a cluster, with its connectors and its admin server.
type Node struct {
	cfg     *config.Config
	log     *slog.Logger
	store   *ha.Node
	changes *broadcast
	manager *manager
	api     *api
	admin   *admin.Server // nil without one
	// peers answers other nodes, as soon as it is there.
	peers atomic.Pointer[http.Handler]
}

// New builds everything in the order in which it depends on each other: the store, the
// connectors on it, the admin server over both. It listens, and Run does the rest. A node
// that was built must be ended with Run or Close.
func New(cfg *config.Config, o Options) (_ *Node, err error) {
	if o.Now != nil && o.Logger != nil {
		levelsOf(o.Logger).now = o.Now
	}
	o = o.withDefaults()
	if err := os.MkdirAll(cfg.Node.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making node.data_dir: %w", err)
	}
	o.Metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(),
	)
	n := &Node{cfg: cfg, log: o.Logger, changes: newBroadcast()}
	rc := raftConfig(cfg)
	rc.Handler, rc.Listener, rc.Dialer, rc.BeforeWrite = http.HandlerFunc(n.answer), o.Peers, o.Dial, o.BeforeWrite
	n.store, err = ha.Open(rc, n.log.With("component", "raft"), o.Metrics)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	parts := &assembly{
		cfg: cfg, store: n.store, changes: n.changes, metrics: o.Metrics, log: n.log, dial: o.Dial,
		events: recent.NewBudget(cfg.Node.RecentEvents),
	}
	var memory *memoryLimit
	if o.LimitMemory {
		memory = newMemoryLimit()
	}
	if n.manager, err = newManager(parts, o.Compiler, memory); err != nil {
		return nil, err
	}
	n.api = &api{
		cfg:      cfg,
		log:      n.log,
		store:    n.store,
		manager:  n.manager,
		searches: newSearches(),
		dial:     o.Dial,
		now:      o.Now,
	}
	return n, n.listen(o.Metrics)
}

// listen opens the admin server, and lets other nodes be answered.
func (n *Node) listen(metrics prometheus.Gatherer) error {
	log := n.log.With("component", "admin")
	connect := admin.NewConnectAPI(&connectAPI{api: n.api, addr: n.AdminAddr}, n.api, log)
	n.peers.Store(new(admin.PeerHandler(n.api, connect)))
	if n.cfg.Admin.Listen == "" {
		return nil
	}
	ac, err := adminConfig(n.cfg)
	if err != nil {
		return err
	}
	warnOfPlainPasswords(n.cfg, n.log)
	if n.cfg.Admin.ConnectAPI {
		ac.Connect = connect
	}
	n.admin, err = admin.Listen(ac, n.api, n.api, metrics, log)
	return err
}

// Close ends a node that is not run.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Node.ShutdownTimeout)
	defer cancel()
	err := n.store.Shutdown(ctx)
	if n.admin != nil {
		err = errors.Join(err, n.admin.Close())
	}
	return err
}

// AdminAddr is where the admin server listens; empty without one.
func (n *Node) AdminAddr() string {
	if n.admin == nil {
		return ""
	}
	return n.admin.Addr()
}

// Status is what the admin server says of the node and its connectors.
func (n *Node) Status() admin.Status { return n.api.Status() }

// answer answers another node.
func (n *Node) answer(w http.ResponseWriter, r *http.Request) {
	h := n.peers.Load()
	if h == nil {
		http.Error(w, "this node has just begun", http.StatusServiceUnavailable)
		return
	}
	(*h).ServeHTTP(w, r)
}

// Run works until ctx ends, or until the store or the admin server fails, and then stops
// in the order that loses nothing: the connectors publish and save what they have read
// while the store still takes it, then the store hands over its leadership, and the admin
// server answers to the last.
func (n *Node) Run(ctx context.Context) error {
	drain, stopLeading := context.WithCancel(ctx)
	defer stopLeading()
	unstopped := context.WithoutCancel(ctx)
	storing, stopStore := context.WithCancel(unstopped)
	defer stopStore()
	serving, stopServing := context.WithCancel(unstopped)
	defer stopServing()

	var followers, server, store sync.WaitGroup
	var adminErr, storeErr error
	followers.Go(func() { n.changes.run(serving, n.store) })
	followers.Go(func() { n.manager.follow(serving) })
	if n.admin != nil {
		n.log.Info("admin server is listening", "address", n.AdminAddr())
		server.Go(func() {
			adminErr = n.admin.Run(serving)
			stopLeading() // nobody should run a node that can't be looked at
		})
	}
	store.Go(func() {
		storeErr = n.store.Run(storing)
		stopLeading()
	})

	leadErr := n.store.Lead(drain, func(leadership context.Context, term uint64) error {
		return n.lead(drain, leadership,
			term)
	})
	stopStore()
	store.Wait()
	stopServing()
	server.Wait()
	followers.Wait()
	if errors.Is(leadErr, context.Canceled) || errors.Is(leadErr, ha.ErrShuttingDown) {
		leadErr = nil
	}
	return errors.Join(leadErr, storeErr, adminErr)
}

// lead runs all connectors while this node leads. Its error, if any, wraps
// ha.ErrStepDown.
func (n *Node) lead(drain, leadership context.Context, term uint64) error {
	work, end := context.WithCancel(drain)
	defer end()
	var wg sync.WaitGroup
	wg.Go(func() { n.manager.work(work, leadership, term) })
	wg.Go(func() { n.manager.followRestarts(work) })
	wg.Go(func() { n.api.searches.run(work) })
	err := n.manager.watchReach(work, leadership)
	end()
	wg.Wait()
	return err
}
