package judge

import (
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// Entry is one record of a partition as a read_committed consumer gets it, or the
// marker that ends a transaction there.
type Entry struct {
	Offset   int64
	Producer int64
	Epoch    int16
	// Control is true for the marker of a transaction, Commit says which.
	Control, Commit bool
	Row             history.Row
	// Mark is what a record of the position topic says; nil for others.
	Mark *Mark
	// Time is when the record was made.
	Time time.Time
}

// Mark is one record of the position topic.
type Mark struct {
	// Open is true for the record of an opening, which holds no position.
	Open bool
	// Set, Seq and Partial are the position's.
	Set     *position.Set
	Seq     uint64
	Partial bool
}

// Commit is one transaction of the source's binlog, in its order.
type Commit struct {
	GTID position.GTID
	// Txn is the number that its writer gave it; 0 for those of others.
	Txn uint64
}

// Sample is what a node said of the replicated position at some moment.
type Sample struct {
	Node string
	// Life counts the processes of a node: each begins with an older state.
	Life int
	At   time.Time
	Set  *position.Set
}

// Usage is what a process holds.
type Usage struct {
	Goroutines, Files int
	RSS               int64 // bytes
}

// Process is a node's process at rest, before and after the faults.
type Process struct {
	Node          string
	Before, After Usage
}

// Ends are the last offsets of a partition: for a read_committed consumer, and all.
type Ends struct {
	Topic        string
	Partition    int32
	Stable, High int64
}

// Evidence is all that a run left behind.
type Evidence struct {
	// Journal is what the writers wrote, by number.
	Journal map[uint64]*history.Txn
	Binlog  []Commit
	// Executed is gtid_executed of the source.
	Executed *position.Set
	// Data has one list for each partition, Positions is the position topic.
	Data      [][]Entry
	Positions []Entry
	// Live is what a consumer saw while the faults were on, by partition.
	Live    [][]Entry
	Samples []Sample
	// Final are the positions that the nodes hold in the end, by node.
	Final     map[string]*position.Set
	Ends      []Ends
	Processes []Process
}
