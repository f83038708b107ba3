package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	// settleLimit is how long a failed batch may take to come back out of sarama
	// once its connections are cut: its longest back-off, several times over.
	settleLimit = 2 * time.Second
	// causeLimit is how long to wait for the real reason when the first error to
	// arrive only says that another record failed.
	causeLimit = 200 * time.Millisecond
	// closeGrace is what Close takes beyond its context after cutting everything.
	closeGrace = 250 * time.Millisecond
	// maxHeaderKeys bounds the cache of header names.
	maxHeaderKeys = 256
	// heldPayload is the largest payload that a slot may keep after its record.
	heldPayload = 64 << 10
)

// errDelivery ends a batch that has stalled.
var errDelivery = errors.New("no record was acknowledged within the delivery timeout: see whether brokers and " +
	"replicas are healthy")

// errTooLong ends a batch at the end of its share of a transaction's time.
var errTooLong = errors.New("a batch took longer than its transaction may: see whether brokers and replicas " +
	"are healthy")

// producer is one life of a sarama producer with its client and connections. It
// ends with the first error. Apart from stop it is used by one goroutine.
type producer struct {
	cfg     *Config
	metrics *Metrics
	dialer  *dialer
	topics  *topics
	client  sarama.Client
	sees    bool                                  // the brokers tell which transactions are open
	async   sarama.AsyncProducer                  // nil until started
	status  *atomic.Pointer[sarama.AsyncProducer] // async for sarama's goroutines
	// throttled reports whether a broker has us wait.
	throttled func() bool

	out     []outgoing
	by      map[string]sarama.Partitioner // by topic
	keys    map[string][]byte             // header names as bytes
	wave    map[string]*waveTopic
	drained chan struct{} // closed when sarama's producer is gone
	closing sync.Once
	closed  chan struct{} // closed when sarama's client is gone
}

// waveTopic is what is on its way to one topic that limits the size of batches.
type waveTopic struct{ records, bytes int }

// start sends InitProducerId and begins to drain sarama's channels.
func (p *producer) start() error {
	async, err := sarama.NewAsyncProducerFromClient(p.client)
	if err != nil {
		return err
	}
	p.async = async
	p.status.Store(&async)
	var wg sync.WaitGroup
	wg.Go(func() {
		for m := range async.Successes() {
			if o, ok := m.Metadata.(*outgoing); ok {
				o.flight.acked(o)
			}
		}
	})
	wg.Go(func() {
		for e := range async.Errors() {
			// sarama's own markers may come back too; they carry nothing.
			if o, ok := e.Msg.Metadata.(*outgoing); ok {
				o.flight.fail(o, e.Msg.Partition, e.Err)
			}
		}
	})
	go func() {
		wg.Wait()
		close(p.drained)
	}()
	return nil
}

// within runs f, whose calls into sarama take no context, and cuts its
// connections when ctx ends first.
func (p *producer) within(ctx context.Context, f func() error) error {
	defer context.AfterFunc(ctx, p.stop)()
	err := f()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// stop cuts all connections and lets the client go, which ends whatever hangs.
// Nothing leaves this process afterwards. It doesn't wait and may be called from
// any goroutine; close waits.
func (p *producer) stop() {
	p.dialer.stop()
	p.closing.Do(func() {
		go func() {
			defer close(p.closed)
			_ = p.client.Close() // its connections are gone already
		}()
	})
}

// publish sends records and waits until all are acknowledged. On an error the
// flight knows more, and the caller has to see that nothing more is sent.
func (p *producer) publish(ctx context.Context, groups []txn.Group, f *flight) (sent int, err error) {
	ctx, stop := f.unlessStalled(ctx, p.cfg.DeliveryTimeout, p.throttled)
	defer stop()
	p.grow(txn.Count(groups))
	clear(p.wave)
	paced := p.topics.paced()
	for i := range groups {
		for j := range groups[i].Records {
			r, o := &groups[i].Records[j], &p.out[sent]
			if paced && p.waveFull(r) {
				if err := f.wait(ctx, sent); err != nil {
					return sent, err
				}
				clear(p.wave)
				p.waveFull(r)
			}
			o.group, o.index = i, j
			select {
			case p.async.Input() <- p.message(o, sent, r, f):
				sent++
			case <-f.failed:
				return sent, errRecordFailed
			case <-ctx.Done():
				return sent, context.Cause(ctx)
			}
		}
	}
	err = f.wait(ctx, sent)
	if err == nil && paced {
		p.topics.passed(groups)
	}
	if err == nil {
		p.release(sent)
	}
	return sent, err
}

// release lets the large ones of n acknowledged records go: a slot that only large
// batches reach would keep its last payload for the rest of the session.
func (p *producer) release(n int) {
	for i := range p.out[:n] {
		if o := &p.out[i]; len(o.key)+len(o.value) > heldPayload {
			*o = outgoing{}
		}
	}
}

// waveFull adds a record to the wave unless it would make its topic's batches
// larger than the topic allows. A topic may limit batches below the client's
// limit, and sarama knows one limit only; with one wave on its way at a time, no
// batch can be larger than the wave. A record that is too large by itself makes a
// wave of its own, so that nobody else is blamed.
func (p *producer) waveFull(r *txn.Record) bool {
	limit, ok := p.topics.batchLimit(r.Topic)
	if !ok {
		return false
	}
	size := saramaSize(r)
	w := p.wave[r.Topic]
	if w == nil {
		w = &waveTopic{bytes: batchOverhead}
		p.wave[r.Topic] = w
	}
	if w.records > 0 && w.bytes+size > limit {
		return true
	}
	w.records++
	w.bytes += size
	return false
}

// grow makes room for n records in flight. All earlier ones have come back.
func (p *producer) grow(n int) {
	if n > len(p.out) {
		p.out = make([]outgoing, max(n, 2*len(p.out)))
	}
}

// message fills o with r, which is the nth of its flight.
func (p *producer) message(o *outgoing, n int, r *txn.Record, f *flight) *sarama.ProducerMessage {
	o.flight, o.rec, o.partition = f, r, r.Partition
	if len(f.slots) > 0 {
		o.slot = f.slots[n]
		o.partition = f.parts[o.slot].id
	}
	// A broker that has the record already says so without its offset.
	o.msg = sarama.ProducerMessage{Topic: r.Topic, Metadata: o, Headers: p.headers(o, r), Offset: -1}
	if r.Key != nil {
		o.key = payload(r.Key)
		o.msg.Key = &o.key
	}
	if r.Value != nil {
		o.value = payload(r.Value)
		o.msg.Value = &o.value
	}
	if r.Timestamp >= 0 {
		o.msg.Timestamp = time.UnixMilli(r.Timestamp)
	}
	return &o.msg
}

func (p *producer) headers(o *outgoing, r *txn.Record) []sarama.RecordHeader {
	o.headers = slices.Grow(o.headers[:0], len(r.Headers))
	for i := range r.Headers {
		h := &r.Headers[i]
		key, ok := p.keys[h.Key]
		if !ok {
			key = []byte(h.Key)
			if len(p.keys) < maxHeaderKeys {
				p.keys[h.Key] = key
			}
		}
		o.headers = append(o.headers, sarama.RecordHeader{Key: key, Value: h.Value})
	}
	return o.headers
}

// cause turns the outcome of publish into the error to return. sent is what
// publish returned with err.
func (p *producer) cause(f *flight, sent int, err error) error {
	if !errors.Is(err, errRecordFailed) {
		return deliveryError(err)
	}
	_, first := f.result()
	if followsAnother(first.err) {
		f.settle(sent, causeLimit)
		_, first = f.result()
	}
	e := classify("publishing", first.err)
	e.Topic, e.Partition, e.Group, e.Record = first.topic, first.partition, first.group, first.index
	if e.Code == PartitionOutOfRange && !first.asked {
		e.Code, e.Retry = Unavailable, true
		e.Text = "publishing: the topic has fewer partitions than a moment ago; the next attempt looks again"
	}
	return p.blame(e)
}

// deliveryError gives the delivery timeout its code and leaves other errors alone.
func deliveryError(err error) error {
	for _, known := range []error{errDelivery, errTooLong} {
		if errors.Is(err, known) {
			return newError(Timeout, known.Error(), nil)
		}
	}
	return err
}

// blame tells a batch that is too large from a record that is, a record that is
// invalid from those that went with it, and takes the transaction away from errors
// that are no record's fault.
func (p *producer) blame(e *Error) *Error {
	switch e.Code {
	case RecordTooLarge:
		if p.topics.rejected(e.Topic, p.wave[e.Topic]) {
			e.Poison = true
			return e
		}
		e.Code, e.Retry = BatchTooLarge, true
		e.Text = "publishing: the topic accepts smaller batches only; the next attempt sends smaller ones"
	case RecordInvalid:
		if p.topics.isolated(e.Topic, p.wave[e.Topic]) {
			e.Poison = true
			return e
		}
		e.Retry = true
		e.Text = "publishing: the broker refuses one of several records that went together; the next attempt sends them " +
			"one by one to find it"
	case PartitionOutOfRange:
		e.Poison = true
		return e
	}
	e.Group, e.Record = -1, -1
	return e
}

// close ends the producer within ctx and closeGrace. What sarama still holds is
// thrown away if it can't be sent by then.
func (p *producer) close(ctx context.Context) error {
	if p.async != nil {
		p.async.AsyncClose()
		select {
		case <-p.drained:
		case <-ctx.Done():
		}
	}
	p.stop()
	grace := time.After(closeGrace)
	for _, gone := range []chan struct{}{p.drained, p.closed} {
		if gone == p.drained && p.async == nil {
			continue
		}
		select {
		case <-gone:
		case <-grace:
			return newError(Timeout, "closing the Kafka producer: its connections are cut, but it still waits for a retry, or "+
				"as a broker told it to", context.Cause(ctx))
		}
	}
	return nil
}
