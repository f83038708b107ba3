package schema

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// tokenKind is the little that Scan needs to tell apart.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // unquoted: keyword, identifier or number
	tokenQuoted           // `identifier`
	tokenText             // 'text', or "text" which may be an identifier (ANSI_QUOTES)
	tokenHex              // x'4142' or 0x4142
	tokenPunct            // one other byte
)

type token struct {
	kind tokenKind
	// text is the token as it stands in the statement, with its quotes.
	text []byte
}

// is compares an unquoted word with a keyword in upper case.
func (t token) is(keyword string) bool {
	if t.kind != tokenWord || len(t.text) != len(keyword) {
		return false
	}
	for i := range t.text {
		c := t.text[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != keyword[i] {
			return false
		}
	}
	return true
}

func (t token) isAny(keywords ...string) bool {
	for _, k := range keywords {
		if t.is(k) {
			return true
		}
	}
	return false
}

func (t token) isPunct(c byte) bool { return t.kind == tokenPunct && t.text[0] == c }

// identifier returns the name that the token may be, whichever way it is quoted.
func (t token) identifier() (string, bool) {
	switch {
	case t.kind == tokenWord:
		return string(t.text), true
	case t.kind == tokenQuoted, t.kind == tokenText && t.text[0] == '"':
		q := string(t.text[:1])
		inner := strings.TrimSuffix(string(t.text[1:]), q)
		return strings.ReplaceAll(inner, q+q, q), true
	}
	return "", false
}

// dialect says how to read what depends on the session that wrote a statement.
// Query events do tell (in status variables), but reading a statement in every
// way it may have been meant needs no trust in them.
type dialect struct {
	// noBackslash: a backslash in a text is a plain character (NO_BACKSLASH_ESCAPES).
	noBackslash bool
	// twoByte: bytes from 0x81 on take the next one with them, as in gbk, sjis and
	// big5, whose second byte may look like a backslash or a backquote.
	twoByte bool
}

// lexer splits a statement into tokens. Comments are passed over, executable
// ones (/*! and /*M!) are looked into: on a server that does not execute them
// their names are too many, which does no harm.
type lexer struct {
	sql []byte
	pos int
	dialect
	// backslash is set when a backslash stood before a quote, so that the two
	// readings of texts differ.
	backslash bool
	executing bool // inside an executable comment
}

func (l *lexer) next() token {
	if !l.skipBlanks() {
		return token{}
	}
	start := l.pos
	c := l.sql[start]
	switch {
	case c == '`':
		l.quoted('`')
		return token{tokenQuoted, l.sql[start:l.pos]}
	case c == '\'' || c == '"':
		l.quoted(c)
		return token{tokenText, l.sql[start:l.pos]}
	case (c == 'x' || c == 'X') && start+1 < len(l.sql) && l.sql[start+1] == '\'':
		l.pos++
		l.quoted('\'')
		return token{tokenHex, l.sql[start:l.pos]}
	case isWordByte(c):
		for l.pos < len(l.sql) && isWordByte(l.sql[l.pos]) {
			l.step()
		}
		word := l.sql[start:l.pos]
		if len(word) > 2 && word[0] == '0' && word[1]|0x20 == 'x' {
			return token{tokenHex, word}
		}
		return token{tokenWord, word}
	}
	l.pos++
	return token{tokenPunct, l.sql[start:l.pos]}
}

func isWordByte(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// step moves over one character.
func (l *lexer) step() {
	if l.twoByte && l.sql[l.pos] > 0x80 && l.pos+1 < len(l.sql) && l.sql[l.pos+1] >= 0x40 {
		l.pos++
	}
	l.pos++
}

// quoted moves over a quoted token that starts at pos, to the end of the
// statement if it is not closed.
func (l *lexer) quoted(q byte) {
	l.pos++
	for l.pos < len(l.sql) {
		c := l.sql[l.pos]
		rest := l.sql[l.pos+1:]
		switch {
		case c == '\\' && q != '`' && len(rest) > 0:
			if rest[0] == q || rest[0] == '\\' {
				l.backslash = true
			}
			l.pos++
			if !l.noBackslash {
				l.step()
			}
		case c == q && len(rest) > 0 && rest[0] == q:
			l.pos += 2
		case c == q:
			l.pos++
			return
		default:
			l.step()
		}
	}
}

// skipBlanks moves to the next token and reports whether there is one.
func (l *lexer) skipBlanks() bool {
	for l.pos < len(l.sql) {
		rest := l.sql[l.pos:]
		switch {
		case rest[0] <= ' ':
			l.pos++
		case rest[0] == '#', isDashComment(rest):
			l.skipLine()
		case has(rest, "/*!"):
			l.openExecutable(3)
		case has(rest, "/*M!"), has(rest, "/*m!"):
			l.openExecutable(4)
		case has(rest, "/*"):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				l.pos = len(l.sql)
				return false
			}
			l.pos += 2 + end + 2
		case l.executing && has(rest, "*/"):
			l.executing = false
			l.pos += 2
		default:
			return true
		}
	}
	return false
}

func has(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// isDashComment: two dashes are a comment only when a blank or the end follows.
func isDashComment(b []byte) bool {
	return has(b, "--") && (len(b) == 2 || b[2] <= ' ')
}

func (l *lexer) skipLine() {
	for l.pos < len(l.sql) && l.sql[l.pos] != '\n' {
		l.pos++
	}
}

// openExecutable moves behind "/*!" and its version number.
func (l *lexer) openExecutable(n int) {
	l.pos += n
	for digits := 0; digits < 6 && l.pos < len(l.sql) && '0' <= l.sql[l.pos] && l.sql[l.pos] <= '9'; digits++ {
		l.pos++
	}
	l.executing = true
}

// others lists the readings to try beside the usual one, once the statement has
// been read to its end.
func (l *lexer) others() []dialect {
	var out []dialect
	if l.backslash {
		out = append(out, dialect{noBackslash: true})
	}
	if !utf8.Valid(l.sql) {
		out = append(out, dialect{twoByte: true})
		if l.backslash {
			out = append(out, dialect{twoByte: true, noBackslash: true})
		}
	}
	return out
}
