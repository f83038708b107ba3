package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/recent"
)

// assembly is what the connectors of one node are made with.
type assembly struct {
	cfg     *config.Config
	store   *ha.Node
	changes *broadcast
	metrics prometheus.Registerer
	log     *slog.Logger
	dial    dialer
	// events is what the indexes of all connectors hold together.
	events *recent.Budget
}

// instance is one connector with what it is made of.
type instance struct {
	name      string
	connector runner
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
	recent   *recent.Index
	// standby takes the source's series away while another node runs it.
	standby func()
}

// runner is a connector that can be run, or one that can't be built.
type runner interface {
	Run(drain, leadership context.Context, leaderTerm uint64)
	Status() connector.Status
	Restart()
}

// release gives back what an instance that is replaced holds of the node; it may still be
// at work.
func (r *instance) release() {
	r.metrics.unregister()
	r.recent.Forget()
}

// veil hides in a text what references of the connector's settings stand for.
func (r *instance) veil(text string) string {
	if r.config == nil {
		return text
	}
	return r.config.Veil(text)
}

// instance builds a connector: source, encoder, sink, its part of the store, and the
// connector over them. topics are those that it has published to so far; declared says
// that it stands in the node's file.
func (a *assembly) instance(c *config.Connector, topics *connector.Topics, declared bool) (_ *instance, err error) {
	metrics := a.registrations(c.Name)
	defer func() {
		if err != nil {
			metrics.unregister()
		}
	}()
	base := veiled(a.log, c)
	log := base.With("connector", c.Name)
	route, err := newRoute(c, metrics)
	if err != nil {
		return nil, err
	}
	route.PassedOver = newUpdateLog(log, c.Outbox.OnUpdate).note
	in := surroundings{metrics: metrics, log: log, dial: a.dial}
	src, err := newSources(a.cfg, c, route, in)
	if err != nil {
		return nil, err
	}
	src.decisions = &decisions{store: a.store, name: c.Name}
	snk, err := newSinks(a.cfg, c, a.store.VerifyLeader, in)
	if err != nil {
		return nil, err
	}
	pos := &positions{store: a.store, changes: a.changes, name: c.Name, declared: declared, counts: countsOf(c)}
	cc := connectorConfig(a.cfg, c)
	cc.Topics, cc.Recent = topics, a.events.New(c.Events.Recent)
	return &instance{
		name: c.Name, config: c, metrics: metrics, recent: cc.Recent, standby: src.canal.Metrics.Standby,
		connector: connector.New(cc, src, snk, route, pos, metrics, base),
	}, nil
}

// refused is the instance of a connector that can't be built.
func (a *assembly) refused(name string, err error) *instance {
	a.log.Error("connector can't be built; the others are not affected", "connector", name, "error", err)
	metrics := a.registrations(name)
	return &instance{
		name:      name,
		connector: connector.NewRefused(name, err, metrics),
		metrics:   metrics,
		standby:   func() {},
	}
}

func (a *assembly) registrations(name string) *registrations {
	return &registrations{Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"connector": name}, a.metrics)}
}

// connectorConfig takes the connector's own settings from the tree.
func connectorConfig(node *config.Config, c *config.Connector) connector.Config {
	cc := connector.DefaultConfig()
	cc.Name = c.Name
	cc.Limits = connector.Limits{Rows: c.Limits.BatchRecords, Bytes: int(c.Limits.BatchBytes)}
	cc.RetrySnapshot, cc.RetryMax = c.Retry.Initial, c.Retry.Max
	cc.MaxAttempts, cc.SequenceHeaders = c.Retry.MaxAttempts, c.Headers.Sequence
	cc.Errors = connector.Errors{
		Row: connector.Action(c.Errors.Row), Record: connector.Action(c.Errors.Record),
		DeadLetterTopic: c.DeadLetterTopic(),
	}
	cc.HeartbeatEvery = c.Heartbeat.Interval
	cc.DrainTimeout = max(time.Second, node.Node.ShutdownTimeout/2)
	return cc
}

// raftConfig takes the cluster's settings from the tree.
func raftConfig(cfg *config.Config) ha.Config {
	rc := ha.DefaultConfig()
	rc.NodeID, rc.DataDir = cfg.Node.ID, filepath.Join(cfg.Node.DataDir, "raft")
	rc.Listen, rc.Advertise, rc.Insecure = cfg.Cluster.Listen, cfg.Cluster.Advertise, cfg.Cluster.Insecure
	c := &cfg.Cluster
	rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaseTimeout = c.HeartbeatTimeout, c.ElectionTimeout, c.LeaseTimeout
	rc.StepDownCooldown, rc.PromoteAfter = c.StepDownCooldown, c.PromoteAfter
	rc.Witness, rc.Join = c.Witness, c.Join
	for _, p := range cfg.Cluster.ParsedPeers() {
		rc.Peers = append(rc.Peers, ha.Peer{ID: p.ID, Addr: p.Address})
	}
	if t := cfg.Cluster.TLS; t.Cert != "" {
		rc.TLS = &ha.TLS{CertFile: t.Cert, KeyFile: t.Key, CAFile: t.CA, Role: t.Role}
	}
	return rc
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
