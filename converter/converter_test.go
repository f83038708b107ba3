package converter

import (
	"errors"
	"strings"
	"testing"
)

func text(optional bool) *Schema { return &Schema{Kind: String, Optional: optional} }
func blob(optional bool) *Schema { return &Schema{Kind: Bytes, Optional: optional} }

func TestConvertersByValue(t *testing.T) {
	jsonOn, jsonOff := NewJSONConverter(JSONOptions{Schemas: true, ReplaceNullWithDefault: true}),
		NewJSONConverter(JSONOptions{ReplaceNullWithDefault: true})
	noDefaults := NewJSONConverter(JSONOptions{})
	withDefault := &Schema{Kind: String, Optional: true, Default: "d"}
	decimal := &Schema{Kind: Bytes, Name: DecimalName}
	st := &Schema{Kind: Record, Fields: []Field{{"id", text(false)}, {"n", &Schema{Kind: Int32, Optional: true}},
		{"d", withDefault}}}
	value := &Struct{Schema: st, Values: []any{`a"\é`, nil, nil}}
	inner := &Schema{Kind: Record, Fields: []Field{{"b", blob(false)}}}
	const null, refused = "<null>", "<refused>"
	cases := []struct {
		name string
		c    Converter
		s    *Schema
		v    any
		want string
	}{
		{"string null", StringConverter{}, text(true), nil, null},
		{"string empty", StringConverter{}, text(true), "", ""},
		{"string lone surrogate", StringConverter{}, text(true), "a\xed\xa0\x80b", "a?b"},
		{"string struct leaves nulls out", StringConverter{}, st, value, `Struct{id=a"\é}`},
		{"string array", StringConverter{}, &Schema{Kind: Array, Elem: text(true)}, []any{"a", nil, "b"}, "[a, null, b]"},
		{"string bytes are themselves", StringConverter{}, blob(true), []byte{0, 0xff}, "\x00\xff"},
		{"string bytes with quirks", StringConverter{Quirks: true}, blob(true), []byte{1, 2},
			"java.nio.HeapByteBuffer[pos=0 lim=2 cap=2]"},
		{"string bits with quirks", StringConverter{Quirks: true}, &Schema{Kind: Bytes, Name: BitsName}, []byte{1, 2},
			"\x01\x02"},
		{"string bytes in a struct", StringConverter{}, inner, &Struct{Schema: inner, Values: []any{[]byte("x")}}, refused},
		{"string bytes in a struct with quirks", StringConverter{Quirks: true}, inner,
			&Struct{Schema: inner, Values: []any{[]byte("x")}}, "Struct{b=java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]}"},
		{"string of a JSON document", StringConverter{}, text(true), []byte{jsonInt16, 5, 0}, "5"},
		{"string of a broken JSON document", StringConverter{}, text(true), []byte{jsonInt16, 5}, refused},
		{"bytes", ByteArrayConverter{}, blob(true), []byte("x"), "x"},
		{"bytes empty", ByteArrayConverter{}, blob(true), []byte{}, ""},
		{"bytes null", ByteArrayConverter{}, blob(true), nil, null},
		{"bytes without schema null", ByteArrayConverter{}, nil, nil, null},
		{"bytes of text null", ByteArrayConverter{}, text(true), nil, refused},
		{"bytes of decimal", ByteArrayConverter{}, decimal, Decimal("1"), refused},
		{"binary", BinaryDataConverter{}, blob(true), []byte("x"), "x"},
		{"binary null", BinaryDataConverter{}, blob(true), nil, null},
		{"binary of text", BinaryDataConverter{}, text(true), "x", refused},
		{"binary of text null", BinaryDataConverter{}, text(true), nil, refused},
		{"binary of decimal", BinaryDataConverter{}, decimal, Decimal("1"), refused},
		{"binary delegates", BinaryDataConverter{Delegate: jsonOn}, text(true), "x",
			`{"schema":{"type":"string","optional":true},"payload":"x"}`},
		{"binary delegates null", BinaryDataConverter{Delegate: jsonOff}, text(true), nil, "null"},
		{"binary without schema delegates", BinaryDataConverter{Delegate: jsonOn}, nil, "x", `{"schema":null,"payload":"x"}`},
		{"json tombstone", jsonOn, nil, nil, null},
		{"json null", jsonOff, text(true), nil, "null"},
		{"json null with schema", jsonOn, text(true), nil, `{"schema":{"type":"string","optional":true},"payload":null}`},
		{"json null required", jsonOff, text(false), nil, refused},
		{"json null with default", jsonOff, withDefault, nil, `"d"`},
		{"json null with default kept", noDefaults, withDefault, nil, "null"},
		{"json escapes", jsonOff, text(true), "\"\\/<>&\b\t\n\f\r\x01\x1f\x7fé\u2028😀\ud7ff\uffff",
			"\"\\\"\\\\/<>&\\b\\t\\n\\f\\r\\u0001\\u001F\x7fé\u2028\\uD83D\\uDE00\ud7ff\uffff\""},
		{"json lone surrogate", jsonOff, text(true), "\xed\xa0\x80", `"\uD800"`},
		{"json record", jsonOff, st, value, `{"id":"a\"\\é","n":null,"d":"d"}`},
		{"json bytes", jsonOff, blob(true), []byte{1, 2}, `"AQI="`},
		{"json document", jsonOff, text(true), []byte{jsonString, 1, '"'}, `"\"\\\"\""`},
		{"json text for a record", jsonOff, st, "x", refused},
		{"json text for an array", jsonOff, &Schema{Kind: Array, Elem: text(true)}, "x", refused},
		{"header null", SimpleHeaderConverter{}, text(true), nil, null},
		{"header text", SimpleHeaderConverter{}, text(true), `a"b`, `a"b`},
		{"header bytes", SimpleHeaderConverter{}, blob(false), []byte("\x00\x11\x22"), "ABEi"},
		{"header struct", SimpleHeaderConverter{}, st, value, `{"id":"a\"\\é","n":null,"d":"d"}`},
		{"header document", SimpleHeaderConverter{}, text(true), []byte{jsonLiteral, 1}, "true"},
		{"header array", SimpleHeaderConverter{}, &Schema{Kind: Array, Elem: text(true)}, []any{"a", nil}, `["a",null]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := func() string {
				out, isNull, err := c.c.Append([]byte("kept"), c.s, c.v)
				var de *DataError
				switch {
				case errors.As(err, &de):
					return refused
				case err != nil:
					t.Fatalf("error of another type: %v", err)
				case isNull:
					if string(out) != "kept" {
						t.Fatalf("null leaves %q", out)
					}
					return null
				}
				rest, ok := strings.CutPrefix(string(out), "kept")
				if !ok {
					t.Fatalf("what was in the buffer is gone: %q", out)
				}
				return rest
			}()
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestErrorsDoNotQuoteValues(t *testing.T) {
	const secret = "very secret"
	for _, c := range []Converter{ByteArrayConverter{}, BinaryDataConverter{},
		NewJSONConverter(JSONOptions{Schemas: true, ReplaceNullWithDefault: true})} {
		_, _, err := c.Append(nil, &Schema{Kind: Record, Name: "r"}, secret)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%T: %v", c, err)
		}
	}
}

func TestJSONConverterForgetsSchemas(t *testing.T) {
	c := NewJSONConverter(JSONOptions{Schemas: true, ReplaceNullWithDefault: true})
	for range 3 * maxSchemaTexts {
		if _, _, err := c.Append(nil, text(true), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.texts); n > maxSchemaTexts {
		t.Errorf("%d schemas are kept", n)
	}
}
