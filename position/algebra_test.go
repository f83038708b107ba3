package position

import (
	"testing"

	"github.com/google/uuid"
)

func TestSetAlgebra(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	set := func(f Flavor, text string) *Set {
		t.Helper()
		s, err := ParseSet(f, text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	isA := func(id uuid.UUID) bool { return id.String() == a }
	for _, c := range []struct {
		name   string
		flavor Flavor
		do     func(s *Set) *Set
		from   string
		want   string
	}{
		{"add", MySQL, func(s *Set) *Set { s.AddSet(set(MySQL, a+":4-6:9,"+b+":1")); return s }, a + ":1-3:x:1",
			b + ":1," + a + ":1-6:9:x:1"},
		{"add the other flavor", MySQL, func(s *Set) *Set { s.AddSet(set(MariaDB, "0-1-5")); return s }, a + ":1", a + ":1"},
		{"add MariaDB", MariaDB, func(s *Set) *Set { s.AddSet(set(MariaDB, "0-2-7,1-1-1,2-1-9")); return s }, "0-1-5,1-1-4",
			"0-2-7,1-1-4,2-1-9"},
		{"of one source", MySQL, func(s *Set) *Set { return s.Of(isA) }, a + ":1-3:x:1," + b + ":1", a + ":1-3:x:1"},
		{"in both", MySQL, func(s *Set) *Set { return s.Intersect(set(MySQL, a+":3-5:8")) }, a + ":1-4:7-9," + b + ":1",
			a + ":3-4:8"},
		{"remove the last", MySQL, func(s *Set) *Set { s.Remove(GTID{SID: uuid.MustParse(a), Seq: 9}); return s }, a + ":1-9",
			a + ":1-8"},
		{"remove from the middle", MySQL, func(s *Set) *Set { s.Remove(GTID{SID: uuid.MustParse(a), Seq: 5}); return s },
			a + ":1-9," + b + ":5", b + ":5," + a + ":1-4:6-9"},
		{"remove a tagged one", MySQL, func(s *Set) *Set {
			s.Remove(GTID{SID: uuid.MustParse(a), Tag: "x",
				Seq: 1})
			return s
		}, a + ":1-3:x:1", a + ":1-3"},
		{"remove the only one", MySQL, func(s *Set) *Set { s.Remove(GTID{SID: uuid.MustParse(a), Seq: 1}); return s },
			a + ":1", ""},
		{"MariaDB, back by one", MariaDB, func(s *Set) *Set { s.Remove(GTID{Server: 1, Seq: 5}); return s }, "0-1-5,1-1-5",
			"0-1-4,1-1-5"},
		{"MariaDB, the first", MariaDB, func(s *Set) *Set { s.Remove(GTID{Domain: 1, Server: 1, Seq: 1}); return s },
			"0-1-5,1-1-1", "0-1-5"},
		{"MariaDB, not there", MariaDB, func(s *Set) *Set { s.Remove(GTID{Server: 1, Seq: 4}); return s }, "0-1-5", "0-1-5"},
	} {
		before := set(c.flavor, c.from)
		other := before.Clone()
		if got := c.do(before); got.String() != set(c.flavor, c.want).String() {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if other.String() != set(c.flavor, c.from).String() {
			t.Errorf("%s: a copy has changed", c.name)
		}
	}
}
