package position_test

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Columns go with the position until a mark tells others; a mark of nothing else is no step.
func TestColumnsGoWithThePosition(t *testing.T) {
	for _, set := range []*position.Set{nil, position.NewSet(position.MySQL)} {
		p := position.Position{Set: set, File: "binlog.000001", Pos: 4}
		mark := func(pos uint64, columns string) position.Mark {
			m := position.Mark{File: "binlog.000001", Pos: pos, Columns: columns}
			if set != nil {
				m.GTID = position.GTID{SID: [16]byte{1}, Seq: pos}
				m.First = pos
			}
			return m
		}
		p.Advance(mark(10, ""))
		last := p.Last
		p.Advance(position.Mark{Columns: "a"})
		if p.Columns != "a" || p.Pos != 10 || p.Last != last {
			t.Errorf("got %+v", p)
		}
		var marks []position.Mark
		for _, m := range []position.Mark{{Columns: "b"}, mark(11, ""), mark(12, "c"), mark(13, ""), {Columns: "d"}, mark(14, "")} {
			marks = position.AppendMark(marks, m)
		}
		if len(marks) != 4 {
			t.Errorf("the marks are joined to %+v", marks)
		}
		q := p
		for i, want := range []string{"b", "c", "d", "d"} {
			if q.Advance(marks[i]); q.Columns != want {
				t.Errorf("after mark %d: columns %s, want %s", i, q.Columns, want)
			}
		}
		if q.Pos != 14 || p.Columns != "a" {
			t.Errorf("got %+v, and before %+v", q, p)
		}
	}
}
