package position

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func server(n int) uuid.UUID {
	id := uuid.MustParse(uuidA)
	binary.BigEndian.PutUint16(id[:], uint16(n))
	return id
}

// Sets share what they have in common, and still each is what was put into it.
func TestCopiesAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type family struct {
			set  *Set
			want map[GTID]bool
		}
		all := []family{{NewSet(MySQL), map[GTID]bool{}}}
		one := rapid.Custom(func(t *rapid.T) GTID {
			return GTID{SID: server(rapid.IntRange(0, 20).Draw(t, "server")), Seq: rapid.Uint64Range(1, 12).Draw(t, "seq")}
		})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			f := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
			switch g := one.Draw(t, "gtid"); rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				all = append(all, family{f.set.Clone(), maps.Clone(f.want)})
			case 1:
				f.set.Remove(g)
				delete(f.want, g)
			case 2:
				o := all[rapid.IntRange(0, len(all)-1).Draw(t, "other")]
				f.set.AddSet(o.set)
				maps.Copy(f.want, o.want)
			default:
				f.set.Add(g)
				f.want[g] = true
			}
		}
		for _, f := range all {
			want := NewSet(MySQL)
			for g := range f.want {
				want.Add(g)
			}
			if f.set.String() != want.String() || !f.set.Equal(want) || f.set.Count() != uint64(len(f.want)) {
				t.Fatalf("%s, want %s", f.set, want)
			}
			var sources []uuid.UUID
			for g := range f.want {
				if !slices.Contains(sources, g.SID) {
					sources = append(sources, g.SID)
				}
			}
			if got := len(f.set.Sources()); got < len(sources) {
				t.Fatalf("%d servers, want %d", got, len(sources))
			}
			// What differs is found whatever they share.
			for _, o := range all {
				alone, err := ParseSet(MySQL, o.set.String())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := f.set.Subtract(o.set), want.Subtract(alone); got.String() != want.String() {
					t.Fatalf("%s without %s: %s, want %s", f.set, o.set, got, want)
				}
			}
		}
	})
}

func BenchmarkClone(b *testing.B) {
	s := NewSet(MySQL)
	for i := range 500 {
		for j := range 20 {
			s.Add(GTID{SID: server(i), Seq: uint64(j*10 + 1)})
		}
	}
	text, err := ParseSet(MySQL, s.String()) // as it is read from a server
	if err != nil {
		b.Fatal(err)
	}
	text.Add(GTID{SID: server(3), Seq: 1000})
	b.ReportAllocs()
	for b.Loop() {
		text.Clone()
	}
}
