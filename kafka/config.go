package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// Config says how to publish. It is read only once a Publisher has it.
type Config struct {
	// Brokers are host:port addresses to begin with; the cluster names the rest.
	Brokers []string
	// ClientID is what brokers log and apply quotas to.
	ClientID string
	// Connector is the connector's name and Prefix the installation's. Together
	// they make the transactional id "<prefix>.<connector>" and the position topic
	// "<prefix>.<connector>.position", which must be the same on all nodes.
	Connector string
	Prefix    string
	// Version is the newest Kafka protocol to speak, such as "4.0.0". Older
	// brokers are negotiated with per request; lower it only for brokers that
	// negotiate wrongly.
	Version string

	// TLS is asked at each connection, so that certificates can be exchanged while the
	// program runs; nil for none. Without a ServerName the broker's host name is verified.
	TLS func() (*tls.Config, error)
	// SASL is nil when not used.
	SASL *SASL

	// Topics says what becomes of a topic that does not exist.
	Topics TopicCreation

	// Compression is "none", "gzip", "snappy", "lz4" or "zstd".
	Compression string
	// MaxMessageBytes is the largest record that is sent, counted as the Java
	// producer counts max.request.size: key, value and headers uncompressed, with
	// the overhead of a batch of one.
	MaxMessageBytes int

	// DeliveryTimeout bounds the time in a Commit in which no record is acknowledged and
	// no broker throttles us, retries included.
	DeliveryTimeout time.Duration
	// DialTimeout bounds connecting including the TLS handshake; RequestTimeout
	// one request; AckTimeout how long the broker may wait for its replicas. A
	// request that the broker answers late costs RequestTimeout at a takeover, so
	// it is short, and it must be above AckTimeout.
	DialTimeout    time.Duration
	RequestTimeout time.Duration
	AckTimeout     time.Duration
	// MaxRetries is how often one batch of records is sent again.
	MaxRetries int

	// Exactly-once only.

	// TransactionTimeout bounds a batch, which may take three quarters of it. One that
	// brokers take slowly but steadily gets more at the next attempt, up to their
	// transaction.max.timeout.ms. It is also how long an open transaction of a dead
	// leader may hide newer records from read_committed consumers when nobody takes
	// over; the broker looks every 10 s.
	TransactionTimeout time.Duration
	// FullPositionEvery is how often the whole position is written; records in
	// between hold what came since.
	FullPositionEvery time.Duration
	// PositionReplication is the replication factor of the position topic; -1 is
	// three, or the number of brokers.
	PositionReplication int16
	// Node names this node in the position topic, for people.
	Node string
	// VerifyLeader is asked before and after the transactional id is claimed, so
	// that a node that no longer leads does not fence the one that does. nil means
	// that there is no other node.
	VerifyLeader func(context.Context) error

	// Dialer opens the network connections; nil means the network.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
}

// TopicCreation says what becomes of topics that do not exist. The zero value
// waits until somebody creates them.
type TopicCreation struct {
	// Create makes the connector create them.
	Create bool
	// Partitions and Replication are those of created topics; -1 leaves them to
	// the brokers. Settings are topic settings such as cleanup.policy.
	Partitions  int32
	Replication int16
	Settings    map[string]string
	// Groups have other values for some topics; the first that matches counts.
	Groups []TopicGroup
	// AutoCreate lets the brokers create them (auto.create.topics.enable).
	AutoCreate bool
}

// TopicGroup has the values of created topics whose names it matches, as a group
// of Kafka Connect's topic.creation.groups: partitions and replication of 0 are
// those of TopicCreation, Settings are the group's alone.
type TopicGroup struct {
	Match       func(topic string) (bool, error)
	Partitions  int32
	Replication int16
	Settings    map[string]string
}

// forTopic returns the values for one topic.
func (c *TopicCreation) forTopic(topic string) (partitions int32, replication int16, settings map[string]string,
	err error) {
	for _, g := range c.Groups {
		matches, err := g.Match(topic)
		if err != nil {
			return 0, 0, nil, err
		}
		if matches {
			return cmp.Or(g.Partitions, c.Partitions), cmp.Or(g.Replication, c.Replication), g.Settings, nil
		}
	}
	return c.Partitions, c.Replication, c.Settings, nil
}

// DefaultConfig returns the defaults; Brokers and Connector are still to be set.
func DefaultConfig() Config {
	return Config{
		ClientID:            "binlog-outbox",
		Prefix:              "binlog-outbox",
		Version:             "4.0.0",
		Topics:              TopicCreation{Partitions: -1, Replication: -1},
		Compression:         "none",
		MaxMessageBytes:     1 << 20,
		DeliveryTimeout:     30 * time.Second,
		DialTimeout:         time.Second,
		RequestTimeout:      3 * time.Second,
		AckTimeout:          2 * time.Second,
		MaxRetries:          30,
		TransactionTimeout:  30 * time.Second,
		FullPositionEvery:   10 * time.Second,
		PositionReplication: -1,
	}
}

// TransactionalID is the name under which Kafka fences this connector's writers.
func (c *Config) TransactionalID() string { return c.Prefix + "." + c.Connector }

// PositionTopic is where the exactly-once sink keeps the connector's position.
func (c *Config) PositionTopic() string { return c.TransactionalID() + ".position" }

// Validate returns all problems at once.
func (c *Config) Validate() error {
	var p problems
	p.check(len(c.Brokers) > 0, "brokers: at least one host:port is needed")
	for _, b := range c.Brokers {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			p.addf("brokers: %q is not host:port", b)
		}
	}
	p.check(c.Connector != "", "connector: a name is needed")
	p.check(validTopic(c.PositionTopic()), "connector, prefix: %q is not a valid topic name (letters, digits, '.', '_', "+
		"'-', at most 249)", c.PositionTopic())
	if _, err := sarama.ParseKafkaVersion(c.Version); err != nil {
		p.addf("version: %q is not a Kafka version such as 4.0.0", c.Version)
	}
	if _, err := codec(c.Compression); err != nil {
		p.addf("compression: %w", err)
	}
	p.check(c.MaxMessageBytes >= 1024 && c.MaxMessageBytes <= 64<<20,
		"max_message_bytes: %d is not between 1 KiB and 64 MiB", c.MaxMessageBytes)
	p.check(c.DialTimeout > 0, "dial_timeout: must be above 0")
	p.check(c.AckTimeout >= time.Millisecond, "ack_timeout: must be at least 1ms")
	p.check(c.RequestTimeout > c.AckTimeout, "request_timeout: %s must be above ack_timeout %s", c.RequestTimeout,
		c.AckTimeout)
	p.check(c.DeliveryTimeout > c.RequestTimeout, "delivery_timeout: %s must be above request_timeout %s",
		c.DeliveryTimeout, c.RequestTimeout)
	p.check(c.MaxRetries >= 1, "max_retries: must be at least 1")
	p.check(c.TransactionTimeout > c.RequestTimeout, "transaction_timeout: %s must be above request_timeout %s",
		c.TransactionTimeout, c.RequestTimeout)
	p.check(c.FullPositionEvery > 0, "full_position_every: must be above 0")
	p.check(c.PositionReplication == -1 || c.PositionReplication > 0, "position_replication: must be -1 or above 0")
	p.check(!c.Topics.Create || !c.Topics.AutoCreate,
		"topics: either the connector creates them or the brokers do, not both")
	p.check(!c.Topics.Create || c.Topics.Partitions == -1 || c.Topics.Partitions > 0,
		"topics.partitions: must be -1 or above 0")
	p.check(!c.Topics.Create || c.Topics.Replication == -1 || c.Topics.Replication > 0,
		"topics.replication: must be -1 or above 0")
	if c.SASL != nil {
		c.SASL.validate(&p)
	}
	return errors.Join(p...)
}

// problems collects what Validate finds.
type problems []error

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.addf(format, args...)
	}
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// validTopic is Kafka's own rule (org.apache.kafka.common.internals.Topic).
func validTopic(name string) bool { return topicName.MatchString(name) && name != "." && name != ".." }

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

func codec(name string) (sarama.CompressionCodec, error) {
	i := slices.Index(codecs, name)
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %q", name, codecs)
	}
	return sarama.CompressionCodec(i), nil
}
