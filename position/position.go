package position

import (
	"cmp"
	"fmt"
	"time"
)

// Commit is what one committed transaction, or a run of consecutive committed
// transactions without outbox rows, contributes to a position. Commits are small
// values; sets are made of them by Position.Advance alone.
type Commit struct {
	// GTID of the (last) transaction; zero when the source gave none.
	GTID GTID
	// First is the first sequence number of a run that ends at GTID.Seq; equal
	// to GTID.Seq for a single transaction, and zero when GTID is zero.
	First uint64
	// File and Pos are the binlog coordinates right after the transaction, on
	// the server that the stream is connected to. Pos is 64 bits wide since a
	// single transaction may push a file over 4 GiB, beyond the header's field.
	File string
	Pos  uint64
	// Created is Position.Created of File.
	Created uint32
	// Committed is the commit time on the originating server: microseconds
	// precise on MySQL 8.0.1+ (original_commit_timestamp), else whole seconds
	// from the event header. The zero time means unknown.
	Committed time.Time
	// Snapshot is set for a step through the rows that stood in the tables before
	// the start: how far that leads. Such a commit position has no GTID and no place in the
	// binlog, and is no step in it.
	Snapshot *Snapshot
	// Columns are those of tables behind the transaction, where they are others than
	// before; see Position.Columns. A commit position that has nothing else is no step.
	Columns string
}

// OnlyColumns reports whether nothing but the columns of tables became known.
func (m *Commit) OnlyColumns() bool {
	return m.Columns != "" && m.GTID.IsZero() && m.File == "" && m.Snapshot == nil
}

// Join extends m by the transaction next when both carry no outbox rows and
// count on in the same sequence, and reports whether it did. It keeps runs of
// foreign transactions at one Commit.
func (m *Commit) Join(next Commit) bool {
	switch {
	case m.Snapshot != nil || next.Snapshot != nil || m.OnlyColumns() || next.OnlyColumns():
		return false
	case m.GTID.IsZero() && next.GTID.IsZero():
		// File positions: the later one says it all.
	case m.GTID.IsZero() || next.GTID.IsZero() || !m.GTID.sameSource(next.GTID):
		return false
	case next.First != m.GTID.Seq+1:
		return false
	}
	first, columns := m.First, m.Columns
	*m = next
	m.Columns = cmp.Or(m.Columns, columns)
	if !next.GTID.IsZero() {
		m.First = first
	}
	return true
}

// AppendCommit appends m, or makes it a run with the last commit position. It is for commit positions that a
// position is then advanced over: nothing else may be between them.
func AppendCommit(commits []Commit, m Commit) []Commit {
	n := len(commits)
	switch {
	case n > 0 && commits[n-1].Join(m):
	case n > 0 && commits[n-1].Snapshot != nil && m.Snapshot != nil:
		commits[n-1] = m // the later step says it all
	default:
		commits = append(commits, m)
	}
	return commits
}

// Snapshot says how far the rows that stood in the outbox tables before the start
// are published. While a position has one, its Set, File and Pos stand still: they
// are the place in the binlog from which on rows are streamed afterwards. Tables
// come in the order of their names, the rows of one in the order of its primary
// key. A Snapshot is not changed once it is part of a position or commit position.
type Snapshot struct {
	// Database and Table name the table that is being read; all before it in the
	// order of names are done. Empty before the first.
	Database string `json:"database,omitempty"`
	Table    string `json:"table,omitempty"`
	// Key is the primary key of the last row that is published, as text, one for
	// each column of the key; nil before the table's first row.
	Key []string `json:"key,omitempty"`
	// Begun tells starts of one connector apart: its time in microseconds since 1970.
	Begun uint64 `json:"begun,omitempty"`
	// Rows is the number of rows handed on so far, of all tables.
	Rows uint64 `json:"rows"`
	// Done is set in the commit position behind the last row. A position never has it: its
	// Snapshot is nil again.
	Done bool `json:"-"`
}

// SeqGap is how much further Seq goes on where rows come next that do not follow on
// those published before: what was published after the last save, and is not known
// any more, has numbers of its own.
const SeqGap = 1_000_000_000

// Position is where a connector is: everything at or before it is published.
// The zero value means "nowhere yet". A Position is a value: copies share Set, which is
// not changed once it is part of a position.
type Position struct {
	Flavor Flavor `json:"flavor,omitempty"`
	// Server is the identity of the server whose File and Pos these are:
	// server_uuid on MySQL, "server_id 7" on MariaDB. Empty when it is not known.
	Server string `json:"server,omitempty"`
	// Set holds all executed GTIDs; nil when the source has none and File and
	// Pos alone count.
	Set  *Set   `json:"gtid_set,omitempty"`
	File string `json:"file,omitempty"`
	Pos  uint64 `json:"pos,omitempty"`
	// Created tells File from another of the same name, which a server has after a
	// reset or a restore: when it was begun, in seconds since 1970. It is kept while File
	// and Pos alone count; 0 means that it is not known.
	Created uint32 `json:"created,omitempty"`
	// Last and Committed are the fingerprint of the last transaction: a source
	// that gives the same GTID another commit time has lost and reused it.
	Last      GTID      `json:"last,omitzero"`
	Committed time.Time `json:"committed,omitzero"`
	// Partials are the transactions that are published in part and not yet as a
	// whole, none of them a member of Set, in the order in which they began. More
	// than one there are only where another server gives its transactions in another
	// order. The slice is not changed once it is part of a position.
	Partials []Partial `json:"partials,omitempty"`
	// Snapshot is nil when no rows from before the start are to be published, or all
	// of them are.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	// Columns are those that tables have here, as canal writes them: the rows behind
	// are read with them where the binlog tells no names. Empty where nothing is known.
	Columns string `json:"columns,omitempty"`
	// Seq is the number of the last published outbox row in the life of the
	// connector. No number is given to two rows; see SeqGap.
	Seq uint64 `json:"seq"`
	// InKafka says that Kafka has committed the position together with the rows
	// before it, so that Kafka must know it, or a later one.
	InKafka bool `json:"in_kafka,omitempty"`
	// OffsetOverride is the last position set by an operator that this one comes from, as
	// microseconds since 1970, or 0. It tells two stores of the same connector apart
	// of which only one knows of the choice.
	OffsetOverride uint64 `json:"offset_override,omitempty"`
}

// IsZero reports whether p names no place at all.
func (p Position) IsZero() bool {
	return (p.Set == nil || p.Set.IsEmpty()) && p.File == "" && len(p.Partials) == 0
}

// HasGTID reports whether p is to be resumed by GTID set (true) or by File and Pos.
func (p Position) HasGTID() bool { return p.Set != nil }

// Advance moves p over transactions and runs, in their order. Copies of p stay where
// they are. Advancing twice over the same commits changes nothing more.
func (p *Position) Advance(commits ...Commit) {
	own := false
	for i := range commits {
		m := &commits[i]
		p.Columns = cmp.Or(m.Columns, p.Columns)
		if m.OnlyColumns() {
			continue
		}
		if m.Snapshot != nil {
			if p.Snapshot = m.Snapshot; m.Snapshot.Done {
				p.Snapshot = nil
			}
			continue
		}
		if !m.GTID.IsZero() && p.Set != nil {
			if !own {
				p.Set, own = p.Set.Clone(), true
			}
			p.Set.AddRange(m.GTID, m.First)
		}
		if m.File != "" {
			p.File, p.Pos, p.Created = m.File, m.Pos, m.Created
		}
		p.Last, p.Committed = m.GTID, m.Committed
		p.dropWhole()
	}
}

// Covers reports whether everything published at o is also published at p.
// Positions of different kinds (GTID and file, or file positions of different
// servers or base names) do not cover each other. A file of no known server is
// taken for one of p's, as it is when it is read on.
//
// A position with snapshot rows to come covers one without only from further on in
// the binlog: its connector has begun anew there.
func (p Position) Covers(o Position) bool {
	if o.IsZero() {
		return true
	}
	if p.Set != nil && o.Set != nil {
		if !p.Set.Contains(o.Set) || !p.snapshotCovers(o) && o.Set.Contains(p.Set) {
			return false
		}
		return p.partialsCover(o)
	}
	if p.Set != nil || o.Set != nil || o.Server != "" && p.Server != o.Server {
		return false
	}
	c, err := CompareFiles(p.File, o.File)
	if err != nil || c != 0 || p.Pos != o.Pos {
		return err == nil && (c > 0 || c == 0 && p.Pos > o.Pos)
	}
	// What is published in part begins there in both.
	return p.snapshotCovers(o) && p.partialsCover(o)
}

// snapshotCovers compares how far the snapshot rows are at the same place in the binlog.
func (p Position) snapshotCovers(o Position) bool {
	switch {
	case p.Snapshot == nil:
		return true
	case o.Snapshot == nil:
		return false
	default:
		return p.Snapshot.Begun > o.Snapshot.Begun || p.Snapshot.Begun == o.Snapshot.Begun &&
			p.Snapshot.Rows >= o.Snapshot.Rows
	}
}

// String is for logs and people: the set or file:pos, with what is unfinished.
func (p Position) String() string {
	if p.Snapshot != nil {
		return fmt.Sprintf("%d snapshot rows before %s", p.Snapshot.Rows, p.place())
	}
	return p.place()
}

func (p Position) place() string {
	switch {
	case p.IsZero():
		return "none"
	case p.Set != nil && p.Set.IsEmpty() && len(p.Partials) == 0:
		return fmt.Sprintf("an empty GTID set (%s:%d)", p.File, p.Pos)
	case p.Set != nil:
		return p.Set.String() + p.unfinished()
	default:
		return fmt.Sprintf("%s:%d", p.File, p.Pos) + p.unfinished()
	}
}
