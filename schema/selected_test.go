package schema

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeSelected(t *testing.T) {
	for _, c := range []struct {
		name string
		col  Column
		raw  any
		want any
	}{
		{"NULL", Column{Type: Int}, nil, nil},
		{"signed", Column{Type: TinyInt}, int64(-5), int64(-5)},
		{"unsigned", Column{Type: BigInt, Unsigned: true}, uint64(1 << 63), uint64(1 << 63)},
		{"year", Column{Type: Year}, uint64(2024), int64(2024)},
		{"float", Column{Type: Float, Scale: -1}, float64(float32(3.14)), float32(3.14)},
		{"float without a loss", Column{Type: Float, Scale: -1}, float64(16777216), float32(16777216)},
		{"double", Column{Type: Double}, 0.1, 0.1},
		{"decimal with ZEROFILL", Column{Type: Decimal, Scale: 2}, []byte("0001.50"), "1.50"},
		{"decimal below one", Column{Type: Decimal, Scale: 2}, []byte("-0.50"), "-0.50"},
		{"time", Column{Type: Time, FSP: 3}, []byte("-838:59:59.000"), "-838:59:59.000"},
		{"zero date", Column{Type: Date}, []byte("0000-00-00"), "0000-00-00"},
		{"bits", Column{Type: Bit, Length: 12}, []byte{0x08, 0x02}, uint64(0x802)},
		{"latin1", Column{Type: VarChar, Charset: "latin1"}, []byte{0xe9, 0x80}, "é€"},
		{"enum in its character set", Column{Type: Enum, Charset: "latin1", Elements: []string{"é"}}, []byte{0xe9}, "é"},
		{"binary", Column{Type: Binary, Length: 4}, []byte("ab\x00\x00"), []byte("ab\x00\x00")},
		{"blob", Column{Type: Blob}, []byte{}, []byte{}},
		{"json", Column{Type: JSON}, []byte(`{"a": 1}`), `{"a": 1}`},
	} {
		got, err := c.col.DecodeSelected(c.raw)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
	for _, c := range []struct {
		name string
		col  Column
		raw  any
	}{
		{"text for a number", Column{Name: "n", Type: Int}, []byte("5")},
		{"negative for an unsigned column", Column{Name: "n", Type: Int, Unsigned: true}, int64(-5)},
		{"bad text", Column{Name: "n", Type: VarChar, Charset: "utf8mb4"}, []byte{0xff}},
		{"too many bits", Column{Name: "n", Type: Bit, Length: 64}, make([]byte, 9)},
		{"unknown type", Column{Name: "n", Type: Unknown}, []byte("x")},
	} {
		_, err := c.col.DecodeSelected(c.raw)
		var e *ValueError
		if !errors.As(err, &e) || e.Column != "n" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// The bytes are the caller's again.
	raw := []byte("abc")
	got, _ := (&Column{Type: Blob}).DecodeSelected(raw)
	raw[0] = 'x'
	if string(got.([]byte)) != "abc" {
		t.Error("the value shares memory with what was read")
	}
}
