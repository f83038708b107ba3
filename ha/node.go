package ha

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// Node is one member of the cluster. All its methods are safe for concurrent use.
type Node struct {
	cfg     Config
	log     *slog.Logger
	dir     *dataDir
	fsm     *fsm
	raft    *raft.Raft
	members *directory
	trans   raft.Transport
	mux     *mux            // nil when alone
	peers   *http.Transport // for requests to other nodes
	metrics *metrics

	notify      chan bool // raft's notices of leadership, in order
	lead        *leaderTracker
	unreachable sync.Map // the ids of peers that the leader has lost contact with
	cooling     coolDown
	changing    chan struct{} // held by whoever changes members
	removed     atomic.Bool   // the others say that this node is no member

	failOnce sync.Once
	failed   context.Context //nolint:containedctx // ends when the node has failed, with the cause
	failWith context.CancelCauseFunc

	writeMu         sync.Mutex
	writesClosed    bool
	writes          sync.WaitGroup
	transfersClosed bool
	transfers       sync.WaitGroup // of the leadership

	opened   atomic.Bool
	running  atomic.Bool
	stopOnce sync.Once
	stopping chan struct{} // closed when Shutdown begins
	stopped  chan struct{} // closed when it has ended
	stopErr  error         // valid then
}

// Open takes the data directory, verifies it and starts Raft on it; Run does the
// rest. A node that was opened must be ended with Run or Shutdown. reg may be
// nil. The error is a StoreError when the directory is in use, someone else's,
// newer, damaged or incomplete.
func Open(cfg Config, logger *slog.Logger, reg prometheus.Registerer) (_ *Node, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("validating cluster configuration: %w", err)
	}
	n := &Node{
		cfg: cfg, log: logger.With("node", cfg.NodeID),
		notify: make(chan bool, 16), lead: newLeaderTracker(),
		stopping: make(chan struct{}), stopped: make(chan struct{}),
		changing: make(chan struct{}, 1), members: &directory{static: cfg.Peers},
	}
	n.failed, n.failWith = context.WithCancelCause(context.Background())
	if cfg.TLS != nil {
		n.members.role = cfg.TLS.Role
	}
	raftLog := newRaftLogger(n.log, cfg.alone())
	n.fsm = newFSM(n.fail)
	if n.dir, err = openDataDir(cfg.DataDir, cfg.NodeID, raftLog, n.fail); err != nil {
		return nil, fmt.Errorf("opening data directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.dir.close())
		}
	}()
	n.dir.log.beforeWrite = cfg.BeforeWrite
	n.fsm.setOrigin(n.dir.id.Cluster)
	n.members.self = n.self()
	if n.trans, err = n.transport(raftLog); err != nil {
		return nil, err
	}
	if err := n.startRaft(n.trans, raftLog); err != nil {
		return nil, errors.Join(err, closeTransport(n.trans))
	}
	n.members.raft.Store(n.raft)
	if n.metrics, err = newMetrics(n, reg); err != nil {
		return nil, errors.Join(err, n.raft.Shutdown().Error())
	}
	n.opened.Store(true)
	return n, nil
}

// transport makes raft's transport: in memory for a node that is alone, else
// over the mux.
func (n *Node) transport(raftLog hclog.Logger) (raft.Transport, error) {
	if n.cfg.alone() {
		_, t := raft.NewInmemTransport(raft.ServerAddress(n.cfg.NodeID))
		return t, nil
	}
	creds, err := newPeerTLS(n.cfg, n.members, n.log)
	if err != nil {
		return nil, err
	}
	ln := n.cfg.Listener
	if ln == nil {
		if ln, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", n.cfg.Listen); err != nil {
			return nil, fmt.Errorf("listening for peers: %w", err)
		}
	}
	n.mux = &mux{
		ln: ln, dialer: n.cfg.Dialer, creds: creds, log: n.log, cluster: n.fsm.cluster, self: n.dir.id.raftID(),
		lost: make(chan raft.ServerID, 16), raftConns: make(chan net.Conn), asking: make(chan net.Conn),
		conns: map[net.Conn]struct{}{}, from: map[raft.ServerID]int{},
		waiting: newWaitingRoom(), requests: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge),
	}
	n.mux.life, n.mux.end = context.WithCancel(context.Background())
	n.peers = &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return n.mux.dial(ctx, addr,
				kindRequest)
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:                  stream{n.mux, n.mux.raftConns, raft.ServerAddress(n.cfg.Advertise)},
		ServerAddressProvider:   n.members,
		MaxPool:                 3,
		Timeout:                 n.cfg.networkTimeout(),
		Logger:                  raftLog,
		MsgpackUseNewTimeFormat: true,
	}), nil
}

func closeTransport(t raft.Transport) error {
	if c, ok := t.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}

func (n *Node) startRaft(trans raft.Transport, raftLog hclog.Logger) (err error) {
	// Raft panics on states that the checks of the directory should have found.
	defer catch(filepath.Join(n.cfg.DataDir, logFile), &err)
	id := n.dir.id.raftID()
	conf := n.cfg.raftConfig(id, raftLog, n.notify)
	if n.dir.fresh {
		if err := n.dir.log.undoHalfBootstrap(); err != nil {
			return err
		}
	}
	if n.dir.fresh && n.cfg.alone() {
		self := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: id, Address: trans.LocalAddr()}}}
		if err := raft.BootstrapCluster(conf, n.dir.log, n.dir.log, n.dir.snaps, trans, self); err != nil {
			return fmt.Errorf("bootstrapping: %w", err)
		}
	}
	// Followers read each entry again when it is committed: keep the last ones.
	cached, err := raft.NewLogCache(256, n.dir.log)
	if err != nil {
		return fmt.Errorf("starting raft: %w", err)
	}
	n.dir.log.running.Store(true)
	if n.raft, err = raft.NewRaft(conf, n.fsm, cached, n.dir.log, n.dir.snaps, trans); err != nil {
		if failure := n.Err(); failure != nil {
			err = failure // says more than what raft makes of it
		}
		return fmt.Errorf("starting raft: %w", err)
	}
	if v := n.voters(); n.cfg.alone() && (len(v) > 1 || len(v) == 1 && v[0].ID != id) {
		err := &StoreError{
			Path: n.cfg.DataDir, Err: fmt.Errorf("%w: the directory is of a cluster with voters %v, the configuration names "+
				"no peers", ErrForeignState, voterIDs(v)),
			Remedy: "list the peers, or give this node a directory of its own",
		}
		return errors.Join(err, n.raft.Shutdown().Error())
	}
	return nil
}

func voterIDs(v []raft.Server) []string {
	ids := make([]string, len(v))
	for i := range v {
		ids[i] = string(v[i].ID)
	}
	return ids
}

// Run works until ctx ends, Shutdown is called (both nil) or the node fails, and
// then ends the node as Shutdown does, within Config.ShutdownTimeout. It returns
// what made the node fail: a StoreError for the disk, ErrNewerFormat or
// ErrCorrupt for an entry that this release does not understand. The caller
// should end what works under Lead first, so that it can save its positions.
func (n *Node) Run(ctx context.Context) error {
	if !n.running.CompareAndSwap(false, true) {
		return errors.New("running node: Run was called twice")
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { n.trackLeadership(work) })
	wg.Go(func() { n.observe(work) })
	wg.Go(func() { n.followCluster(work) })
	if n.mux != nil {
		wg.Go(func() { n.mux.serve(work) })
		wg.Go(func() { n.servePeers(work) })
		wg.Go(func() { n.bootstrap(work) })
		wg.Go(func() { n.missKilledLeaders(work) })
		wg.Go(func() { n.noticeRemoval(work) })
	}
	select {
	case <-ctx.Done():
	case <-n.failed.Done():
	case <-n.stopping:
	}
	// The above go on meanwhile: leadership ends and is handed over in order.
	end, endCancel := context.WithTimeout(work, n.cfg.ShutdownTimeout)
	err := n.Shutdown(end)
	endCancel()
	cancel()
	wg.Wait()
	if failure := n.Err(); failure != nil {
		return fmt.Errorf("running node %s: %w", n.cfg.NodeID, failure)
	}
	return err
}

// Shutdown ends the node: it ends the contexts of Lead functions and waits for
// them, waits for writes under way, hands the leadership to another voter if
// there is one, stops Raft and closes the files. ctx bounds all of it; what is
// left then is cut off, which loses nothing that was acknowledged. Later calls
// wait for the first.
func (n *Node) Shutdown(ctx context.Context) error {
	n.stopOnce.Do(func() {
		close(n.stopping)
		n.stopErr = n.shutdown(ctx)
		close(n.stopped)
	})
	select {
	case <-n.stopped:
		return n.stopErr
	case <-ctx.Done():
		return fmt.Errorf("shutting down: %w", context.Cause(ctx))
	}
}

func (n *Node) shutdown(ctx context.Context) error {
	cause := ErrShuttingDown
	if err := n.Err(); err != nil {
		cause = err
	}
	n.lead.close(cause)
	leads := waitFor(ctx, "functions under Lead", n.lead.active.Wait)
	n.writeMu.Lock()
	n.writesClosed = true
	n.writeMu.Unlock()
	writes := waitFor(ctx, "writes", n.writes.Wait)
	if n.raft.State() == raft.Leader && n.Err() == nil {
		if err := n.handOver(ctx); err != nil && !errors.Is(err, ErrNoOtherVoter) {
			n.log.Warn("leadership could not be handed over before shutdown", "error", err)
		}
	}
	n.writeMu.Lock()
	n.transfersClosed = true
	n.writeMu.Unlock()
	transfers := waitFor(ctx, "a transfer of the leadership", n.transfers.Wait)
	future := n.raft.Shutdown()
	if n.mux != nil {
		n.mux.close() // or raft waits for answers of peers that are gone
	}
	stopped := waitFor(ctx, "raft", func() { _ = future.Error() })
	n.metrics.unregister()
	if stopped != nil {
		return errors.Join(leads, writes, transfers, stopped) // the files are still in use
	}
	return errors.Join(leads, writes, transfers, n.dir.close())
}

// waitFor waits for something that takes no context. When ctx ends first the
// goroutine is left behind until what it waits for ends.
func waitFor(ctx context.Context, what string, wait func()) error {
	if _, err := within(ctx, func() any { wait(); return nil }); err != nil {
		return fmt.Errorf("shutting down: waiting for %s: %w", what, err)
	}
	return nil
}

// fail ends the node's service with the first cause given.
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.failWith(err)
		if n.opened.Load() { // else Open returns it
			n.log.Error("node has failed and stops", "error", err)
		}
		n.lead.close(err)
	})
}

// Err returns why the node has failed, nil while it has not.
func (n *Node) Err() error { return context.Cause(n.failed) }

// VerifyLeader returns nil when this node was still the leader at some moment
// after the call: a majority has answered it. In a cluster of one that says
// nothing, since there is nobody to ask.
func (n *Node) VerifyLeader(ctx context.Context) error {
	if err := n.beginWrite(); err != nil {
		return err
	}
	ctx, cancel := both(ctx, n.failed)
	defer cancel()
	err, ended := within(ctx, func() error {
		defer n.writes.Done()
		return n.raft.VerifyLeader().Error()
	})
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost):
		err = ErrNotLeader
	case ended != nil:
		err = ended
	}
	if err != nil {
		return fmt.Errorf("verifying leadership: %w", err)
	}
	return nil
}

// observe follows what raft tells about leaders and peers until ctx ends.
func (n *Node) observe(ctx context.Context) {
	events := make(chan raft.Observation, 256)
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.FailedHeartbeatObservation, raft.ResumedHeartbeatObservation:
			return true
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	for known := raft.ServerID(""); ; {
		_, leader := n.raft.LeaderWithID()
		if leader != known {
			n.log.Info("leader changed", "leader", nodeName(leader), "term", n.raft.CurrentTerm())
			known = leader
		}
		select {
		case e := <-events:
			switch d := e.Data.(type) {
			case raft.FailedHeartbeatObservation:
				if _, known := n.unreachable.LoadOrStore(d.PeerID, true); !known {
					n.log.Warn("peer is out of reach", "peer", nodeName(d.PeerID), "last_contact", d.LastContact)
				}
			case raft.ResumedHeartbeatObservation:
				if _, known := n.unreachable.LoadAndDelete(d.PeerID); known {
					n.log.Info("peer is back", "peer", nodeName(d.PeerID))
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// followCluster writes down which cluster this node belongs to as soon as that
// is known, and fails the node when it turns out to be another than before.
func (n *Node) followCluster(ctx context.Context) {
	changed, stop := n.Watch()
	defer stop()
	self := n.dir.id
	for {
		switch id := n.fsm.cluster(); {
		case id == "":
		case self.Cluster == "":
			self.Cluster = id
			if err := writeIdentity(n.cfg.DataDir, self); err != nil {
				n.fail(err)
				return
			}
			n.fsm.setOrigin(id)
			return
		case self.Cluster != id:
			n.fail(&StoreError{
				Path: n.cfg.DataDir, Err: fmt.Errorf("%w: the log is of cluster %q, %s says %q", ErrForeignState, id, nodeFile,
					self.Cluster),
				Remedy: "restore the whole directory as it was at one moment, or " + startAnew,
			})
			return
		default:
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
