package converter

import (
	"strings"
	"unicode/utf8"
)

// Converter turns Connect data into the bytes of a record's key, value or header,
// as the Kafka Connect class of the same name does. Implementations are immutable
// or guard what they cache, and are safe for concurrent use.
type Converter interface {
	// Append appends the bytes of v, a value of schema s, to dst. isNull reports
	// that the result is null, which differs from no bytes; nothing is appended
	// then. s is nil for a value without a schema: a tombstone, or JSON that was
	// not given one. On error (a *DataError) dst may hold a part of the value
	// behind its old length.
	Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error)
}

// Text returns the text of a String value, printing it when v is a JSON document.
// s may be nil where v is a string.
func Text(s *Schema, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		dst, err := AppendJSONDocument(nil, v, s != nil && s.quirks)
		return string(dst), err
	default:
		return "", dataError("text", "value is not a string")
	}
}

// appendText appends the text of a String value as it is.
func appendText(dst []byte, s *Schema, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return append(dst, v...), nil
	case []byte:
		return AppendJSONDocument(dst, v, s != nil && s.quirks)
	default:
		return dst, dataError("text", "value is not a string")
	}
}

// Strings hold text in UTF-8. An expanded JSON payload may hold half a surrogate
// pair ("\ud800"), which Java strings can and UTF-8 cannot: it is kept as the three
// bytes that the code point would have.

// surrogate returns the lone surrogate at s[i:], if there is one.
func surrogate(s string, i int) (rune, bool) {
	if i+2 < len(s) && s[i] == 0xed && s[i+1] >= 0xa0 && s[i+1] <= 0xbf && s[i+2]&0xc0 == 0x80 {
		return 0xd000 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f), true
	}
	return 0, false
}

// AppendSurrogate appends half a surrogate pair in the form that strings of this
// package keep it.
func AppendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// appendUTF8 appends s as Java encodes a string: a lone surrogate becomes '?'.
func appendUTF8(dst []byte, s string) []byte {
	if strings.IndexByte(s, 0xed) < 0 {
		return append(dst, s...)
	}
	from := 0
	for i := 0; i < len(s); i++ {
		if _, ok := surrogate(s, i); ok {
			dst = append(append(dst, s[from:i]...), '?')
			i += 2
			from = i + 1
		}
	}
	return append(dst, s[from:]...)
}

// appendQuoted appends s as Jackson writes a string to UTF-8: quotes, backslashes
// and controls escaped, code points from U+10000 on as two escapes, all else raw.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 0x20 && c < 0xed && c != '"' && c != '\\':
			continue
		case c < 0x80:
			dst = appendControl(append(dst, s[from:i]...), c)
			from = i + 1
		case c == 0xed:
			if r, ok := surrogate(s, i); ok {
				dst = appendUnicodeEscape(append(dst, s[from:i]...), r)
				i += 2
				from = i + 1
			}
		case c >= 0xf0:
			r, n := utf8.DecodeRuneInString(s[i:])
			if n == 4 {
				dst = append(dst, s[from:i]...)
				r -= 0x10000
				dst = appendUnicodeEscape(dst, 0xd800|r>>10)
				dst = appendUnicodeEscape(dst, 0xdc00|r&0x3ff)
				i += 3
				from = i + 1
			}
		}
	}
	return append(append(dst, s[from:]...), '"')
}

func appendUnicodeEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', upperHex[r>>12&15], upperHex[r>>8&15], upperHex[r>>4&15], upperHex[r&15])
}
