package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// KafkaOptions says how to start a Kafka broker or a cluster of them. The zero value
// is good.
type KafkaOptions struct {
	// Name is for log lines and the data folder's name; kafka by default.
	Name string
	// Dir holds data, settings and log. It is made if need be, kept, and gone on with
	// by the next start. A temporary folder is used when it is empty.
	Dir string
	// Port of the plain listener. By default that of the last start in Dir, or a free
	// one. Not for clusters.
	Port int
	// Heap is the JVM's heap, as 512m, the default.
	Heap string
	// JVMArgs are more arguments for Java; they win over those given here, which make
	// for quick starts: a benchmark wants -XX:TieredStopAtLevel=4 and
	// -XX:+UseG1GC after -XX:-UseSerialGC.
	JVMArgs []string
	// Properties are more lines of server.properties; they win over those given here.
	Properties []string
	// Listeners are more listeners beside the plain one.
	Listeners []Listener
	// Own asks for a broker that this process starts, whatever the environment says.
	// Tests that stop, pause or configure their broker need it. Any of Dir, Port,
	// JVMArgs, Properties and Listeners implies it.
	Own bool
	// Log is told what takes long, as fetching the program; nil for nobody.
	Log io.Writer

	// Detached lets the broker outlive this process. Dir must be given; StopDetached
	// ends it.
	Detached bool
}

func (o KafkaOptions) own() bool {
	return o.Own || o.Dir != "" || o.Port != 0 || len(o.JVMArgs)+len(o.Properties)+len(o.Listeners) > 0
}

// Listener is one more listener of a broker, on a port of its own.
//
// Security is set up by Properties that name the listener in lower case. For
// SASL/PLAIN on Listener{Name: "SECURE", Protocol: "SASL_PLAINTEXT"}:
//
//	listener.name.secure.sasl.enabled.mechanisms=PLAIN
//	listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
//
// and for TLS on Listener{Name: "SECURE", Protocol: "SSL"}, with key, certificate and
// authorities in PEM files:
//
//	listener.name.secure.ssl.keystore.type=PEM
//	listener.name.secure.ssl.keystore.location=/path/server.pem
//	listener.name.secure.ssl.truststore.type=PEM
//	listener.name.secure.ssl.truststore.location=/path/ca.pem
//	listener.name.secure.ssl.client.auth=required
type Listener struct {
	// Name of the listener, in capitals.
	Name string
	// Protocol is PLAINTEXT, the default, SSL, SASL_PLAINTEXT or SASL_SSL.
	Protocol string
	// Proxied puts a Proxy in front, see Kafka.Proxy. The listener is advertised at
	// the proxy's address, so clients never find a way around.
	Proxied bool
	// Behind, if not nil, stands between the listener and what is in front of it: it
	// is called once for each broker with the address where that listens, and returns
	// the one to go to in its place. What it starts there is the caller's.
	Behind func(broker int, addr string) (string, error)
}

// Kafka is a Kafka broker. Its methods may be called from several goroutines.
type Kafka struct {
	instance
	dist    *kafkaDist // nil when the environment names the broker
	id      int
	addr    string
	options KafkaOptions
	proxies map[string]*Proxy
	fronts  map[string]string // where listeners are reached, by their names
	brokers int               // how many must be there for it to be ready
}

// StartKafka starts a broker with a KRaft controller in it, fetching the program if
// need be, and waits until it takes requests. ctx bounds the start, not the broker's
// life: close it.
func StartKafka(ctx context.Context, options KafkaOptions) (_ *Kafka, err error) {
	const variable = "BINLOG_OUTBOX_TEST_KAFKA"
	if named, ok := external(variable); ok && !options.own() {
		if _, _, err := net.SplitHostPort(named); err != nil {
			return nil, fmt.Errorf("reading %s: %w", variable, err)
		}
		k := &Kafka{instance: instance{name: "kafka"}, addr: named, brokers: 1}
		return k, k.ping(ctx)
	}
	cluster, err := startBrokers(ctx, 1, options)
	if err != nil {
		return nil, err
	}
	return cluster.Brokers[0], nil
}

// newBroker takes folder and ports for a broker. The caller closes it, also when it
// answers with an error.
func newBroker(ctx context.Context, dist *kafkaDist, id int, options KafkaOptions) (*Kafka, error) {
	k := &Kafka{
		instance: instance{name: options.Name, detached: options.Detached, ports: map[string]*port{}},
		dist:     dist,
		id:       id,
		options:  options,
		proxies:  map[string]*Proxy{},
		fronts:   map[string]string{},
	}
	k.ready, k.onClose = k.ping, k.closeProxies
	var err error
	if k.folder, err = openFolder(ctx, options.Dir, options.Name); err != nil {
		return k, err
	}
	if err := k.reserve(ctx, "PLAINTEXT", options.Port); err != nil {
		return k, err
	}
	k.addr = addr(k.Port())
	if err := k.reserve(ctx, "CONTROLLER", 0); err != nil {
		return k, err
	}
	for _, l := range options.Listeners {
		if err := k.reserve(ctx, l.Name, 0); err != nil {
			return k, err
		}
		at := addr(k.ports[l.Name].number)
		if l.Behind != nil {
			if at, err = l.Behind(id, at); err != nil {
				return k, fmt.Errorf("standing before listener %s: %w", l.Name, err)
			}
		}
		k.fronts[l.Name] = at
		if !l.Proxied {
			continue
		}
		if k.proxies[l.Name], err = StartProxy(at); err != nil {
			return k, err
		}
		k.fronts[l.Name] = k.proxies[l.Name].Addr()
	}
	return k, nil
}

func (k *Kafka) closeProxies() error {
	var errs []error
	for _, p := range k.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// properties is the broker's server.properties in a cluster of the given brokers.
func (k *Kafka) properties(cluster []*Kafka) string {
	var voters, listeners, advertised, protocols []string
	for _, other := range cluster {
		voters = append(voters, fmt.Sprintf("%d@%s", other.id, addr(other.ports["CONTROLLER"].number)))
	}
	for _, l := range append([]Listener{{Name: "PLAINTEXT"}, {Name: "CONTROLLER"}}, k.options.Listeners...) {
		at := addr(k.ports[l.Name].number)
		listeners = append(listeners, l.Name+"://"+at)
		if l.Protocol == "" {
			l.Protocol = "PLAINTEXT"
		}
		protocols = append(protocols, l.Name+":"+l.Protocol)
		if l.Name == "CONTROLLER" {
			continue
		}
		if front, ok := k.fronts[l.Name]; ok {
			at = front
		}
		advertised = append(advertised, l.Name+"://"+at)
	}
	replicas := min(len(cluster), 3)
	lines := []string{
		"process.roles=broker,controller",
		"node.id=" + strconv.Itoa(k.id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		"listeners=" + strings.Join(listeners, ","),
		"advertised.listeners=" + strings.Join(advertised, ","),
		"listener.security.protocol.map=" + strings.Join(protocols, ","),
		"log.dirs=" + k.folder.join("data"),
		"num.partitions=3",
		"default.replication.factor=" + strconv.Itoa(replicas),
		"min.insync.replicas=" + strconv.Itoa(max(1, replicas-1)),
		"offsets.topic.num.partitions=4",
		"offsets.topic.replication.factor=" + strconv.Itoa(replicas),
		"transaction.state.log.num.partitions=4",
		"transaction.state.log.replication.factor=" + strconv.Itoa(replicas),
		"transaction.state.log.min.isr=" + strconv.Itoa(max(1, replicas-1)),
		"group.initial.rebalance.delay.ms=0",
		// A broker that was killed is let in again only when its last session is over,
		// and failures are to be noticed in seconds rather than in tens of them.
		"broker.session.timeout.ms=3000",
		"broker.heartbeat.interval.ms=500",
		"replica.lag.time.max.ms=3000",
		"log.cleaner.dedupe.buffer.size=16777216", // of 128 MB that the heap lacks
		// Records of tests carry times of long ago, and none is to go for that.
		"log.retention.ms=-1",
	}
	return strings.Join(append(lines, k.options.Properties...), "\n") + "\n"
}

// configure writes the broker's settings and, at the first start, its data folder.
func (k *Kafka) configure(ctx context.Context, cluster []*Kafka, clusterID string) error {
	k.brokers = len(cluster)
	settings := k.folder.join("server.properties")
	if err := os.WriteFile(settings, []byte(k.properties(cluster)), 0o644); err != nil {
		return err
	}
	data := k.folder.join("data")
	if !exists(data) {
		err := build(ctx, data, func(tmp string) error { return k.dist.format(ctx, tmp, k.id, clusterID) })
		if err != nil {
			return err
		}
	}
	heap := k.options.Heap
	if heap == "" {
		heap = "512m"
	}
	logging := k.folder.join("log4j2.properties")
	if err := os.WriteFile(logging, []byte(kafkaLogging+brokerLogging), 0o644); err != nil {
		return err
	}
	args := append([]string{"-Xmx" + heap, "-Dlog4j2.configurationFile=" + logging}, k.options.JVMArgs...)
	// The start's context does not bound the broker's life.
	k.command = func() *exec.Cmd { return k.dist.java(context.Background(), args, "kafka.Kafka", settings) }
	return nil
}

// Addr is the host:port of the plain listener.
func (k *Kafka) Addr() string { return k.addr }

// Port is the port in Addr.
func (k *Kafka) Port() int {
	if p := k.ports["PLAINTEXT"]; p != nil {
		return p.number
	}
	_, text, _ := net.SplitHostPort(k.addr)
	number, _ := strconv.Atoi(text)
	return number
}

// NodeID is the broker's id, 0 when the environment names it.
func (k *Kafka) NodeID() int { return k.id }

// ListenerAddr is the host:port at which the listener of that name is advertised,
// empty when there is none.
func (k *Kafka) ListenerAddr(name string) string {
	if front, ok := k.fronts[name]; ok {
		return front
	}
	if p := k.ports[name]; p != nil {
		return addr(p.number)
	}
	return ""
}

// Proxy is the proxy in front of the listener of that name, nil when there is none.
func (k *Kafka) Proxy(name string) *Proxy { return k.proxies[name] }

// clientConfig is for our own requests only.
func clientConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = "binlog-outbox-servers"
	config.Version = sarama.V4_0_0_0
	config.ApiVersionsRequest = false
	config.Net.DialTimeout = 5 * time.Second
	config.Net.ReadTimeout = 30 * time.Second
	return config
}

// Admin answers a client for topics and settings on the plain listener. The caller
// closes it.
func (k *Kafka) Admin() (sarama.ClusterAdmin, error) {
	admin, err := sarama.NewClusterAdmin([]string{k.addr}, clientConfig())
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", k.name, err)
	}
	return admin, nil
}

// CreateTopic makes a topic with the broker's default replication factor. settings
// are the topic's own, as cleanup.policy; nil for none.
func (k *Kafka) CreateTopic(name string, partitions int32, settings map[string]string) error {
	admin, err := k.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: -1, ConfigEntries: map[string]*string{}}
	for key, value := range settings {
		detail.ConfigEntries[key] = &value
	}
	if err := admin.CreateTopic(name, detail, false); err != nil {
		return fmt.Errorf("creating topic %s: %w", name, err)
	}
	return nil
}

// ping succeeds when the broker answers for the whole cluster.
func (k *Kafka) ping(ctx context.Context) error {
	config := clientConfig()
	config.Net.ReadTimeout = 2 * time.Second // sarama takes no context
	if deadline, ok := ctx.Deadline(); ok {
		config.Net.ReadTimeout = max(time.Millisecond, min(config.Net.ReadTimeout, time.Until(deadline)))
	}
	broker := sarama.NewBroker(k.addr)
	if err := broker.Open(config); err != nil {
		return err
	}
	defer broker.Close()
	answer, err := broker.GetMetadata(&sarama.MetadataRequest{Version: 1, Topics: []string{}})
	if err != nil {
		return err
	}
	if len(answer.Brokers) < k.brokers || answer.ControllerID < 0 {
		return fmt.Errorf("%d of %d brokers have joined", len(answer.Brokers), k.brokers)
	}
	return nil
}
