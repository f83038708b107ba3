package javaregex

import (
	"strings"
	"unicode"
)

// set tells which characters belong to a class.
type set func(rune) bool

func union(a, b set) set {
	if a == nil {
		return b
	}
	return func(c rune) bool { return a(c) || b(c) }
}

func intersection(a, b set) set { return func(c rune) bool { return a(c) && b(c) } }
func complement(a set) set      { return func(c rune) bool { return !a(c) } }
func between(lo, hi rune) set   { return func(c rune) bool { return lo <= c && c <= hi } }

// folded is a character without its case, as Java compares: the lower case of its
// upper case.
func folded(c rune) rune { return unicode.ToLower(unicode.ToUpper(c)) }

func (p *parser) single(c rune) set {
	switch {
	case p.has(fold) && p.has(unicodeCase):
		upper := unicode.ToUpper(c)
		if lower := unicode.ToLower(upper); upper != lower {
			return func(got rune) bool { return got == lower || lower == folded(got) }
		}
	case p.has(fold) && isAlpha(c):
		lower, upper := lowerASCII(c), upperASCII(c)
		return func(got rune) bool { return got == lower || got == upper }
	}
	return func(got rune) bool { return got == c }
}

// latin1 are the single characters of a class below 256. They are one set that
// grows, also behind an intersection that they take part in: [a&&[b]&c] is a, & or c.
type latin1 [256]bool

func (l *latin1) has(c rune) bool { return c >= 0 && c < 256 && l[c] }

func (l *latin1) add(c rune, f flags) {
	if f&fold != 0 {
		if c < 0x80 {
			l[lowerASCII(c)], l[upperASCII(c)] = true, true
		} else if f&unicodeCase != 0 {
			l[unicode.ToLower(c)], l[unicode.ToUpper(c)] = true, true
		}
	}
	l[c] = true
}

// foldsBeyond are the characters below 256 whose other cases are not.
const foldsBeyond = "\u00ff\u00b5IiSsKk\u00c5\u00e5"

// class reads a class behind its '[', or the right side of &&, to its ']', which it
// takes along on request.
func (p *parser) class(consume bool) set {
	p.deeper()
	defer func() { p.depth-- }()
	var all, current set
	var singles latin1
	hasSingles, negated := false, false
	if p.next() == '^' && p.rune(p.pos-1) == '[' {
		negated = true
		p.pos++
	}
	for {
		switch c := p.peek(); {
		case c == '[':
			current = p.class(true)
			all = union(all, current)
			continue
		case c == '&':
			if p.next() != '&' {
				p.pos--
				break
			}
			p.pos++
			right := p.rightSide()
			if hasSingles {
				if all == nil {
					current = singles.has
				}
				all = union(all, singles.has)
				hasSingles = false
			}
			if right != nil {
				current = right
			}
			switch {
			case all == nil && right == nil:
				p.fail("bad class syntax")
			case all == nil:
				all = right
			case current == nil:
				p.unsupported("an intersection with nothing")
			default:
				all = intersection(all, current)
			}
			continue
		case c == 0 && p.atEnd():
			p.fail("unclosed character class")
		case c == ']' && (all != nil || hasSingles):
			if consume {
				p.pos++
			}
			if hasSingles {
				all = union(all, singles.has)
			}
			if negated {
				all = complement(all)
			}
			return all
		}
		if current = p.classItem(&singles); current == nil {
			hasSingles = true
		} else {
			all = union(all, current)
		}
	}
}

// rightSide reads what follows && up to the end of the class or the next &.
func (p *parser) rightSide() set {
	var right set
	for c := p.peek(); c != ']' && c != '&'; c = p.peek() {
		if c == 0 && p.atEnd() {
			p.fail("unclosed character class")
		}
		if c != '[' {
			p.pos--
		}
		right = union(right, p.class(c == '['))
	}
	return right
}

// classItem reads a character, range or predefined set; nil for what went to singles.
func (p *parser) classItem(singles *latin1) set {
	c := p.peek()
	p.pos++
	if c == '\\' {
		name := p.raw()
		isRange := p.rune(p.pos) == '-'
		switch {
		case name == 'p' || name == 'P':
			return p.property(name == 'P')
		case name == 'v' && isRange:
			c = 0x0b
		default:
			if in := p.predefined(name); in != nil {
				return in
			}
			c = p.classEscape(name)
		}
	}
	if p.peek() == '-' {
		switch end := p.rune(p.pos + 1); end {
		case '[', ']':
		default:
			p.pos++
			return p.classRange(c)
		}
	}
	if c < 256 && !(p.has(fold) && p.has(unicodeCase) && strings.ContainsRune(foldsBeyond, c)) {
		singles.add(c, p.flags)
		return nil
	}
	return p.single(c)
}

func (p *parser) classEscape(name rune) rune {
	if isDigit(name) && name != '0' {
		p.fail("illegal or unsupported escape sequence in a class")
	}
	return p.escapedRune(name)
}

func (p *parser) classRange(lo rune) set {
	hi := p.peek()
	if hi == 0 && p.atEnd() {
		p.fail("unclosed character class")
	}
	p.pos++
	if hi == '\\' {
		switch name := p.raw(); {
		case name == 'v':
			hi = 0x0b
		case p.predefined(name) != nil:
			p.fail("illegal character range")
		default:
			hi = p.classEscape(name)
		}
	}
	if hi < lo {
		p.fail("illegal character range")
	}
	in := between(lo, hi)
	switch {
	case p.has(fold) && p.has(unicodeCase):
		return func(c rune) bool { return in(c) || in(unicode.ToUpper(c)) || in(folded(c)) }
	case p.has(fold):
		return func(c rune) bool { return in(c) || c < 0x80 && (in(upperASCII(c)) || in(lowerASCII(c))) }
	default:
		return in
	}
}

// predefined is the set of \d and its like; nil for other letters.
func (p *parser) predefined(c rune) set {
	var in set
	wide := p.has(unicodeClass)
	switch c {
	case 'd', 'D':
		in = isDigit
		if wide {
			in = posix["DIGIT"]
		}
	case 's', 'S':
		in = isSpace
		if wide {
			in = whiteSpace
		}
	case 'w', 'W':
		in = isWord
		if wide {
			in = wideWord
		}
	case 'h', 'H':
		in = func(c rune) bool {
			return c == '\t' || c == ' ' || c == 0xa0 || c == 0x1680 || c == 0x180e || c >= 0x2000 && c <= 0x200a ||
				c == 0x202f || c == 0x205f || c == 0x3000
		}
	case 'v', 'V':
		in = func(c rune) bool { return c >= '\n' && c <= '\r' || c == 0x85 || c == 0x2028 || c == 0x2029 }
	default:
		return nil
	}
	if isUpper(c) {
		return complement(in)
	}
	return in
}
