// Package recent remembers where the last published events went, in little memory:
// about 31 bytes for an event of a transaction of its own, and less when several
// share one. It keeps no event id, but a number of 64 bits made of it with a seed of
// its own: another id is taken for a remembered one once in 10^13 questions.
package recent

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// ID stands for an event id in one Index; 0 for none.
type ID uint64

// Budget bounds what several indexes remember together. the index that remembers most
// forgets first, so that a busy one does not leave the others without a memory. It is
// safe for concurrent use.
type Budget struct {
	mu      sync.Mutex // of all indexes, too: they are used for microseconds at a time
	chunks  int        // that may be in use
	used    int
	indexes []*Index
}

// NewBudget returns a budget of so many ids for all indexes together. Each index has
// room for some thousands, even beyond it.
func NewBudget(ids int) *Budget { return &Budget{chunks: chunksFor(ids)} }

func chunksFor(ids int) int { return (max(ids, 0) + chunkRows - 1) / chunkRows }

// Index is a bounded memory of published events, and of rows that were skipped or dead-lettered.
// When it is full, the oldest are forgotten. It is safe for concurrent use. A nil
// *Index remembers nothing.
type Index struct {
	seed   maphash.Seed
	budget *Budget
	most   int // chunks

	// What follows is under the budget's mutex.
	began       time.Time
	chunks      []*chunk // the oldest first; the last is being filled
	first       int      // number of the oldest
	unpublished []Unpublished
	oldest      int // of asides, once they are full
	// lost is set once anything was forgotten that was published since began.
	lost bool
}

// maxUnpublished is how many rows that were skipped or dead-lettered are remembered.
const maxUnpublished = 1000

// New returns an empty memory of the given number of ids, rounded up to thousands, as
// far as the budget has room; nil for none. Forget it when it is no longer used.
func (b *Budget) New(ids int) *Index {
	if ids <= 0 {
		return nil
	}
	// The chunk that is being filled does not count: it was emptied as a whole.
	t := &Index{seed: maphash.MakeSeed(), budget: b, most: chunksFor(ids) + 1}
	b.mu.Lock()
	b.indexes = append(b.indexes, t)
	b.mu.Unlock()
	return t
}

// Forget gives all memory back to the budget. the index may still be asked.
func (t *Index) Forget() {
	if t == nil {
		return
	}
	b := t.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(t.chunks) > 0 {
		t.drop()
	}
	t.unpublished, t.most = nil, 0
	b.indexes = slices.DeleteFunc(b.indexes, func(o *Index) bool { return o == t })
}

// ID returns what stands for an event id, which is the text that a consumer sees.
func (t *Index) ID(text []byte) ID {
	if len(text) == 0 {
		return 0
	}
	return ID(max(1, maphash.Bytes(t.seed, text)))
}

// Published is one event that was made durable. Mark is the transaction's.
type Published struct {
	ID        ID
	Commit    *position.Commit
	Topic     string
	Partition int32
	Offset    int64 // negative when it is not known
}

// Found is what is remembered of an event.
type Found struct {
	// Commit is the transaction's; a part of one that comes in parts has the commit position that
	// its first part had.
	Commit    position.Commit
	Topic     string
	Partition int32
	Offset    int64 // negative when it is not known
	At        time.Time
}

// Unpublished is a row that was skipped or dead-lettered. Topic is where its dead letter went, empty when
// there is none.
type Unpublished struct {
	ID                     ID
	Row                    position.Row
	Commit                 position.Commit
	Action, Cause, Message string
	Topic                  string
	Partition              int32
	Offset                 int64 // negative when it is not known
	At                     time.Time
}

// Begin says that from now on all that is published comes here. What was remembered
// before stays true, but others may have published meanwhile.
func (t *Index) Begin(now time.Time) {
	if t == nil {
		return
	}
	t.budget.mu.Lock()
	t.began, t.lost = now, false
	t.budget.mu.Unlock()
}

// Add remembers n events that became durable at a time, in their order; row returns
// each of them, or one without ID to be passed over. It keeps nothing that row returns.
func (t *Index) Add(at time.Time, n int, row func(i int) Published) {
	if t == nil || n == 0 {
		return
	}
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if t.most == 0 {
		return
	}
	c := t.filling(at)
	var commit *position.Commit
	for i := range n {
		p := row(i)
		if p.ID == 0 {
			continue
		}
		if p.Commit != commit || c.rows == 0 {
			commit = p.Commit
			for !c.begin(p.Commit, at) {
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
func (t *Index) filling(at time.Time) *chunk {
	if len(t.chunks) == 0 {
		return t.next(at)
	}
	return t.chunks[len(t.chunks)-1]
}

// next returns an empty chunk, which is filled from now on.
func (t *Index) next(at time.Time) *chunk {
	c := t.budget.take(t)
	c.base = at.UnixMilli()
	t.chunks = append(t.chunks, c)
	return c
}

// take returns an empty chunk for t: a new one while there is room, else the oldest of
// t or of the index that has most.
func (b *Budget) take(t *Index) *chunk {
	from := t
	if len(t.chunks) < t.most {
		for _, o := range b.indexes {
			if len(o.chunks) > len(from.chunks) {
				from = o
			}
		}
		if b.used < b.chunks || len(from.chunks) <= 2 {
			b.used++
			return newChunk()
		}
	}
	c := from.drop()
	b.used++
	c.reset()
	return c
}

// drop forgets the oldest chunk and returns it.
func (t *Index) drop() *chunk {
	c := t.chunks[0]
	t.lost = t.lost || !c.until().Before(t.began)
	t.chunks = slices.Delete(t.chunks, 0, 1)
	t.first++
	t.budget.used--
	return c
}

// AddUnpublished remembers a row that was skipped or dead-lettered.
func (t *Index) AddUnpublished(a Unpublished) {
	if t == nil {
		return
	}
	a.Topic = strings.Clone(a.Topic)
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if len(t.unpublished) < maxUnpublished {
		t.unpublished = append(t.unpublished, a)
		return
	}
	t.unpublished[t.oldest] = a
	t.oldest = (t.oldest + 1) % maxUnpublished
}

// Find returns what is remembered of an event, the last first, at most limit of
// them: an event that was published several times has several places. It holds up
// Add for microseconds at a time.
func (t *Index) Find(id ID, limit int) []Found {
	var out []Found
	if t == nil || id == 0 {
		return nil
	}
	t.budget.mu.Lock()
	number := t.first + len(t.chunks) - 1
	t.budget.mu.Unlock()
	for ; number >= 0 && len(out) < limit; number-- {
		t.budget.mu.Lock()
		if number < t.first || number >= t.first+len(t.chunks) {
			t.budget.mu.Unlock()
			break // forgotten, and so are those before it
		}
		out = t.chunks[number-t.first].find(id, limit, out)
		t.budget.mu.Unlock()
	}
	return out
}

// FindUnpublished returns the last row with this event id that was skipped or dead-lettered.
func (t *Index) FindUnpublished(id ID) (Unpublished, bool) {
	if t == nil || id == 0 {
		return Unpublished{}, false
	}
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	for i := range t.unpublished {
		// The newest is the one before the oldest.
		a := t.unpublished[(t.oldest+2*len(t.unpublished)-1-i)%len(t.unpublished)]
		if a.ID == id {
			return a, true
		}
	}
	return Unpublished{}, false
}

// Known returns since when all that was published is remembered, and how many events
// are.
func (t *Index) Known() (since time.Time, ids int) {
	if t == nil {
		return time.Time{}, 0
	}
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	since = t.began
	for _, c := range t.chunks {
		if ids == 0 && c.rows > 0 && t.lost && c.since().After(since) {
			since = c.since()
		}
		ids += c.rows
	}
	return since, ids
}
