package history

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Outcome is what a writer knows of a transaction's end.
type Outcome uint8

// The outcomes. Unknown is a commit that was not answered: the ledger settles it.
const (
	Unknown Outcome = iota
	Committed
	RolledBack
)

// Txn is the journal's entry for one transaction: what it publishes if it commits.
type Txn struct {
	ID uint64
	// Keys are used in turn: row n has key Keys[(n-1) % len(Keys)].
	Keys []int32
	// Rows is the number of rows inserted, those from UndoneFrom up to and
	// including UndoneTo were undone by ROLLBACK TO SAVEPOINT (0: none).
	Rows                 uint32
	UndoneFrom, UndoneTo uint32
	// Size is the number of body bytes in each row.
	Size    int32
	Outcome Outcome
}

// KeyOf returns the key number of row n.
func (t *Txn) KeyOf(n uint32) int32 { return t.Keys[int(n-1)%len(t.Keys)] }

// Keeps reports whether row n is there when the transaction commits.
func (t *Txn) Keeps(n uint32) bool {
	return n >= 1 && n <= t.Rows && (t.UndoneFrom == 0 || n < t.UndoneFrom || n > t.UndoneTo)
}

// LedgerRow says that transaction Txn committed as the Seq-th (from 1) of those
// with rows for Partition.
type LedgerRow struct {
	Txn       uint64
	Partition int32
	Seq       uint64
}

// Record is one record as a consumer got it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Timestamp int64 // milliseconds since the epoch
}

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Seen is a record reduced to what the checks need, so that a run of gigabytes
// fits in memory.
type Seen struct {
	Row       Row
	Seq       uint64
	Offset    int64
	Partition int32
	Key       int32
	Size      int32
	// Fault says what is wrong with the record by itself; empty if nothing is.
	// Row is the zero value when the record can't be told.
	Fault string
}

// See reduces a record. It keeps nothing of r's slices.
func See(r *Record) Seen {
	s := Seen{Offset: r.Offset, Partition: r.Partition, Key: -1}
	p, err := ParsePayload(r.Value)
	s.Row, s.Seq, s.Size = p.Row, p.Seq, int32(p.Size)
	key, ok := parseKey(r.Key)
	if ok {
		s.Key = key
	}
	switch {
	case err != nil:
		s.Fault = err.Error()
	case !ok || string(r.Key) != p.Key:
		s.Fault = fmt.Sprintf("record key is %.40q, row's key is %q", r.Key, p.Key)
	case headerCount(r, "id", p.Row.ID()) != 1:
		s.Fault = fmt.Sprintf("want one header id with value %s, got %s", p.Row.ID(), headerList(r))
	case headerCount(r, "eventType", EventType) != 1:
		s.Fault = fmt.Sprintf("want one header eventType with value %s, got %s", EventType, headerList(r))
	case r.Timestamp <= 0:
		s.Fault = fmt.Sprintf("record timestamp is %d", r.Timestamp)
	}
	return s
}

// headerCount returns how many headers are named key, or -1 if one of them has
// another value.
func headerCount(r *Record, key, value string) (n int) {
	for _, h := range r.Headers {
		if h.Key != key {
			continue
		}
		if string(h.Value) != value {
			return -1
		}
		n++
	}
	return n
}

func headerList(r *Record) string {
	out := "["
	for _, h := range r.Headers {
		out += fmt.Sprintf(" %s=%.40q", h.Key, h.Value)
	}
	return out + " ]"
}

// expected is one row that must be in a partition.
type expected struct {
	txn    *Txn
	seq    uint64
	number uint32
}

func (e expected) row() Row { return Row{e.txn.ID, e.number} }

// History is a finished run: what the source kept and what a consumer read. It
// is built once and then only read.
type History struct {
	txns map[uint64]*committed
	all  map[uint64]*Txn
	// partitionOf is the partition of each key number that was written.
	partitionOf map[int32]int32
	// want has one list per partition: the rows in commit order.
	want [][]expected
	// seen has one list per partition, in offset order.
	seen [][]Seen
}

// committed adds to a transaction where its rows are in the want lists.
type committed struct {
	*Txn
	seq   map[int32]uint64 // by partition
	place []int32          // by row number: index in want[partition of its key]; -1 if undone
}

// New joins the journal with the ledger and the records, which must be in offset
// order within each partition. It returns an error when journal and ledger
// contradict each other: then the source itself broke its word, or the workload
// is wrong, and the records prove nothing.
func New(partitions int32, journal []*Txn, ledger []LedgerRow, seen []Seen) (*History, error) {
	h := &History{
		txns: make(map[uint64]*committed), all: make(map[uint64]*Txn, len(journal)), partitionOf: make(map[int32]int32),
		want: make([][]expected, partitions), seen: make([][]Seen, partitions),
	}
	for _, t := range journal {
		h.all[t.ID] = t
	}
	if err := h.readLedger(ledger); err != nil {
		return nil, err
	}
	for _, t := range journal {
		if t.Outcome == Committed && h.txns[t.ID] == nil {
			return nil, fmt.Errorf("transaction %d was answered as committed but has no ledger row: the source lost it", t.ID)
		}
	}
	if err := h.order(partitions); err != nil {
		return nil, err
	}
	for _, s := range seen {
		if s.Partition < 0 || s.Partition >= partitions {
			return nil, fmt.Errorf("record in partition %d of a topic that should have %d", s.Partition, partitions)
		}
		h.seen[s.Partition] = append(h.seen[s.Partition], s)
	}
	for p, list := range h.seen {
		if !slices.IsSortedFunc(list, func(a, b Seen) int { return cmp.Compare(a.Offset, b.Offset) }) {
			return nil, fmt.Errorf("records of partition %d are not in offset order: the reader is wrong", p)
		}
	}
	return h, nil
}

func (h *History) readLedger(ledger []LedgerRow) error {
	for _, l := range ledger {
		t := h.all[l.Txn]
		switch {
		case t == nil:
			return fmt.Errorf("ledger names transaction %d, which nobody wrote", l.Txn)
		case t.Outcome == RolledBack:
			return fmt.Errorf("ledger has transaction %d, which was rolled back", l.Txn)
		}
		c := h.txns[l.Txn]
		if c == nil {
			c = &committed{Txn: t, seq: make(map[int32]uint64, 1)}
			h.txns[l.Txn] = c
		}
		c.seq[l.Partition] = l.Seq
	}
	return nil
}

// order fills want: by sequence number, then by row number.
func (h *History) order(partitions int32) error {
	for _, c := range h.txns {
		c.place = make([]int32, c.Rows+1)
		for n := range c.place {
			c.place[n] = -1
			if !c.Keeps(uint32(n)) {
				continue
			}
			key := c.KeyOf(uint32(n))
			p, known := h.partitionOf[key]
			if !known {
				p = PartitionOf([]byte(Key(key)), partitions)
				h.partitionOf[key] = p
			}
			seq, ok := c.seq[p]
			if !ok {
				return fmt.Errorf("transaction %d has a row for partition %d but no ledger row for it", c.ID, p)
			}
			h.want[p] = append(h.want[p], expected{c.Txn, seq, uint32(n)})
		}
	}
	for p, list := range h.want {
		slices.SortFunc(list, func(a, b expected) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.number, b.number))
		})
		for i, e := range list {
			if i > 0 && list[i-1].seq == e.seq && list[i-1].txn != e.txn {
				return fmt.Errorf("transactions %d and %d have the same place %d in partition %d", list[i-1].txn.ID, e.txn.ID,
					e.seq, p)
			}
			h.txns[e.txn.ID].place[e.number] = int32(i)
		}
	}
	return nil
}

// find returns the partition and the place in want of a row that must be there;
// ok is false for all others.
func (h *History) find(r Row) (partition, place int32, ok bool) {
	c := h.txns[r.Txn]
	if c == nil || !c.Keeps(r.Number) {
		return 0, 0, false
	}
	place = c.place[r.Number]
	return h.partitionOf[c.KeyOf(r.Number)], place, true
}

// Counts is a run in figures.
type Counts struct {
	Transactions, Rows         int // that the source kept
	RolledBack                 int // transactions that it did not keep
	Records, Missing, Repeated int
}

// Counts counts the run.
func (h *History) Counts() Counts {
	c := Counts{Transactions: len(h.txns), RolledBack: len(h.all) - len(h.txns)}
	for _, list := range h.want {
		c.Rows += len(list)
	}
	for _, times := range h.times() {
		for _, n := range times {
			switch {
			case n == 0:
				c.Missing++
			case n > 1:
				c.Repeated += int(n) - 1
			}
		}
	}
	for _, list := range h.seen {
		c.Records += len(list)
	}
	return c
}

// String prints the figures on one line.
func (c Counts) String() string {
	return fmt.Sprintf("%d transactions with %d outbox rows committed, %d rolled back; %d records read, %d rows "+
		"missing, %d records repeated",
		c.Transactions, c.Rows, c.RolledBack, c.Records, c.Missing, c.Repeated)
}

// times counts for each wanted row how often it was seen, in any partition.
func (h *History) times() [][]uint32 {
	times := make([][]uint32, len(h.want))
	for p, list := range h.want {
		times[p] = make([]uint32, len(list))
	}
	for _, list := range h.seen {
		for _, s := range list {
			if p, place, ok := h.find(s.Row); ok {
				times[p][place]++
			}
		}
	}
	return times
}

// placed walks the records of a partition that belong there, with their place in
// the commit order.
func (h *History) placed(partition int) iter.Seq2[*Seen, int32] {
	return func(yield func(*Seen, int32) bool) {
		list := h.seen[partition]
		for i := range list {
			p, place, ok := h.find(list[i].Row)
			if ok && int(p) == partition && !yield(&list[i], place) {
				return
			}
		}
	}
}
