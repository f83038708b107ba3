package javaregex

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Error says why a pattern or replacement is refused.
type Error struct {
	// Reason names the construct.
	Reason string
	// Index is where, in characters; -1 when it has no place.
	Index int
	// Unsupported is set for what Java takes and this package does not.
	Unsupported bool
}

func (e *Error) Error() string {
	if e.Index < 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s near index %d", e.Reason, e.Index)
}

// flags are those of Pattern that hold at a place of a pattern.
type flags uint8

const (
	fold flags = 1 << iota
	multiline
	dotAll
	unixLines
	unicodeCase
	unicodeClass
	comments
)

var flagLetters = map[rune]flags{
	'i': fold, 'm': multiline, 's': dotAll, 'd': unixLines, 'u': unicodeCase, 'U': unicodeClass | unicodeCase,
	'x': comments,
}

// scanner walks over a pattern whose quotations are written out. Behind the text
// stand two zeros, so that looking ahead needs no check.
type scanner struct {
	flags
	text []rune
	at   []int // where in the pattern as given
	end  int
	pos  int
}

func newScanner(pattern string, f flags) *scanner {
	s := &scanner{flags: f}
	if !utf8.ValidString(pattern) {
		s.fail("the pattern is not valid UTF-8")
	}
	s.unquote([]rune(pattern))
	s.end = len(s.text)
	s.text = append(s.text, 0, 0)
	return s
}

// unquote writes \Q...\E out with escapes. Java does so before it looks at
// anything else: a quantifier behind \E counts for the last character, and a
// quotation may stand in a class.
func (s *scanner) unquote(p []rune) {
	put := func(i int, r ...rune) {
		for _, c := range r {
			s.text, s.at = append(s.text, c), append(s.at, i)
		}
	}
	quoted, first := false, false
	for i := 0; i < len(p); i++ {
		c := p[i]
		pair := rune(0)
		if c == '\\' && i+1 < len(p) {
			pair = p[i+1]
		}
		switch {
		case !quoted && pair == 'Q':
			quoted, first = true, true
			i++
			continue
		case !quoted && pair != 0:
			put(i, c, pair)
			i++
		case quoted && pair == 'E':
			quoted = false
			i++
		case quoted && first && isDigit(c):
			put(i, '\\', 'x', '3', c) // not a part of an escape before the quotation
		case quoted && c < utf8.RuneSelf && !isAlpha(c) && !isDigit(c):
			put(i, '\\', c)
		default:
			put(i, c)
		}
		first = false
	}
}

func (s *scanner) place() int {
	if i := s.pos - 1; i >= 0 && i < len(s.at) {
		return s.at[i]
	}
	return max(0, len(s.at)-1)
}

// fail ends the parsing; Compile recovers the error.
func (s *scanner) fail(format string, args ...any) {
	panic(&Error{Reason: fmt.Sprintf(format, args...), Index: s.place()})
}

func (s *scanner) unsupported(format string, args ...any) {
	panic(&Error{Reason: fmt.Sprintf(format, args...) + " is not supported", Index: s.place(), Unsupported: true})
}

func (s *scanner) has(f flags) bool { return s.flags&f != 0 }

func (s *scanner) atEnd() bool { return s.pos >= s.end }

func (s *scanner) rune(i int) rune {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// blank moves over white space and comments, where they are allowed.
func (s *scanner) blank() {
	for s.has(comments) && s.pos < s.end {
		switch c := s.text[s.pos]; {
		case isSpace(c):
			s.pos++
		case c == '#':
			for s.pos < s.end && !s.endsLine(s.text[s.pos]) {
				s.pos++
			}
		case c == 0:
			s.unsupported("a NUL under (?x)")
		default:
			return
		}
	}
}

func (s *scanner) endsLine(c rune) bool {
	return c == '\n' || !s.has(unixLines) && slices.Contains([]rune{'\r', 0x85, 0x2028, 0x2029}, c)
}

// peek is the next character that counts; 0 at the end.
func (s *scanner) peek() rune {
	s.blank()
	return s.rune(s.pos)
}

// next passes over one character and is peek then.
func (s *scanner) next() rune {
	s.pos++
	return s.peek()
}

// read takes the next character that counts.
func (s *scanner) read() rune {
	c := s.peek()
	s.pos++
	return c
}

// raw takes the next character, of white space too.
func (s *scanner) raw() rune {
	c := s.rune(s.pos)
	s.pos++
	return c
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }
func isLower(c rune) bool { return c >= 'a' && c <= 'z' }
func isUpper(c rune) bool { return c >= 'A' && c <= 'Z' }
func isAlpha(c rune) bool { return isLower(c) || isUpper(c) }
func isAlnum(c rune) bool { return isAlpha(c) || isDigit(c) }
func isSpace(c rune) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isWord(c rune) bool  { return isAlnum(c) || c == '_' }
func isHex(c rune) bool   { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func hexValue(c rune) rune {
	switch {
	case isDigit(c):
		return c - '0'
	case isLower(c):
		return c - 'a' + 10
	default:
		return c - 'A' + 10
	}
}

func lowerASCII(c rune) rune {
	if isUpper(c) {
		return c + 32
	}
	return c
}

func upperASCII(c rune) rune {
	if isLower(c) {
		return c - 32
	}
	return c
}
