package javaregex

import "unicode"

func atStart(_ *run, i int) bool { return i == 0 }

// isBreak tells whether a unit ends a line, when not only \n does.
func isBreak(c uint16) bool { return c == '\n' || c == '\r' || c == 0x85 || c|1 == 0x2029 }

func (p *parser) caret() tree {
	switch {
	case !p.has(multiline):
		return anchor{atStart}
	case p.has(unixLines):
		return anchor{func(m *run, i int) bool {
			return i < len(m.text) && (i == 0 || m.text[i-1] == '\n')
		}}
	default:
		return anchor{func(m *run, i int) bool {
			if i == len(m.text) {
				return false
			}
			return i == 0 || isBreak(m.text[i-1]) && (m.text[i-1] != '\r' || m.text[i] != '\n')
		}}
	}
}

// dollar is $, and \Z without lines.
func (p *parser) dollar(lines bool) tree {
	if p.has(unixLines) {
		return anchor{func(m *run, i int) bool {
			end := len(m.text)
			return i == end || m.text[i] == '\n' && (lines || i == end-1)
		}}
	}
	return anchor{func(m *run, i int) bool {
		rest := m.text[i:]
		switch {
		case len(rest) == 0:
			return true
		case !isBreak(rest[0]) || rest[0] == '\n' && i > 0 && m.text[i-1] == '\r':
			return false
		default:
			return lines || len(rest) == 1 || len(rest) == 2 && rest[0] == '\r' && rest[1] == '\n'
		}
	}}
}

// boundary is \b, and \B when negated. Letters and digits of every script count, as
// in Java up to 18; an accent counts with the letter before it.
func (p *parser) boundary(negated bool) tree {
	word := func(c rune) bool { return c == '_' || unicode.In(c, unicode.L, unicode.Nd) }
	if p.has(unicodeClass) {
		word = wideWord
	}
	return anchor{func(m *run, i int) bool {
		left, right := false, false
		if i > 0 {
			c, _ := m.before(i)
			left = word(c) || unicode.Is(unicode.Mn, c) && m.hasBase(i-1)
		}
		if i < len(m.text) {
			c, _ := m.code(i)
			right = word(c) || unicode.Is(unicode.Mn, c) && m.hasBase(i)
		}
		return (left != right) != negated
	}}
}

// hasBase tells whether the accents up to i stand on a letter or digit.
func (m *run) hasBase(i int) bool {
	for ; i >= 0; i-- {
		c, _ := m.code(i)
		if unicode.In(c, unicode.L, unicode.Nd) {
			return true
		}
		if !unicode.Is(unicode.Mn, c) {
			return false
		}
	}
	return false
}
