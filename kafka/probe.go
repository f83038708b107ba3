package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/IBM/sarama"
)

// Level says how bad a Finding is.
type Level string

// The levels of findings.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Failed  Level = "error"
)

// Finding is one thing that Probe looked at.
type Finding struct {
	Level Level
	// Subject is what was looked at, for example "topic orders".
	Subject string
	Text    string
	// Remedy says what to do; empty when Level is OK.
	Remedy string
}

// Bits of the authorised operations that brokers tell (AclOperation).
const (
	opRead            = 3
	opWrite           = 4
	opCreate          = 5
	opIdempotentWrite = 12
)

// Probe looks at whether publishing to the given topics would work, without
// writing anything. It returns what it found, errors included, in a stable order.
func Probe(ctx context.Context, cfg Config, exactlyOnce bool, topicNames []string) []Finding {
	if err := cfg.Validate(); err != nil {
		return []Finding{{Failed, "configuration", err.Error(), "correct the configuration"}}
	}
	p := &probe{cfg: &cfg, exactlyOnce: exactlyOnce}
	d := newDialer(&cfg, true)
	defer d.stop()
	defer context.AfterFunc(ctx, d.stop)()
	sc, err := saramaConfig(ctx, &cfg, "", d, hooks{produceRetry: func() {}, transactionRetry: func() {},
		hopeless: func() bool { return false }})
	if err != nil {
		p.fail("credentials", err)
		return p.findings
	}
	alive := p.brokers(sc)
	if len(alive) == 0 || ctx.Err() != nil {
		return p.findings
	}
	client, err := sarama.NewClient(alive, sc)
	if err != nil {
		p.fail("cluster", err)
		return p.findings
	}
	defer client.Close() //nolint:errcheck // nothing was written
	p.client = client
	if exactlyOnce {
		p.positionTopic(ctx)
	}
	slices.Sort(topicNames)
	for _, t := range slices.Compact(topicNames) {
		if ctx.Err() != nil {
			p.add(Failed, "probe", "stopped: "+context.Cause(ctx).Error(), "try again")
			break
		}
		p.topic(t)
	}
	return p.findings
}

type probe struct {
	cfg         *Config
	exactlyOnce bool
	client      sarama.Client
	blind       bool // the brokers do not tell what is open
	findings    []Finding
}

func (p *probe) add(level Level, subject, text, remedy string) {
	p.findings = append(p.findings, Finding{level, subject, text, remedy})
}

func (p *probe) fail(subject string, err error) {
	e := classify("looking at it", err)
	p.add(Failed, subject, e.Error(), "see the error's text")
}

// brokers looks at each configured address and returns those that answer. One that
// doesn't is no failure as long as another one does.
func (p *probe) brokers(sc *sarama.Config) (alive []string) {
	for _, addr := range p.cfg.Brokers {
		subject := "broker " + addr
		b := sarama.NewBroker(addr)
		if err := b.Open(sc); err != nil {
			p.fail(subject, err)
			return nil
		}
		ok, err := b.Connected()
		if !ok || err != nil {
			if err == nil {
				err = sarama.ErrNotConnected
			}
			p.add(Warning, subject, (&Publisher{cfg: *p.cfg}).connectError(err).Error(), "start it, or take it off the list")
			continue
		}
		alive = append(alive, addr)
		p.version(subject, b)
		p.rights(subject, b)
		_ = b.Close() // only read from
	}
	if len(alive) == 0 {
		p.add(Failed, "cluster", "no broker can be used", "check the addresses, TLS and SASL")
	}
	return alive
}

// version tells what the broker can do.
func (p *probe) version(subject string, b *sarama.Broker) {
	if !p.exactlyOnce {
		p.add(OK, subject, "answers", "")
		return
	}
	sees, err := supportsExactlyOnce(b)
	if err != nil {
		p.add(Failed, subject, err.Error(), "upgrade the brokers or use delivery at_least_once")
		return
	}
	if p.blind = p.blind || !sees; !sees {
		p.add(Warning, subject, "does not answer DescribeProducers and DescribeTransactions: what a transaction leaves "+
			"open in a partition without a leader can't be seen, so that rows may come twice or be lost when a broker fails",
			"use brokers that do (Apache Kafka 3.0 and newer), or topics with several replicas and min.insync.replicas of 2")
	}
	if on, err := brokerSetting(b, p.brokerID(b), verificationKey); err == nil && on == "false" {
		p.add(Failed, subject, verificationKey+" is off: a late request can leave a transaction hanging", "switch it on")
		return
	}
	p.add(OK, subject, "answers, and verifies transactions", "")
}

const verificationKey = "transaction.partition.verification.enable"

// brokerID finds out which broker answers at an address that was only configured.
func (p *probe) brokerID(b *sarama.Broker) int32 {
	resp, err := b.GetMetadata(&sarama.MetadataRequest{Version: 7, Topics: []string{p.cfg.PositionTopic()}})
	if err != nil {
		return -1
	}
	for _, known := range resp.Brokers {
		if known.Addr() == b.Addr() {
			return known.ID()
		}
	}
	return -1
}

// rights tells whether an idempotent producer is allowed. Since Kafka 3.0 the right
// to write any topic is enough, so its lack is no error.
func (p *probe) rights(subject string, b *sarama.Broker) {
	resp, err := b.GetMetadata(&sarama.MetadataRequest{Version: 8, Topics: []string{p.cfg.PositionTopic()},
		IncludeClusterAuthorizedOperations: true})
	if err != nil {
		p.fail(subject, err)
		return
	}
	ops := resp.ClusterAuthorizedOperations
	if !known(ops) {
		return
	}
	if !allowed(ops, opIdempotentWrite) {
		p.add(Warning, subject, "no right IDEMPOTENT_WRITE on the cluster",
			"grant it, unless all brokers are 3.0 or newer and the topics may be written")
	}
	if p.cfg.Topics.Create && !allowed(ops, opCreate) {
		p.add(Warning, subject, "no right CREATE on the cluster",
			"grant it on the cluster or on the topics that are to be created")
	}
}

func known(ops int32) bool { return ops != 0 && ops != -1<<31 }

func allowed(ops int32, op uint) bool { return ops&(1<<op) != 0 }

// topic looks at one topic that records are to go to.
func (p *probe) topic(name string) {
	subject := "topic " + name
	if !validTopic(name) {
		p.add(Failed, subject, "not a valid topic name", "correct the routing")
		return
	}
	meta, err := p.metadata(name)
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		p.missing(subject)
		return
	case err != nil:
		p.fail(subject, err)
		return
	}
	if known(meta.TopicAuthorizedOperations) {
		if !allowed(meta.TopicAuthorizedOperations, opWrite) {
			p.add(Failed, subject, "no right WRITE", "grant it")
		}
		if p.exactlyOnce && !allowed(meta.TopicAuthorizedOperations, opRead) {
			p.add(Warning, subject, "no right READ: what a transaction leaves open in a partition without a leader can't be "+
				"seen, so that rows may come twice or be lost when a broker fails", "grant it")
		}
	}
	leaderless := 0
	for _, part := range meta.Partitions {
		if part.Leader < 0 {
			leaderless++
		}
	}
	if leaderless > 0 {
		p.add(Warning, subject, fmt.Sprintf("%d of %d partitions have no leader", leaderless, len(meta.Partitions)),
			"bring the brokers back")
	}
	p.replicas(subject, meta)
	p.limit(subject, name, len(meta.Partitions))
}

// replicas tells when one broker's failure leaves a partition without a leader, or is
// enough to lose what was acknowledged. A cluster of one broker has no choice.
func (p *probe) replicas(subject string, meta *sarama.TopicMetadata) {
	if len(p.client.Brokers()) < 2 || len(meta.Partitions) == 0 {
		return
	}
	least := len(meta.Partitions[0].Replicas)
	for _, part := range meta.Partitions {
		least = min(least, len(part.Replicas))
	}
	if least < 2 {
		p.add(Warning, subject, "has one replica: without its broker nothing can be written, and with its disk all is lost",
			"give it three (kafka-reassign-partitions.sh)")
		return
	}
	settings, err := topicSettings(p.client, meta.Name, minInSyncKey)
	if n, known := settings[minInSyncKey]; err == nil && known && n == "1" {
		p.add(Warning, subject, "min.insync.replicas is 1: what one broker has acknowledged is lost with it", "set it to 2")
	}
}

const minInSyncKey = "min.insync.replicas"

func (p *probe) limit(subject, name string, partitions int) {
	err := p.client.RefreshMetadata(name) // the client asks nobody before it knows somebody
	limit := 0
	if err == nil {
		limit, err = topicLimit(p.client, name)
	}
	switch {
	case err != nil:
		p.add(OK, subject, fmt.Sprintf("exists with %d partitions; its max.message.bytes is not known: %v", partitions, err),
			"")
	case limit < p.cfg.MaxMessageBytes:
		p.add(Warning, subject, fmt.Sprintf("exists with %d partitions; its max.message.bytes %d is below the client's "+
			"limit %d", partitions, limit, p.cfg.MaxMessageBytes),
			"larger events will stop the connector: raise the topic's or lower the client's")
	default:
		p.add(OK, subject, fmt.Sprintf("exists with %d partitions, takes records of up to %d bytes", partitions, limit), "")
	}
}

func (p *probe) missing(subject string) {
	switch {
	case p.cfg.Topics.Create:
		p.add(OK, subject, "does not exist and will be created", "")
	case p.cfg.Topics.AutoCreate:
		p.add(Warning, subject, "does not exist; the brokers may create it with their defaults",
			"create it, or let the connector do so")
	default:
		p.add(Failed, subject, "does not exist", "create it, or the connector will wait for it")
	}
}

func (p *probe) metadata(name string) (*sarama.TopicMetadata, error) {
	b := p.client.LeastLoadedBroker()
	if b == nil {
		return nil, sarama.ErrOutOfBrokers
	}
	resp, err := b.GetMetadata(&sarama.MetadataRequest{Version: 8, Topics: []string{name},
		IncludeTopicAuthorizedOperations: true})
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, sarama.ErrIncompleteResponse
	}
	if t := resp.Topics[0]; t.Err != sarama.ErrNoError && t.Err != sarama.ErrLeaderNotAvailable {
		return nil, t.Err
	}
	return resp.Topics[0], nil
}

// positionTopic looks at where exactly-once keeps its position. It need not exist.
func (p *probe) positionTopic(ctx context.Context) {
	name := p.cfg.PositionTopic()
	subject := "position topic " + name
	meta, err := p.metadata(name)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		p.add(OK, subject, "does not exist and will be created", "")
		return
	} else if err != nil {
		p.fail(subject, err)
		return
	}
	quiet := slog.New(slog.DiscardHandler)
	s := &ExactlyOnce{pub: &Publisher{cfg: *p.cfg, log: quiet}, p: &producer{client: p.client,
		topics: newTopics(p.cfg, p.client, &limits{}, quiet)}}
	if err := s.ensurePositionTopic(ctx); err != nil {
		p.fail(subject, err)
		return
	}
	p.replicas(subject, meta)
	p.add(OK, subject, "exists with one partition and is compacted", "")
}
