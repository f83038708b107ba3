//go:generate go test -run ^TestMetricsPageIsCurrent$ . -write

// Package node runs one node: its part of the cluster, its connectors, and the server
// that operators ask. A process may run several, as tests do.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Node is one node of a cluster, with its connectors and its admin server.
type Node struct {
	cfg     *config.Config
	log     *slog.Logger
	node    *ha.Node
	notices *notices
	admin   *admin.Server
	fleet   *fleet
	// searches are those for events.
	searches *searches
	// connect answers other nodes too, as soon as it is there.
	connect atomic.Pointer[admin.ConnectAPI]
}

// Registry takes metrics and gives them out.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// New builds everything in the order in which it depends on each other:
// the store, the connectors on it, the admin server over both. Nothing runs yet.
// comp builds the connectors that the store holds.
func New(cfg *config.Config, comp *Compiler, log *slog.Logger, reg Registry) (_ *Node, err error) {
	if err := os.MkdirAll(cfg.Node.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making node.data_dir: %w", err)
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	d := &Node{cfg: cfg, log: log, notices: newNotices(), searches: newSearches()}
	rc := raftConfig(cfg)
	rc.Answer = d.answer
	d.node, err = ha.Open(rc, log.With("component", "raft"), reg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), cfg.Node.ShutdownTimeout)
			defer cancel()
			err = errors.Join(err, d.node.Shutdown(ctx))
		}
	}()
	if d.fleet, err = newFleet(cfg, d.node, d.notices, reg, log, comp); err != nil {
		return nil, err
	}
	connect := admin.NewConnectAPI(&connectNode{d: d}, &control{d}, log.With("component", "admin"))
	d.connect.Store(connect)
	if cfg.Admin.Listen != "" {
		ac, err := adminConfig(cfg)
		if err != nil {
			return nil, err
		}
		warnOfPlainPasswords(cfg, log)
		if cfg.Admin.ConnectAPI {
			ac.Connect = connect
		}
		d.admin, err = admin.Listen(ac, d, &control{d}, reg, log.With("component", "admin"))
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// AdminAddr is where the admin server listens; empty without one.
func (d *Node) AdminAddr() string {
	if d.admin == nil {
		return ""
	}
	return d.admin.Addr()
}

// answer answers another node.
func (d *Node) answer(ctx context.Context, question []byte) []byte {
	c := d.connect.Load()
	if c == nil {
		return nil // it has just begun; the asker tries again
	}
	if answer, ok := (&control{d}).answerEvent(question); ok {
		return answer
	}
	return c.Answer(ctx, question)
}

// Run works until ctx ends and then stops in the order that loses nothing: the
// connectors publish and save what they have read while the store still takes it,
// then the store hands over its leadership, and the admin server answers to the
// last.
func (d *Node) Run(ctx context.Context) error {
	if d.admin != nil {
		d.log.Info("admin server is listening", "address", d.admin.Addr())
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	storing, stopStoring := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	var nodeErr, adminErr error
	wg.Go(func() { d.notices.run(serving, d.node) })
	wg.Go(func() { d.fleet.follow(serving) })
	blind := make(chan struct{}) // closed when the admin server has failed
	if d.admin != nil {
		wg.Go(func() {
			if adminErr = d.admin.Run(serving); adminErr != nil {
				close(blind)
			}
		})
	}
	failed := make(chan struct{})
	wg.Go(func() {
		defer close(failed)
		nodeErr = d.node.Run(storing)
	})
	leading, stopLeading := context.WithCancel(ctx)
	// A lease must outlive stop, or the connectors could not finish in order; so
	// Lead itself is ended only when no connector is at work any more.
	lease, endLease := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.Mutex
	wg.Go(func() {
		select {
		case <-failed:
			stopLeading()
		case <-blind: // nobody should run a node that can't be looked at
			stopLeading()
		case <-leading.Done():
		}
		working.Lock()
		defer working.Unlock()
		endLease()
	})
	leadErr := d.node.Lead(lease, func(lease context.Context, term uint64) error {
		working.Lock()
		defer working.Unlock()
		if err := d.lead(leading, lease, term); err != nil {
			return err
		}
		return leading.Err()
	})
	stopLeading()
	stopStoring()
	<-failed
	stopServing()
	wg.Wait()
	if errors.Is(leadErr, context.Canceled) || errors.Is(leadErr, ha.ErrShuttingDown) {
		leadErr = nil
	}
	return errors.Join(leadErr, nodeErr, adminErr)
}

// lead runs all connectors while this node leads. Its error, if any, wraps
// ha.ErrStepDown.
func (d *Node) lead(stop, lease context.Context, term uint64) error {
	working, end := context.WithCancel(stop)
	defer end()
	var wg sync.WaitGroup
	wg.Go(func() { d.fleet.work(working, lease, term) })
	wg.Go(func() { d.fleet.followRestarts(working) })
	wg.Go(func() { d.searches.run(working) })
	err := d.watchReach(working, lease)
	end()
	wg.Wait()
	return err
}

// reachInterval is how often a leader looks whether its connectors work.
const reachInterval = time.Second

// watchReach returns nil when one of the contexts ends, and an error that wraps
// ha.ErrStepDown when no connector has been able to work for as long as the
// configuration allows while at least one tried: another node may reach what this
// one does not.
func (d *Node) watchReach(stop, lease context.Context) error {
	after := d.cfg.Cluster.StepDownAfter
	tick := time.NewTicker(reachInterval)
	defer tick.Stop()
	worked := time.Now()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-lease.Done():
			return nil
		case <-tick.C:
		}
		blind, why := d.blind()
		if !blind {
			worked = time.Now()
		}
		if after > 0 && len(d.cfg.Cluster.Peers) > 0 && time.Since(worked) > after {
			return fmt.Errorf("no connector could work for %s (%s): %w", after, why, ha.ErrStepDown)
		}
	}
}

// blind reports whether at least one connector wants to work here and none can for
// a reason that may pass, with the reason of one of them.
func (d *Node) blind() (blind bool, why string) {
	for _, c := range d.fleet.all() {
		s := c.worker.Status()
		switch {
		case s.State != connector.StateRunning:
		case s.Works():
			return false, ""
		case s.LastError != nil:
			blind, why = true, s.LastError.Code
		}
	}
	return blind, why
}
