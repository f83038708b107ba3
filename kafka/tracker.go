package kafka

import (
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// tracker knows which groups of a batch are completely acknowledged.
// Acknowledgements come in any order; prefix moves over gap-free runs only, so
// that it never names a transaction before one that may still be lost.
//
// It is not safe for concurrent use.
type tracker struct {
	open []int32 // records per group that are not acknowledged
	done int
}

// newTracker returns a tracker for groups, which wait for their records. Those without
// records are passed over when they are reached.
func newTracker(groups []txn.Group) tracker {
	t := tracker{open: make([]int32, len(groups))}
	for i := range groups {
		t.open[i] = int32(len(groups[i].Records))
	}
	t.advance()
	return t
}

// ack takes one record of a group as acknowledged.
func (t *tracker) ack(group int) {
	t.open[group]--
	if group == t.done {
		t.advance()
	}
}

// prefix returns the number of leading groups that are completely acknowledged.
func (t *tracker) prefix() int { return t.done }

func (t *tracker) advance() {
	for t.done < len(t.open) && t.open[t.done] == 0 {
		t.done++
	}
}
