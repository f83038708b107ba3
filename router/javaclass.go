package router

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of characters: sorted, disjoint ranges.
type runeSet []runeRange

type runeRange struct{ lo, hi rune }

func (s runeSet) normal() runeSet {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b runeRange) int { return int(a.lo - b.lo) })
	out := s[:0:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (s runeSet) not() runeSet {
	var out runeSet
	next := rune(0)
	for _, r := range s.normal() {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, runeRange{next, unicode.MaxRune})
	}
	return out
}

func (s runeSet) and(t runeSet) runeSet { return append(s.not(), t.not()...).not() }

// folded adds the other case of ASCII letters.
func (s runeSet) folded(f regexFlags) runeSet {
	if !f.fold {
		return s
	}
	for _, r := range slices.Clone(s) {
		for lo, shift := range map[rune]rune{'a': -32, 'A': 32} {
			if from, to := max(r.lo, lo), min(r.hi, lo+25); from <= to {
				s = append(s, runeRange{from + shift, to + shift})
			}
		}
	}
	return s
}

// String writes the set as a class for regexp2.
func (s runeSet) String() string {
	s = s.normal()
	if len(s) == 0 {
		return `(?!)`
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, r := range s {
		writeClassRune(&b, r.lo)
		if r.hi > r.lo {
			b.WriteByte('-')
			writeClassRune(&b, r.hi)
		}
	}
	b.WriteByte(']')
	return b.String()
}

func writeClassRune(b *strings.Builder, r rune) {
	switch {
	case strings.ContainsRune(`\[]^-`, r):
		// Not as \- and the like, which regexp2 does not take for the end of a range.
		fmt.Fprintf(b, `\u%04x`, r)
	case !utf8.ValidRune(r):
		// Half a surrogate pair: no text holds one, the nearest character will do.
		b.WriteRune(0xe000)
	default:
		b.WriteRune(r)
	}
}

// class reads a character class behind its '['.
func (p *regexParser) class(f regexFlags, depth int) (runeSet, error) {
	if depth > maxRegexDepth {
		return nil, p.fail("character classes are nested too deep")
	}
	negated := p.take("^")
	var operands []runeSet // of &&; an empty one counts for all characters
	var union runeSet
	start := true // a ']' at the start is a character
	for {
		if !p.more() {
			return nil, p.fail("unclosed character class")
		}
		switch {
		case f.comments && p.skipComment():
			continue
		case p.peek("]") && !start:
			p.pos++
			return intersection(append(operands, union), negated), nil
		case p.take("&&"):
			operands, union, start = append(operands, union), nil, false
			continue
		}
		start = false
		part, err := p.classItem(f, depth)
		if err != nil {
			return nil, err
		}
		union = append(union, part...)
	}
}

// intersection takes an empty operand, as in [&&a], for all characters.
func intersection(operands []runeSet, negated bool) runeSet {
	result := runeSet{{0, unicode.MaxRune}}
	for _, o := range operands {
		if len(o) > 0 {
			result = result.and(o)
		}
	}
	if negated {
		return result.not()
	}
	return result
}

// classItem reads a nested class, a predefined set, a quotation, a character or a range.
func (p *regexParser) classItem(f regexFlags, depth int) (runeSet, error) {
	if p.take("[") {
		return p.class(f, depth+1)
	}
	if p.take(`\Q`) {
		var out runeSet
		for _, r := range p.quoted() {
			out = append(out, runeRange{r, r})
		}
		return out.folded(f), nil
	}
	if p.peek(`\`) && p.pos+1 < len(p.src) {
		p.pos++
		if set, ok, err := p.namedSet(f); err != nil || ok {
			return set, err
		}
		p.pos--
	}
	lo, err := p.classRune()
	if err != nil {
		return nil, err
	}
	if !p.peek("-") || p.pos+1 >= len(p.src) || p.src[p.pos+1] == ']' || p.src[p.pos+1] == '[' {
		return runeSet{{lo, lo}}.folded(f), nil
	}
	p.pos++
	hi, err := p.classRune()
	if err != nil {
		return nil, err
	}
	if hi < lo {
		return nil, p.fail("illegal character range")
	}
	return runeSet{{lo, hi}}.folded(f), nil
}

func (p *regexParser) classRune() (rune, error) {
	r := p.src[p.pos]
	p.pos++
	if r != '\\' {
		return r, nil
	}
	if !p.more() {
		return 0, p.fail("unclosed character class")
	}
	return p.escapedRune()
}

var (
	setDigit = runeSet{{'0', '9'}}
	setLower = runeSet{{'a', 'z'}}
	setUpper = runeSet{{'A', 'Z'}}
	setSpace = runeSet{{'\t', '\r'}, {' ', ' '}}
	setAlpha = runeSet{{'a', 'z'}, {'A', 'Z'}}
	setAlnum = runeSet{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}}
	setWord  = runeSet{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}}
	setPunct = runeSet{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}
	setHoriz = runeSet{
		{' ', ' '}, {'\t', '\t'}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200a},
		{0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
	}
	setVert = runeSet{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}
)

// namedSet reads \d, \p{..} and their kin behind the backslash; ok is false, and
// nothing read, for other escapes.
func (p *regexParser) namedSet(f regexFlags) (set runeSet, ok bool, err error) {
	r := p.src[p.pos]
	switch r {
	case 'd', 'D':
		set = setDigit
	case 's', 'S':
		set = setSpace
	case 'w', 'W':
		set = setWord
	case 'h', 'H':
		set = setHoriz
	case 'v', 'V':
		set = setVert
	case 'p', 'P':
		p.pos++
		if set, err = p.property(); err != nil {
			return nil, false, err
		}
		set = set.folded(f)
	default:
		return nil, false, nil
	}
	if r != 'p' && r != 'P' {
		p.pos++
	}
	set = slices.Clone(set)
	if r >= 'A' && r <= 'Z' {
		set = set.not()
	}
	return set, true, nil
}

func (p *regexParser) property() (runeSet, error) {
	if !p.more() {
		return nil, p.fail("unknown character property")
	}
	name := string(p.src[p.pos])
	if p.take("{") {
		start := p.pos
		for p.more() && p.src[p.pos] != '}' {
			p.pos++
		}
		name = string(p.src[start:p.pos])
		if !p.take("}") {
			return nil, p.fail("unclosed character family")
		}
	} else {
		p.pos++
	}
	if set, ok := posixSet(name); ok {
		return set, nil
	}
	for _, prefix := range []string{"Is", "general_category=", "gc=", "script=", "sc="} {
		name = strings.TrimPrefix(name, prefix)
	}
	if t, ok := unicode.Categories[name]; ok {
		return tableSet(t), nil
	}
	if t, ok := unicode.Scripts[name]; ok {
		return tableSet(t), nil
	}
	return nil, p.fail("unknown or unsupported character property {" + name + "}")
}

func posixSet(name string) (runeSet, bool) {
	switch name {
	case "Lower":
		return setLower, true
	case "Upper":
		return setUpper, true
	case "ASCII":
		return runeSet{{0, 0x7f}}, true
	case "Alpha":
		return setAlpha, true
	case "Digit":
		return setDigit, true
	case "Alnum":
		return setAlnum, true
	case "Punct":
		return setPunct, true
	case "Graph":
		return runeSet{{'!', '~'}}, true
	case "Print":
		return runeSet{{' ', '~'}}, true
	case "Blank":
		return runeSet{{'\t', '\t'}, {' ', ' '}}, true
	case "Cntrl":
		return runeSet{{0, 0x1f}, {0x7f, 0x7f}}, true
	case "XDigit":
		return runeSet{{'0', '9'}, {'a', 'f'}, {'A', 'F'}}, true
	case "Space":
		return setSpace, true
	default:
		return nil, false
	}
}

func tableSet(t *unicode.RangeTable) runeSet {
	var out runeSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, runeRange{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, runeRange{r, r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out
}
