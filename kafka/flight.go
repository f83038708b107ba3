package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// outgoing is one record on its way through sarama, which hands it back with the
// acknowledgement. It carries its own encoders so that sending allocates nothing
// per record here.
type outgoing struct {
	msg        sarama.ProducerMessage
	key, value payload
	headers    []sarama.RecordHeader
	rec        *txn.Record
	partition  int32
	slot       int32
	group      int
	index      int // in the group
	flight     *flight
}

// payload is a key or a value as sarama wants it. nil stands for empty here; null
// is a nil encoder.
type payload []byte

// Encode implements sarama.Encoder.
func (p *payload) Encode() ([]byte, error) { return *p, nil }

// Length implements sarama.Encoder.
func (p *payload) Length() int { return len(*p) }

// failure is the first record that failed, with the reason.
type failure struct {
	err       error
	topic     string
	partition int32
	group     int
	index     int
	asked     bool // the record names its partition itself
}

// flight is one batch that sarama holds. The two goroutines that drain sarama's
// channels report to it, and one goroutine waits.
type flight struct {
	failed chan struct{} // closed at the first failure
	wake   chan struct{} // signal with room for one

	mu       sync.Mutex
	tracker  tracker
	answered int
	bytes    int64 // acknowledged, of keys and values
	want     int
	first    *failure
	detached bool

	targets
	ends []flown // as long as parts
}

// targets are the partitions that records go to: parts are all of them, slots says for
// each record which one it is.
type targets struct {
	parts []topicPartition
	slots []int32
}

// flown is what was acknowledged of one partition.
type flown struct {
	records int32
	offset  int64 // the highest
	unknown bool  // the broker did not say all offsets
}

// aim says where the records are to go.
func (f *flight) aim(to targets) {
	f.targets, f.ends = to, make([]flown, len(to.parts))
}

func newFlight(groups []txn.Group) *flight {
	return &flight{failed: make(chan struct{}), wake: make(chan struct{}, 1), tracker: newTracker(groups), want: -1}
}

// acked is called for each acknowledged record.
func (f *flight) acked(o *outgoing) {
	f.mu.Lock()
	f.tracker.ack(o.group)
	f.bytes += int64(len(o.key) + len(o.value))
	if !f.detached {
		o.rec.PartitionOffset = txn.PartitionOffset{Partition: o.msg.Partition, Offset: o.msg.Offset}
	}
	if len(f.ends) > 0 {
		e := &f.ends[o.slot]
		e.records++
		e.offset, e.unknown = max(e.offset, o.msg.Offset), e.unknown || o.msg.Offset < 0
	}
	f.answer()
	f.mu.Unlock()
}

// detach gives the records back: what is acknowledged later is not noted.
func (f *flight) detach() {
	f.mu.Lock()
	f.detached = true
	f.mu.Unlock()
}

// fail is called for each record that failed. The first one counts: what comes
// after it is a consequence, and so is an error that says so itself.
func (f *flight) fail(o *outgoing, partition int32, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer()
	switch {
	case f.first == nil:
		close(f.failed)
	case !followsAnother(f.first.err) || followsAnother(err):
		return
	}
	f.first = &failure{err: err, topic: o.msg.Topic, partition: partition, group: o.group, index: o.index,
		asked: o.rec.Partition >= 0}
}

func (f *flight) answer() {
	f.answered++
	if f.answered == f.want {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// wait blocks until n records in all are answered, or one failed.
func (f *flight) wait(ctx context.Context, n int) error {
	f.mu.Lock()
	f.want = n
	ready := f.answered >= n
	f.mu.Unlock()
	for !ready {
		select {
		case <-f.wake:
		case <-f.failed:
			return errRecordFailed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		f.mu.Lock()
		ready = f.answered >= f.want
		f.mu.Unlock()
	}
	select {
	case <-f.failed:
		return errRecordFailed
	default:
		return nil
	}
}

// errRecordFailed says that the reason is in the flight.
var errRecordFailed = errors.New("a record failed")

// settle gives sarama a moment to answer for all n records that it was handed,
// whatever the answer is, and reports whether it did.
func (f *flight) settle(n int, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		f.mu.Lock()
		f.want = n
		ready := f.answered >= n
		f.mu.Unlock()
		if ready {
			return true
		}
		select {
		case <-f.wake:
		case <-timer.C:
			return false
		}
	}
}

// unlessStalled returns a context that ends with errDelivery when no record is answered
// for limit, or a little longer, in which no broker has us wait. stop is to be called.
func (f *flight) unlessStalled(ctx context.Context, limit time.Duration,
	waits func() bool) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	quiet, before := 0, 0
	timer = time.AfterFunc(limit/stallTicks, func() {
		if answered := f.soFar(); answered == before && !waits() {
			quiet++
		} else {
			quiet, before = 0, answered
		}
		if quiet >= stallTicks {
			cancel(errDelivery)
			return
		}
		if watched.Err() == nil {
			timer.Reset(limit / stallTicks)
		}
	})
	return watched, func() {
		timer.Stop()
		cancel(nil)
	}
}

// acknowledged is how many bytes of keys and values are.
func (f *flight) acknowledged() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

func (f *flight) soFar() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered
}

// result returns the acknowledged prefix and the first failure, if any.
func (f *flight) result() (int, *failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tracker.prefix(), f.first
}
