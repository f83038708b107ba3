package schema

import (
	"unicode/utf16"
	"unicode/utf8"
)

// multiByte returns the decoder of a character set with more than one byte per
// character, nil when there is none.
func multiByte(charset string) stepFunc {
	switch charset {
	case "ucs2":
		return stepUCS2
	case "utf16":
		return stepUTF16
	case "utf16le":
		return stepUTF16LE
	case "utf32":
		return stepUTF32
	}
	if load := codeTables[charset]; load != nil {
		if t := load(); t != nil {
			return t.step
		}
	}
	return nil
}

func stepUCS2(s string) (rune, int) {
	if len(s) < 2 {
		return -1, 0
	}
	r := rune(s[0])<<8 | rune(s[1])
	if utf16.IsSurrogate(r) {
		return -1, 0
	}
	return r, 2
}

func stepUTF16(s string) (rune, int) {
	return utf16Step(s, func(i int) rune { return rune(s[i])<<8 | rune(s[i+1]) })
}

func stepUTF16LE(s string) (rune, int) {
	return utf16Step(s, func(i int) rune { return rune(s[i+1])<<8 | rune(s[i]) })
}

func utf16Step(s string, unit func(i int) rune) (rune, int) {
	if len(s) < 2 {
		return -1, 0
	}
	r := unit(0)
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if len(s) < 4 {
		return -1, 0
	}
	if r = utf16.DecodeRune(r, unit(2)); r == utf8.RuneError {
		return -1, 0
	}
	return r, 4
}

func stepUTF32(s string) (rune, int) {
	if len(s) < 4 || s[0] != 0 {
		return -1, 0
	}
	r := rune(s[1])<<16 | rune(s[2])<<8 | rune(s[3])
	if !utf8.ValidRune(r) {
		return -1, 0
	}
	return r, 4
}
