package txn

import "github.com/binlog-outbox/binlog-outbox/position"

// Group is a transaction with the records of its rows: a whole one, a run of
// consecutive ones without records, or a part of one that is too large for one batch.
type Group struct {
	Commit  position.Commit
	Records []Record
	// Skipped is how many of the rows are counted and have no record.
	Skipped uint64
	// Part is nil when the transaction ends with the group. Else it is what is published
	// of the transaction when the group is.
	Part *position.Partial
}

// Final reports whether the transaction ends with the group.
func (g *Group) Final() bool { return g.Part == nil }

// Empty reports whether nothing is counted or published of the transaction.
func (g *Group) Empty() bool { return len(g.Records) == 0 && g.Skipped == 0 && g.Final() }

// Batch is what is made durable in one go: transactions in commit order, and where the
// connector is after them.
type Batch struct {
	Groups []Group
	// Position is read only.
	Position position.Position
}

// Count is the number of records of groups.
func Count(groups []Group) int {
	n := 0
	for i := range groups {
		n += len(groups[i].Records)
	}
	return n
}

// Over returns where a connector is that was at p when groups are durable, too. A part
// of a transaction is the last of them. The error is AddPartial's.
func Over(p position.Position, groups []Group) (position.Position, error) {
	var commits []position.Commit
	for i := range groups {
		p.Seq += uint64(len(groups[i].Records)) + groups[i].Skipped
		if groups[i].Final() {
			commits = position.AppendCommit(commits, groups[i].Commit)
		}
	}
	p.Advance(commits...)
	if n := len(groups); n > 0 && !groups[n-1].Final() {
		return p, p.AddPartial(*groups[n-1].Part)
	}
	return p, nil
}
