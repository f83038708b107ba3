package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// none marks a byte that stands for no character in a one-byte character set.
const none = 0xFFFF

// BadTextError is returned for text that is not valid in its character set, or
// holds a byte sequence that stands for no character. The value itself is never
// part of it. Retrying does not help: the row is what it is.
type BadTextError struct {
	// Charset is the server's name of the character set.
	Charset string
	// Offset is the place of the first bad byte.
	Offset int
}

// Error says where the text is bad.
func (e *BadTextError) Error() string {
	return fmt.Sprintf("byte %d is not valid in character set %s", e.Offset+1, e.Charset)
}

// UnknownCharsetError is returned for a character set that this package has no
// table for.
type UnknownCharsetError struct{ Charset string }

// Error names the character set.
func (e *UnknownCharsetError) Error() string {
	return fmt.Sprintf("character set %q is not supported", e.Charset)
}

// DecodeText converts s from the character set with the server's name charset to
// UTF-8, exactly as the server itself converts to utf8mb4; anything that the
// server would show as '?' or NULL is a *BadTextError, never a replacement
// character. Text that is UTF-8 already is returned as it is, not copied.
//
// "binary" (the character set of some ENUM definitions) must be UTF-8.
//
// Other rules for a set, such as the ones of another product, are meant to
// become further names here, which a caller puts into Column.Charset.
func DecodeText(charset, s string) (string, error) {
	switch charset {
	case "utf8mb4", "binary":
		return decodeUTF8(charset, s)
	case "utf8mb3", "utf8":
		return decodeUTF8MB3(s)
	case "ascii":
		if i := firstNonASCII(s); i >= 0 {
			return "", &BadTextError{charset, i}
		}
		return s, nil
	}
	if t := singleByteTables()[charset]; t != nil {
		return decodeSingle(charset, t, s)
	}
	if step := multiByte(charset); step != nil {
		return decodeSteps(charset, step, s)
	}
	return "", &UnknownCharsetError{charset}
}

func decodeUTF8(charset, s string) (string, error) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", &BadTextError{charset, firstBadUTF8(s)}
}

// decodeUTF8MB3 also refuses characters of four bytes, which the set can't hold.
func decodeUTF8MB3(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", &BadTextError{"utf8mb3", firstBadUTF8(s)}
	}
	for i := range len(s) {
		if s[i] >= 0xF0 {
			return "", &BadTextError{"utf8mb3", i}
		}
	}
	return s, nil
}

func firstBadUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(s)
}

func firstNonASCII(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

func decodeSingle(charset string, t *[256]uint16, s string) (string, error) {
	// All but swe7 have ASCII in their lower half, so plain ASCII needs no copy.
	if charset != "swe7" && firstNonASCII(s) < 0 {
		return s, nil
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i := range len(s) {
		r := t[s[i]]
		if r == none {
			return "", &BadTextError{charset, i}
		}
		b.WriteRune(rune(r))
	}
	return b.String(), nil
}

// stepFunc reads the first character of s, which is not empty: the character and
// its length in bytes. A negative character means that s does not begin with one.
type stepFunc func(s string) (r rune, n int)

func decodeSteps(charset string, step stepFunc, s string) (string, error) {
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i := 0; i < len(s); {
		r, n := step(s[i:])
		if r < 0 {
			return "", &BadTextError{charset, i}
		}
		b.WriteRune(r)
		i += n
	}
	return b.String(), nil
}

// MaxBytes is the server's mbmaxlen: what a CHAR(1) may take in the row.
func MaxBytes(charset string) int {
	switch charset {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return 4
	case "utf8mb3", "utf8", "ujis", "eucjpms":
		return 3
	case "ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr":
		return 2
	}
	return 1
}
