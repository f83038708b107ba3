package txn

import (
	"strings"
	"testing"
)

func TestArenaKeepsWhatItMade(t *testing.T) {
	var a Arena
	for round := range 3 {
		var made [][]byte
		var want []string
		for i := range 500 {
			s := strings.Repeat(string(rune('a'+i%26)), (i*i*31)%5000)
			if i%100 == 99 {
				s = strings.Repeat("L", 3*arenaChunk)
			}
			made, want = append(made, a.Keep(append(a.Room(), s...))), append(want, s)
		}
		for i := range made {
			_ = append(made[i], "overwrites nothing"...)
		}
		for i := range made {
			if string(made[i]) != want[i] || made[i] == nil {
				t.Fatalf("round %d: value %d changed", round, i)
			}
		}
		if a.Size() < 5*3*arenaChunk {
			t.Errorf("size %d", a.Size())
		}
		a.Headers = append(a.Headers, Header{Key: "id"})
		a.Reset()
		if a.Size() != 0 || len(a.Headers) != 0 {
			t.Errorf("size %d, %d headers after Reset", a.Size(), len(a.Headers))
		}
	}
}
