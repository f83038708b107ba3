package ddl

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

type tokenKind uint8

const (
	end      tokenKind = iota
	word               // a keyword or a name without quotes
	quoted             // a name in quotes
	text               // 'text'
	number             // digits, with a fraction or an exponent
	bytesHex           // x'41' or 0x41: text holds the bytes
	bits               // b'101' or 0b101: text holds the digits
	punct              // one other character
)

type token struct {
	kind tokenKind
	// text is what the token says: names and texts without their quotes, in UTF-8.
	text string
	// start and end are where it stands in the statement.
	start, end int
	// raw says that text has characters beyond ASCII or escapes, whose meaning
	// depends on the character set in front of it.
	raw bool
}

func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.text, keyword) }

func (t token) isAny(keywords ...string) bool {
	for _, k := range keywords {
		if t.is(k) {
			return true
		}
	}
	return false
}

func (t token) isPunct(c string) bool { return t.kind == punct && t.text == c }

// lexer splits a statement into the tokens that its server saw.
type lexer struct {
	sql       string
	pos       int
	source    Source
	mode      Mode
	executing bool // inside a comment that the server executes
	// backslashed says that a text has had a backslash in it.
	backslashed bool
	err         error
}

// decode makes UTF-8 of a statement in the character set of its session.
func decode(sql []byte, charset string) (string, error) {
	if charset == "" {
		charset = "utf8mb4"
	}
	out, err := schema.DecodeText(charset, string(sql))
	if err != nil {
		return "", fmt.Errorf("reading its text: %w", err)
	}
	return out, nil
}

func (l *lexer) fail(why string) token {
	if l.err == nil {
		l.err = errors.New(why)
	}
	l.pos = len(l.sql)
	return token{start: l.pos, end: l.pos}
}

// next reads a token. dotted says that a name is expected, which may be made of digits.
func (l *lexer) next(dotted bool) token {
	if !l.skipBlanks() {
		return token{start: len(l.sql), end: len(l.sql)}
	}
	start := l.pos
	t := l.read(dotted)
	t.start, t.end = start, l.pos
	return t
}

func (l *lexer) read(dotted bool) token {
	c := l.sql[l.pos]
	switch {
	case c == '`':
		return l.quotedAs(quoted, c)
	case c == '"' && l.mode&AnsiQuotes != 0:
		return l.quotedAs(quoted, c)
	case c == '\'' || c == '"':
		return l.quotedAs(text, c)
	case isWordByte(c):
		return l.word(dotted)
	case c == '.' && !dotted && l.digitAt(l.pos+1):
		return l.numeric()
	}
	_, n := utf8.DecodeRuneInString(l.sql[l.pos:])
	l.pos += n
	return token{kind: punct, text: l.sql[l.pos-n : l.pos]}
}

func isWordByte(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (l *lexer) digitAt(i int) bool { return i < len(l.sql) && isDigit(l.sql[i]) }

// quotedAs reads up to the closing quote.
func (l *lexer) quotedAs(kind tokenKind, q byte) token {
	var b strings.Builder
	raw := false
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		c := l.sql[l.pos]
		switch {
		case c == q && l.pos+1 < len(l.sql) && l.sql[l.pos+1] == q:
			l.pos++
			b.WriteByte(q)
		case c == q:
			l.pos++
			return token{kind: kind, text: b.String(), raw: raw}
		case c == '\\' && kind == text && l.mode&NoBackslashEscapes == 0 && l.pos+1 < len(l.sql):
			l.pos++
			if c := l.sql[l.pos]; c == '%' || c == '_' { // they keep their backslash
				b.WriteByte('\\')
			}
			b.WriteByte(schema.Unescape(l.sql[l.pos]))
		default:
			l.backslashed = l.backslashed || c == '\\'
			raw = raw || c >= utf8.RuneSelf
			b.WriteByte(c)
		}
	}
	return l.fail("a quote is not closed")
}

// word reads a name, a keyword, or what begins like one.
func (l *lexer) word(dotted bool) token {
	start := l.pos
	if !dotted {
		if q := start + 1; q < len(l.sql) && l.sql[q] == '\'' {
			switch l.sql[start] | 0x20 {
			case 'x':
				return l.bytes()
			case 'b':
				return l.bits()
			}
		}
		if isDigit(l.sql[start]) {
			if t, ok := l.number(); ok {
				return t
			}
		}
	}
	for l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
		l.pos++
	}
	return token{kind: word, text: l.sql[start:l.pos]}
}

// number reads a number unless it turns out to be a name that begins with digits.
func (l *lexer) number() (token, bool) {
	i := l.pos
	for l.digitAt(i) {
		i++
	}
	stop := i
	for stop < len(l.sql) && isWordByte(l.sql[stop]) {
		stop++
	}
	whole, rest := l.sql[l.pos:stop], l.sql[i:stop]
	if strings.HasPrefix(whole, "0x") && isHex(whole[2:]) {
		l.pos = stop
		return l.hex(whole[2:]), true
	}
	if strings.HasPrefix(whole, "0b") && strings.Trim(whole[2:], "01") == "" && len(whole) > 2 {
		l.pos = stop
		return token{kind: bits, text: whole[2:]}, true
	}
	exponent := rest != "" && rest[0]|0x20 == 'e' && (len(rest) > 1 && strings.Trim(rest[1:], "0123456789") == "" ||
		len(rest) == 1 && stop < len(l.sql) && (l.sql[stop] == '+' || l.sql[stop] == '-') && l.digitAt(stop+1))
	if rest != "" && !exponent {
		return token{}, false
	}
	return l.numeric(), true
}

// numeric reads digits, a fraction and an exponent.
func (l *lexer) numeric() token {
	start := l.pos
	digits := func() {
		for l.digitAt(l.pos) {
			l.pos++
		}
	}
	digits()
	if l.pos < len(l.sql) && l.sql[l.pos] == '.' {
		l.pos++
		digits()
	}
	if l.pos < len(l.sql) && l.sql[l.pos]|0x20 == 'e' {
		at := l.pos + 1
		if at < len(l.sql) && (l.sql[at] == '+' || l.sql[at] == '-') {
			at++
		}
		if l.digitAt(at) {
			l.pos = at
			digits()
		}
	}
	return token{kind: number, text: l.sql[start:l.pos]}
}

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// hex gives digits as bytes.
func (l *lexer) hex(digits string) token {
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	out, err := hex.DecodeString(digits)
	if err != nil {
		return l.fail("a hexadecimal text is not one")
	}
	return token{kind: bytesHex, text: string(out), raw: true}
}

func (l *lexer) bytes() token {
	l.pos++
	t := l.quotedAs(text, '\'')
	if t.text != "" && !isHex(t.text) {
		return l.fail("a hexadecimal text is not one")
	}
	return l.hex(t.text)
}

func (l *lexer) bits() token {
	l.pos++
	t := l.quotedAs(text, '\'')
	if strings.Trim(t.text, "01") != "" {
		return l.fail("a text of bits is not one")
	}
	t.kind = bits
	return t
}

// skipBlanks moves to the next token and reports whether there is one.
func (l *lexer) skipBlanks() bool {
	for l.pos < len(l.sql) {
		rest := l.sql[l.pos:]
		switch {
		case rest[0] <= ' ':
			l.pos++
		case rest[0] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			line := strings.IndexByte(rest, '\n')
			if line < 0 {
				l.pos = len(l.sql)
				return false
			}
			l.pos += line
		case strings.HasPrefix(rest, "/*"):
			l.comment(rest)
		case l.executing && strings.HasPrefix(rest, "*/"):
			l.executing = false
			l.pos += 2
		default:
			return true
		}
	}
	if l.executing {
		l.fail("a comment is not closed")
	}
	return false
}

// comment passes over a comment, or goes into one that the server executes.
func (l *lexer) comment(rest string) {
	marks := 2
	switch {
	case strings.HasPrefix(rest, "/*!"):
		marks = 3
	case l.source.MariaDB && (strings.HasPrefix(rest, "/*M!") || strings.HasPrefix(rest, "/*m!")):
		marks = 4
	}
	if marks == 2 {
		l.skipComment(rest, 2, false)
		return
	}
	version, digits := 0, 0
	for digits < 6 && l.digitAt(l.pos+marks+digits) {
		version = 10*version + int(l.sql[l.pos+marks+digits]-'0')
		digits++
	}
	if digits < 5 { // no version
		version, digits = 0, 0
	}
	executed := version <= l.source.Version
	if l.source.MariaDB && marks == 3 && version >= 50700 && version <= 99999 {
		executed = false // MySQL's, of versions whose syntax MariaDB does not share
	}
	if !executed {
		l.skipComment(rest, marks+digits, true)
		return
	}
	l.executing = true
	l.pos += marks + digits
}

// skipComment passes over a comment; nested says that one more may be inside.
func (l *lexer) skipComment(rest string, from int, nested bool) {
	for i := from; i+1 < len(rest); i++ {
		switch {
		case rest[i] == '*' && rest[i+1] == '/':
			l.pos += i + 2
			return
		case nested && rest[i] == '/' && rest[i+1] == '*':
			inner := strings.Index(rest[i+2:], "*/")
			if inner < 0 {
				l.fail("a comment is not closed")
				return
			}
			i += 2 + inner + 1
		}
	}
	l.fail("a comment is not closed")
}
