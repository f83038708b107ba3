package history

import (
	"errors"
	"fmt"
	"strings"
)

// The promises. Each error below is returned, wrapped with counter-examples, by
// the validator of the same name.
var (
	ErrLost = errors.New("nothing lost: every outbox row of a transaction that stays committed on the source " +
		"reaches Kafka")
	ErrTwice  = errors.New("nothing twice: a consumer sees each row once")
	ErrRewind = errors.New("rewind only, no gap: what a restart publishes again starts at or before the end of " +
		"what was there and goes on row by row")
	ErrRewindTooLong  = errors.New("rewind only as far as allowed: one second of events and one batch at a restart")
	ErrPartitionOrder = errors.New("in order: per partition, records are in commit order, and in row order inside a " +
		"transaction")
	ErrKeyOrder = errors.New("in order: the records of one key are in commit order, and in row order inside a " +
		"transaction")
	ErrInvented  = errors.New("nothing invented: nothing of a rolled-back transaction or savepoint appears")
	ErrPayload   = errors.New("payloads equal: key, value and headers are byte for byte what was written")
	ErrPartition = errors.New("partition is murmur2 of the key, as the Java producer chooses it")
)

// Validator checks one promise on a history: nil, or the promise's error with
// counter-examples.
type Validator func(*History) error

// ExactlyOnce are the promises of an undisturbed run, and of any run with
// delivery exactly_once.
var ExactlyOnce = []Validator{
	NothingLost, NothingTwice, InOrderPerPartition, InOrderPerKey, NothingInvented, PayloadsEqual, PartitionIsMurmur2,
}

// AtLeastOnce returns the promises of a run with delivery at_least_once in which
// something was killed.
func AtLeastOnce(b Bound) []Validator {
	return []Validator{
		NothingLost, func(h *History) error { return RewindOnly(h, b) }, NothingInvented, PayloadsEqual, PartitionIsMurmur2,
	}
}

// Validate runs all of them and joins what they return.
func Validate(h *History, validators []Validator) error {
	var errs []error
	for _, v := range validators {
		errs = append(errs, v(h))
	}
	return errors.Join(errs...)
}

// findings collects counter-examples: the first few in words, the rest in number.
type findings struct {
	examples []string
	count    int
}

const shownExamples = 5

func (f *findings) add(format string, args ...any) {
	f.count++
	if len(f.examples) < shownExamples {
		f.examples = append(f.examples, fmt.Sprintf(format, args...))
	}
}

func (f *findings) err(promise error) error {
	if f.count == 0 {
		return nil
	}
	return fmt.Errorf("broken promise %w\n  %d times, for example:\n    %s", promise, f.count,
		strings.Join(f.examples, "\n    "))
}

// NothingLost checks that each row which the source kept was read.
func NothingLost(h *History) error {
	var f findings
	for p, times := range h.times() {
		for i, n := range times {
			if n == 0 {
				e := h.want[p][i]
				f.add("%v (key %s, transaction %d of partition %d, %d of %d rows in) was not read",
					e.row(), Key(e.txn.KeyOf(e.number)), e.seq, p, i, len(times))
			}
		}
	}
	return f.err(ErrLost)
}

// NothingTwice checks that no row was read more than once, in whatever partition.
func NothingTwice(h *History) error {
	type where struct {
		partition int32
		offset    int64
	}
	first := make([]map[int32]where, len(h.want))
	for i := range first {
		first[i] = make(map[int32]where)
	}
	var f findings
	for _, list := range h.seen {
		for _, s := range list {
			p, place, ok := h.find(s.Row)
			if !ok {
				continue
			}
			if at, again := first[p][place]; again {
				f.add("%v is at offset %d of partition %d and again at offset %d of partition %d",
					s.Row, at.offset, at.partition, s.Offset, s.Partition)
				continue
			}
			first[p][place] = where{s.Partition, s.Offset}
		}
	}
	return f.err(ErrTwice)
}

// InOrderPerPartition checks that each partition's records never step back.
// Equal steps are NothingTwice's business, missing ones NothingLost's.
func InOrderPerPartition(h *History) error {
	var f findings
	for p := range h.seen {
		last, lastRow := int32(-1), Row{}
		for s, place := range h.placed(p) {
			if place < last {
				f.add("%v at offset %d of partition %d comes after %v, which committed later", s.Row, s.Offset, p, lastRow)
			}
			last, lastRow = place, s.Row
		}
	}
	return f.err(ErrPartitionOrder)
}

// InOrderPerKey checks the same for each key, by the sequence numbers that the
// records themselves carry.
func InOrderPerKey(h *History) error {
	type step struct {
		seq uint64
		row Row
	}
	var f findings
	for p, list := range h.seen {
		last := make(map[int32]step)
		for _, s := range list {
			if s.Fault != "" {
				continue // what can't be read has no order: PayloadsEqual
			}
			before := last[s.Key]
			if s.Seq < before.seq || (s.Seq == before.seq && s.Row.Number < before.row.Number) {
				f.add("key %s: %v (transaction %d) at offset %d of partition %d comes after %v (transaction %d)",
					Key(s.Key), s.Row, s.Seq, s.Offset, p, before.row, before.seq)
			}
			last[s.Key] = step{s.Seq, s.Row}
		}
	}
	return f.err(ErrKeyOrder)
}

// Bound limits what a run with restarts may publish again, per partition.
type Bound struct {
	// Rewinds is how often at most: the number of restarts.
	Rewinds int
	// Rows is how far at most one of them steps back.
	Rows int
}

// RewindOnly checks that each partition is a chain of runs: each goes on row by
// row, and each starts at or before the end of the one before, so that a
// consumer which keeps the highest row misses none. Bound says how often and how
// far it may step back.
func RewindOnly(h *History, b Bound) error {
	var gaps, long findings
	for p := range h.seen {
		last, rewinds := int32(-1), 0
		for s, place := range h.placed(p) {
			switch back := int(last) - int(place) + 1; {
			case back < 0:
				gaps.add("partition %d offset %d: %v is %d rows after the record before it", p, s.Offset, s.Row, 1-back)
			case back > b.Rows:
				long.add("partition %d offset %d: %v steps back %d rows, %d are allowed", p, s.Offset, s.Row, back, b.Rows)
				rewinds++
			case back > 0:
				rewinds++
			}
			last = place
		}
		if rewinds > b.Rewinds {
			long.add("partition %d steps back %d times, %d are allowed", p, rewinds, b.Rewinds)
		}
	}
	return errors.Join(gaps.err(ErrRewind), long.err(ErrRewindTooLong))
}

// NothingInvented checks that each record is of a row that the source kept.
func NothingInvented(h *History) error {
	var f findings
	for p, list := range h.seen {
		for _, s := range list {
			if _, _, ok := h.find(s.Row); ok {
				continue
			}
			why := "was never written"
			if t := h.all[s.Row.Txn]; t != nil {
				why = "was rolled back with its transaction"
				if h.txns[s.Row.Txn] != nil {
					why = "was rolled back to a savepoint or never inserted"
				}
			}
			f.add("offset %d of partition %d: %v %s", s.Offset, p, s.Row, why)
		}
	}
	return f.err(ErrInvented)
}

// PayloadsEqual checks each record's key, value and headers against the journal.
func PayloadsEqual(h *History) error {
	var f findings
	for p, list := range h.seen {
		for _, s := range list {
			if s.Fault != "" {
				f.add("offset %d of partition %d (%v): %s", s.Offset, p, s.Row, s.Fault)
				continue
			}
			c := h.txns[s.Row.Txn]
			if c == nil || !c.Keeps(s.Row.Number) {
				continue // invented
			}
			want, place, _ := h.find(s.Row)
			switch key := c.KeyOf(s.Row.Number); {
			case s.Key != key:
				f.add("%v has key %s, %s was written", s.Row, Key(s.Key), Key(key))
			case s.Size != c.Size:
				f.add("%v has a body of %d bytes, %d were written", s.Row, s.Size, c.Size)
			case s.Seq != h.want[want][place].seq:
				f.add("%v carries sequence number %d, the ledger says %d", s.Row, s.Seq, h.want[want][place].seq)
			}
		}
	}
	return f.err(ErrPayload)
}

// PartitionIsMurmur2 checks where each record was put.
func PartitionIsMurmur2(h *History) error {
	var f findings
	for p, list := range h.seen {
		for _, s := range list {
			if s.Key < 0 {
				continue // no key of ours: PayloadsEqual
			}
			if want := PartitionOf([]byte(Key(s.Key)), int32(len(h.want))); want != int32(p) {
				f.add("%v with key %s is in partition %d, not in %d", s.Row, Key(s.Key), p, want)
			}
		}
	}
	return f.err(ErrPartition)
}
