package judge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// The promises. Each is returned, wrapped with counter-examples, by the validator
// of the same name.
var (
	ErrOneTransaction = errors.New("one transaction of the source is in one transaction of Kafka, and the position in " +
		"it covers exactly the rows up to it")
	ErrPositionsGrow = errors.New("positions only grow")
	ErrPositionWhole = errors.New("the position covers all that the source has executed")
	ErrReplicated    = errors.New("the replicated position grows on every node and is never ahead of the one in Kafka")
	ErrAgree         = errors.New("in the end all nodes hold the same position, which is Kafka's")
	ErrNothingOpen   = errors.New("no transaction is left open")
	ErrLive          = errors.New("what a read_committed consumer saw while it happened is what the log holds in the end")
	ErrAtRest        = errors.New("after the faults a node holds no more goroutines, files and memory than before")
)

// Validator checks one promise.
type Validator struct {
	Name  string
	Check func(*Evidence) error
}

// All are the promises of exactly once beyond those of history.ExactlyOnce.
func All() []Validator {
	return []Validator{
		{"OneTransaction", OneTransaction}, {"PositionsGrow", PositionsGrow}, {"PositionWhole", PositionWhole},
		{"Replicated", Replicated}, {"Agree", Agree}, {"NothingOpen", NothingOpen}, {"Live", Live}, {"AtRest", AtRest},
	}
}

// Validate runs all of them and joins what they return.
func Validate(e *Evidence) error {
	var errs []error
	for _, v := range All() {
		errs = append(errs, v.Check(e))
	}
	return errors.Join(errs...)
}

// findings collects counter-examples: the first few in words, the rest in number.
type findings struct {
	examples []string
	count    int
}

func (f *findings) add(format string, args ...any) {
	f.count++
	if len(f.examples) < 5 {
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

// segment is what one Kafka transaction has put into one partition.
type segment struct {
	producer int64
	epoch    int16
	entries  []Entry
	end      int64 // offset of its marker
}

// segments cuts a partition at the markers of its transactions. Records without a
// marker behind them are in a last segment whose end is -1.
func segments(list []Entry) (out []segment) {
	open := map[int64][]Entry{}
	for _, e := range list {
		if !e.Control {
			open[e.Producer] = append(open[e.Producer], e)
			continue
		}
		if entries := open[e.Producer]; len(entries) > 0 {
			out = append(out, segment{e.Producer, entries[0].Epoch, entries, e.Offset})
		}
		delete(open, e.Producer)
	}
	for _, producer := range slices.Sorted(maps.Keys(open)) {
		out = append(out, segment{producer, open[producer][0].Epoch, open[producer], -1})
	}
	slices.SortFunc(out, func(a, b segment) int { return cmp.Compare(a.entries[0].Offset, b.entries[0].Offset) })
	return out
}

// marks are the records of the position topic that hold a position.
func (e *Evidence) marks() (out []Entry) {
	for _, x := range e.Positions {
		if !x.Control && x.Mark != nil && !x.Mark.Open {
			out = append(out, x)
		}
	}
	return out
}

// want are the rows that a transaction of the source has for each partition.
func (e *Evidence) want(txn uint64, into [][]history.Row) {
	t := e.Journal[txn]
	if t == nil {
		return
	}
	for n := uint32(1); n <= t.Rows; n++ {
		if t.Keeps(n) {
			p := history.PartitionOf([]byte(history.Key(t.KeyOf(n))), int32(len(into)))
			into[p] = append(into[p], history.Row{Txn: t.ID, Number: n})
		}
	}
}

// OneTransaction walks the committed positions. What each adds to the one before
// must be, row for row, what the same Kafka transaction has put into the topic; only
// a transaction of the source that is split may take several.
func OneTransaction(e *Evidence) error {
	var f findings
	segs := make([][]segment, len(e.Data))
	for p, list := range e.Data {
		segs[p] = segments(list)
	}
	next, split := 0, false // next in the binlog
	want := make([][]history.Row, len(e.Data))
	for _, m := range e.marks() {
		for next < len(e.Binlog) && m.Mark.Set.Has(e.Binlog[next].GTID) {
			e.want(e.Binlog[next].Txn, want)
			next++
		}
		if m.Mark.Partial {
			split = true
			continue
		}
		for p := range segs {
			if len(want[p]) == 0 {
				continue
			}
			var got segment
			for len(segs[p]) > 0 && (len(got.entries) == 0 || split && len(got.entries) < len(want[p])) {
				entries := append(got.entries, segs[p][0].entries...)
				got, segs[p] = segs[p][0], segs[p][1:]
				got.entries = entries
			}
			if !slices.EqualFunc(got.entries, want[p], func(x Entry, r history.Row) bool { return x.Row == r }) {
				f.add("the position at offset %d (%s) covers %s of partition %d, its transaction (up to offset %d) has %s",
					m.Offset, m.Mark.Set, rows(want[p]), p, got.end, entryRows(got.entries))
				segs[p] = nil // what follows is a consequence
			} else if got.producer != m.Producer || got.epoch != m.Epoch {
				f.add("the position at offset %d was written by producer %d epoch %d, its rows in partition %d by producer %d "+
					"epoch %d",
					m.Offset, m.Producer, m.Epoch, p, got.producer, got.epoch)
			}
			want[p] = nil
		}
		split = false
	}
	for p := range segs {
		for _, s := range segs[p] {
			f.add("the transaction that ends at offset %d of partition %d has %s and no position", s.end, p,
				entryRows(s.entries))
		}
	}
	return f.err(ErrOneTransaction)
}

func entryRows(list []Entry) string {
	out := make([]history.Row, len(list))
	for i, x := range list {
		out[i] = x.Row
	}
	return rows(out)
}

func rows(list []history.Row) string {
	switch len(list) {
	case 0:
		return "no rows"
	case 1:
		return list[0].String()
	}
	return fmt.Sprintf("%d rows from %v to %v", len(list), list[0], list[len(list)-1])
}

// PositionsGrow checks the order of the committed positions.
func PositionsGrow(e *Evidence) error {
	var f findings
	var last *Entry
	for _, m := range e.marks() {
		if last != nil {
			if gone := last.Mark.Set.Subtract(m.Mark.Set); !gone.IsEmpty() {
				f.add("the position at offset %d lacks %s, which the one at offset %d has", m.Offset, gone, last.Offset)
			}
			if m.Mark.Seq < last.Mark.Seq {
				f.add("the position at offset %d counts %d rows, the one at offset %d %d", m.Offset, m.Mark.Seq, last.Offset,
					last.Mark.Seq)
			}
		}
		last = &m
	}
	return f.err(ErrPositionsGrow)
}

// PositionWhole checks the last position against the source.
func PositionWhole(e *Evidence) error {
	var f findings
	marks := e.marks()
	if len(marks) == 0 {
		f.add("there is no position at all")
	} else if gone := e.Executed.Subtract(marks[len(marks)-1].Mark.Set); !gone.IsEmpty() {
		f.add("the last position lacks %s", gone)
	}
	return f.err(ErrPositionWhole)
}

// Replicated checks what the nodes said of the replicated position meanwhile.
func Replicated(e *Evidence) error {
	var f findings
	marks := e.marks()
	type life struct {
		node   string
		number int
	}
	last := map[life]*position.Set{}
	for _, s := range e.Samples {
		if s.Set == nil {
			continue
		}
		l := life{s.Node, s.Life}
		if before := last[l]; before != nil {
			if gone := before.Subtract(s.Set); !gone.IsEmpty() {
				f.add("node %s (process %d) said at %s that it lacks %s, which it had before", s.Node, s.Life,
					s.At.Format("15:04:05.000"), gone)
			}
		}
		last[l] = s.Set
		// Records carry the time at which they were made, which is before they were
		// committed, which is before the position is replicated.
		n, _ := slices.BinarySearchFunc(marks, s.At, func(m Entry, at time.Time) int {
			if m.Time.After(at) {
				return 1
			}
			return -1
		})
		covered := position.NewSet(s.Set.Flavor())
		if n > 0 {
			covered = marks[n-1].Mark.Set
		}
		if ahead := s.Set.Subtract(covered); !ahead.IsEmpty() && n > 0 {
			f.add("node %s said %s at %s, and the position in Kafka was %s: it lacks %s", s.Node, s.Set,
				s.At.Format("15:04:05.000"), covered, ahead)
		}
	}
	return f.err(ErrReplicated)
}

// Agree checks the nodes' positions in the end.
func Agree(e *Evidence) error {
	var f findings
	marks := e.marks()
	if len(marks) == 0 {
		return nil // PositionWhole says so
	}
	kafka := marks[len(marks)-1].Mark.Set
	for _, node := range slices.Sorted(maps.Keys(e.Final)) {
		if set := e.Final[node]; set == nil || !set.Equal(kafka) {
			f.add("node %s holds %v, Kafka %s", node, set, kafka)
		}
	}
	return f.err(ErrAgree)
}

// NothingOpen checks the ends of all partitions.
func NothingOpen(e *Evidence) error {
	var f findings
	for _, x := range e.Ends {
		if x.Stable != x.High {
			f.add("%s partition %d: a transaction is open at offset %d, the end is %d", x.Topic, x.Partition, x.Stable, x.High)
		}
	}
	return f.err(ErrNothingOpen)
}

// Live checks that nothing that a consumer once saw has changed.
func Live(e *Evidence) error {
	var f findings
	for p, live := range e.Live {
		final := map[int64]history.Row{}
		var order []int64
		for _, x := range e.Data[p] {
			if !x.Control {
				final[x.Offset] = x.Row
				order = append(order, x.Offset)
			}
		}
		n := 0
		for i, x := range live {
			if i > 0 && x.Offset <= live[i-1].Offset {
				continue // the consumer began anew
			}
			row, ok := final[x.Offset]
			switch {
			case !ok:
				f.add("partition %d: a consumer saw %v at offset %d, where the log holds nothing", p, x.Row, x.Offset)
			case row != x.Row:
				f.add("partition %d: a consumer saw %v at offset %d, where the log holds %v", p, x.Row, x.Offset, row)
			}
			for n < len(order) && order[n] < x.Offset {
				f.add("partition %d: a consumer saw offset %d and was never given offset %d before it", p, x.Offset, order[n])
				n++
			}
			n++
		}
	}
	return f.err(ErrLive)
}

// What a process may hold more than before: caches, connections that are kept.
const (
	moreGoroutines = 20
	moreFiles      = 12
	moreMemory     = 96 << 20
)

// AtRest checks what the processes hold.
func AtRest(e *Evidence) error {
	var f findings
	for _, p := range e.Processes {
		check := func(what string, before, after, more int64) {
			if after > before+more {
				f.add("node %s holds %d %s, before the faults it was %d", p.Node, after, what, before)
			}
		}
		check("goroutines", int64(p.Before.Goroutines), int64(p.After.Goroutines), moreGoroutines)
		check("files", int64(p.Before.Files), int64(p.After.Files), moreFiles)
		check("bytes of memory", p.Before.RSS, p.After.RSS, moreMemory)
	}
	return f.err(ErrAtRest)
}
