package kafka

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// limits are what is known of topics beyond a term: the batch sizes that they were
// seen to refuse, since a refusal ends a session, and how many partitions they had.
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

// unseenTopics are those of which a session can't see what transactions leave open; the
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

// topics knows the topics that this session has sent to: that they exist, how many
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
	t.batch++
	fresh, hopeless := t.inspect(b)
	refused := t.meet(ctx, fresh)
	var last admitted
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			e := hopeless
			if e == nil || e.Group != i || e.Record != j {
				e = t.admitRecord(&b.Groups[i].Records[j], refused, &last)
			}
			if e != nil {
				e.Group, e.Record = i, j
				return i, e
			}
		}
	}
	return len(b.Groups), nil
}

// status poll looks at the records without asking anybody, up to the first that can never be
// published: hopeless says why. fresh are the topics before it that this session has not
// met, in the order of the records.
func (t *topics) inspect(b *txn.Batch) (fresh []string, hopeless *Error) {
	topic, known := "", map[string]bool{}
	fits := func(name string) *Error {
		if _, met := t.seen[name]; met || known[name] {
			return nil
		}
		if e := t.cfg.misrouted(name); e != nil {
			return e
		}
		fresh, known[name] = append(fresh, name), true
		return nil
	}
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			r := &b.Groups[i].Records[j]
			var e *Error
			if r.Topic != topic || topic == "" {
				e, topic = fits(r.Topic), r.Topic
			}
			if e == nil {
				e = t.cfg.oversize(r)
			}
			if e != nil {
				e.Group, e.Record = i, j
				return fresh, e
			}
		}
	}
	return fresh, nil
}

// admitted is the topic of the last record that was looked at, and how many partitions
// it has; 0 when that is not known.
type admitted struct {
	topic      string
	known      bool
	partitions int32
}

func (t *topics) admitRecord(r *txn.Record, refused map[string]*Error, last *admitted) *Error {
	if !last.known || r.Topic != last.topic {
		if e := refused[r.Topic]; e != nil {
			return e
		}
		if t.seen[r.Topic] != t.batch {
			t.seen[r.Topic] = t.batch
			t.compare(r.Topic)
		}
		*last = admitted{topic: r.Topic, known: true}
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
	e := newError(PartitionOutOfRange,
		"the record asks for this partition, but the topic has "+strconv.Itoa(int(last.partitions))+
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

// compare warns when a topic has another number of partitions than before.
func (t *topics) compare(topic string) {
	ids, err := t.client.Partitions(topic)
	if err != nil {
		return // sending says more
	}
	if before := t.limits.width(topic, len(ids)); before != 0 && before != len(ids) {
		t.log.Warn("the topic has another number of partitions: keys move to other ones, where nothing keeps their new "+
			"records behind their old ones",
			"topic", topic, "partitions", len(ids), "before", before)
	}
}

// rejected takes note that the topic refused a batch as too large. w is what was
// on its way to the topic, if its batches are paced. It reports whether a single
// record is to blame; otherwise the next session sends half as much at once.
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
