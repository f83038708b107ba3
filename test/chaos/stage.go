package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const (
	connectorName = "chaos"
	topic         = "outbox.event.chaos"
	positions     = "binlog-outbox." + connectorName + ".position"
	partitions    = 5
	database      = "shop"

	// transactionTimeout is what a dead leader may block consumers for, short so that
	// faults can last longer. The brokers look for such transactions once a second.
	transactionTimeout = 10 * time.Second
	requestTimeout     = 2 * time.Second

	// Now and then a transaction has largeRows rows, and takes partRows of them at a
	// time to Kafka.
	largeRows = 3000
	partRows  = 400
)

// Options say what a stage is made of.
type Options struct {
	// Dir holds configurations, data and logs of the nodes.
	Dir string
	// Nodes, Brokers and Sources are how many there are; 0 means 3, 1 and 1. With two
	// sources the second follows the first.
	Nodes, Brokers, Sources int
	MariaDB                 bool
	// Unreplicated gives the topics one replica, whatever the number of brokers.
	Unreplicated bool
	// Direct leaves out all proxies, for measurements.
	Direct bool
	Seed   uint64
	// PerSecond is how many transactions are written in a second; 0 means 250.
	PerSecond int
	Log       io.Writer
}

// Stage is a cluster of nodes with its servers and the shop that writes.
type Stage struct {
	options Options
	random  *rand.Rand
	kafka   *servers.KafkaCluster
	sources []*servers.MySQL
	primary atomic.Int32 // index of the source that takes writes
	nodes   []*node
	shop    *workload.Shop
	side    atomic.Bool // the connector's tables include the one that is written beside the outbox
}

// NewStage starts everything but the nodes' faults: servers, a shop, and nodes that
// have found a leader. The caller closes it, also after an error.
func NewStage(ctx context.Context, o Options) (*Stage, error) {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	o.Brokers, o.Sources = max(1, o.Brokers), max(1, o.Sources)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return &Stage{options: o}, err
	}
	s := &Stage{options: o, random: rand.New(rand.NewPCG(o.Seed, 5))}
	for i := range o.Nodes {
		s.nodes = append(s.nodes, &node{name: "n" + strconv.Itoa(i+1), number: i, requests: kproxy.New(),
			peers: map[string]*servers.Proxy{}})
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		s.kafka, err = s.startKafka(ctx)
		return err
	})
	group.Go(func() error { return s.startSources(ctx) })
	binary := ""
	group.Go(func() (err error) {
		binary, err = harness.Build(ctx, o.Dir)
		return err
	})
	if err := group.Wait(); err != nil {
		return s, err
	}
	shop, err := workload.Create(ctx, s, workload.Options{Database: database, Aggregate: "chaos", Partitions: partitions,
		Keys: 200, Seed: o.Seed})
	if err != nil {
		return s, err
	}
	s.shop = shop
	if err := s.makeNodes(binary); err != nil {
		return s, err
	}
	return s, s.startNodes(ctx)
}

func (s *Stage) startKafka(ctx context.Context) (*servers.KafkaCluster, error) {
	options := servers.KafkaOptions{
		Own: true, Heap: "384m", Log: s.options.Log,
		Properties: []string{
			"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
			// The judge wants each record of the position topic, also of a long run.
			"log.cleaner.enable=false",
		},
	}
	if !s.options.Direct {
		for _, n := range s.nodes {
			options.Listeners = append(options.Listeners, servers.Listener{
				Name: listenerOf(n), Proxied: true,
				Behind: func(_ int, addr string) (string, error) { return n.requests.Listen(addr) },
			})
		}
	}
	return servers.StartKafkaCluster(ctx, s.options.Brokers, options)
}

func (s *Stage) startSources(ctx context.Context) error {
	start := servers.StartMySQL
	if s.options.MariaDB {
		start = servers.StartMariaDB
	}
	for i := range s.options.Sources {
		m, err := start(ctx, servers.Options{
			Own: true, Name: "source-" + strconv.Itoa(i+1), Log: s.options.Log,
			// SET super_read_only and two writers can wait for each other in a circle that
			// InnoDB does not see.
			Args: []string{"--innodb-lock-wait-timeout=2"},
		})
		if err != nil {
			return err
		}
		s.sources = append(s.sources, m)
		if i == 0 {
			reset := "RESET BINARY LOGS AND GTIDS"
			if s.options.MariaDB {
				reset = "RESET MASTER"
			}
			if err := m.Exec(ctx, reset); err != nil {
				return err
			}
			if err := m.CreateCDCUser(ctx); err != nil {
				return err
			}
			continue
		}
		if err := servers.Replicate(ctx, m, s.sources[0]); err != nil {
			return fmt.Errorf("making a replica: %w", err)
		}
	}
	return nil
}

// Addr, User and Password make the stage the shop's server: the one that takes
// writes now.
func (s *Stage) Addr() string { return s.source().Addr() }

// User is an account that may do everything.
func (s *Stage) User() string { return s.source().User() }

// Password is User's.
func (s *Stage) Password() string { return s.source().Password() }

func (s *Stage) source() *servers.MySQL { return s.sources[s.primary.Load()] }

// makeNodes prepares folders, links and configurations.
func (s *Stage) makeNodes(binary string) error {
	taken := map[int]bool{}
	for _, n := range s.nodes {
		n.binary, n.dir = binary, filepath.Join(s.options.Dir, n.name)
		if err := os.MkdirAll(n.data(), 0o755); err != nil {
			return err
		}
		port, err := s.freePort(taken)
		if err != nil {
			return err
		}
		n.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if s.options.Direct {
			continue
		}
		n.small = smallDisk(n.data())
		if n.source, err = servers.StartProxy(s.source().Addr()); err != nil {
			return err
		}
	}
	for _, n := range s.nodes {
		for _, to := range s.nodes {
			if to == n || s.options.Direct {
				continue
			}
			p, err := servers.StartProxy(to.listen)
			if err != nil {
				return err
			}
			n.peers[to.name] = p
		}
		// A cluster is begun by nodes that agree on their addresses.
		if err := s.configure(n, false); err != nil {
			return err
		}
	}
	return nil
}

// freePort takes a port below those that systems use for outgoing connections, so
// that none of those takes it while a node is down.
func (s *Stage) freePort(taken map[int]bool) (int, error) {
	for range 200 {
		port := 14000 + rand.IntN(6000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil || taken[port] {
			continue
		}
		taken[port] = true
		return port, l.Close()
	}
	return 0, errors.New("no port is free")
}

// configure writes a node's configuration; with links, its peers are where its
// proxies listen.
func (s *Stage) configure(n *node, links bool) error {
	var peers []string
	for _, to := range s.nodes {
		addr := to.listen
		if p := n.peers[to.name]; p != nil && links {
			addr = p.Addr()
		}
		peers = append(peers, to.name+"="+addr)
	}
	tables := []string{database + ".outbox"}
	if s.side.Load() {
		tables = append(tables, database+"."+workload.Side)
	}
	replicas := min(3, s.options.Brokers)
	if s.options.Unreplicated {
		replicas = 1
	}
	source := s.source().Addr()
	var brokers []string
	for _, k := range s.kafka.Brokers {
		if s.options.Direct {
			brokers = append(brokers, k.Addr())
		} else {
			brokers = append(brokers, k.ListenerAddr(listenerOf(n)))
		}
	}
	if n.source != nil {
		source = n.source.Addr()
	}
	host, port, err := net.SplitHostPort(source)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`node: {id: %s, data_dir: %q, shutdown_timeout: 10s}
cluster:
  listen: %q
  peers: [%s]
admin: {listen: "127.0.0.1:0"}
log: {format: json}
connectors:
  - name: %s
    source: {host: %s, port: %s, user: %s, password: %s, tables: [%s], start: earliest, heartbeat: 1s, connect_timeout: 5s}
    outbox: {additional: ["type:header:eventType"]}
    kafka:
      brokers: [%s]
      transaction_timeout: %v
      request_timeout: %v
      create_topics: {partitions: %d, replication_factor: %d}
      position_replication_factor: %d
    limits: {batch_records: %d, transaction_rows: %d}
    retry: {initial: 100ms, max: 2s}
`, n.name, n.data(), n.listen, quoted(peers), connectorName, host, port, servers.CDCUser, servers.CDCPassword, strings.Join(tables, ", "),
		quoted(brokers), transactionTimeout, requestTimeout, partitions, replicas, replicas, partRows, partRows)
	return os.WriteFile(n.config(), []byte(text), 0o600)
}

// listenerOf is the brokers' listener for a node: each node has its own way to them.
func listenerOf(n *node) string { return strings.ToUpper(n.name) }

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

// startNodes begins the cluster and, when it has a leader, puts the proxies between
// its nodes.
func (s *Stage) startNodes(ctx context.Context) error {
	for _, n := range s.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the cluster has no leader that streams"))
	defer cancel()
	if _, err := s.awaitStreaming(ctx); err != nil {
		return err
	}
	if s.options.Direct {
		return nil
	}
	for _, n := range s.nodes {
		if _, err := n.terminate(15 * time.Second); err != nil {
			return err
		}
		if err := s.configure(n, true); err != nil {
			return err
		}
	}
	for _, n := range s.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	_, err := s.awaitStreaming(ctx)
	return err
}

// awaitStreaming waits for a leader that streams and returns it.
func (s *Stage) awaitStreaming(ctx context.Context) (*node, error) {
	for {
		for _, n := range s.nodes {
			if err := n.died(); err != nil {
				return nil, err
			}
			if st, _, err := n.status(ctx); err == nil && st.Role == "leader" && st.Connectors[0].Phase == "streaming" {
				return n, nil
			}
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return nil, fmt.Errorf("waiting for a leader: %w", context.Cause(ctx))
		}
	}
}

// leader returns the node that leads, as far as one says so.
func (s *Stage) leader(ctx context.Context) *node {
	var best *node
	var term uint64
	for _, n := range s.nodes {
		if st, _, err := n.status(ctx); err == nil && st.Role == "leader" && st.Term >= term {
			best, term = n, st.Term
		}
	}
	return best
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends everything.
func (s *Stage) Close() error {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, n.close())
	}
	var group errgroup.Group
	if s.kafka != nil {
		group.Go(s.kafka.Close)
	}
	for _, m := range s.sources {
		group.Go(m.Close)
	}
	return errors.Join(append(errs, group.Wait())...)
}

// addrs are the brokers without any proxy in front.
func (s *Stage) addrs() []string { return s.kafka.Addrs() }

func (s *Stage) logf(format string, args ...any) { s.options.logf(format, args...) }

func (o Options) logf(format string, args ...any) {
	if o.Log != nil {
		fmt.Fprintf(o.Log, format+"\n", args...)
	}
}
