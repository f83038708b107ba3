// Package trail remembers where the last published events went, in little memory:
// about 31 bytes for an event of a transaction of its own, and less when several
// share one. It keeps no event id, but a number of 64 bits made of it with a seed of
// its own: another id is taken for a remembered one once in 10^13 questions.
package trail

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// ID stands for an event id in one Trail; 0 for none.
type ID uint64

// Trail is a bounded memory of published events, and of rows that were set aside.
// When it is full, the oldest are forgotten. It is safe for concurrent use. A nil
// *Trail remembers nothing.
type Trail struct {
	seed maphash.Seed

	mu     sync.Mutex
	began  time.Time
	chunks []*chunk // chunk n is at n modulo the length
	last   int      // number of the chunk that is being filled; -1 before the first
	asides []Aside
	oldest int // of asides, once they are full
	// lost is set once anything was forgotten that was published since began.
	lost bool
}

// maxAsides is how many rows that were set aside are remembered.
const maxAsides = 1000

// New returns an empty memory of the given number of ids, rounded up to thousands;
// nil for none.
func New(ids int) *Trail {
	if ids <= 0 {
		return nil
	}
	// The chunk that is being filled does not count: it was emptied as a whole.
	n := (ids+chunkRows-1)/chunkRows + 1
	return &Trail{seed: maphash.MakeSeed(), chunks: make([]*chunk, n), last: -1}
}

// ID returns what stands for an event id, which is the text that a consumer sees.
func (t *Trail) ID(text []byte) ID {
	if len(text) == 0 {
		return 0
	}
	return ID(max(1, maphash.Bytes(t.seed, text)))
}

// Published is one event that was made durable. Mark is the transaction's.
type Published struct {
	ID        ID
	Mark      *position.Mark
	Topic     string
	Partition int32
	Offset    int64 // negative when it is not known
}

// Found is what is remembered of an event.
type Found struct {
	// Mark is the transaction's; a part of one that comes in parts has the mark that
	// its first part had.
	Mark      position.Mark
	Topic     string
	Partition int32
	Offset    int64 // negative when it is not known
	At        time.Time
}

// Aside is a row that was set aside. Topic is where its dead letter went, empty when
// there is none.
type Aside struct {
	ID                     ID
	Row                    position.Row
	Mark                   position.Mark
	Action, Cause, Message string
	Topic                  string
	Partition              int32
	Offset                 int64 // negative when it is not known
	At                     time.Time
}

// Begin says that from now on all that is published comes here. What was remembered
// before stays true, but others may have published meanwhile.
func (t *Trail) Begin(now time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.began, t.lost = now, false
	t.mu.Unlock()
}

// Add remembers n events that became durable at a time, in their order; row returns
// each of them, or one without ID to be passed over. It keeps nothing that row returns.
func (t *Trail) Add(at time.Time, n int, row func(i int) Published) {
	if t == nil || n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.filling(at)
	var mark *position.Mark
	for i := range n {
		p := row(i)
		if p.ID == 0 {
			continue
		}
		if p.Mark != mark || c.rows == 0 {
			mark = p.Mark
			for !c.begin(p.Mark, at) {
				c = t.next(at)
			}
		}
		c.add(&p)
		if c.rows == chunkRows {
			c = t.next(at)
		}
	}
}

// filling returns the chunk that is being filled.
func (t *Trail) filling(at time.Time) *chunk {
	if t.last < 0 {
		return t.next(at)
	}
	return t.chunks[t.last%len(t.chunks)]
}

// next empties the oldest chunk, which is filled from now on.
func (t *Trail) next(at time.Time) *chunk {
	t.last++
	i := t.last % len(t.chunks)
	if t.chunks[i] == nil {
		t.chunks[i] = newChunk()
	} else {
		t.lost = t.lost || !t.chunks[i].until().Before(t.began)
		t.chunks[i].reset()
	}
	t.chunks[i].number, t.chunks[i].base = t.last, at.UnixMilli()
	return t.chunks[i]
}

// SetAside remembers a row that was set aside.
func (t *Trail) SetAside(a Aside) {
	if t == nil {
		return
	}
	a.Topic = strings.Clone(a.Topic)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asides) < maxAsides {
		t.asides = append(t.asides, a)
		return
	}
	t.asides[t.oldest] = a
	t.oldest = (t.oldest + 1) % maxAsides
}

// Find returns what is remembered of an event, the last first, at most limit of
// them: an event that was published several times has several places. It holds up
// Add for microseconds at a time.
func (t *Trail) Find(id ID, limit int) []Found {
	var out []Found
	if t == nil || id == 0 {
		return nil
	}
	t.mu.Lock()
	number := t.last
	t.mu.Unlock()
	for ; number >= 0 && len(out) < limit; number-- {
		t.mu.Lock()
		c := t.chunks[number%len(t.chunks)]
		if c == nil || c.number != number {
			t.mu.Unlock()
			break // forgotten, and so are those before it
		}
		out = c.find(id, limit, out)
		t.mu.Unlock()
	}
	return out
}

// FindAside returns the last row with this event id that was set aside.
func (t *Trail) FindAside(id ID) (Aside, bool) {
	if t == nil || id == 0 {
		return Aside{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.asides {
		// The newest is the one before the oldest.
		a := t.asides[(t.oldest+2*len(t.asides)-1-i)%len(t.asides)]
		if a.ID == id {
			return a, true
		}
	}
	return Aside{}, false
}

// Known returns since when all that was published is remembered, and how many events
// are.
func (t *Trail) Known() (since time.Time, ids int) {
	if t == nil {
		return time.Time{}, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	since = t.began
	for n := max(0, t.last-len(t.chunks)+1); n <= t.last; n++ {
		c := t.chunks[n%len(t.chunks)]
		if ids == 0 && c.rows > 0 && t.lost && c.since().After(since) {
			since = c.since()
		}
		ids += c.rows
	}
	return since, ids
}
