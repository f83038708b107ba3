package javaregex

import "math"

// tree is a part of a parsed pattern.
type tree interface{}

type (
	choice   []tree // of alternatives
	sequence []tree
	char     struct{ in set }
	literal  struct {
		text []rune
		same func(want, got rune) bool
	}
	anchor    struct{ holds func(*run, int) bool }
	lineBreak struct{}
	backRef   struct {
		group int
		flags flags
	}
	group struct {
		index int // 0 when it is not captured
		body  tree
	}
	ahead struct {
		body     tree
		negative bool
	}
	behind struct {
		body     tree
		negative bool
		lengths  lengths
		pairs    bool // lengths count characters, not UTF-16 units
	}
	atomic struct{ body tree }
	repeat struct {
		body        tree
		least, most int32
		mode        mode
	}
)

type mode uint8

const (
	greedy mode = iota
	lazy
	possessive
)

const (
	unlimited = math.MaxInt32
	maxDepth  = 200
)

type parser struct {
	*scanner
	groups int
	names  map[string]int
	refers bool // a back reference is there
	depth  int
}

func (p *parser) whole() tree {
	t := p.alternatives()
	if !p.atEnd() {
		if p.peek() == ')' {
			p.pos++
			p.fail("unmatched closing ')'")
		}
		p.fail("unexpected end")
	}
	return t
}

func (p *parser) deeper() {
	if p.depth++; p.depth > maxDepth {
		p.unsupported("nesting deeper than %d", maxDepth)
	}
}

func (p *parser) alternatives() tree {
	p.deeper()
	defer func() { p.depth-- }()
	all := choice{p.sequence()}
	for p.peek() == '|' {
		p.pos++
		all = append(all, p.sequence())
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

func (p *parser) sequence() tree {
	var seq sequence
	for {
		var t tree
		switch c := p.peek(); {
		case c == 0 && p.atEnd() || c == '|' || c == ')':
			return seq
		case c == '(':
			if t = p.group(); t == nil {
				continue // flags alone
			}
		case c == '[':
			t = char{p.class(true)}
		case c == '^':
			p.pos++
			t = p.caret()
		case c == '$':
			p.pos++
			t = p.dollar(p.has(multiline))
		case c == '.':
			p.pos++
			t = char{p.dot()}
		case c == '*' || c == '+' || c == '?':
			p.pos++
			p.fail("dangling meta character '%c'", c)
		default:
			t = p.atom()
		}
		seq = append(seq, p.quantified(t))
	}
}

func (p *parser) dot() set {
	switch {
	case p.has(dotAll):
		return func(rune) bool { return true }
	case p.has(unixLines):
		return func(c rune) bool { return c != '\n' }
	default:
		return func(c rune) bool { return c != '\n' && c != '\r' && c != 0x85 && c|1 != 0x2029 }
	}
}

// atom reads an escape, or characters up to the next that is something else. A
// quantifier behind several counts for the last.
func (p *parser) atom() tree {
	var text []rune
	last := p.pos
	for {
		c := p.peek()
		start := p.pos
		switch c {
		case '*', '+', '?', '{':
			if len(text) > 1 {
				p.pos = last
				text = text[:len(text)-1]
			}
			return p.literal(text)
		case '$', '.', '^', '(', '[', '|', ')':
			return p.literal(text)
		case '\\':
			p.pos++
			t, escaped := p.escape(len(text) == 0)
			if t != nil {
				return t
			}
			if escaped < 0 {
				p.pos = start
				return p.literal(text)
			}
			c = escaped
		default:
			if c == 0 && p.atEnd() {
				return p.literal(text)
			}
			p.pos++
		}
		text, last = append(text, c), start
	}
}

func (p *parser) literal(text []rune) tree {
	if len(text) == 1 {
		return char{p.single(text[0])}
	}
	switch {
	case !p.has(fold):
		return literal{text, func(want, got rune) bool { return want == got }}
	case p.has(unicodeCase):
		for i, c := range text {
			text[i] = folded(c)
		}
		return literal{text, func(want, got rune) bool { return want == got || want == folded(got) }}
	default:
		for i, c := range text {
			text[i] = lowerASCII(c)
		}
		return literal{text, func(want, got rune) bool { return want == got || want == lowerASCII(got) }}
	}
}

func (p *parser) group() tree {
	saved := p.flags
	p.pos++
	var t tree
	if p.peek() != '?' {
		p.groups++
		t = group{p.groups, nil}
	} else {
		p.pos++
		if t = p.special(); t == nil {
			return nil
		}
	}
	switch v := t.(type) {
	case group:
		v.body = p.alternatives()
		t = v
	case ahead:
		v.body = p.alternatives()
		t = v
	case atomic:
		v.body = p.alternatives()
		t = v
	case behind:
		start := p.pos
		v.body = p.alternatives()
		v.lengths = lengthsOf(v.body)
		if !v.lengths.bounded {
			p.fail("look-behind group does not have an obvious maximum length")
		}
		if v.lengths.most < 0 {
			p.unsupported("a look-behind with several unlimited repetitions")
		}
		for _, c := range p.text[start:p.end] {
			v.pairs = v.pairs || c > 0xffff
		}
		t = v
	}
	if p.read() != ')' {
		p.fail("unclosed group")
	}
	p.flags = saved
	return t
}

// special reads what stands behind "(?"; nil for flags alone.
func (p *parser) special() tree {
	switch p.raw() {
	case ':':
		return group{}
	case '=':
		return ahead{}
	case '!':
		return ahead{negative: true}
	case '>':
		return atomic{}
	case '<':
		switch c := p.read(); c {
		case '=', '!':
			return behind{negative: c == '!'}
		default:
			name := p.groupName(c)
			if _, ok := p.names[name]; ok {
				p.fail("named capturing group <%s> is already defined", name)
			}
			p.groups++
			p.names[name] = p.groups
			return group{index: p.groups}
		}
	case '$', '@':
		p.fail("unknown group type")
	}
	p.pos--
	p.readFlags()
	switch p.read() {
	case ')':
		return nil
	case ':':
		return group{}
	}
	p.fail("unknown inline modifier")
	return nil
}

func (p *parser) readFlags() {
	on := true
	for c := p.peek(); ; c = p.next() {
		f, known := flagLetters[c]
		switch {
		case c == '-' && on:
			on = false
		case c == 'c':
			p.unsupported("the flag c (canonical equivalence)")
		case !known:
			return
		case on:
			p.flags |= f
		default:
			p.flags &^= f
		}
	}
}

// groupName reads to the '>' behind a name that begins with c.
func (p *parser) groupName(c rune) string {
	if !isAlpha(c) {
		p.fail("capturing group name does not start with a Latin letter")
	}
	var name []rune
	for ; isAlnum(c); c = p.read() {
		name = append(name, c)
	}
	if c != '>' {
		p.fail("named capturing group is missing trailing '>'")
	}
	return string(name)
}

func (p *parser) quantified(t tree) tree {
	var least, most int32
	switch p.peek() {
	case '?':
		least, most = 0, 1
	case '*':
		least, most = 0, unlimited
	case '+':
		least, most = 1, unlimited
	case '{':
		least, most = p.counts()
	default:
		return t
	}
	r := repeat{body: t, least: least, most: most}
	switch p.next() {
	case '?':
		r.mode = lazy
		p.pos++
	case '+':
		r.mode = possessive
		p.pos++
	}
	return r
}

// counts reads {n}, {n,} or {n,m} up to the closing brace.
func (p *parser) counts() (least, most int32) {
	p.pos++
	if !isDigit(p.rune(p.pos)) {
		p.fail("illegal repetition")
	}
	number := func() int32 {
		n := int64(0)
		for isDigit(p.peek()) {
			if n = n*10 + int64(p.read()-'0'); n > math.MaxInt32 {
				p.fail("illegal repetition range")
			}
		}
		return int32(n)
	}
	least = number()
	most = least
	if p.peek() == ',' {
		p.pos++
		if p.peek() == '}' {
			return least, unlimited
		}
		most = number()
	}
	if p.peek() != '}' {
		p.fail("unclosed counted closure")
	}
	if most < least {
		p.fail("illegal repetition range")
	}
	return least, most
}

// escape reads behind a backslash outside of a class: an element, or a character.
// Without create, behind other characters, an element is nil and -1.
func (p *parser) escape(create bool) (tree, rune) {
	c := p.raw()
	var t tree
	switch c {
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if create {
			t = p.reference(int(c - '0'))
		}
	case 'k':
		if p.read() != '<' {
			p.fail(`\k is not followed by '<' for a named capturing group`)
		}
		name := p.groupName(p.read())
		number, ok := p.names[name]
		if !ok {
			p.fail("named capturing group <%s> does not exist", name)
		}
		p.refers = true
		t = backRef{number, p.flags}
	case 'A':
		t = anchor{atStart}
	case 'G':
		t = anchor{func(m *run, i int) bool { return i == 0 }}
	case 'z':
		t = anchor{func(m *run, i int) bool { return i == len(m.text) }}
	case 'Z':
		t = p.dollar(false)
	case 'b', 'B':
		if create && c == 'b' && p.peek() == '{' {
			p.unsupported(`\b{`)
		}
		t = p.boundary(c == 'B')
	case 'R':
		t = lineBreak{}
	case 'X':
		p.unsupported(`\X`)
	case 'p', 'P':
		if create {
			t = char{p.property(c == 'P')}
		}
	default:
		if in := p.predefined(c); in != nil {
			t = char{in}
			break
		}
		return nil, p.escapedRune(c)
	}
	if !create {
		return nil, -1
	}
	return t, -1
}

// reference takes as many digits as make a group that is there already.
func (p *parser) reference(number int) tree {
	for c := p.peek(); isDigit(c) && number*10+int(c-'0') <= p.groups; c = p.peek() {
		number = number*10 + int(c-'0')
		p.read()
	}
	p.refers = true
	return backRef{number, p.flags}
}

// escapedRune reads the rest of an escape that begins with c and stands for one character.
func (p *parser) escapedRune(c rune) rune {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	case 'a':
		return 7
	case 'e':
		return 27
	case 'c':
		if p.atEnd() {
			p.fail("illegal control escape sequence")
		}
		return p.read() ^ 64
	case '0':
		return p.octal()
	case 'x':
		return p.paired(p.hex())
	case 'u':
		return p.unicode()
	case 'N':
		p.unsupported(`\N`)
	}
	if isAlpha(c) {
		p.fail(`illegal or unsupported escape sequence \%c`, c)
	}
	if c == 0 && p.pos > p.end {
		p.fail(`a \ at the end`)
	}
	return c
}

func (p *parser) octal() rune {
	v, digits := rune(0), 0
	for ; digits < 3; digits++ {
		c := p.peek()
		if c < '0' || c > '7' || digits == 2 && v > 0o37 {
			break
		}
		v = v*8 + c - '0'
		p.read()
	}
	if digits == 0 {
		p.fail("illegal octal escape sequence")
	}
	return v
}

func (p *parser) hex() rune {
	c := p.read()
	if c == '{' && isHex(p.peek()) {
		v := rune(0)
		for c = p.read(); isHex(c); c = p.read() {
			if v = v<<4 + hexValue(c); v > 0x10ffff {
				p.fail("hexadecimal code point is too big")
			}
		}
		if c != '}' {
			p.fail("unclosed hexadecimal escape sequence")
		}
		return v
	}
	if d := p.peek(); isHex(c) && isHex(d) {
		p.read()
		return hexValue(c)<<4 + hexValue(d)
	}
	p.fail("illegal hexadecimal escape sequence")
	return 0
}

func (p *parser) fourDigits() rune {
	v := rune(0)
	for range 4 {
		c := p.read()
		if !isHex(c) {
			p.fail("illegal Unicode escape sequence")
		}
		v = v<<4 + hexValue(c)
	}
	return v
}

// unicode reads \uXXXX, or two that are a surrogate pair.
func (p *parser) unicode() rune {
	v := p.fourDigits()
	if v >= 0xd800 && v < 0xdc00 && p.read() == '\\' && p.read() == 'u' {
		if low := p.fourDigits(); low >= 0xdc00 && low < 0xe000 {
			return (v-0xd800)<<10 + low - 0xdc00 + 0x10000
		}
	}
	return p.paired(v)
}

func (p *parser) paired(c rune) rune {
	if c >= 0xd800 && c < 0xe000 {
		p.unsupported("half of a surrogate pair")
	}
	return c
}
