package history

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestMurmur2 has the vectors of org.apache.kafka.common.utils.UtilsTest.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
	if got := PartitionOf([]byte("21"), 6); got != (-973932308&0x7fffffff)%6 {
		t.Errorf("PartitionOf clears the sign by another way: %d", got)
	}
}

func TestPayloadRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 15, 16, 17, 250, 5000} {
		row := Row{Txn: 7_000_000_123, Number: 42}
		body := AppendBody(nil, row, size)
		if len(body) != size || !utf8.Valid(body) {
			t.Errorf("body of %d bytes: got %d, valid UTF-8: %v", size, len(body), utf8.Valid(body))
		}
		want := Payload{Row: row, Seq: 99, Key: Key(3), CRC: Checksum(body), Size: size}
		before, after := want.Head()
		got, err := ParsePayload([]byte(before + "99" + after + string(body)))
		if err != nil || got != want {
			t.Errorf("size %d: got %+v, %v, want %+v", size, got, err, want)
		}
	}
}

func TestParsePayloadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":           "",
		"no head line":    "txn=1 row=1",
		"field missing":   "txn=1 seq=1 key=key-00001 crc=00000000 size=0\n",
		"not a number":    "txn=x row=1 seq=1 key=key-00001 crc=00000000 size=0\n",
		"something after": "txn=1 row=1 seq=1 key=key-00001 crc=00000000 size=0 more\n",
		"null sequence":   "txn=1 row=1 seq= key=key-00001 crc=00000000 size=0\n",
	} {
		if _, err := ParsePayload([]byte(text)); err == nil {
			t.Errorf("%s: no error for %q", name, text)
		}
	}
}

func TestBodiesDiffer(t *testing.T) {
	seen := make(map[string]Row)
	for txn := range uint64(50) {
		for n := uint32(1); n <= 50; n++ {
			r := Row{txn, n}
			body := string(AppendBody(nil, r, 40))
			if other, again := seen[body]; again {
				t.Fatalf("%v and %v have the same body", r, other)
			}
			seen[body] = r
			if back, err := ParseID(r.ID()); err != nil || back != r {
				t.Fatalf("ParseID(%q) = %v, %v, want %v", r.ID(), back, err, r)
			}
			if id := r.ID(); len(id) != 36 || strings.Count(id, "-") != 4 {
				t.Fatalf("id %q is no UUID", id)
			}
		}
	}
}
