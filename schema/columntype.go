package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// columnType is a parsed COLUMN_TYPE.
type columnType struct {
	name     string
	args     []int    // numbers in parentheses
	elements []string // texts in parentheses
	unsigned bool
}

// parseColumnType reads information_schema's COLUMN_TYPE: a type name, then
// numbers or quoted texts in parentheses, then attributes.
func parseColumnType(s string) (columnType, error) {
	var t columnType
	end := strings.IndexAny(s, "( ")
	if end < 0 {
		t.name = strings.ToLower(s)
		return t, nil
	}
	t.name = strings.ToLower(s[:end])
	rest := s[end:]
	if rest[0] == '(' {
		n, err := t.parseArgs(rest[1:])
		if err != nil {
			return t, fmt.Errorf("reading column type %q: %w", t.name, err)
		}
		rest = rest[1+n:]
	}
	for _, word := range strings.Fields(strings.ToLower(rest)) {
		// ZEROFILL implies UNSIGNED, and the server prints both.
		if word == "unsigned" || word == "zerofill" {
			t.unsigned = true
		}
	}
	return t, nil
}

// parseArgs reads up to and including the closing parenthesis and returns the
// number of bytes read.
func (t *columnType) parseArgs(s string) (int, error) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ')':
			return i + 1, nil
		case c == ',' || c == ' ':
			i++
		case c == '\'':
			text, n, err := unquote(s[i:])
			if err != nil {
				return 0, err
			}
			t.elements = append(t.elements, text)
			i += n
		default:
			end := i + strings.IndexAny(s[i:], ",)")
			if end < i {
				return 0, errOpen
			}
			n, err := strconv.Atoi(strings.TrimSpace(s[i:end]))
			if err != nil {
				return 0, fmt.Errorf("not a number in parentheses")
			}
			t.args = append(t.args, n)
			i = end
		}
	}
	return 0, errOpen
}

var errOpen = fmt.Errorf("missing a closing quote or parenthesis")

// unquote reads a text in quotes at the start of s, as the server prints it:
// quotes doubled, and \\, \0, \n, \r, \Z and \t escaped. It returns the text and
// the number of bytes read.
func unquote(s string) (string, int, error) {
	var b strings.Builder
	q := s[0]
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == q && i+1 < len(s) && s[i+1] == q:
			b.WriteByte(q)
			i++
		case c == q:
			return b.String(), i + 1, nil
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(Unescape(s[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, errOpen
}

// Unescape gives the byte that \c stands for in a MySQL string.
func Unescape(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return c
}
