package position

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotCovers(t *testing.T) {
	at := func(set string, in *Snapshot) Position {
		return Position{Flavor: MySQL, Set: mustSet(t, MySQL, set), File: "b.000001", Pos: 9, Snapshot: in}
	}
	file := func(pos uint64, in *Snapshot) Position {
		return Position{Server: "s", File: "b.000001", Pos: pos, Snapshot: in}
	}
	rows := func(n uint64) *Snapshot {
		return &Snapshot{Database: "shop", Table: "outbox", Key: []string{"7"}, Rows: n}
	}
	const g, later = uuidA + ":1-5", uuidA + ":1-6"
	for _, c := range []struct {
		name string
		p, o Position
		want bool
	}{
		{"further in the rows", at(g, rows(3)), at(g, rows(2)), true},
		{"the same", at(g, rows(2)), at(g, rows(2)), true},
		{"behind in the rows", at(g, rows(1)), at(g, rows(2)), false},
		{"done", at(g, nil), at(g, rows(2)), true},
		{"not done", at(g, rows(2)), at(g, nil), false},
		{"streaming", at(later, nil), at(g, rows(2)), true},
		{"streamed", at(g, rows(2)), at(later, nil), false},
		{"begun anew", at(later, rows(0)), at(g, nil), true},
		{"begun anew, by rows", at(later, rows(0)), at(g, rows(7)), true},
		{"file: further in the rows", file(9, rows(3)), file(9, rows(2)), true},
		{"file: behind in the rows", file(9, rows(1)), file(9, rows(2)), false},
		{"file: not done", file(9, rows(1)), file(9, nil), false},
		{"file: streaming", file(10, nil), file(9, rows(1)), true},
		{"file: begun anew", file(10, rows(0)), file(9, nil), true},
		{"file: before", file(8, nil), file(9, rows(1)), false},
	} {
		if got := c.p.Covers(c.o); got != c.want {
			t.Errorf("%s: %s covers %s: %t", c.name, c.p, c.o, got)
		}
	}
}

// A commit position of snapshot rows moves nothing but them, and the last one ends them.
func TestSnapshotAdvance(t *testing.T) {
	p := Position{Set: mustSet(t, MySQL, uuidA+":1-5"), File: "b.000001", Pos: 9, Snapshot: &Snapshot{},
		Last: mustGTID(t, uuidA+":5")}
	before := p
	step := &Snapshot{Database: "shop", Table: "outbox", Key: []string{"7", "x"}, Rows: 3}
	p.Advance(Commit{Snapshot: step})
	if p.Snapshot != step || p.String() != "3 snapshot rows before "+uuidA+":1-5" {
		t.Errorf("after a step: %s", p)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Position
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Snapshot, back.Snapshot); diff != "" {
		t.Errorf("stored and read back:\n%s", diff)
	}
	p.Advance(Commit{Snapshot: &Snapshot{Rows: 3, Done: true}})
	if p.Snapshot != nil || !p.Set.Equal(before.Set) || p.File != before.File || p.Pos != before.Pos ||
		p.Last != before.Last {
		t.Errorf("at the end: %+v", p)
	}
}

// Decisions about single rows name snapshot rows too: of this start, by their number.
func TestSnapshotRowsHaveNames(t *testing.T) {
	r := Commit{Snapshot: &Snapshot{Begun: 1_700_000_000_000_000, Rows: 7, Database: "shop", Table: "outbox"}}.Row(0)
	back, err := ParseRow(r.String())
	if err != nil || back != r || !r.IsSnapshot() || r.String() != "snapshot:1700000000000000:7#1" {
		t.Errorf("%s reads as %v, %v", r, back, err)
	}
	at := func(begun, rows uint64) Position {
		return Position{Set: mustSet(t, MySQL, uuidA+":1-5"), Snapshot: &Snapshot{Begun: begun, Rows: rows}}
	}
	for _, c := range []struct {
		name string
		p    Position
		want bool
	}{
		{"before it", at(1_700_000_000_000_000, 6), false},
		{"at it", at(1_700_000_000_000_000, 7), true},
		{"all done", Position{Set: mustSet(t, MySQL, uuidA+":1-5")}, true},
		{"a later start", at(1_700_000_000_000_001, 0), true},
		{"an earlier start", at(1_600_000_000_000_000, 99), false},
	} {
		if got := c.p.CoversRow(r); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if (Row{File: "binlog.000001", Pos: 4}).IsSnapshot() {
		t.Error("a binlog's row is no snapshot row")
	}
}

func TestSnapshotMarksDoNotJoin(t *testing.T) {
	m := Commit{Snapshot: &Snapshot{Rows: 1}}
	if m.Join(Commit{Snapshot: &Snapshot{Rows: 2}}) || m.Join(Commit{File: "b.000001", Pos: 9}) {
		t.Error("a commit position of snapshot rows was joined")
	}
	plain := Commit{File: "b.000001", Pos: 9}
	if plain.Join(m) {
		t.Error("a commit position of snapshot rows joined another")
	}
}
