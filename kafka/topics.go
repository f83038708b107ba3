package kafka

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	maxMessageBytesKey = "max.message.bytes"
	cleanupPolicyKey   = "cleanup.policy"
	// createWait is how long a topic may take to be known to all after it was
	// created.
	createWait = 5 * time.Second
	createPoll = 20 * time.Millisecond
)

// limits are what is known of topics beyond a term: the batch sizes that they were
// seen to refuse, since a refusal ends a term, and how many partitions they had.
type limits struct {
	mu         sync.Mutex
	bytes      map[string]int
	partitions map[string]int
	// singly are topics whose records go one by one, and how many still do: one of
	// them is refused, and a broker does not say which of those that it got together.
	singly map[string]int
}

func newLimits() *limits {
	return &limits{bytes: map[string]int{}, partitions: map[string]int{}, singly: map[string]int{}}
}

// width notes how many partitions a topic has and returns how many it had before, 0
// if that is not known.
func (l *limits) width(topic string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.partitions[topic]
	l.partitions[topic] = n
	return before
}

func (l *limits) get(topic string) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.bytes[topic]
	return n, ok
}

func (l *limits) set(topic string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes[topic] = n
}

// unseenTopics are those of which a term can't see what transactions leave open; the
// empty name stands for all. It is safe for concurrent use.
type unseenTopics struct {
	mu        sync.Mutex
	now, told map[string]bool
}

// begin forgets what an earlier epoch could not see.
func (u *unseenTopics) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now = map[string]bool{}
}

// add reports whether nobody was told of the topic yet.
func (u *unseenTopics) add(topic string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told == nil {
		u.told = map[string]bool{}
	}
	first := !u.told[topic]
	u.now[topic], u.told[topic] = true, true
	return first
}

// Unseen returns the topics of which the sink that is open can't see what a transaction
// left open in a partition without a leader, in order; an empty name stands for all.
func (p *Publisher) Unseen() []string {
	p.unseen.mu.Lock()
	defer p.unseen.mu.Unlock()
	return slices.Sorted(maps.Keys(p.unseen.now))
}

// topics knows the topics that this term has sent to: that they exist, how many
// partitions they have and how large their batches may be.
type topics struct {
	cfg    *Config
	client sarama.Client
	limits *limits
	log    *slog.Logger
	seen   map[string]int // topic to the batch in which its partitions were last counted
	batch  int
	limit  map[string]int // only where it is below the client's
}

func newTopics(cfg *Config, client sarama.Client, l *limits, log *slog.Logger) *topics {
	return &topics{cfg: cfg, client: client, limits: l, log: log, seen: map[string]int{}, limit: map[string]int{}}
}

// paced reports whether any topic limits batches.
func (t *topics) paced() bool { return len(t.limit) > 0 }

func (t *topics) batchLimit(topic string) (int, bool) {
	n, ok := t.limit[topic]
	return n, ok
}

// admit looks at each record before anything is sent, so that a record that can't
// be published is found while those before it still can. It returns how many groups
// may be sent, and why not the others.
func (t *topics) admit(ctx context.Context, b *txn.Batch) (int, *Error) {
	var last admitted
	t.batch++
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			if e := t.admitRecord(ctx, &b.Groups[i].Records[j], &last); e != nil {
				e.Group, e.Record = i, j
				return i, e
			}
		}
	}
	return len(b.Groups), nil
}

// admitted is the topic of the last record that was looked at, and how many partitions
// it has; 0 when that is not known.
type admitted struct {
	topic      string
	known      bool
	partitions int32
}

func (t *topics) admitRecord(ctx context.Context, r *txn.Record, last *admitted) *Error {
	if !last.known || r.Topic != last.topic {
		if e := t.know(ctx, r.Topic); e != nil {
			return e
		}
		*last = admitted{topic: r.Topic, known: true}
	}
	if e := t.cfg.oversize(r); e != nil {
		return e
	}
	if r.Partition >= last.partitions { // negative ones are left to the partitioner
		n, err := t.count(r.Topic, r.Partition)
		if err != nil {
			return onTopic(classify("looking up the partitions", err), r.Topic)
		}
		last.partitions = n
	}
	if r.Partition < last.partitions {
		return nil
	}
	e := newError(PartitionOutOfRange, "the record asks for this partition, but the topic has "+strconv.Itoa(int(last.partitions))+
		": correct the partition column or add partitions", nil)
	e.Topic, e.Partition, e.Poison = r.Topic, r.Partition, true
	return e
}

// count returns the number of a topic's partitions. Where it is not above the one
// that is wanted the brokers are asked: the client's own knowledge may be minutes old.
func (t *topics) count(topic string, wanted int32) (int32, error) {
	ids, err := t.client.Partitions(topic)
	if err == nil && int(wanted) < len(ids) {
		return int32(len(ids)), nil
	}
	if err := t.client.RefreshMetadata(topic); err != nil {
		return 0, err
	}
	ids, err = t.client.Partitions(topic)
	return int32(len(ids)), err
}

// know makes sure that a topic exists before the first record goes to it, and tells
// when its partitions have become more or fewer.
func (t *topics) know(ctx context.Context, topic string) *Error {
	batch, ok := t.seen[topic]
	if !ok {
		if e := t.meet(ctx, topic); e != nil {
			return e
		}
	}
	if !ok || batch != t.batch {
		t.seen[topic] = t.batch
		t.compare(topic)
	}
	return nil
}

// compare warns when a topic has another number of partitions than before.
func (t *topics) compare(topic string) {
	ids, err := t.client.Partitions(topic)
	if err != nil {
		return // sending says more
	}
	if before := t.limits.width(topic, len(ids)); before != 0 && before != len(ids) {
		t.log.Warn("the topic has another number of partitions: keys move to other ones, where nothing keeps their new records behind their old ones",
			"topic", topic, "partitions", len(ids), "before", before)
	}
}

// meet looks at a topic for the first time in this term.
func (t *topics) meet(ctx context.Context, topic string) *Error {
	if e := t.cfg.misrouted(topic); e != nil {
		return e
	}
	if err := t.find(ctx, topic); err != nil {
		e := classify("looking up the topic", err)
		e.Topic = topic
		e.Poison = errors.Is(err, sarama.ErrInvalidTopic)
		return e
	}
	t.learnLimit(topic)
	return nil
}

// find looks the topic up, and has it created if that is wanted.
func (t *topics) find(ctx context.Context, topic string) error {
	err := t.client.RefreshMetadata(topic)
	if !isMissing(err) {
		return err
	}
	switch {
	case t.cfg.Topics.Create:
		if err := t.create(topic); err != nil {
			return err
		}
	case t.cfg.Topics.AutoCreate:
		if err := t.autoCreate(topic); err != nil {
			return err
		}
	default:
		return newError(TopicMissing, "waiting for the topic to exist: create it, or let the connector create topics", nil)
	}
	return t.await(ctx, topic)
}

func isMissing(err error) bool {
	return errors.Is(err, sarama.ErrUnknownTopicOrPartition) || errors.Is(err, sarama.ErrLeaderNotAvailable)
}

// await waits until a topic that is being created has its leaders.
func (t *topics) await(ctx context.Context, topic string) error {
	deadline := time.Now().Add(createWait)
	for {
		err := t.client.RefreshMetadata(topic)
		if !isMissing(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(createPoll):
		}
	}
}

// autoCreate asks for the topic in the way that lets the broker create it. The
// client's own look-ups never do, or the position topic would come to be with the
// brokers' defaults.
func (t *topics) autoCreate(topic string) error {
	b := t.client.LeastLoadedBroker()
	if b == nil {
		return sarama.ErrOutOfBrokers
	}
	req := sarama.NewMetadataRequest(t.client.Config().Version, []string{topic})
	req.AllowAutoTopicCreation = true
	_, err := b.GetMetadata(req)
	return err
}

// create makes a topic as configured. Another node or a person may be faster.
func (t *topics) create(topic string) error {
	partitions, replication, settings, err := t.cfg.Topics.forTopic(topic)
	if err != nil {
		return newError(SettingRefused, "creating topic "+topic, err)
	}
	return createTopic(t.client, topic, partitions, replication, settings, t.log)
}

func createTopic(client sarama.Client, topic string, partitions int32, replication int16, settings map[string]string, log *slog.Logger) error {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: replication, ConfigEntries: map[string]*string{}}
	for k, v := range settings {
		detail.ConfigEntries[k] = &v
	}
	err = admin.CreateTopic(topic, detail, false)
	if errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return nil
	}
	if err != nil {
		return classify("creating the topic", err)
	}
	log.Info("topic created", "topic", topic)
	return nil
}

// learnLimit asks for the topic's max.message.bytes. A missing right to ask is no
// harm: a refused batch will teach it.
func (t *topics) learnLimit(topic string) {
	if t.limits.isSingly(topic) {
		t.limit[topic] = 1
		return
	}
	if n, ok := t.limits.get(topic); ok {
		t.limit[topic] = n
	}
	n, err := topicLimit(t.client, topic)
	if err != nil {
		t.log.Debug("the topic's batch limit is not known", "topic", topic, "error", err)
		return
	}
	if old, ok := t.limit[topic]; n < t.cfg.MaxMessageBytes && (!ok || n < old) {
		t.limit[topic] = n
	}
}

func topicLimit(client sarama.Client, topic string) (int, error) {
	settings, err := topicSettings(client, topic, maxMessageBytesKey)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(settings[maxMessageBytesKey])
}

// topicSettings asks for some of a topic's settings. Those that the broker does
// not tell are missing.
func topicSettings(client sarama.Client, topic string, names ...string) (map[string]string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	asked := []*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic, ConfigNames: names}}
	answers, err := admin.DescribeConfigs(asked, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	settings := make(map[string]string, len(names))
	for _, a := range answers {
		if a.ErrorCode != 0 {
			return nil, &sarama.DescribeConfigError{Err: a.ErrorCode, ErrMsg: a.ErrorMsg}
		}
		for _, e := range a.Configs {
			settings[e.Name] = e.Value
		}
	}
	return settings, nil
}

// rejected takes note that the topic refused a batch as too large. w is what was
// on its way to the topic, if its batches are paced. It reports whether a single
// record is to blame; otherwise the next term sends half as much at once.
func (t *topics) rejected(topic string, w *waveTopic) bool {
	if w != nil && w.records == 1 {
		return true
	}
	size := t.cfg.MaxMessageBytes
	if w != nil {
		size = min(size, w.bytes)
	}
	t.limits.set(topic, max(size/2, 1))
	return false
}
