package connector

import (
	"context"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Limits bound one batch; a batch is closed at the end of the transaction (or
// part of one) that reaches either of them.
type Limits struct {
	Rows  int // records of one batch
	Bytes int // serialised bytes of one batch
}

// maxGroups closes a batch too. Without it transactions without outbox rows that
// don't count on (of two servers in turn, say) would pile up until the next record.
const maxGroups = 10_000

// batch is a txn.Batch with the memory that its records live in. Both halves of the
// pipe are reused for the whole session.
type batch struct {
	txn.Batch
	records []txn.Record // those of all groups
	memory  txn.Arena
	// oldest is when the first transaction with records was committed.
	oldest time.Time
	// unpublished are the rows that are skipped or dead-lettered, in order; deadLetters is the size of the dead
	// letters.
	unpublished []unpublishedRow
	deadLetters int
}

func (b *batch) reset() {
	clear(b.Groups)
	clear(b.records)
	clear(b.unpublished)
	b.memory.Reset()
	*b = batch{Batch: txn.Batch{Groups: b.Groups[:0]}, records: b.records[:0], memory: b.memory,
		unpublished: b.unpublished[:0]}
}

// pipe carries batches from the goroutine that reads and encodes to the one that
// publishes. While one batch is being committed the other is filled with whatever
// arrives meanwhile, so batches grow with the backlog and nothing waits for a
// timer. A full batch stops the reading: that is the only back-pressure.
type pipe struct {
	limits Limits
	enc    Encoder
	// alone is a transaction that gets a batch of its own, so that its refusal by
	// the sink holds back nothing that came before.
	alone position.Commit
	// sequence is nil unless records get headers with it.
	sequence *sequence
	onError  *errorHandler // nil skips and dead-letters nothing
	ids      *identify
	counts   Counter // of the transaction that comes; the reader's

	mu      sync.Mutex
	filling *batch
	taken   *batch // by the publisher
	spare   *batch
	flush   bool // commits without records are let through
	closed  bool
	cause   error
	// publishing is when the oldest transaction with records of the batch that was
	// taken was committed; zero without one.
	publishing time.Time

	// Both are signals with room for one: the state is under mu.
	ready chan struct{} // the publisher may take
	room  chan struct{} // the reader may add
}

func newPipe(l Limits, enc Encoder) *pipe {
	return &pipe{
		limits: l, enc: enc, filling: &batch{}, spare: &batch{},
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add encodes one transaction, run or part into the batch that is being filled
// and blocks while that batch is full. What done, which may be nil, has of the same
// transaction is left out: it is already published. When a row can't be encoded
// nothing of this transaction stays in the batch.
func (p *pipe) add(ctx context.Context, tx *txn.Transaction, done published) error {
	for {
		p.mu.Lock()
		crowded := len(p.filling.Groups) >= maxGroups || p.full() && len(p.filling.records) == 0
		if crowded || p.isAlone(tx) && len(p.filling.Groups) > 0 {
			p.flush = true
			signal(p.ready)
		} else if !p.full() {
			break
		}
		p.mu.Unlock()
		select {
		case <-p.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer p.mu.Unlock()
	b := p.filling
	had := len(b.records)
	g, unpublished := b.group(tx), len(b.unpublished)
	if tx.FirstRow == 0 {
		p.counts.Reset()
	}
	further := false
	for i := range tx.Rows {
		if done.has(p.counts.Next(&tx.Rows[i])) {
			continue
		}
		further = true
		if err := b.encode(p, tx, i, &g); err != nil {
			clear(b.records[had:])
			b.records, b.unpublished = b.records[:had], b.unpublished[:unpublished]
			return err
		}
	}
	if !tx.Final {
		if !further {
			return nil // all of the part is published, and says nothing new
		}
		g.Part = &position.Partial{GTID: tx.Commit.GTID, Rows: p.counts.Counted(), Committed: tx.Commit.Committed}
	}
	b.put(g)
	if had == 0 && len(b.records) > 0 {
		b.oldest = tx.Commit.Committed
	}
	if len(b.records) > 0 {
		signal(p.ready)
	}
	return nil
}

// group returns what the batch has of tx, whose earlier parts may be in it.
func (b *batch) group(tx *txn.Transaction) txn.Group {
	g := txn.Group{Commit: tx.Commit}
	if n := len(b.Groups); n > 0 && !b.Groups[n-1].Final() {
		g.Records, g.Skipped = b.Groups[n-1].Records, b.Groups[n-1].Skipped
	}
	return g
}

// at is the index of the group that is being filled.
func (b *batch) at() int {
	if n := len(b.Groups); n > 0 && !b.Groups[n-1].Final() {
		return n - 1
	}
	return len(b.Groups)
}

// put adds a group, or puts it in the place of its first part. Transactions without
// records join the one before when that has none either, so a busy source with an idle
// outbox costs one group.
func (b *batch) put(g txn.Group) {
	switch n := b.at(); {
	case n < len(b.Groups):
		b.Groups[n] = g
	case n > 0 && g.Empty() && b.Groups[n-1].Empty() && b.Groups[n-1].Commit.Join(g.Commit):
	default:
		b.Groups = append(b.Groups, g)
	}
}

// encode adds row i of tx to g, which is the group that is being filled.
func (b *batch) encode(p *pipe, tx *txn.Transaction, i int, g *txn.Group) error {
	n := tx.FirstRow + uint64(i)
	rec, ok, err := p.enc.Encode(&b.memory, &tx.Rows[i])
	switch {
	case err != nil:
		refused := &RowError{Commit: tx.Commit, Row: n, Err: err}
		if refused.Retryable() {
			return refused // nothing is wrong with the row, so that it is not skipped or dead-lettered
		}
		rec, err = txn.Record{}, refused
	case !ok:
		return nil
	}
	a, err := p.onError.look(tx.Commit.Row(n), &rec, err)
	switch {
	case err != nil:
		return err
	case a != nil:
		return b.addUnpublished(p, a, tx, i, g, rec)
	}
	if p.ids != nil {
		rec.Event = uint64(p.ids.of(&tx.Rows[i]))
	}
	b.append(p, tx, n, g, rec)
	return nil
}

// append adds the record of row n, from 0, to g.
func (b *batch) append(p *pipe, tx *txn.Transaction, n uint64, g *txn.Group, rec txn.Record) {
	rec.Row = n
	p.sequence.add(&rec, tx.Commit.GTID, n)
	b.records = append(b.records, rec)
	first := len(b.records) - 1 - len(g.Records)
	g.Records = b.records[first:len(b.records):len(b.records)]
}

func (p *pipe) isAlone(tx *txn.Transaction) bool {
	if in := tx.Commit.Snapshot; in != nil || p.alone.Snapshot != nil {
		return in != nil && p.alone.Snapshot != nil && in.Rows == p.alone.Snapshot.Rows && len(tx.Rows) > 0
	}
	return p.alone != position.Commit{} && tx.FirstRow == 0 && tx.Commit.GTID == p.alone.GTID &&
		(!p.alone.GTID.IsZero() || tx.Commit.File == p.alone.File && tx.Commit.Pos == p.alone.Pos)
}

func (p *pipe) full() bool {
	b := p.filling
	return len(b.records) >= p.limits.Rows || len(b.unpublished) >= p.limits.Rows ||
		b.memory.Size()+b.deadLetters >= p.limits.Bytes
}

// take returns the batch that was filled and starts the other. It blocks until
// there are records, until the pipe was closed and is drained (done is then true
// with the cause), or until flush fires, which also lets commits without records
// through. The caller gives the batch back with put before the next take.
func (p *pipe) take(ctx context.Context, flush <-chan time.Time) (b *batch, done bool, err error) {
	idle := false
	for {
		p.mu.Lock()
		if len(p.filling.records) > 0 || (idle || p.flush || p.closed) && len(p.filling.Groups) > 0 {
			b = p.filling
			p.filling, p.taken, p.spare, p.flush = p.spare, b, nil, false
			p.publishing = b.oldest
			p.mu.Unlock()
			signal(p.room)
			return b, false, nil
		}
		closed, cause := p.closed, p.cause
		if idle {
			p.shrink()
		}
		p.mu.Unlock()
		if closed {
			return nil, true, cause
		}
		if idle {
			return nil, false, nil
		}
		select {
		case <-p.ready:
		case <-flush:
			idle = true
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// smallBatch is how many records' memory a batch keeps while nothing comes.
const smallBatch = 256

// shrink gives up the memory of both batches while nothing comes: after a catch-up it
// is many megabytes. It is called with mu held, when no batch is taken.
func (p *pipe) shrink() {
	for _, b := range []**batch{&p.filling, &p.spare} {
		if len((*b).Groups) == 0 && cap((*b).records) > smallBatch {
			*b = &batch{}
		}
	}
}

// put gives a taken batch back for reuse.
func (p *pipe) put(b *batch) {
	p.mu.Lock()
	p.taken = nil // from here on nobody else looks at it
	p.mu.Unlock()
	b.reset()
	p.mu.Lock()
	p.spare, p.publishing = b, time.Time{}
	p.mu.Unlock()
}

// close ends the input: what was added before is still taken, then take reports
// done with cause.
func (p *pipe) close(cause error) {
	p.mu.Lock()
	p.closed, p.cause = true, cause
	p.mu.Unlock()
	signal(p.ready)
}

// oldest returns when the oldest transaction whose records are not durable yet was
// committed; zero when there is none, or the source does not say.
func (p *pipe) oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.publishing.IsZero() {
		return p.publishing
	}
	return p.filling.oldest
}

// waiting returns how much waits to be published.
func (p *pipe) waiting() (records, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.filling.records), p.filling.memory.Size()
}
