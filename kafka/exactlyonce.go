package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	// openAttempts is how often Open takes a new epoch because the commit of its
	// own record had to be repeated.
	openAttempts = 5
	// abortLimit is how long an abort may take before the connections are cut. It
	// only frees read_committed consumers sooner; the next opening aborts anyway.
	abortLimit = time.Second
	// addPartitionsVerified is the version of AddPartitionsToTxn that came with
	// the verification of transactions (KIP-890) in Kafka 3.6. Without it a late
	// request can leave a transaction hanging.
	addPartitionsVerified = 4
	addPartitionsKey      = 24
)

// ExactlyOnce publishes each batch in a Kafka transaction together with the
// position that it leads to. All nodes use one transactional id, so that opening
// a sink settles the transaction of whoever wrote before and refuses all that it
// sends later; only then is the position read. Each batch carries the records from
// the position before it to its own, and so the committed records are a chain
// without gap or repetition, whoever runs and however many believe they lead.
//
// Three rules keep that true with sarama, which speaks the protocol without an
// epoch per transaction:
//
//   - The position is sent after all records are acknowledged. A commit request
//     that arrives late, in the middle of the next transaction, can then double
//     records but not lose them.
//   - When sarama had to repeat a commit request, a copy may still be under way, so
//     the next batch gets a new epoch first, which makes the copy worthless.
//   - After any error and any abort the producer is thrown away. A producer that
//     goes on after an abort can lose records without an error.
//
// One goroutine uses it, for one session.
type ExactlyOnce struct {
	pub  *Publisher
	term uint64

	p         *producer // nil before Open and after Close
	positions positionWriter
	parts     partitions // what this epoch knows of them
	choice    *choice    // an administrator's, about one partition
	dead      bool
	tainted   bool
	last      position.Position // committed last
	timings   []Timing
	timeout   time.Duration // of the transactions of this epoch
	flown     int64         // bytes of the batch in hand that are acknowledged
	// positionLimit is the position topic's max.message.bytes, 0 when it is not known.
	positionLimit int
	// retries counts sarama's waits in transaction requests. It is zeroed right
	// before a commit; those before it are harmless.
	retries atomic.Int64
}

// ExactlyOnce returns a sink for the term of a leader. The term is written to the
// position topic for people; it fences nothing.
func (p *Publisher) ExactlyOnce(term uint64) *ExactlyOnce {
	return &ExactlyOnce{pub: p, term: term}
}

// Open fences all earlier writers of this connector and returns the position that
// the last committed batch led to; found is false if there is none.
func (s *ExactlyOnce) Open(ctx context.Context) (pos position.Position, found bool, err error) {
	if s.p != nil || s.dead {
		return pos, false, newError(SinkClosed, "opening the sink a second time", nil)
	}
	s.dead = true
	pos, found, err = s.takeOver(ctx)
	if err != nil {
		return pos, false, s.noticed(err)
	}
	s.last = pos
	s.dead = false
	return pos, found, nil
}

// takeOver opens an epoch, and another one while the commit of its own record had
// to be repeated.
func (s *ExactlyOnce) takeOver(ctx context.Context) (pos position.Position, found bool, err error) {
	for range openAttempts {
		pos, found, err = s.openEpoch(ctx)
		if err != nil || !s.tainted {
			return pos, found, err
		}
		s.pub.metrics.tainted.Inc()
		if err := s.drop(ctx); err != nil {
			return pos, false, err
		}
	}
	return pos, false, newError(Timeout, "opening the position topic: the transaction coordinator loses too many requests",
		nil)
}

// drop ends a producer that nothing is wrong with, except that its epoch must not
// be used any longer.
func (s *ExactlyOnce) drop(ctx context.Context) error {
	p := s.p
	s.p = nil
	return p.close(ctx)
}

// openEpoch claims the transactional id, commits a record of its own and reads the
// position before it. The order matters: what is read before the claim may still
// change. What Kafka has ended without a marker is ended before anything of ours joins
// it: at the position's partition before the open record, elsewhere when it is known
// what was committed.
func (s *ExactlyOnce) openEpoch(ctx context.Context) (pos position.Position, found bool, err error) {
	step := s.timer()
	p, err := s.pub.connect(ctx, s.pub.cfg.TransactionalID(), func() { s.retries.Add(1) })
	if err != nil {
		return pos, false, err
	}
	s.p, s.parts = p, newPartitions()
	s.timeout = p.client.Config().Producer.Transaction.Timeout
	s.pub.unseen.begin()
	step("connect")
	err = p.within(ctx, func() error {
		if err := s.ensurePositionTopic(ctx); err != nil {
			return err
		}
		step("topic")
		if err := s.inspect(ctx); err != nil {
			return classify("looking at the open transaction", err)
		}
		step("inspect")
		if err := s.claim(ctx); err != nil {
			return err
		}
		step("fence")
		if err := s.identify(); err != nil {
			return err
		}
		if err := s.settle(ctx, []topicPartition{s.positionPartition()}); err != nil {
			return err
		}
		step("settle_position")
		s.positions = positionWriter{session: uuid.NewString(), every: s.pub.cfg.FullPositionEvery, limit: s.positionRoom()}
		if err := s.commitOpen(ctx); err != nil {
			return err
		}
		step("open_record")
		if s.tainted {
			return nil // nothing more under this epoch
		}
		read, err := readPosition(ctx, p.client, s.pub.cfg.PositionTopic(), s.positions.session)
		if err != nil {
			return classify("reading the position", err)
		}
		step("read_position")
		pos, found, err = s.goOnFrom(ctx, read)
		step("settle")
		return err
	})
	return pos, found, err
}

// goOnFrom returns the position that was read, when what was left open of the batches
// until then has its markers.
func (s *ExactlyOnce) goOnFrom(ctx context.Context, read *history) (pos position.Position, found bool, err error) {
	topic := s.pub.cfg.PositionTopic()
	if pos, found, err = read.position(); err != nil {
		return pos, false, unreadable(topic, err)
	}
	t, err := read.trace()
	if err != nil {
		return pos, false, unreadable(topic, err)
	}
	delete(s.parts.pending, s.positionPartition()) // our record could be read
	s.inherit(t)
	return pos, found, s.settle(ctx, nil)
}

// Timing is how long one step of Open took.
type Timing struct {
	Step string
	Took time.Duration
}

// Timings returns the steps of Open in their order; of the last epoch when several
// were needed.
func (s *ExactlyOnce) Timings() []Timing { return s.timings }

// timer begins a new list of timings and returns what notes the end of a step.
func (s *ExactlyOnce) timer() func(step string) {
	s.timings = s.timings[:0]
	last := time.Now()
	return func(step string) {
		now := time.Now()
		s.timings = append(s.timings, Timing{step, now.Sub(last)})
		last = now
	}
}

// claim sends InitProducerId between two looks at the leadership: a node that was
// asleep must not fence the one that leads now.
func (s *ExactlyOnce) claim(ctx context.Context) error {
	verify := s.pub.cfg.VerifyLeader
	if verify == nil {
		verify = func(context.Context) error { return nil }
	}
	if err := verify(ctx); err != nil {
		return fmt.Errorf("verifying the leadership before claiming the transactional id: %w", err)
	}
	if err := s.p.start(); err != nil {
		if errors.Is(err, sarama.ErrInvalidTransactionTimeout) {
			return s.timeoutRefused()
		}
		return classify("claiming the transactional id", err)
	}
	if err := verify(ctx); err != nil {
		return fmt.Errorf("verifying the leadership after claiming the transactional id: %w", err)
	}
	return nil
}

// commitOpen commits the record up to which the position is then read. It also
// proves that we can write.
func (s *ExactlyOnce) commitOpen(ctx context.Context) error {
	value, err := encodePosition(openRecord{Session: s.positions.session, Node: s.pub.cfg.Node, Term: s.term,
		Time: time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return classify("beginning the opening transaction", err)
	}
	if err := s.sendPosition(ctx, []byte(openKey), value); err != nil {
		s.abort()
		return err
	}
	return s.commitTxn(ctx)
}

// sendPosition sends one record to the position topic and waits for it. When it is
// refused, no transaction's record is to blame.
func (s *ExactlyOnce) sendPosition(ctx context.Context, key, value []byte) error {
	rec := txn.Record{Topic: s.pub.cfg.PositionTopic(), Partition: 0, Key: key, Value: value, Timestamp: -1}
	if recordSize(&rec) > s.pub.cfg.MaxMessageBytes {
		return s.positionTooLarge(len(value), nil)
	}
	to := targets{[]topicPartition{s.positionPartition()}, []int32{0}}
	err := s.sendAll(ctx, []txn.Group{{Records: []txn.Record{rec}}}, to)
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Code == RecordTooLarge || e.Code == BatchTooLarge {
		return s.positionTooLarge(len(value), e.Err)
	}
	// Nor is the batch: a broker that refuses it for its time, say, has another clock,
	// which somebody will set.
	e.Group, e.Record, e.Poison, e.Retry = -1, -1, false, true
	return err
}

// positionRoom is how long the value of a position may be.
func (s *ExactlyOnce) positionRoom() int {
	limit := s.pub.cfg.MaxMessageBytes
	if s.positionLimit > 0 {
		limit = min(limit, s.positionLimit)
	}
	return limit - recordSize(&txn.Record{Key: []byte(fullKey)})
}

func (s *ExactlyOnce) positionTooLarge(size int, err error) *Error {
	return onTopic(newError(RecordTooLarge, fmt.Sprintf("the position has %d bytes: raise the connector's "+
		"max_message_bytes and max.message.bytes of its position topic", size), err), s.pub.cfg.PositionTopic())
}

// sendAll sends records and waits for them. After an error sarama has answered for
// all of them or has lost its connections, so that nothing comes behind the abort.
func (s *ExactlyOnce) sendAll(ctx context.Context, groups []txn.Group, to targets) error {
	f := newFlight(groups)
	f.aim(to)
	defer f.detach()
	sent, err := s.p.publish(ctx, groups, f)
	s.flown += f.acknowledged()
	if err == nil {
		s.parts.acknowledged(f)
		return nil
	}
	err = s.p.cause(f, sent, err)
	if !f.settle(sent, abortLimit) {
		s.p.stop()
		f.settle(sent, settleLimit)
	}
	return err
}

// commitTxn commits and takes note whether the request had to be repeated. After
// an error the outcome is unknown; the next opening finds out.
func (s *ExactlyOnce) commitTxn(ctx context.Context) error {
	s.retries.Store(0)
	err := s.p.within(ctx, s.p.async.CommitTxn)
	if err != nil {
		s.p.stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return classify("committing the transaction", err)
	}
	s.tainted = s.retries.Load() > 0
	s.parts.committed()
	s.pub.metrics.transactions.WithLabelValues("commit").Inc()
	return nil
}

func (s *ExactlyOnce) begin() error {
	clear(s.parts.sent)
	return s.p.async.BeginTxn()
}

// abort gives the open transaction up, if that still can be told to anybody, and
// cuts the connections. The client library is left out: its own abort writes without a
// lock what its goroutines still read.
func (s *ExactlyOnce) abort() {
	ctx, cancel := context.WithTimeout(context.Background(), abortLimit)
	defer cancel()
	_ = s.p.within(ctx, s.abortRaw) // the next opening aborts it if this did not
	s.p.stop()
	s.pub.metrics.transactions.WithLabelValues("abort").Inc()
}

// Commit publishes the batch and its position in one transaction, so done is all
// groups or 0. A batch without records commits its position alone. The sink is dead
// after an error, whose outcome may be unknown: only the next Open can tell.
func (s *ExactlyOnce) Commit(ctx context.Context, b *txn.Batch) (done int, err error) {
	if s.dead || s.p == nil {
		return 0, newError(SinkClosed, "publishing after an error or before the sink was opened", nil)
	}
	begin := time.Now()
	records := txn.Count(b.Groups)
	s.pub.metrics.inflight.Set(float64(records))
	defer s.pub.metrics.inflight.Set(0)
	s.flown = 0
	if err := s.commit(ctx, b); err != nil {
		s.dead = true
		if s.p != nil { // there is none when a new epoch could not be opened
			s.p.stop()
		}
		s.pub.metrics.count(b.Groups, 0, records)
		return 0, s.noticed(deliveryError(err))
	}
	s.last = b.Position
	s.pub.metrics.count(b.Groups, len(b.Groups), records)
	s.pub.metrics.duration.Observe(time.Since(begin).Seconds())
	return len(b.Groups), nil
}

// outran is the error of a batch that was acknowledged bit by bit, and not in time.
func (s *ExactlyOnce) outran(b *txn.Batch, took time.Duration) *Error {
	all := int64(0)
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			r := &b.Groups[i].Records[j]
			all += int64(len(r.Key) + len(r.Value))
		}
	}
	more := s.pub.patience.outran(s.flown, all, s.timeout)
	return outranError(s.flown, all, took, s.timeout, more)
}

// commit prepares what takes its time without an open transaction, and so counts in no
// time limit, and then the transaction.
func (s *ExactlyOnce) commit(ctx context.Context, b *txn.Batch) error {
	if s.tainted {
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
	var refusal *Error
	if err := s.p.within(ctx, func() error {
		_, refusal = s.p.topics.admit(ctx, b)
		return nil
	}); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	to, err := s.aim(b)
	if err != nil {
		return err
	}
	if err := s.p.within(ctx, func() error { return s.settle(ctx, append(to.parts, s.positionPartition())) }); err != nil {
		return err
	}
	return s.transact(ctx, b, to)
}

// transact is the transaction of a batch, within its share of the time limit.
func (s *ExactlyOnce) transact(ctx context.Context, b *txn.Batch, to targets) error {
	begin, limit := time.Now(), time.Duration(float64(s.timeout)*batchShare)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	if err := s.begin(); err != nil {
		return classify("beginning a transaction", err)
	}
	err := s.send(ctx, b, to)
	if err != nil {
		s.abort()
	} else {
		err = s.commitTxn(ctx)
	}
	switch {
	case err == nil:
		if time.Since(begin) < s.pub.cfg.TransactionTimeout/2 {
			s.pub.patience.kept()
		}
	case errors.Is(context.Cause(ctx), errTooLong) && (s.flown > 0 || s.pub.throttle.now()):
		return s.outran(b, limit)
	}
	return err
}

// send sends the records, and the position only when all of them are acknowledged.
func (s *ExactlyOnce) send(ctx context.Context, b *txn.Batch, to targets) error {
	if err := s.sendAll(ctx, b.Groups, to); err != nil {
		return err
	}
	key, value, err := s.positions.next(time.Now(), b.Position, s.parts.trace())
	if err != nil {
		return err
	}
	return s.sendPosition(ctx, key, value)
}

// renew takes a new epoch in the middle of a session. Nobody else may have written
// meanwhile.
func (s *ExactlyOnce) renew(ctx context.Context) error {
	s.pub.metrics.tainted.Inc()
	s.pub.log.Info("a commit had to be repeated, taking a new producer epoch")
	if err := s.drop(ctx); err != nil {
		return err
	}
	pos, found, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	l := &s.last
	if !found || pos.Seq != l.Seq || pos.Last != l.Last || pos.File != l.File || pos.Pos != l.Pos || !pos.Covers(*l) ||
		!l.Covers(pos) {
		return newError(Fenced, "taking a new producer epoch: the stored position is another than the one committed last, "+
			"so another writer was here", nil)
	}
	return nil
}

// noticed counts being fenced.
func (s *ExactlyOnce) noticed(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == Fenced {
		s.pub.metrics.fenced.Inc()
	}
	return err
}

// Close frees the sink within ctx. Nothing is open between Commits.
func (s *ExactlyOnce) Close(ctx context.Context) error {
	s.dead = true
	if s.p == nil {
		return nil
	}
	return s.drop(ctx)
}
