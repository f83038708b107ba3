package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// sinks makes the sink of each session of one connector.
type sinks struct {
	publisher *kafka.Publisher
	delivery  config.Delivery
}

func newSinks(node *config.Config, c *config.Connector, verifyLeader func(context.Context) error,
	in surroundings) (*sinks, error) {
	kc, err := kafkaConfig(node, c)
	if err != nil {
		return nil, err
	}
	kc.VerifyLeader, kc.Dialer = verifyLeader, in.dial
	p, err := kafka.NewPublisher(kc, in.log.With("component", "kafka"), kafka.NewMetrics(in.metrics))
	if err != nil {
		return nil, err
	}
	return &sinks{publisher: p, delivery: c.Kafka.Delivery}, nil
}

func (s *sinks) NewSink(term uint64) (connector.Sink, error) {
	if s.delivery == config.AtLeastOnce {
		return s.publisher.AtLeastOnce(), nil
	}
	return s.publisher.ExactlyOnce(term), nil
}

// Check returns why a record can never be published.
func (s *sinks) Check(rec *txn.Record) error { return s.publisher.Check(rec) }

// KeepsPosition reports whether Kafka holds the position with the records.
func (s *sinks) KeepsPosition() bool { return s.delivery == config.ExactlyOnce }

// UnseenTopics are those of which a transaction's leftovers can't be seen.
func (s *sinks) UnseenTopics() []string {
	var out []string
	for _, topic := range s.publisher.Unseen() {
		out = append(out, cmp.Or(topic, "*"))
	}
	return out
}

// IdleCommit is short where a position without records costs nothing in Kafka.
func (s *sinks) IdleCommit() time.Duration {
	if s.delivery == config.AtLeastOnce {
		return time.Second
	}
	return 10 * time.Second
}

// Settle commits or aborts what a transaction of c has left open in a partition, which
// ends a connector's session that is at work. It reports whether there was anything. cfg
// names this node.
func Settle(ctx context.Context, cfg *config.Config, c *config.Connector, topic string, partition int32, commit bool,
	log *slog.Logger) (found bool, err error) {
	if c.Kafka.Delivery != config.ExactlyOnce {
		return false, fmt.Errorf("connector %s has no transactions: its delivery is %s", c.Name, c.Kafka.Delivery)
	}
	kc, err := kafkaConfig(cfg, c)
	if err != nil {
		return false, err
	}
	pub, err := kafka.NewPublisher(kc, log, nil)
	if err != nil {
		return false, err
	}
	// A leader at work takes its transactional id back, at the latest with its next batch.
	for range settleAttempts {
		found, err = pub.Settle(ctx, topic, partition, commit)
		if e, ok := errors.AsType[*kafka.Error](err); !ok || e.Code != kafka.Fenced {
			return found, err
		}
	}
	return found, err
}

// settleAttempts is how often Settle begins anew because a leader was faster.
const settleAttempts = 5

// kafkaConfig takes the sink's settings from the tree. Secrets are resolved at
// each login.
func kafkaConfig(node *config.Config, c *config.Connector) (kafka.Config, error) {
	k := &c.Kafka
	kc := kafka.DefaultConfig()
	kc.Brokers, kc.ClientID = k.Brokers, k.ClientID
	kc.Connector, kc.Prefix, kc.Node = c.Name, k.TransactionalIDPrefix, node.Node.ID
	kc.Compression = k.Compression
	kc.MaxMessageBytes = int(k.MaxMessageBytes)
	kc.RequestTimeout = k.RequestTimeout
	kc.AckTimeout = min(kc.AckTimeout, k.RequestTimeout*2/3)
	kc.DeliveryTimeout = max(kc.DeliveryTimeout, 3*k.RequestTimeout)
	kc.TransactionTimeout = k.TransactionTimeout
	kc.PositionReplication = int16(k.PositionReplication)
	var err error
	if kc.Topics, err = topicCreation(k.CreateTopics); err != nil {
		return kc, err
	}
	if k.TLS.On() {
		if kc.TLS, err = kafkaTLS(&k.TLS); err != nil {
			return kc, err
		}
	}
	if k.SASL.Mechanism != "" {
		kc.SASL = sasl(&k.SASL)
	}
	return kc, nil
}

func topicCreation(c config.CreateTopics) (kafka.TopicCreation, error) {
	if !c.On() {
		return kafka.TopicCreation{AutoCreate: true, Partitions: -1, Replication: -1}, nil
	}
	t := kafka.TopicCreation{Create: true, Partitions: -1, Replication: -1, Settings: c.Configs}
	if c.Partitions != 0 {
		t.Partitions = int32(c.Partitions)
	}
	if c.ReplicationFactor != 0 {
		t.Replication = int16(c.ReplicationFactor)
	}
	for _, g := range c.Groups {
		match, err := g.Matcher()
		if err != nil {
			return t, err
		}
		t.Groups = append(t.Groups, kafka.TopicGroup{
			Match: match, Partitions: int32(g.Partitions), Replication: int16(g.ReplicationFactor), Settings: g.Configs,
		})
	}
	return t, nil
}

func sasl(s *config.SASL) *kafka.SASL {
	out := &kafka.SASL{Mechanism: s.Mechanism}
	user, secret := s.User, s.Password
	if s.Mechanism == "OAUTHBEARER" {
		user, secret = s.ClientID, s.ClientSecret
		out.OAuth = kafka.OAuth{Endpoint: s.TokenURL, Extensions: s.Extensions}
		if s.Scope != "" {
			out.OAuth.Scopes = []string{s.Scope}
		}
		if !s.Token.IsZero() {
			out.OAuth.Token = func(context.Context) (string, error) { return s.Token.Resolve() }
			return out
		}
	}
	out.Credentials = func(context.Context) (string, string, error) {
		password, err := secret.Resolve()
		return user, password, err
	}
	return out
}
