package kafkatest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// contract is what connector asks of a sink; connector can't be imported here,
// since its own tests use this package.
type contract interface {
	Open(ctx context.Context) (pos position.Position, found bool, err error)
	Commit(ctx context.Context, b *kafka.Batch) (done int, err error)
	Close(ctx context.Context) error
}

var (
	_ contract = (*Sink)(nil)
	_ contract = (*kafka.AtLeastOnce)(nil)
	_ contract = (*kafka.ExactlyOnce)(nil)
)

// Errors that the double returns by itself.
var (
	// ErrFenced is returned by the Commit of a sink after another one was opened,
	// with exactly-once.
	ErrFenced = &kafka.Error{Code: kafka.Fenced, Partition: -1, Mark: -1, Retry: true, Text: "another sink was opened"}
	// ErrDead is returned when a sink is used before Open, after an error or after
	// Close.
	ErrDead = errors.New("kafkatest: the sink is dead")
)

// Memory is what stays when a sink ends: the published records and, with
// exactly-once, the position. All methods are safe for concurrent use.
type Memory struct {
	exactlyOnce bool

	mu       sync.Mutex
	records  []kafka.Record
	position *position.Position
	owner    *Sink
	opened   int
	commits  int
	failOpen []error
	fail     []commitFailure
	hold     chan struct{}
	held     chan struct{}
}

type commitFailure struct {
	after, done int
	err         error
}

// NewMemory returns an empty memory behind sinks of either delivery.
func NewMemory(exactlyOnce bool) *Memory { return &Memory{exactlyOnce: exactlyOnce} }

// NewSink returns a sink for one term.
func (m *Memory) NewSink() *Sink { return &Sink{memory: m} }

// FailOpen makes the next calls of Open fail with these errors, one after the
// other.
func (m *Memory) FailOpen(errs ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failOpen = append(m.failOpen, errs...)
}

// FailCommit makes a Commit fail after the given number of further successful
// ones. With at-least-once the records of its first done marks are published all
// the same; with exactly-once nothing is.
func (m *Memory) FailCommit(after, done int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = append(m.fail, commitFailure{after, done, err})
}

// Hold makes the next Commit block until release is called or its context ends;
// held is closed as soon as it blocks.
func (m *Memory) Hold() (held <-chan struct{}, release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold, m.held = make(chan struct{}), make(chan struct{})
	hold := m.hold
	return m.held, sync.OnceFunc(func() { close(hold) })
}

// Records returns what is published so far, in order.
func (m *Memory) Records() []kafka.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// Position returns the position committed with the records; found is false with
// at-least-once.
func (m *Memory) Position() (pos position.Position, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.position == nil {
		return position.Position{}, false
	}
	return m.position.Clone(), true
}

// SetPosition stores a position as if it had been committed.
func (m *Memory) SetPosition(pos position.Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pos = pos.Clone()
	m.position = &pos
}

// Opened returns how many calls of Open succeeded.
func (m *Memory) Opened() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened
}

// Commits returns how many calls of Commit succeeded.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Sink is one term's double of a sink.
type Sink struct {
	memory *Memory
	open   bool
}

// Open implements connector.Sink.
func (s *Sink) Open(ctx context.Context) (pos position.Position, found bool, err error) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return pos, false, context.Cause(ctx)
	}
	if len(m.failOpen) > 0 {
		err, m.failOpen = m.failOpen[0], m.failOpen[1:]
		return pos, false, err
	}
	m.opened++
	m.owner, s.open = s, true
	if !m.exactlyOnce || m.position == nil {
		return pos, false, nil
	}
	return m.position.Clone(), true, nil
}

// Commit implements connector.Sink.
func (s *Sink) Commit(ctx context.Context, b *kafka.Batch) (done int, err error) {
	if err := s.wait(ctx); err != nil {
		s.open = false
		return 0, err
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !s.open:
		return 0, ErrDead
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case m.exactlyOnce && m.owner != s:
		err = ErrFenced
	case len(m.fail) > 0 && m.fail[0].after == 0:
		done, err = m.fail[0].done, m.fail[0].err
		m.fail = m.fail[1:]
		if m.exactlyOnce {
			done = 0
		}
	}
	if err != nil {
		s.open = false
		m.publish(b, done)
		return done, err
	}
	if len(m.fail) > 0 {
		m.fail[0].after--
	}
	m.publish(b, len(b.Marks)+1)
	m.commits++
	if m.exactlyOnce {
		pos := b.Position.Clone()
		m.position = &pos
	}
	return len(b.Marks), nil
}

func (s *Sink) wait(ctx context.Context) error {
	m := s.memory
	m.mu.Lock()
	hold, held := m.hold, m.held
	m.hold, m.held = nil, nil
	m.mu.Unlock()
	if hold == nil {
		return nil
	}
	close(held)
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// publish copies the records of the first marks: the sink owns a batch's memory
// only while Commit runs.
func (m *Memory) publish(b *kafka.Batch, marks int) {
	for i, r := range b.Records {
		if r.Mark >= marks {
			return
		}
		if i < len(b.Places) {
			b.Places[i] = kafka.Place{Partition: max(0, r.Partition), Offset: int64(len(m.records))}
		}
		r.Key, r.Value, r.Headers = bytesClone(r.Key), bytesClone(r.Value), slices.Clone(r.Headers)
		for i := range r.Headers {
			r.Headers[i].Value = bytesClone(r.Headers[i].Value)
		}
		m.records = append(m.records, r)
	}
}

// bytesClone keeps nil and empty apart.
func bytesClone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// Close implements connector.Sink.
func (s *Sink) Close(context.Context) error {
	s.open = false
	return nil
}
