package kafka

import (
	"strconv"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// singlyRecords is how many records go one by one after a topic has refused one of
// several: more than the batches that were refused together hold.
const singlyRecords = 20_000

// Check returns why r can never be published, whatever its topic is like, as an
// *Error with Poison; nil when only the brokers can tell. It is what Commit finds
// first, without asking anybody.
func (p *Publisher) Check(r *txn.Record) error {
	if e := p.cfg.misrouted(r.Topic); e != nil {
		return e
	}
	if e := p.cfg.oversize(r); e != nil {
		return e
	}
	return nil // not a typed nil in the interface
}

// misrouted refuses a topic that no cluster can have, or that no row may be in.
func (c *Config) misrouted(topic string) *Error {
	var e *Error
	switch {
	case topic == c.PositionTopic():
		e = newError(TopicInvalid,
			"the topic is the one of this connector's position, where no row may be: correct the routing", nil)
	case !validTopic(topic):
		e = newError(TopicInvalid,
			"not a valid topic name (letters, digits, '.', '_', '-', at most 249): correct the routing", nil)
	default:
		return nil
	}
	e.Topic, e.Poison = topic, true
	return e
}

// oversize refuses a record above the client's limit.
func (c *Config) oversize(r *txn.Record) *Error {
	size := recordSize(r)
	if size <= c.MaxMessageBytes {
		return nil
	}
	e := newError(RecordTooLarge, "the record has "+strconv.Itoa(size)+" bytes with its overhead, and the client's "+
		"limit is "+
		strconv.Itoa(c.MaxMessageBytes)+": raise the connector's max_message_bytes (max.request.size) and the topic's "+
		"max.message.bytes, or write smaller events", nil)
	e.Topic, e.Poison = r.Topic, true
	return e
}

// isolated takes note that the topic refused what was on its way to it (w) for what
// it is. It reports whether that was a single record, which is then to blame;
// otherwise the next session sends the topic's records one by one.
func (t *topics) isolated(topic string, w *waveTopic) bool {
	found := w != nil && w.records == 1
	t.limits.mu.Lock()
	defer t.limits.mu.Unlock()
	if found {
		delete(t.limits.singly, topic)
		return true
	}
	t.limits.singly[topic] = singlyRecords
	return false
}

func (l *limits) isSingly(topic string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.singly[topic] > 0
}

// passed takes note of records that were acknowledged. A topic that has taken enough
// of them one by one gets batches again: the refused one is gone, or is taken now.
func (t *topics) passed(groups []txn.Group) {
	t.limits.mu.Lock()
	defer t.limits.mu.Unlock()
	if len(t.limits.singly) == 0 {
		return
	}
	for i := range groups {
		for j := range groups[i].Records {
			topic := groups[i].Records[j].Topic
			left, ok := t.limits.singly[topic]
			switch {
			case !ok:
			case left > 1:
				t.limits.singly[topic] = left - 1
			default:
				delete(t.limits.singly, topic)
				delete(t.limit, topic)
				delete(t.seen, topic) // so that its limit is learnt anew
			}
		}
	}
}
