package schema

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"
)

// InvalidText says what is done with text that is not valid in its character set, or has
// bytes that stand for no character there. It is safe for concurrent use; nil refuses
// such text with a *BadTextError.
type InvalidText struct {
	// AsJava takes such bytes of a streamed row as Java's decoders do, and so Debezium:
	// for the character that Java has there, else for U+FFFD. Otherwise, and always in
	// rows that are selected, each is a question mark, as the server shows it.
	AsJava bool
	// Quirks takes the bytes of a streamed row for the characters that Debezium takes
	// them for, also where the server has others.
	Quirks bool
	// Refuse refuses text that is not valid, as a nil policy does.
	Refuse bool

	replaced atomic.Uint64
}

// Replaced returns how many texts were read that were not valid.
func (p *InvalidText) Replaced() uint64 { return p.replaced.Load() }

// SetInvalidText sets the policy for all columns of a table that nobody else uses yet.
func (t *Table) SetInvalidText(p *InvalidText) {
	for i := range t.Columns {
		t.Columns[i].InvalidText = p
	}
}

// decode is DecodeText under the policy.
func (p *InvalidText) decode(charset, s string, selected bool) (string, error) {
	// All but swe7 have ASCII in their lower half.
	quirks := p != nil && p.Quirks && !selected && hasQuirks(charset) && (charset == "swe7" || firstNonASCII(s) >= 0)
	if !quirks {
		text, err := DecodeText(charset, s)
		if err == nil || p == nil || p.Refuse {
			return text, err
		}
		var bad *BadTextError
		if !errors.As(err, &bad) {
			return text, err
		}
	}
	set, step := charset, stepOf(charset)
	if quirks {
		set, step = quirkStep(charset)
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	invalid := false
	for i := 0; i < len(s); {
		rest := s[i:]
		r, n := step(rest)
		if r < 0 {
			if p.Refuse {
				return "", &BadTextError{charset, i}
			}
			invalid = true
			r, n = p.replacement(set, rest, selected)
		}
		b.WriteRune(r)
		i += min(n, len(rest))
	}
	if invalid {
		p.replaced.Add(1)
	}
	return b.String(), nil
}

// replacement is what stands for the n bytes that s begins with and that are not valid.
func (p *InvalidText) replacement(charset, s string, selected bool) (r rune, n int) {
	if selected || !p.AsJava {
		return '?', shownLength(charset, s)
	}
	if r, n = javaCharacter(charset, s); r < 0 {
		return utf8.RuneError, badLength(charset, s)
	}
	return r, n
}

// stepOf reads one character of any set that DecodeText knows.
func stepOf(charset string) stepFunc {
	switch charset {
	case "utf8mb4", "binary", "utf8mb3", "utf8", "ascii":
		longest := map[string]int{"utf8mb3": 3, "utf8": 3, "ascii": 1}[charset]
		return func(s string) (rune, int) {
			r, n := utf8.DecodeRuneInString(s)
			if r == utf8.RuneError && n == 1 || longest > 0 && n > longest {
				return -1, 0
			}
			return r, n
		}
	}
	if t := singleByteTables()[charset]; t != nil {
		return func(s string) (rune, int) {
			if r := t[s[0]]; r != none {
				return rune(r), 1
			}
			return -1, 0
		}
	}
	return multiByte(charset)
}

// javaCodes are the codes of charsets/java.txt, by set and code.
var javaCodes = sync.OnceValue(func() map[string]map[int]rune {
	out := map[string]map[int]rune{}
	data, err := charsetFiles.ReadFile("charsets/java.txt")
	if err != nil {
		return out // a test reads it
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] == "#" {
			continue
		}
		code, _ := strconv.ParseInt(f[1], 16, 32)
		char, _ := strconv.ParseInt(f[2], 16, 32)
		count, _ := strconv.Atoi(f[3])
		if out[f[0]] == nil {
			out[f[0]] = map[int]rune{}
		}
		for i := range count {
			out[f[0]][int(code)+i] = rune(char) + rune(i)
		}
	}
	return out
})

// javaCharacter reads a character that Java has where the server has none.
func javaCharacter(charset, s string) (rune, int) {
	if charset == "ucs2" {
		return stepUTF16(s)
	}
	if charset == "utf8mb3" || charset == "utf8" {
		return stepOf("utf8mb4")(s)
	}
	codes := javaCodes()[charset]
	if len(s) > 1 {
		if r, ok := codes[int(s[0])<<8|int(s[1])]; ok {
			return r, 2
		}
	}
	if r, ok := codes[int(s[0])]; ok {
		return r, 1
	}
	return -1, 0
}

// shownLength is how many bytes one question mark of the server stands for: a code that
// has the form of a character in the set, or one byte.
func shownLength(charset, s string) int {
	long := func(i int) bool { return i < len(s) && s[i] >= utf8.RuneSelf }
	switch charset {
	case "ucs2", "utf16", "utf16le":
		return 2
	case "utf32":
		return 4
	case "ujis", "eucjpms":
		if s[0] == 0x8f && long(1) && long(2) {
			return 3
		}
	case "gb18030":
		if len(s) >= 4 && long(0) && s[1] >= '0' && s[1] <= '9' {
			return 4
		}
	}
	if codeTables[charset] != nil && long(0) && len(s) > 1 && s[1] >= 0x40 && s[1] != 0x7f {
		return 2
	}
	return 1
}

// badLength is how many bytes one replacement stands for, as Java's decoders have it; s
// begins with the first bad one.
func badLength(charset, s string) int {
	switch charset {
	case "utf8mb4", "utf8mb3", "utf8", "binary":
		return badUTF8(s)
	case "ucs2", "utf16":
		return badUTF16(s, 0)
	case "utf16le":
		return badUTF16(s, 1)
	case "utf32":
		return 4
	}
	load := codeTables[charset]
	if load == nil || s[0] < utf8.RuneSelf || len(s) < 2 {
		return 1
	}
	if charset == "ujis" || charset == "eucjpms" {
		return badEUC(s)
	}
	if charset == "gb18030" && s[1] >= '0' && s[1] <= '9' {
		return 4
	}
	return load().badLength(s)
}

// badLength: a pair that is none counts as a whole only where its second byte can't
// begin a character itself.
func (t *codeTable) badLength(s string) int {
	lead := func(c byte) bool { return c >= utf8.RuneSelf && t.double[c-utf8.RuneSelf] != nil }
	alone := s[1] < utf8.RuneSelf || t.single[s[1]-utf8.RuneSelf] != none
	if !lead(s[0]) || lead(s[1]) || alone {
		return 1
	}
	return 2
}

// badEUC: Java's decoder of EUC-JP takes two bytes whatever they are, three behind 0x8F.
func badEUC(s string) int {
	if s[0] == 0x8f {
		return 3
	}
	return 2
}

// badUTF16: a high surrogate takes the unit behind it along. high is where the high byte
// of a unit is.
func badUTF16(s string, high int) int {
	if len(s) > 2 && utf16.IsSurrogate(rune(s[high])<<8) && s[high] < 0xdc {
		return 4
	}
	return 2
}

// badUTF8 is the length of what Java's decoder of UTF-8 replaces as one: the longest
// beginning of a character, or a whole surrogate.
func badUTF8(s string) int {
	low, high, need := byte(0x80), byte(0xbf), 0
	switch c := s[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		if c == 0xe0 {
			low = 0xa0
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		if c == 0xf0 {
			low = 0x90
		}
		if c == 0xf4 {
			high = 0x8f
		}
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n
}
