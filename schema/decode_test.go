package schema

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecode(t *testing.T) {
	enum := []string{"a", "b"}
	cases := []struct {
		name   string
		column Column
		raw    any
		want   any // nil: an error
	}{
		{"float", Column{Type: Float}, float32(1.5), float32(1.5)},
		{"double", Column{Type: Double}, 2.5, 2.5},
		{"float as double", Column{Type: Float}, 1.5, nil},
		{"decimal", Column{Type: Decimal, Length: 4, Scale: 2}, "-1.50", "-1.50"},
		{"decimal as number", Column{Type: Decimal}, 1.5, nil},
		{"year", Column{Type: Year}, 2155, int64(2155)},
		{"bit", Column{Type: Bit, Length: 64}, int64(-1), uint64(math.MaxUint64)},
		{"bit too wide", Column{Type: Bit, Length: 3}, int64(8), nil},
		{"enum", Column{Type: Enum, Elements: enum}, int64(2), "b"},
		{"enum invalid", Column{Type: Enum, Elements: enum}, int64(0), ""},
		{"enum beyond", Column{Type: Enum, Elements: enum}, int64(3), nil},
		{"enum negative", Column{Type: Enum, Elements: enum}, int64(-1), nil},
		{"set empty", Column{Type: Set, Elements: enum}, int64(0), ""},
		{"set both", Column{Type: Set, Elements: enum}, int64(3), "a,b"},
		{"set beyond", Column{Type: Set, Elements: enum}, int64(4), nil},
		{"text bytes", Column{Type: Text, Charset: "utf8mb4"}, []byte("é"), "é"},
		{"text latin1", Column{Type: LongText, Charset: "latin1"}, []byte("\xe9"), "é"},
		{"text invalid", Column{Type: VarChar, Charset: "utf8mb4"}, "\xe9", nil},
		{"text without charset", Column{Type: VarChar}, "x", nil},
		{"char keeps its blanks", Column{Type: Char, Charset: "ascii"}, " x ", " x "},
		{"varbinary", Column{Type: VarBinary, Length: 3}, "a\x00", []byte("a\x00")},
		{"blob", Column{Type: Blob}, []byte{0xff}, []byte{0xff}},
		{"geometry", Column{Type: Geometry}, []byte{1}, []byte{1}},
		{"vector of MariaDB", Column{Type: Vector}, "\x00\x01", []byte{0, 1}},
		{"json", Column{Type: JSON}, []byte{0x0c}, []byte{0x0c}},
		{"json empty", Column{Type: JSON}, []byte{}, []byte{}},
		{"json rendered", Column{Type: JSON}, "{}", nil},
		{"uuid", Column{Type: UUID}, "\x12\x3e\x45\x67\xe8\x9b\x12\xd3\xa4\x56\x42\x66\x14\x17",
			"123e4567-e89b-12d3-a456-426614170000"},
		{"uuid too long", Column{Type: UUID}, strings.Repeat("x", 17), nil},
		{"inet4", Column{Type: Inet4}, "\x0a", "10.0.0.0"},
		{"inet4 too long", Column{Type: Inet4}, "12345", nil},
		{"inet6", Column{Type: Inet6}, "\x20\x01\x0d\xb8", "2001:db8::"},
		{"inet6 mapped", Column{Type: Inet6}, strings.Repeat("\x00", 10) + "\xff\xff\x01\x02\x03\x04", "::ffff:1.2.3.4"},
		{"unknown", Column{}, "x", nil},
		{"integer of another width", Column{Type: Int}, int64(1), nil},
		{"integer as text", Column{Type: Int}, "1", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.column.Name = "the_column"
			got, err := c.column.Decode(c.raw)
			var bad *ValueError
			if c.want == nil {
				if !errors.As(err, &bad) || bad.Column != "the_column" || got != nil {
					t.Errorf("%v, %v; want a ValueError", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%T %v, %v; want %T %v", got, got, err, c.want, c.want)
			}
			if v, err := c.column.Decode(nil); v != nil || err != nil {
				t.Errorf("NULL became %v, %v", v, err)
			}
		})
	}
}

func TestB044BinaryKeepsItsZeros(t *testing.T) {
	c := Column{Type: Binary, Length: 16}
	for _, raw := range []any{"", "\x01", []byte{1, 0, 2}, strings.Repeat("\xff", 16)} {
		got, err := c.Decode(raw)
		b, _ := bytesOfRaw(raw)
		if v, ok := got.([]byte); err != nil || !ok || len(v) != 16 || !bytes.HasPrefix(v, b) ||
			len(bytes.Trim(v[len(b):], "\x00")) != 0 {
			t.Errorf("%x became %x, %v", b, got, err)
		}
	}
	if _, err := c.Decode(strings.Repeat("x", 17)); err == nil {
		t.Error("17 bytes in BINARY(16)")
	}
	v := Column{Type: VarBinary, Length: 16}
	if got, _ := v.Decode("\x01"); !bytes.Equal(got.([]byte), []byte{1}) {
		t.Errorf("VARBINARY became %x", got)
	}
}

// go-mysql yields signed numbers without signedness metadata and unsigned ones
// with it; both must come out as what the column says.
func TestB045UnsignedByTheBits(t *testing.T) {
	cases := []struct {
		typ              Type
		signed, unsigned any // the same bits as go-mysql yields them
		wantU            uint64
		wantS            int64
	}{
		{TinyInt, int8(-128), uint8(128), 128, -128},
		{TinyInt, int8(-1), uint8(255), 255, -1},
		{TinyInt, int8(127), uint8(127), 127, 127},
		{SmallInt, int16(-32768), uint16(32768), 32768, -32768},
		{SmallInt, int16(-1), uint16(65535), 65535, -1},
		{MediumInt, int32(-8388608), uint32(8388608), 8388608, -8388608},
		{MediumInt, int32(-1), uint32(16777215), 16777215, -1},
		{MediumInt, int32(8388607), uint32(8388607), 8388607, 8388607},
		{Int, int32(math.MinInt32), uint32(1 << 31), 1 << 31, math.MinInt32},
		{Int, int32(-1), uint32(math.MaxUint32), math.MaxUint32, -1},
		{BigInt, int64(math.MinInt64), uint64(1 << 63), 1 << 63, math.MinInt64},
		{BigInt, int64(-1), uint64(math.MaxUint64), math.MaxUint64, -1},
	}
	for _, c := range cases {
		for _, raw := range []any{c.signed, c.unsigned} {
			u := Column{Type: c.typ, Unsigned: true}
			if got, err := u.Decode(raw); err != nil || got != c.wantU {
				t.Errorf("%s unsigned %T %v: %v %v, want %d", c.typ, raw, raw, got, err, c.wantU)
			}
			s := Column{Type: c.typ}
			if got, err := s.Decode(raw); err != nil || got != c.wantS {
				t.Errorf("%s %T %v: %v %v, want %d", c.typ, raw, raw, got, err, c.wantS)
			}
		}
	}
	var members []string
	for range 64 {
		members = append(members, "m")
	}
	set := Column{Type: Set, Elements: members}
	if got, err := set.Decode(int64(-1)); err != nil || strings.Count(got.(string), "m") != 64 {
		t.Errorf("SET(64): %v %v", got, err)
	}
}

func TestB049FractionsAsDeclared(t *testing.T) {
	cases := []struct {
		typ  Type
		fsp  int
		raw  string
		want string // empty: an error
	}{
		{Time, 0, "00:00:00", "00:00:00"},
		{Time, 3, "00:00:00", "00:00:00.000"},
		{Time, 6, "-838:59:59", "-838:59:59.000000"},
		{Time, 6, "-00:00:00.000001", "-00:00:00.000001"},
		{Time, 3, "12:34:56.700", "12:34:56.700"},
		{Time, 0, "1677:72:15", "-00:00:01"}, // the format before MySQL 5.6.4
		{Time, 0, "838:59:59", "838:59:59"},
		{Time, 0, "12:34:56.7", ""},
		{DateTime, 6, "2020-01-01 00:00:00.000001", "2020-01-01 00:00:00.000001"},
		{DateTime, 3, "2020-01-01 00:00:00.000001", ""},
		{DateTime, 2, "0000-00-00 00:00:00", "0000-00-00 00:00:00.00"},
		{Timestamp, 0, "1970-01-01 00:00:01", "1970-01-01 00:00:01"},
	}
	for _, c := range cases {
		col := Column{Type: c.typ, FSP: c.fsp}
		got, err := col.Decode(c.raw)
		if c.want == "" && err == nil || c.want != "" && got != c.want {
			t.Errorf("%s(%d) %s: %v %v, want %q", c.typ, c.fsp, c.raw, got, err, c.want)
		}
	}
}

func TestB050ZeroAndPartialDatesPass(t *testing.T) {
	for _, c := range []struct {
		typ Type
		raw string
	}{{Date, "0000-00-00"}, {Date, "2020-00-01"}, {DateTime, "0000-00-00 00:00:00"}, {Timestamp, "0000-00-00 00:00:00"}} {
		col := Column{Type: c.typ}
		if got, err := col.Decode(c.raw); err != nil || got != c.raw {
			t.Errorf("%s %s: %v %v", c.typ, c.raw, got, err)
		}
	}
}

func TestDecodeRow(t *testing.T) {
	table := &Table{Name: Name{"shop", "outbox"}, Columns: []Column{
		{Name: "id", Type: Int}, {Name: "note", Type: VarChar, Charset: "ascii"}, {Name: "odd", Type: Unknown},
		{Name: "n", Type: Int},
	}}
	row := []any{int32(1), nil, "?", int32(2)}
	if err := table.DecodeRow(row, []int{3}, []bool{true, true, false, true}); err != nil {
		t.Fatal(err)
	}
	if want := []any{int64(1), nil, Missing, Missing}; !reflect.DeepEqual(row, want) {
		t.Errorf("got %v, want %v", row, want)
	}
	// Without a choice of columns the odd one fails the row, by name and without
	// the value.
	err := table.DecodeRow([]any{int32(1), "secret", "secret", nil}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "shop.outbox: reading column odd") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if err := table.DecodeRow([]any{int32(1)}, nil, nil); err == nil {
		t.Error("a short row passed")
	}
}

// A bad text names column, set and place, never the text.
func TestB043ErrorHasNoPayload(t *testing.T) {
	c := Column{Name: "payload", Type: Text, Charset: "utf8mb4"}
	_, err := c.Decode([]byte("secret \xff"))
	var bad *BadTextError
	if !errors.As(err, &bad) || bad.Offset != 7 {
		t.Fatalf("got %v", err)
	}
	if s := err.Error(); !strings.Contains(s, "payload") || !strings.Contains(s, "utf8mb4") ||
		strings.Contains(s, "secret") {
		t.Errorf("got %q", s)
	}
}

func TestDecodeUTF8WithoutAllocation(t *testing.T) {
	c := Column{Type: VarChar, Charset: "utf8mb4"}
	var raw any = "Grüße"
	if n := testing.AllocsPerRun(50, func() { _, _ = c.Decode(raw) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// No value of any kind makes any column panic.
func TestDecodeNeverPanics(t *testing.T) {
	charsets := []string{"", "utf8mb4", "latin1", "swe7", "gbk", "gb18030", "ujis", "utf16", "utf32", "ucs2", "x"}
	rapid.Check(t, func(t *rapid.T) {
		c := Column{
			Type:     Type(rapid.IntRange(0, int(Inet6)+3).Draw(t, "type")),
			Unsigned: rapid.Bool().Draw(t, "unsigned"),
			Length:   rapid.IntRange(0, 70).Draw(t, "length"),
			FSP:      rapid.IntRange(0, 6).Draw(t, "fsp"),
			Charset:  rapid.SampledFrom(charsets).Draw(t, "charset"),
			Elements: rapid.SliceOfN(rapid.String(), 0, 64).Draw(t, "elements"),
		}
		raws := []any{
			rapid.String().Draw(t, "string"), string(rapid.SliceOf(rapid.Byte()).Draw(t, "bad string")),
			rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), rapid.Int8().Draw(t, "i8"), rapid.Uint16().Draw(t, "u16"),
			rapid.Int32().Draw(t, "i32"), rapid.Int64().Draw(t, "i64"), rapid.Uint64().Draw(t, "u64"),
			rapid.Int().Draw(t, "int"), rapid.Float32().Draw(t, "f32"), rapid.Float64().Draw(t, "f64"), struct{}{},
			rapid.StringMatching(`-?\d{1,5}:\d{1,9}:\d{1,9}(\.\d{0,9})?`).Draw(t, "time"),
		}
		for _, raw := range raws {
			if v, err := c.Decode(raw); err != nil && v != nil {
				t.Errorf("%s %v: a value beside an error", c.Type, raw)
			}
		}
	})
}

func BenchmarkDecodeRow(b *testing.B) {
	table := &Table{Columns: []Column{
		{Name: "id", Type: Binary, Length: 16}, {Name: "aggregatetype", Type: VarChar, Charset: "utf8mb4"},
		{Name: "aggregateid", Type: VarChar, Charset: "utf8mb4"}, {Name: "type", Type: VarChar, Charset: "utf8mb4"},
		{Name: "payload", Type: LongText, Charset: "utf8mb4"}, {Name: "n", Type: BigInt, Unsigned: true},
	}}
	raw := []any{strings.Repeat("x", 16), "order", "4711", "OrderCreated", bytes.Repeat([]byte("{}"), 125), int64(4711)}
	row := make([]any, len(raw))
	b.ReportAllocs()
	for b.Loop() {
		copy(row, raw)
		if err := table.DecodeRow(row, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
