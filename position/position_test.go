package position

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	uuidA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	uuidB = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
)

func mustSet(t testing.TB, f Flavor, text string) *Set {
	t.Helper()
	s, err := ParseSet(f, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustGTID(t testing.TB, text string) GTID {
	t.Helper()
	g, err := ParseGTID(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A tagged GTID followed by an untagged one must leave both where they belong:
// dropping the tag claims a transaction that has not run yet.
func TestB006TagIsNotDropped(t *testing.T) {
	p := Position{Set: NewSet(MySQL)}
	for _, text := range []string{uuidA + ":app:5", uuidA + ":1"} {
		g := mustGTID(t, text)
		p.Advance(Commit{GTID: g, First: g.Seq})
	}
	if got, want := p.Set.String(), uuidA+":1:app:5"; got != want {
		t.Fatalf("set is %s, want %s", got, want)
	}
	if p.Set.Has(mustGTID(t, uuidA+":5")) {
		t.Fatal("the untagged transaction 5 is claimed, but only app:5 was read")
	}
}

func TestB007TaggedSetsRoundTrip(t *testing.T) {
	for _, text := range []string{
		uuidA + ":1-9:mysqlsh:1-2",
		uuidA + ":mysqlsh:1-2," + uuidB + ":4",
		uuidA + ":1-3:5-9:a:1:b:2-3",
	} {
		s := mustSet(t, MySQL, text)
		if got := s.String(); got != text {
			t.Errorf("printed %s, want %s", got, text)
		}
		raw, err := json.Marshal(Position{Flavor: MySQL, Set: s})
		if err != nil {
			t.Fatal(err)
		}
		var back Position
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if !back.Set.Equal(s) {
			t.Errorf("stored and read back: %s, want %s", back.Set, s)
		}
	}
	purged := mustSet(t, MySQL, uuidA+":1-9:mysqlsh:1-3")
	missing := purged.Subtract(mustSet(t, MySQL, uuidA+":1-9:mysqlsh:1-2"))
	if got, want := missing.String(), uuidA+":mysqlsh:3"; got != want {
		t.Errorf("difference is %s, want %s", got, want)
	}
}

// A gap is a transaction that is still to come; it must survive advancing,
// printing, storing and merging.
func TestB008GapsStay(t *testing.T) {
	p := Position{Flavor: MySQL, Set: mustSet(t, MySQL, uuidA+":1-7")}
	g9 := mustGTID(t, uuidA+":9")
	p.Advance(Commit{GTID: g9, First: 9})
	if got, want := p.Set.String(), uuidA+":1-7:9"; got != want {
		t.Fatalf("set is %s, want %s", got, want)
	}
	g8 := mustGTID(t, uuidA+":8")
	if p.Set.Has(g8) {
		t.Fatal("transaction 8 is claimed although it was not read")
	}
	p.Advance(Commit{GTID: g8, First: 8})
	if got, want := p.Set.String(), uuidA+":1-9"; got != want {
		t.Fatalf("set is %s, want %s", got, want)
	}
}

func TestB017FileNamesAreOrderedByNumber(t *testing.T) {
	tests := []struct {
		a, b string
		want int
		err  bool
	}{
		{"binlog.999999", "binlog.1000000", -1, false},
		{"binlog.000002", "binlog.000002", 0, false},
		{"binlog.000010", "binlog.000009", 1, false},
		{"mysql-bin.000001", "binlog.000002", 0, true},
		{"binlog", "binlog.000002", 0, true},
	}
	for _, tt := range tests {
		got, err := CompareFiles(tt.a, tt.b)
		if got != tt.want || (err != nil) != tt.err {
			t.Errorf("CompareFiles(%s, %s) = %d, %v", tt.a, tt.b, got, err)
		}
	}
}

func TestCommitsOfForeignTransactionsJoin(t *testing.T) {
	g := func(s string) GTID { return mustGTID(t, s) }
	at := func(s string, first uint64) Commit {
		return Commit{GTID: g(s), First: first, File: "b.000001", Pos: 10 * first}
	}
	tests := []struct {
		name      string
		a, b      Commit
		join      bool
		wantFirst uint64
	}{
		{"next number", at(uuidA+":5", 3), at(uuidA+":6", 6), true, 3},
		{"a gap", at(uuidA+":5", 3), at(uuidA+":7", 7), false, 3},
		{"another source", at(uuidA+":5", 3), at(uuidB+":6", 6), false, 3},
		{"another tag", at(uuidA+":5", 3), at(uuidA+":t:6", 6), false, 3},
		{"file positions", Commit{File: "b.000001", Pos: 4}, Commit{File: "b.000002", Pos: 4}, true, 0},
		{"GTID after none", Commit{File: "b.000001", Pos: 4}, at(uuidA+":6", 6), false, 0},
		{"MariaDB, other server of the domain", at("0-1-5", 5), at("0-2-6", 6), true, 5},
	}
	for _, tt := range tests {
		m := tt.a
		if got := m.Join(tt.b); got != tt.join {
			t.Errorf("%s: joined %v, want %v", tt.name, got, tt.join)
		}
		if m.First != tt.wantFirst {
			t.Errorf("%s: run begins at %d, want %d", tt.name, m.First, tt.wantFirst)
		}
		if tt.join && (m.GTID != tt.b.GTID || m.Pos != tt.b.Pos || m.File != tt.b.File) {
			t.Errorf("%s: run ends at %+v, want %+v", tt.name, m, tt.b)
		}
	}
}

func TestCovers(t *testing.T) {
	set := func(text string) Position { return Position{Flavor: MySQL, Set: mustSet(t, MySQL, text)} }
	part := func(text, gtid string, rows uint64) Position {
		p := set(text)
		p.Partials = []Partial{{GTID: mustGTID(t, gtid), Rows: inserted(rows)}}
		return p
	}
	file := func(server, name string, pos uint64) Position {
		return Position{Server: server, File: name, Pos: pos}
	}
	filePart := func(server, name string, pos, rows uint64) Position {
		p := file(server, name, pos)
		p.Partials = []Partial{{Rows: inserted(rows)}}
		return p
	}
	tests := []struct {
		name string
		p, o Position
		want bool
	}{
		{"anything covers nothing", set(uuidA + ":1"), Position{}, true},
		{"superset", set(uuidA + ":1-9"), set(uuidA + ":1-8"), true},
		{"subset", set(uuidA + ":1-8"), set(uuidA + ":1-9"), false},
		{"side by side", set(uuidA + ":1-8"), set(uuidB + ":1"), false},
		{"more rows of the same transaction", part(uuidA+":1-8", uuidA+":9", 20), part(uuidA+":1-8", uuidA+":9", 10), true},
		{"fewer rows of the same transaction", part(uuidA+":1-8", uuidA+":9", 10), part(uuidA+":1-8", uuidA+":9", 20), false},
		{"whole after part", set(uuidA + ":1-9"), part(uuidA+":1-8", uuidA+":9", 20), true},
		{"part lost", set(uuidA + ":1-8"), part(uuidA+":1-8", uuidA+":9", 20), false},
		{"later file", file("s", "b.000010", 4), file("s", "b.000009", 900), true},
		{"earlier in file", file("s", "b.000009", 4), file("s", "b.000009", 900), false},
		{"other server's file", file("s", "b.000010", 4), file("r", "b.000009", 900), false},
		{"a file of no known server", file("s", "b.000010", 4), file("", "b.000009", 900), true},
		{"of no known server over a server's", file("", "b.000010", 4), file("s", "b.000009", 900), false},
		{"more rows at the same place", filePart("s", "b.000009", 4, 20), filePart("s", "b.000009", 4, 10), true},
		{"fewer rows at the same place", filePart("s", "b.000009", 4, 10), filePart("s", "b.000009", 4, 20), false},
		{"no rows at the same place", file("s", "b.000009", 4), filePart("s", "b.000009", 4, 20), false},
		{"a later place after part", file("s", "b.000009", 5), filePart("s", "b.000009", 4, 20), true},
		{"file against set", file("s", "b.000010", 4), set(uuidA + ":1"), false},
	}
	for _, tt := range tests {
		if got := tt.p.Covers(tt.o); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMariaDBPositionMovesWithTheBinlog(t *testing.T) {
	s := mustSet(t, MariaDB, "0-1-100,1-1-7")
	s.Add(mustGTID(t, "0-2-101"))
	if got, want := s.String(), "0-2-101,1-1-7"; got != want {
		t.Fatalf("position is %s, want %s", got, want)
	}
	if rest := s.Subtract(mustSet(t, MariaDB, "0-1-101")); rest.String() != "1-1-7" {
		t.Fatalf("difference is %s, want 1-1-7", rest)
	}
}

// What is published of a transaction in part is known until the whole of it is,
// also when another server gives other transactions first.
func TestPartIsKnownUntilTheWhole(t *testing.T) {
	g := func(text string) GTID { return mustGTID(t, text) }
	for _, tt := range []struct {
		name   string
		from   Position
		commit Commit
		kept   bool
	}{
		{"another transaction", Position{Set: mustSet(t, MySQL, uuidA+":1-8"),
			Partials: []Partial{{GTID: g(uuidA + ":10"), Rows: inserted(5)}}}, Commit{GTID: g(uuidA + ":9"), First: 9}, true},
		{"another server's", Position{Set: mustSet(t, MySQL, uuidA+":1-9"),
			Partials: []Partial{{GTID: g(uuidA + ":10"), Rows: inserted(5)}}}, Commit{GTID: g(uuidB + ":1"), First: 1}, true},
		{"another domain's", Position{Set: mustSet(t, MariaDB, "0-1-9"), Partials: []Partial{{GTID: g("0-1-10"),
			Rows: inserted(5)}}}, Commit{GTID: g("1-1-3"), First: 3}, true},
		{"the transaction", Position{Set: mustSet(t, MySQL, uuidA+":1-9"),
			Partials: []Partial{{GTID: g(uuidA + ":10"), Rows: inserted(5)}}}, Commit{GTID: g(uuidA + ":10"), First: 10}, false},
		{"a run with it", Position{Set: mustSet(t, MySQL, uuidA+":1-8"), Partials: []Partial{{GTID: g(uuidA + ":9"),
			Rows: inserted(5)}}}, Commit{GTID: g(uuidA + ":10"), First: 9}, false},
		{"by file", Position{File: "b.000001", Pos: 4, Partials: []Partial{{Rows: inserted(5)}}},
			Commit{File: "b.000001", Pos: 200}, false},
	} {
		p := tt.from
		p.Advance(tt.commit)
		if (p.Partials != nil) != tt.kept {
			t.Errorf("%s: what is published in part is %+v", tt.name, p.Partials)
		}
		if tt.kept && !p.Covers(tt.from) {
			t.Errorf("%s: %s does not cover %s", tt.name, p, tt.from)
		}
	}
}

func TestPositionSurvivesStorage(t *testing.T) {
	p := Position{
		Flavor: MySQL, Server: uuidA, Set: mustSet(t, MySQL, uuidA+":1-8"), File: "b.000003", Pos: 5 << 32,
		Last: mustGTID(t, uuidA+":8"), Committed: time.UnixMicro(1764512345678901).UTC(),
		Partials: []Partial{{GTID: mustGTID(t, uuidA+":9"), Rows: inserted(50000)}}, Seq: 77,
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Position
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if !back.Covers(p) || !p.Covers(back) || back.Last != p.Last || !back.Committed.Equal(p.Committed) ||
		back.File != p.File || back.Pos != p.Pos || back.Server != p.Server || back.Seq != p.Seq {
		t.Fatalf("read back %+v from %s", back, raw)
	}
	clone := p
	clone.Advance(Commit{GTID: mustGTID(t, uuidA+":9"), First: 9})
	if p.Set.Has(mustGTID(t, uuidA+":9")) || p.Partials == nil {
		t.Fatal("a copy moves with the original")
	}
}

func TestRefusedTexts(t *testing.T) {
	for _, text := range []string{"x", "1-2", "1-2-0", "1-2-x", uuidA, uuidA + ":", uuidA + ":0", uuidA + ":a:b:1",
		"1--3"} {
		if g, err := ParseGTID(text); err == nil {
			t.Errorf("ParseGTID(%q) = %v, want an error", text, g)
		}
	}
	var s Set
	for _, text := range []string{"", "mysql", "oracle/" + uuidA + ":1", "mysql/" + uuidA} {
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("stored set %q was accepted", text)
		}
	}
}

// The set behaves as a mathematical set of (source, tag, number), whatever the
// order in which transactions arrive.
func TestSetAgainstModel(t *testing.T) {
	sids := []string{uuidA, uuidB}
	tags := []string{"", "app"}
	gen := rapid.Custom(func(t *rapid.T) GTID {
		g := mustGTIDRapid(t, rapid.SampledFrom(sids).Draw(t, "sid")+":1")
		g.Tag = rapid.SampledFrom(tags).Draw(t, "tag")
		g.Seq = rapid.Uint64Range(1, 24).Draw(t, "seq")
		return g
	})
	rapid.Check(t, func(t *rapid.T) {
		s, o := NewSet(MySQL), NewSet(MySQL)
		inS, inO := map[GTID]bool{}, map[GTID]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			g := gen.Draw(t, "g")
			first := rapid.Uint64Range(1, g.Seq).Draw(t, "first")
			into, model := s, inS
			if rapid.Bool().Draw(t, "other") {
				into, model = o, inO
			}
			into.AddRange(g, first)
			for q := first; q <= g.Seq; q++ {
				m := g
				m.Seq = q
				model[m] = true
			}
		}
		rest := s.Subtract(o)
		var count uint64
		contains := true
		for g := range inO {
			contains = contains && inS[g]
		}
		for _, sid := range sids {
			for _, tag := range tags {
				for q := uint64(1); q <= 24; q++ {
					g := mustGTIDRapid(t, sid+":1")
					g.Tag, g.Seq = tag, q
					if s.Has(g) != inS[g] {
						t.Fatalf("Has(%s) = %v, want %v in %s", g, s.Has(g), inS[g], s)
					}
					if want := inS[g] && !inO[g]; rest.Has(g) != want {
						t.Fatalf("%s minus %s = %s: Has(%s) want %v", s, o, rest, g, want)
					}
					if inS[g] {
						count++
					}
				}
			}
		}
		if s.Contains(o) != contains {
			t.Fatalf("%s contains %s = %v, want %v", s, o, s.Contains(o), contains)
		}
		if s.Count() != count {
			t.Fatalf("count of %s is %d, want %d", s, s.Count(), count)
		}
		back := NewSet(MySQL)
		text, _ := s.MarshalText()
		if err := back.UnmarshalText(text); err != nil || !back.Equal(s) {
			t.Fatalf("%s read back as %s, %v", text, back, err)
		}
	})
}

func mustGTIDRapid(t *rapid.T, text string) GTID {
	g, err := ParseGTID(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func BenchmarkAdvance(b *testing.B) {
	s := NewSet(MySQL)
	for i := range 500 {
		g := mustGTID(b, uuidA+":1")
		g.SID[0], g.SID[1] = byte(i), byte(i>>8)
		for j := range 20 {
			g.Seq = uint64(j*10 + 1)
			s.Add(g)
		}
	}
	p := Position{Set: s}
	g := mustGTID(b, uuidB+":1")
	b.ReportAllocs()
	for b.Loop() {
		g.Seq++
		p.Advance(Commit{GTID: g, First: g.Seq, File: "b.000001", Pos: g.Seq})
	}
}

func TestBeyond(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
	for _, c := range []struct {
		flavor Flavor
		s, o   string
		want   uint64
	}{
		{MySQL, a + ":1-10", a + ":1-4", 6},
		{MySQL, a + ":1-10," + b + ":5", a + ":3-12", 3},
		{MySQL, a + ":1-4", a + ":1-10", 0},
		{MySQL, "", a + ":1", 0},
		{MariaDB, "0-1-10,1-1-5", "0-2-7", 8},
		{MariaDB, "0-1-10", "0-1-12", 0},
	} {
		s, err := ParseSet(c.flavor, c.s)
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseSet(c.flavor, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Beyond(o); got != c.want {
			t.Errorf("%s beyond %s: %d, want %d", c.s, c.o, got, c.want)
		}
	}
}
