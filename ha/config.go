package ha

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Peer is one voter of a static cluster.
type Peer struct {
	// ID is the node's name: the NodeID of its own Config.
	ID string
	// Addr is host:port where the others reach it. A name is resolved anew at
	// each connection, so that nodes may change their addresses.
	Addr string
	// CertName is the DNS name or IP address that its certificate must be valid
	// for. Empty means the host of Addr.
	CertName string
}

func (p Peer) certName() string {
	if p.CertName != "" {
		return p.CertName
	}
	return hostOf(p.Addr)
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return host
}

// peer finds one by its name.
func peer(peers []Peer, id string) (Peer, bool) {
	i := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == id })
	if i < 0 {
		return Peer{}, false
	}
	return peers[i], true
}

// TLS names the files for the connections between nodes. Both sides show a
// certificate, which must be good for client and server authentication, be
// signed by CAFile, and carry the CertName of a listed peer: that somebody was
// signed by the same authority is not enough.
type TLS struct {
	// CertFile and KeyFile are PEM files. They are read again when they have changed, so
	// that a renewed certificate needs no restart; one that can't be read is waited for.
	CertFile, KeyFile string
	// CAFile is a PEM file with the authorities; read once.
	CAFile string
	// Role is a DNS name that the certificates of all nodes of this cluster carry
	// beside their own. Whoever has it is let in without being listed, so that a
	// new node can ask to join. Empty means that only members are let in.
	Role string
}

// Config says how a node takes part in its cluster.
type Config struct {
	// NodeID is this node's name, unique in the cluster and constant.
	NodeID string
	// DataDir is the directory for this node alone; it is made if missing.
	DataDir string

	// Peers are the nodes that begin the cluster, this node included (but see
	// Join), the same list on every node. Empty means a cluster of one without any
	// network. At the first start of a cluster all of them must be up; later a
	// majority suffices. Addresses here win over those that the cluster remembers,
	// so that nodes may move.
	Peers []Peer
	// Join makes a node with an empty data directory ask the cluster of Peers, to
	// which it does not belong, to be added.
	Join bool
	// Witness makes this node one that votes and keeps the state, but never leads
	// for longer than it takes to find another: the third of two nodes.
	Witness bool
	// Listen is host:port to accept peers on; empty means Advertise. Another than a loopback address
	// needs TLS or Insecure.
	Listen string
	// Advertise is the address at which peers reach this node. Empty means its
	// Addr in Peers, and no other value is allowed then; with Join it is required.
	Advertise string
	// TLS is for the connections between peers; nil means plain TCP.
	TLS *TLS
	// Insecure allows plain TCP on other than loopback addresses: whoever reaches
	// the port can then rewrite every position.
	Insecure bool

	// HeartbeatTimeout is how long a follower hears nothing before it asks for an
	// election (it waits between once and three times as long). Zero means 50 ms
	// when alone and 250 ms in a cluster. Lower means faster takeover, and needless
	// ones on hosts that stall. A leader whose process was killed is noticed
	// without waiting for it.
	HeartbeatTimeout time.Duration
	// ElectionTimeout is how long a candidate waits for votes. Zero means
	// HeartbeatTimeout; it can't be less.
	ElectionTimeout time.Duration
	// LeaseTimeout is how long a leader without contact to a majority goes on
	// before it steps down. Zero means HeartbeatTimeout; it can't be more. Less
	// makes leaders resign for one slow disk write of their followers, and fences
	// nothing: a paused leader does not notice either.
	LeaseTimeout time.Duration
	// CommitTimeout is the longest time until followers hear of a commit when
	// nothing else is sent.
	CommitTimeout time.Duration

	// SnapshotThreshold is the number of log entries after which the state is
	// written as a snapshot, TrailingLogs the number of entries kept behind it for
	// followers that are late, SnapshotInterval how often the need is looked at.
	SnapshotThreshold uint64
	TrailingLogs      uint64
	SnapshotInterval  time.Duration

	// Handler answers what another node's RoundTrip brings here, but for paths below /ha/;
	// nil answers nothing. It may be called before Open returns.
	Handler http.Handler
	// EnqueueTimeout is how long a write waits to be taken up; after it nothing
	// was written. ApplyTimeout is how long it then waits for its result; after
	// it the outcome is unknown.
	EnqueueTimeout time.Duration
	ApplyTimeout   time.Duration
	// StepDownPause is how long a node that asked to hand over its leadership,
	// and still has it, waits before it works under it again. It is doubled up to
	// eight times that while the node fails again and again.
	StepDownPause time.Duration
	// StepDownCooldown is how long a node that gave its leadership away does not
	// take it again, as long as another can: nodes that all can't reach Kafka must
	// not hand the leadership round and round.
	StepDownCooldown time.Duration
	// PromoteAfter is how long a node that was added must be caught up and in
	// contact before it gets its vote.
	PromoteAfter time.Duration
	// ShutdownTimeout bounds the orderly end of Run.
	ShutdownTimeout time.Duration

	// Listener takes the place of listening on Listen, and is closed by the node.
	Listener net.Listener
	// Dialer makes the connections to peers; nil means net.Dialer.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// BeforeWrite is asked before each write to the log, and its error counts as one of
	// the disk; nil asks nobody. It is for tests of what a broken disk does.
	BeforeWrite func() error
}

// DefaultConfig returns the defaults of everything but NodeID, DataDir and the
// network.
func DefaultConfig() Config {
	return Config{
		CommitTimeout:     50 * time.Millisecond,
		SnapshotThreshold: 1024,
		TrailingLogs:      1024,
		SnapshotInterval:  2 * time.Minute,
		EnqueueTimeout:    2 * time.Second,
		ApplyTimeout:      5 * time.Second,
		StepDownPause:     time.Second,
		StepDownCooldown:  30 * time.Second,
		PromoteAfter:      10 * time.Second,
		ShutdownTimeout:   10 * time.Second,
	}
}

func (c *Config) alone() bool { return len(c.Peers) == 0 }

// withDefaults fills the timeouts that depend on the size of the cluster.
func (c Config) withDefaults() Config {
	heartbeat := 250 * time.Millisecond
	if c.alone() {
		heartbeat = 50 * time.Millisecond
	}
	if c.HeartbeatTimeout == 0 {
		c.HeartbeatTimeout = heartbeat
	}
	if c.ElectionTimeout == 0 {
		c.ElectionTimeout = c.HeartbeatTimeout
	}
	if c.LeaseTimeout == 0 {
		c.LeaseTimeout = c.HeartbeatTimeout
	}
	if self, ok := peer(c.Peers, c.NodeID); ok && c.Advertise == "" {
		c.Advertise = self.Addr
	}
	if c.Listen == "" {
		c.Listen = c.Advertise
	}
	if c.Dialer == nil {
		c.Dialer = (&net.Dialer{}).DialContext
	}
	return c
}

// Validate reports all that is wrong with c at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !validName(c.NodeID) {
		wrong("NodeID: %q is not a name (1 to %d bytes without / and @)", c.NodeID, maxName)
	}
	if c.DataDir == "" {
		wrong("DataDir: a node needs a directory of its own")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"HeartbeatTimeout", c.HeartbeatTimeout}, {"ElectionTimeout", c.ElectionTimeout},
		{"LeaseTimeout", c.LeaseTimeout}, {"CommitTimeout", c.CommitTimeout},
		{"SnapshotInterval", c.SnapshotInterval}, {"EnqueueTimeout", c.EnqueueTimeout},
		{"ApplyTimeout", c.ApplyTimeout}, {"StepDownPause", c.StepDownPause}, {"ShutdownTimeout", c.ShutdownTimeout},
		{"StepDownCooldown", c.StepDownCooldown}, {"PromoteAfter", c.PromoteAfter},
	} {
		if d.value < 5*time.Millisecond {
			wrong("%s: %s is below 5ms", d.name, d.value)
		}
	}
	if c.LeaseTimeout > c.HeartbeatTimeout {
		wrong("LeaseTimeout: %s is above HeartbeatTimeout %s", c.LeaseTimeout, c.HeartbeatTimeout)
	}
	if c.ElectionTimeout < c.HeartbeatTimeout {
		wrong("ElectionTimeout: %s is below HeartbeatTimeout %s", c.ElectionTimeout, c.HeartbeatTimeout)
	}
	if c.SnapshotThreshold == 0 {
		wrong("SnapshotThreshold: must be at least 1")
	}
	errs = append(errs, c.validateNetwork()...)
	return errors.Join(errs...)
}

func (c *Config) validateNetwork() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.alone() {
		if c.Listen != "" || c.Advertise != "" {
			wrong("Listen, Advertise: a node without peers has no network; list the peers or leave these empty")
		}
		if c.Join || c.Witness {
			wrong("Join, Witness: a node without peers is alone; list the peers")
		}
		return errs
	}
	ids, addrs := map[string]bool{}, map[string]bool{}
	for i, p := range c.Peers {
		if !validName(p.ID) || ids[p.ID] {
			wrong("Peers[%d].ID: %q is not a name (1 to %d bytes without / and @) or is used twice", i, p.ID, maxName)
		}
		if !validAddr(p.Addr) {
			wrong("Peers[%d].Addr: %q is not host:port of one node", i, p.Addr)
		} else if addrs[p.Addr] {
			wrong("Peers[%d].Addr: %q is used twice", i, p.Addr)
		}
		ids[p.ID], addrs[p.Addr] = true, true
	}
	switch self, listed := peer(c.Peers, c.NodeID); {
	case listed && c.Advertise != self.Addr:
		wrong("Advertise: %q differs from this node's address in Peers, %q", c.Advertise, self.Addr)
	case !listed && !c.Join:
		wrong("Peers: this node, %q, is not among them (which is only right for one that is to Join)", c.NodeID)
	case !listed && (!validAddr(c.Advertise) || addrs[c.Advertise]):
		wrong("Advertise: %q is not host:port of this node alone; one that joins must say where it is", c.Advertise)
	}
	if c.TLS != nil && (c.TLS.CertFile == "" || c.TLS.KeyFile == "" || c.TLS.CAFile == "") {
		wrong("TLS: CertFile, KeyFile and CAFile are all needed")
	}
	if c.Listener == nil {
		if host, _, err := net.SplitHostPort(c.Listen); err != nil {
			wrong("Listen: %q is not host:port", c.Listen)
		} else if c.TLS == nil && !c.Insecure && !loopback(host) {
			wrong("Listen: %q can be reached from other hosts, which needs TLS (or Insecure, if the network is trusted with "+
				"every position)", c.Listen)
		}
	}
	return errs
}

// maxName bounds names so that raft ids fit into a length of one byte.
const maxName = 128

func validName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsAny(s, "/@")
}

func validAddr(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != "" && !unspecified(host) && !strings.Contains(addr, "@")
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// loopback does not resolve names other than localhost: what they mean may change.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// raftConfig is c in raft's terms.
func (c *Config) raftConfig(id raft.ServerID, log hclog.Logger, notify chan<- bool) *raft.Config {
	rc := raft.DefaultConfig()
	rc.LocalID = id
	rc.HeartbeatTimeout = c.HeartbeatTimeout
	rc.ElectionTimeout = c.ElectionTimeout
	rc.LeaderLeaseTimeout = c.LeaseTimeout
	rc.CommitTimeout = c.CommitTimeout
	rc.SnapshotThreshold = c.SnapshotThreshold
	rc.SnapshotInterval = c.SnapshotInterval
	rc.TrailingLogs = c.TrailingLogs
	rc.NotifyCh = notify
	rc.Logger = log
	rc.NoLegacyTelemetry = true
	rc.ShutdownOnRemove = false // a node that was removed says so instead of going away
	return rc
}

// networkTimeout bounds one exchange with a peer. A peer that is gone must not
// hold up raft's heartbeats much longer than an election takes.
func (c *Config) networkTimeout() time.Duration { return max(time.Second, 4*c.HeartbeatTimeout) }
