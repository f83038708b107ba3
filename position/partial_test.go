package position

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func inserted(n uint64) []KindRows { return []KindRows{kind("outbox", "insert", n)} }

func kind(table, op string, n uint64) KindRows {
	return KindRows{Kind{Database: "shop", Table: table, Op: op}, n}
}

// Each kind of rows is compared by itself: with other tables or operations the sum
// says nothing.
func TestPartsAreCoveredKindByKind(t *testing.T) {
	at := func(rows ...KindRows) Position {
		return Position{Set: mustSet(t, MySQL, uuidA+":1-8"), Partials: []Partial{{GTID: mustGTID(t, uuidA+":9"),
			Rows: rows}}}
	}
	for _, tt := range []struct {
		name string
		p, o Position
		want bool
	}{
		{"the same", at(kind("a", "insert", 5), kind("b", "insert", 2)), at(kind("b", "insert", 2), kind("a", "insert", 5)),
			true},
		{"more of one", at(kind("a", "insert", 5)), at(kind("a", "insert", 4)), true},
		{"a table less, more in all", at(kind("a", "insert", 50)), at(kind("a", "insert", 5), kind("b", "insert", 1)), false},
		{"another operation", at(kind("a", "insert", 50)), at(kind("a", "update", 1)), false},
		{"another database", at(KindRows{Kind{"shop2", "a", "insert"}, 9}), at(kind("a", "insert", 1)), false},
	} {
		if got := tt.p.Covers(tt.o); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What is known of a transaction only grows, whatever is counted later; others that
// are published in part stay, until they are whole.
func TestAddPartial(t *testing.T) {
	nine, ten := mustGTID(t, uuidA+":9"), mustGTID(t, uuidA+":10")
	p := Position{Flavor: MySQL, Set: mustSet(t, MySQL, uuidA+":1-8")}
	add := func(part Partial) {
		t.Helper()
		before := p
		if err := p.AddPartial(part); err != nil {
			t.Fatal(err)
		}
		if !p.Covers(before) {
			t.Errorf("%s does not cover %s", p, before)
		}
	}
	add(Partial{GTID: nine, Rows: []KindRows{kind("a", "insert", 5), kind("b", "insert", 7)}})
	first := p
	add(Partial{GTID: ten, Rows: inserted(1)})
	add(Partial{GTID: nine, Rows: []KindRows{kind("a", "insert", 3), kind("c", "insert", 1), kind("b", "insert", 8)}})
	raw, err := json.Marshal(p.Partials)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &p.Partials); err != nil {
		t.Fatal(err)
	}
	got := p.PartialOf(nine)
	for _, want := range []KindRows{kind("a", "insert", 5), kind("b", "insert", 8), kind("c", "insert", 1),
		kind("d", "insert", 0)} {
		if n := got.Of(want.Kind); n != want.N {
			t.Errorf("%d rows of %v, want %d", n, want.Kind, want.N)
		}
	}
	if len(p.Partials) != 2 || got.Total() != 14 || !strings.HasSuffix(p.String(),
		"and 14 rows of "+nine.String()+" and 1 rows of "+ten.String()) {
		t.Errorf("%s", p)
	}
	if n := first.PartialOf(nine).Total(); n != 12 || len(first.Partials) != 1 {
		t.Errorf("a copy has changed: %s", first)
	}
	p.Advance(Commit{GTID: nine, First: 9})
	if p.PartialOf(nine) != nil || p.PartialOf(ten) == nil {
		t.Errorf("after the whole of %s: %s", nine, p)
	}
}

func TestPartialsAreBounded(t *testing.T) {
	p := Position{Flavor: MySQL, Set: NewSet(MySQL)}
	for n := range MaxPartials {
		if err := p.AddPartial(Partial{GTID: mustGTID(t, fmt.Sprintf("%s:%d", uuidA, n+1)), Rows: inserted(1)}); err != nil {
			t.Fatal(err)
		}
	}
	before := p
	if err := p.AddPartial(Partial{GTID: mustGTID(t, uuidB+":1"), Rows: inserted(1)}); err == nil ||
		!strings.Contains(err.Error(), uuidA+":1") {
		t.Errorf("one more: %v", err)
	}
	if err := p.AddPartial(Partial{GTID: mustGTID(t, uuidA+":3"), Rows: inserted(2)}); err != nil || !p.Covers(before) {
		t.Errorf("more of a known one: %v, %s", err, p)
	}
}
