package position

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInitialCovers(t *testing.T) {
	at := func(set string, in *Initial) Position {
		return Position{Flavor: MySQL, Set: mustSet(t, MySQL, set), File: "b.000001", Pos: 9, Initial: in}
	}
	file := func(pos uint64, in *Initial) Position {
		return Position{Server: "s", File: "b.000001", Pos: pos, Initial: in}
	}
	rows := func(n uint64) *Initial {
		return &Initial{Database: "shop", Table: "outbox", Key: []string{"7"}, Rows: n}
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

// A mark of initial rows moves nothing but them, and the last one ends them.
func TestInitialAdvance(t *testing.T) {
	p := Position{Set: mustSet(t, MySQL, uuidA+":1-5"), File: "b.000001", Pos: 9, Initial: &Initial{}, Last: mustGTID(t, uuidA+":5")}
	before := p
	step := &Initial{Database: "shop", Table: "outbox", Key: []string{"7", "x"}, Rows: 3}
	p.Advance(Mark{Initial: step})
	if p.Initial != step || p.String() != "3 initial rows before "+uuidA+":1-5" {
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
	if diff := cmp.Diff(p.Initial, back.Initial); diff != "" {
		t.Errorf("stored and read back:\n%s", diff)
	}
	p.Advance(Mark{Initial: &Initial{Rows: 3, Done: true}})
	if p.Initial != nil || !p.Set.Equal(before.Set) || p.File != before.File || p.Pos != before.Pos || p.Last != before.Last {
		t.Errorf("at the end: %+v", p)
	}
}

// Decisions about single rows name initial rows too: of this start, by their number.
func TestInitialRowsHaveNames(t *testing.T) {
	r := Mark{Initial: &Initial{Begun: 1_700_000_000_000_000, Rows: 7, Database: "shop", Table: "outbox"}}.Row(0)
	back, err := ParseRow(r.String())
	if err != nil || back != r || !r.IsInitial() || r.String() != "initial:1700000000000000:7#1" {
		t.Errorf("%s reads as %v, %v", r, back, err)
	}
	at := func(begun, rows uint64) Position {
		return Position{Set: mustSet(t, MySQL, uuidA+":1-5"), Initial: &Initial{Begun: begun, Rows: rows}}
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
	if (Row{File: "binlog.000001", Pos: 4}).IsInitial() {
		t.Error("a binlog's row is no initial row")
	}
}

func TestInitialMarksDoNotJoin(t *testing.T) {
	m := Mark{Initial: &Initial{Rows: 1}}
	if m.Join(Mark{Initial: &Initial{Rows: 2}}) || m.Join(Mark{File: "b.000001", Pos: 9}) {
		t.Error("a mark of initial rows was joined")
	}
	plain := Mark{File: "b.000001", Pos: 9}
	if plain.Join(m) {
		t.Error("a mark of initial rows joined another")
	}
}
