package position_test

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Columns go with the position until a commit position tells others; a commit position of nothing else is no step.
func TestColumnsGoWithThePosition(t *testing.T) {
	for _, set := range []*position.Set{nil, position.NewSet(position.MySQL)} {
		p := position.Position{Set: set, File: "binlog.000001", Pos: 4}
		commit := func(pos uint64, columns string) position.Commit {
			m := position.Commit{File: "binlog.000001", Pos: pos, Columns: columns}
			if set != nil {
				m.GTID = position.GTID{SID: [16]byte{1}, Seq: pos}
				m.First = pos
			}
			return m
		}
		p.Advance(commit(10, ""))
		last := p.Last
		p.Advance(position.Commit{Columns: "a"})
		if p.Columns != "a" || p.Pos != 10 || p.Last != last {
			t.Errorf("got %+v", p)
		}
		var commits []position.Commit
		for _, m := range []position.Commit{{Columns: "b"}, commit(11, ""), commit(12, "c"), commit(13, ""), {Columns: "d"},
			commit(14, "")} {
			commits = position.AppendCommit(commits, m)
		}
		if len(commits) != 4 {
			t.Errorf("the commit positions are joined to %+v", commits)
		}
		q := p
		for i, want := range []string{"b", "c", "d", "d"} {
			if q.Advance(commits[i]); q.Columns != want {
				t.Errorf("after mark %d: columns %s, want %s", i, q.Columns, want)
			}
		}
		if q.Pos != 14 || p.Columns != "a" {
			t.Errorf("got %+v, and before %+v", q, p)
		}
	}
}
