package kafka

import (
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// tracker knows which marks of a batch are completely acknowledged.
// Acknowledgements come in any order; prefix moves over gap-free runs only, so
// that it never names a transaction before one that may still be lost.
//
// It is not safe for concurrent use.
type tracker struct {
	open []int32 // records per mark that are not acknowledged
	done int
}

// newTracker returns a tracker for the given number of marks, which wait for the
// given records. Marks without records are passed over when they are reached.
func newTracker(marks int, recs []txn.Record) tracker {
	t := tracker{open: make([]int32, marks)}
	for i := range recs {
		if m := recs[i].Mark; m < marks {
			t.open[m]++
		}
	}
	t.advance()
	return t
}

// ack takes one record of mark as acknowledged. Marks beyond the last are
// transactions without an end in this batch: they move nothing.
func (t *tracker) ack(mark int) {
	if mark >= len(t.open) {
		return
	}
	t.open[mark]--
	if mark == t.done {
		t.advance()
	}
}

// prefix returns the number of leading marks that are completely acknowledged.
func (t *tracker) prefix() int { return t.done }

func (t *tracker) advance() {
	for t.done < len(t.open) && t.open[t.done] == 0 {
		t.done++
	}
}
