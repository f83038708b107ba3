package schema

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// The right sides are what MySQL 9.7 answers to
// HEX(CONVERT(CONVERT(x'..' USING charset) USING utf8mb4)).
func TestB043TextBecomesUTF8(t *testing.T) {
	cases := []struct{ charset, raw, want string }{
		{"utf8mb4", "Grüße 😀 𠮷", "Grüße 😀 𠮷"},
		{"utf8mb3", "Grüße 漢字", "Grüße 漢字"},
		{"utf8", "é", "é"},
		{"ascii", "plain", "plain"},
		{"binary", "é", "é"},
		{"latin1", "Jos\xe9 \x80", "José €"},
		{"latin1", "\x81\x8d\x8f\x90\x9d", "\u0081\u008d\u008f\u0090\u009d"},
		{"latin1", "\x00\x7f\xff", "\x00\x7fÿ"},
		{"latin2", "\xb1\xe6", "ąć"},
		{"latin5", "\xfd\xfe", "ış"},
		{"latin7", "\xd0", "Š"},
		{"cp1250", "\x8a\x9e", "Šž"},
		{"cp1251", "\xcf\xf0\xe8\xb8", "Приё"},
		{"cp1256", "\xc7\xe1", "ال"},
		{"cp1257", "\xf0", "š"},
		{"cp850", "\x81\xd5", "üı"},
		{"cp852", "\xa5", "ą"},
		{"cp866", "\x8f\xf1", "Пё"},
		{"koi8r", "\xf0\xa3", "Пё"},
		{"koi8u", "\xa4", "є"},
		{"greek", "\xc1\xe1", "Αα"},
		{"hebrew", "\xe0", "א"},
		{"tis620", "\xa1\xdf", "ก฿"},
		{"macroman", "\x8a\xdb", "ä€"},
		{"macce", "\xe4", "š"},
		{"dec8", "\xa8\xd7", "¤Œ"},
		{"hp8", "\xcc", "ä"},
		{"swe7", "[\\]{|}", "ÄÖÅäöå"},
		{"armscii8", "\xb2\xb3", "Աա"},
		{"geostd8", "\xc0", "ა"},
		{"keybcs2", "\x87\xa8", "čš"},
		{"ucs2", "\x00a\x6f\x22", "a漢"},
		{"utf16", "\x00a\xd8\x3d\xde\x00", "a😀"},
		{"utf16le", "a\x00\x3d\xd8\x00\xde", "a😀"},
		{"utf32", "\x00\x01\xf6\x00", "😀"},
		{"gbk", "\xba\xba\x81\x40a", "汉丂a"},
		{"gb2312", "\xba\xba\xa1\xa4", "汉・"},
		{"gb18030", "\xba\xba\x94\x39\xfc\x36\x81\x30\x81\x30\xa3\xa0", "汉😀\u0080\ue5e5"},
		{"big5", "\xba\x7e\xa1\x45", "漢•"},
		{"sjis", "\x8a\xbf\x81\x5f\xb1\x81\x60", "漢\\ｱ\u301c"},
		{"cp932", "\x8a\xbf\x81\x5f\xb1\x81\x60\xf0\x40", "漢＼ｱ\uff5e\ue000"},
		{"ujis", "\xb4\xc1\xa1\xc1\x8e\xb1\x8f\xb0\xa1", "漢\u301cｱ丂"},
		{"eucjpms", "\xb4\xc1\xa1\xc1\x8e\xb1\x8f\xb0\xa1\xad\xa1", "漢\uff5eｱ丂①"},
		{"euckr", "\xc7\xd1", "한"},
	}
	for _, c := range cases {
		got, err := DecodeText(c.charset, c.raw)
		if err != nil || got != c.want {
			t.Errorf("%s %x: %q %v, want %q", c.charset, c.raw, got, err, c.want)
		}
	}
}

func TestB043UnmappableIsAnError(t *testing.T) {
	cases := []struct {
		charset, raw string
		offset       int
	}{
		{"utf8mb4", "ab\xff", 2},
		{"utf8mb4", "\xed\xa0\x80", 0}, // a surrogate
		{"utf8mb4", "ab\xe6\xbc", 2},
		{"utf8mb3", "a\xf0\x9f\x98\x80", 1},
		{"ascii", "abc\x80", 3},
		{"binary", "\xff", 0},
		{"cp1250", "a\x81", 1},
		{"cp1251", "\x98", 0},
		{"cp1257", "\xa1", 0},
		{"hebrew", "\xbf", 0},
		{"tis620", "\xa0", 0}, // the server maps it to U+FFFD
		{"ucs2", "\x00a\xd8\x00", 2},
		{"ucs2", "\x00", 0},
		{"utf16", "\xd8\x3d\x00a", 0},
		{"utf16", "\xd8\x3d", 0},
		{"utf16le", "a\x00\x00\xde", 2},
		{"utf32", "\x00\x00\xd8\x00", 0},
		{"utf32", "\x00\x11\x00\x00", 0},
		{"utf32", "\x01\x00\x00a", 0},
		{"gbk", "a\x80", 1},
		{"gbk", "a\x81\xff", 1},
		{"gbk", "\xba", 0},
		{"gb2312", "\x81\x40", 0}, // of gbk only
		{"gb18030", "\x84\x31\xa4\x37", 0},
		{"gb18030", "\xfe\x39\xfe\x39", 0},
		{"gb18030", "\x81\x30\x81", 0},
		{"big5", "\xa1\x5a", 0}, // the server maps it to U+FFFD
		{"sjis", "\xf0\x40", 0}, // of cp932 only
		{"sjis", "\x80", 0},
		{"ujis", "\x8f\xa1", 0},
		{"ujis", "\x8f", 0},
		{"eucjpms", "\xa1", 0},
		{"euckr", "\x80\x41", 0},
	}
	for _, c := range cases {
		got, err := DecodeText(c.charset, c.raw)
		var bad *BadTextError
		if !errors.As(err, &bad) || bad.Charset != c.charset || bad.Offset != c.offset || got != "" {
			t.Errorf("%s %x: %q, %v, want an error at %d", c.charset, c.raw, got, err, c.offset)
		}
	}
	var unknown *UnknownCharsetError
	if _, err := DecodeText("klingon", "x"); !errors.As(err, &unknown) {
		t.Errorf("unknown character set: %v", err)
	}
}

// Every character set that a collation belongs to can be decoded.
func TestEveryCollationHasACharset(t *testing.T) {
	for _, r := range collationRanges {
		if _, err := DecodeText(r.charset, ""); err != nil {
			t.Errorf("collation %d: %v", r.first, err)
		}
	}
	for _, c := range []struct {
		id   uint64
		want string
	}{
		{8, "latin1"}, {33, "utf8mb3"}, {45, "utf8mb4"}, {63, "binary"}, {255, "utf8mb4"}, {248, "gb18030"},
		{576, "utf8mb3"}, {2304, "utf8mb4"}, {2048, "utf8mb3"}, {0, ""}, {9999, ""}, {1 << 40, ""},
	} {
		if got, ok := CharsetOf(c.id); got != c.want || ok != (c.want != "") {
			t.Errorf("collation %d: %q, want %q", c.id, got, c.want)
		}
	}
}

// The tables come from a server; a second opinion keeps them from rotting. Each
// entry says how many codes x/text reads differently, counted over all codes of
// one to three bytes: these are the reasons why x/text is not used.
func TestTablesAgainstXText(t *testing.T) {
	cases := []struct {
		charset string
		other   encoding.Encoding
		differs int
	}{
		{"latin1", charmap.Windows1252, 5},
		{"latin2", charmap.ISO8859_2, 32},
		{"latin5", charmap.ISO8859_9, 0},
		{"cp1250", charmap.Windows1250, 0},
		{"cp1251", charmap.Windows1251, 0},
		{"cp1256", charmap.Windows1256, 8},
		{"cp850", charmap.CodePage850, 0},
		{"cp852", charmap.CodePage852, 0},
		{"cp866", charmap.CodePage866, 2},
		{"koi8r", charmap.KOI8R, 0},
		{"macroman", charmap.Macintosh, 0},
		{"euckr", korean.EUCKR, 0},
		{"gbk", simplifiedchinese.GBK, 148},
		{"gb18030", simplifiedchinese.GB18030, 2134},
		{"big5", traditionalchinese.Big5, 5144},
		{"sjis", japanese.ShiftJIS, 1044},
		{"cp932", japanese.ShiftJIS, 2072},
		{"ujis", japanese.EUCJP, 1971},
	}
	for _, c := range cases {
		d, n, first := c.other.NewDecoder(), 0, ""
		for _, code := range allCodes(c.charset) {
			ours, err := DecodeText(c.charset, code)
			if err != nil {
				ours = ""
			}
			theirs, err := d.String(code)
			if err != nil || strings.ContainsRune(theirs, utf8.RuneError) {
				theirs = ""
			}
			if ours != theirs {
				n++
				if first == "" {
					first = code
				}
			}
		}
		if n != c.differs {
			t.Errorf("%s: %d codes differ from x/text, want %d (first %x)", c.charset, n, c.differs, first)
		}
	}
}

func allCodes(charset string) []string {
	var codes []string
	for i := range 256 {
		codes = append(codes, string([]byte{byte(i)}))
	}
	if codeTables[charset] == nil {
		return codes
	}
	for i := 0x80; i < 256; i++ {
		for j := 0x40; j < 256; j++ {
			codes = append(codes, string([]byte{byte(i), byte(j)}))
			if charset == "ujis" && i >= 0xA0 && j >= 0xA0 {
				codes = append(codes, string([]byte{0x8F, byte(i), byte(j)}))
			}
		}
	}
	return codes
}

// UTF-8 is by far the most common: it must not cost a copy.
func TestUTF8IsNotCopied(t *testing.T) {
	s := strings.Repeat("Grüße", 1000)
	for _, charset := range []string{"utf8mb4", "utf8mb3"} {
		if n := testing.AllocsPerRun(20, func() { _, _ = DecodeText(charset, s) }); n != 0 {
			t.Errorf("%s: %v allocations", charset, n)
		}
	}
	ascii := strings.Repeat("x", 1000)
	for _, charset := range []string{"ascii", "latin1", "cp1251"} {
		if n := testing.AllocsPerRun(20, func() { _, _ = DecodeText(charset, ascii) }); n != 0 {
			t.Errorf("%s: %v allocations", charset, n)
		}
	}
}

// Whatever the bytes, the result is UTF-8 or an error.
func FuzzDecodeText(f *testing.F) {
	for set := range codeTables {
		f.Add(set, "\x8f\xa1\xa1\x81\x30\x81\x30a")
	}
	f.Add("utf16", "\xd8")
	f.Fuzz(func(t *testing.T, charset, s string) {
		got, err := DecodeText(charset, s)
		if err == nil && !utf8.ValidString(got) {
			t.Errorf("%s %x: %x is not UTF-8", charset, s, got)
		}
		if err != nil && strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("%s %x: %q beside an error", charset, s, got)
		}
	})
}
