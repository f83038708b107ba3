package converter

import "testing"

func TestAdjustName(t *testing.T) {
	for _, c := range []struct {
		mode, name string
		dots       bool
		want       string
	}{
		{NamesAsTheyAre, "a-b", true, "a-b"}, {NamesAvro, "9a.b-é😀_", true, "_9a.b____" + "_"},
		{NamesAvro, "a.b", false, "a_b"},
		{NamesAvroUnicode, "_a.é", true, "_u005fa._u00e9"},
		// As Debezium writes them: three digits where the unit has one or three.
		{NamesAvroUnicode, "a\nĀ漢", true, "a_u00a_u100_u6f22"}, {NamesAvroUnicode, "9.", false, "_u0039_u002e"},
	} {
		if got := AdjustName(c.mode, c.name, c.dots); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.mode, c.name, got, c.want)
		}
	}
}
