package converter

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// nestedDocument is an array in an array, and so on, of this many levels.
func nestedDocument(levels int) []byte {
	body := []byte{0, 0, 4, 0}
	for range levels - 1 {
		size := 7 + len(body)
		outer := []byte{1, 0, byte(size), byte(size >> 8), jsonSmallArray, 7, 0}
		body = append(outer, body...)
	}
	return append([]byte{jsonSmallArray}, body...)
}

func TestJSONDocumentRefusesHostileInput(t *testing.T) {
	// An array of n entries that all point to one and the same array of n.
	bomb := func(n int) []byte {
		level := func(inner []byte) []byte {
			size := 4 + 3*n + len(inner)
			out := binary.LittleEndian.AppendUint16(nil, uint16(n))
			out = binary.LittleEndian.AppendUint16(out, uint16(size))
			for range n {
				out = append(out, jsonSmallArray, byte(4+3*n), byte((4+3*n)>>8))
			}
			return append(out, inner...)
		}
		body := []byte{0, 0, 4, 0}
		for range 12 {
			body = level(body)
		}
		return append([]byte{jsonSmallArray}, body...)
	}
	cases := map[string][]byte{
		"nothing":                        {},
		"unknown type":                   {0x0d, 0},
		"negative type":                  {0xff, 1, 2, 3},
		"type alone":                     {jsonSmallObject},
		"literal 3":                      {jsonLiteral, 3},
		"short int":                      {jsonInt64, 1, 2},
		"nan":                            {jsonDouble, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f},
		"size beyond the end":            {jsonSmallArray, 0, 0, 9, 0},
		"size below the header":          {jsonSmallArray, 0, 0, 1, 0},
		"count beyond the size":          {jsonSmallArray, 0xff, 0xff, 4, 0},
		"entry that is its own array":    {jsonSmallArray, 1, 0, 7, 0, jsonSmallArray, 0, 0},
		"entry inside the header":        {jsonSmallArray, 1, 0, 8, 0, jsonSmallArray, 6, 0, 0},
		"string inside the header":       {jsonSmallArray, 1, 0, 9, 0, jsonString, 0, 0, 0, 0},
		"entry beyond the end":           {jsonSmallArray, 1, 0, 7, 0, jsonString, 7, 0},
		"string beyond the end":          {jsonString, 5, 'a'},
		"string length without end":      {jsonString, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"string length of 2^35":          {jsonString, 0xff, 0xff, 0xff, 0xff, 0x7f, 'a'},
		"string not UTF-8":               {jsonString, 1, 0xff},
		"opaque cut":                     {jsonOpaque, 12},
		"opaque time of 3 bytes":         {jsonOpaque, 11, 3, 1, 2, 3},
		"opaque decimal of no bytes":     {jsonOpaque, 0xf6, 2, 10, 2},
		"opaque decimal scale too large": {jsonOpaque, 0xf6, 6, 2, 10, 0x80, 0, 0, 0},
		"opaque date of minus one":       {jsonOpaque, 10, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"101 levels":                     nestedDocument(101),
		"entries that share a value":     bomb(60),
	}
	for name, doc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := AppendJSONDocument([]byte("kept"), doc, false)
			var de *DataError
			if !errors.As(err, &de) {
				t.Fatalf("%q, %v", got, err)
			}
			if string(got) != "kept" {
				t.Errorf("the buffer is %q after an error", got)
			}
			if strings.Contains(err.Error(), "256 MiB") {
				t.Error("found out late")
			}
		})
	}
}

func TestJSONDocumentTakesMySQLsDepth(t *testing.T) {
	got, err := AppendJSONDocument(nil, nestedDocument(100), false)
	if want := strings.Repeat("[", 100) + strings.Repeat("]", 100); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestJSONDocumentPrintsInLinearSpace: one tiny double prints a thousand digits, but
// a document cannot ask for more than that for each of its bytes.
func TestJSONDocumentPrintsInLinearSpace(t *testing.T) {
	doc, err := hex.DecodeString("0b0100000000000000")
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendJSONDocument(nil, doc[:8], false)
	if err == nil || len(got) != 0 {
		t.Errorf("a double of 7 bytes: %q, %v", got, err)
	}
	got, err = AppendJSONDocument(nil, doc, false)
	if err != nil || len(got) != 2+1074 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func FuzzJSONDocument(f *testing.F) {
	for _, d := range loadRecorded(f).Documents {
		doc, err := hex.DecodeString(d.Doc)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc, false)
	}
	f.Add(nestedDocument(101), false)
	f.Add([]byte{jsonSmallArray, 1, 0, 7, 0, jsonSmallArray, 0, 0}, true)
	f.Fuzz(func(t *testing.T, doc []byte, quirks bool) {
		got, err := AppendJSONDocument(nil, doc, quirks)
		if err != nil {
			return
		}
		if !utf8.Valid(got) {
			t.Fatalf("%x prints text that is not UTF-8", doc)
		}
		if len(got) > 200*(len(doc)+8) {
			t.Fatalf("%d bytes print %d", len(doc), len(got))
		}
		binaryForm := len(doc) > 0 && doc[0] <= jsonOpaque
		if binaryForm && !quirks && !json.Valid(got) {
			t.Fatalf("%x prints %s, which is not JSON", doc, got)
		}
	})
}
