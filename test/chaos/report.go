package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/judge"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// Report is what became of a run.
type Report struct {
	Seed           uint64
	Length         time.Duration
	Nodes, Brokers int
	// Faults and Takeovers are by kind. A takeover, which is an opening of the
	// position topic, counts for the fault that began last before it.
	Faults, Takeovers map[plan.Kind]int
	Transactions      int // of Kafka, with a position
	Counts            history.Counts
	// Broken are the promises that were; nil is good.
	Broken error
}

// noFault stands for takeovers before the first fault.
const noFault plan.Kind = "the start"

func (r *Report) fill(done []Done, e *judge.Evidence, counts history.Counts) {
	r.Counts = counts
	r.Faults, r.Takeovers = map[plan.Kind]int{}, map[plan.Kind]int{}
	slices.SortFunc(done, func(a, b Done) int { return a.Began.Compare(b.Began) })
	for _, d := range done {
		r.Faults[d.Kind]++
	}
	for _, x := range e.Positions {
		switch {
		case x.Mark == nil:
		case !x.Mark.Open:
			r.Transactions++
		default:
			kind := noFault
			for _, d := range done {
				if !d.Began.After(x.Time) {
					kind = d.Kind
				}
			}
			r.Takeovers[kind]++
		}
	}
}

// Sum is all takeovers, but for those of the start.
func (r *Report) Sum() (n int) {
	for kind, times := range r.Takeovers {
		if kind != noFault {
			n += times
		}
	}
	return n
}

// String prints the report for people.
func (r *Report) String() string {
	var b strings.Builder
	faults := 0
	for _, n := range r.Faults {
		faults += n
	}
	fmt.Fprintf(&b, "seed %d, %v, %d nodes, %d brokers: %d faults, %d takeovers, %d transactions of Kafka; %v\n",
		r.Seed, r.Length.Round(time.Second), r.Nodes, r.Brokers, faults, r.Sum(), r.Transactions, r.Counts)
	kinds := slices.SortedFunc(maps.Keys(r.Faults), func(a, b plan.Kind) int { return cmp.Compare(string(a), string(b)) })
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %4d x %-62s %4d takeovers\n", r.Faults[k], k, r.Takeovers[k])
	}
	if r.Broken != nil {
		fmt.Fprintf(&b, "%v\n", r.Broken)
	} else {
		fmt.Fprintf(&b, "every promise was kept: 0 lost, 0 twice, 0 out of order, 0 invented\n")
	}
	return b.String()
}
