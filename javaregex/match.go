package javaregex

import "unicode/utf16"

// run is one match of a text. Positions are in UTF-16 units, as in Java.
type run struct {
	text   []uint16
	groups []int // start and end of each group, -1 when unset
	locals []int
	memos  []map[int]bool
	whole  bool // the match must reach the end
	last   int  // where the part that was matched last ends
	target int  // where a look-behind must end
	steps  int
	depth  int
}

// tooLong unwinds a match that takes more steps than it may.
type tooLong struct{}

func (m *run) step() {
	if m.steps--; m.steps < 0 {
		panic(tooLong{})
	}
}

// deeper counts the passes of loops that are open: each stands on the stack.
func (m *run) deeper() {
	if m.depth++; m.depth > maxOpenPasses {
		panic(tooLong{})
	}
}

// code is the character at i, and its length.
func (m *run) code(i int) (c rune, n int) {
	c = rune(m.text[i])
	if c >= 0xd800 && c < 0xdc00 && i+1 < len(m.text) {
		if r := utf16.DecodeRune(c, rune(m.text[i+1])); r != 0xfffd {
			return r, 2
		}
	}
	return c, 1
}

// before is the character that ends at i, and its length.
func (m *run) before(i int) (c rune, n int) {
	c = rune(m.text[i-1])
	if c >= 0xdc00 && c < 0xe000 && i > 1 {
		if r := utf16.DecodeRune(rune(m.text[i-2]), c); r != 0xfffd {
			return r, 2
		}
	}
	return c, 1
}

// node matches at a position, together with all that follows it. What groups
// caught in a look-around or a part that does not go back stays when what follows
// fails, as it does in Java.
type node interface{ match(m *run, i int) bool }

// fastSet is a set with its ASCII part worked out.
type fastSet struct {
	ascii [2]uint64
	in    set
}

func newFastSet(in set) fastSet {
	s := fastSet{in: in}
	for c := range rune(128) {
		if in(c) {
			s.ascii[c>>6] |= 1 << (c & 63)
		}
	}
	return s
}

func (s *fastSet) has(c rune) bool {
	if c < 128 {
		return s.ascii[c>>6]&(1<<(c&63)) != 0
	}
	return s.in(c)
}

type (
	accept      struct{}
	finish      struct{}
	behindEnd   struct{}
	choiceNode  struct{ ways []node }
	literalNode struct {
		literal
		next node
	}
	charNode struct {
		fastSet
		next node
	}
	anchorNode struct {
		holds func(*run, int) bool
		next  node
	}
	lineBreakNode struct{ next node }
	backRefNode   struct {
		backRef
		next node
	}
	headNode struct {
		local int
		next  node
	}
	tailNode struct {
		local, index int
		next         node
	}
	aheadNode struct {
		body     node
		negative bool
		next     node
	}
	behindNode struct {
		body node
		behind
		next node
	}
)

func (accept) match(m *run, i int) bool {
	m.last = i
	return true
}

func (finish) match(m *run, i int) bool {
	if m.whole && i != len(m.text) {
		return false
	}
	m.last = i
	return true
}

func (behindEnd) match(m *run, i int) bool { return i == m.target }

func (n *choiceNode) match(m *run, i int) bool {
	m.step()
	for _, way := range n.ways {
		if way.match(m, i) {
			return true
		}
	}
	return false
}

func (n *charNode) match(m *run, i int) bool {
	m.step()
	if i >= len(m.text) {
		return false
	}
	c, size := m.code(i)
	return n.has(c) && n.next.match(m, i+size)
}

func (n *literalNode) match(m *run, i int) bool {
	m.step()
	for _, want := range n.text {
		if i >= len(m.text) {
			return false
		}
		c, size := m.code(i)
		if !n.same(want, c) {
			return false
		}
		i += size
	}
	return n.next.match(m, i)
}

func (n *anchorNode) match(m *run, i int) bool {
	m.step()
	return n.holds(m, i) && n.next.match(m, i)
}

func (n *lineBreakNode) match(m *run, i int) bool {
	m.step()
	if i >= len(m.text) {
		return false
	}
	c := m.text[i]
	if c == '\r' && i+1 < len(m.text) && m.text[i+1] == '\n' && n.next.match(m, i+2) {
		return true
	}
	return (isBreak(c) || c == 0x0b || c == '\f') && n.next.match(m, i+1)
}

func (n *backRefNode) match(m *run, i int) bool {
	m.step()
	if 2*n.group >= len(m.groups) || m.groups[2*n.group] < 0 {
		return false
	}
	from, to := m.groups[2*n.group], m.groups[2*n.group+1]
	end := i + to - from
	if end > len(m.text) {
		return false
	}
	for x := i; from < to; {
		m.step()
		if n.flags&fold == 0 {
			if m.text[x] != m.text[from] {
				return false
			}
			x++
			from++
			continue
		}
		a, aSize := m.code(x)
		b, bSize := m.code(from)
		if a != b && !(n.flags&unicodeCase != 0 && folded(a) == folded(b)) && lowerASCII(a) != lowerASCII(b) {
			return false
		}
		x += aSize
		from += bSize
	}
	return n.next.match(m, end)
}

func (n *headNode) match(m *run, i int) bool {
	m.step()
	saved := m.locals[n.local]
	m.locals[n.local] = i
	ok := n.next.match(m, i)
	m.locals[n.local] = saved
	return ok
}

func (n *tailNode) match(m *run, i int) bool {
	m.step()
	g := m.groups[2*n.index : 2*n.index+2]
	from, to := g[0], g[1]
	g[0], g[1] = m.locals[n.local], i
	if n.next.match(m, i) {
		return true
	}
	g[0], g[1] = from, to
	return false
}

func (n *aheadNode) match(m *run, i int) bool {
	m.step()
	return n.body.match(m, i) != n.negative && n.next.match(m, i)
}

func (n *behindNode) match(m *run, i int) bool {
	m.step()
	least, most := int(n.lengths.least), int(n.lengths.most)
	if n.pairs {
		least, most = m.unitsBefore(i, least), m.unitsBefore(i, most)
	}
	from := max(i-most, 0)
	target := m.target
	m.target = i
	found := false
	for j := i - least; !found && j >= from; {
		m.step()
		found = n.body.match(m, j)
		size := 1
		if n.pairs && j > from {
			_, size = m.before(j)
		}
		j -= size
	}
	m.target = target
	return found != n.negative && n.next.match(m, i)
}

// unitsBefore is how many units the n characters before i take.
func (m *run) unitsBefore(i, n int) int {
	j := i
	for ; n > 0 && j > 0; n-- {
		_, size := m.before(j)
		j -= size
	}
	return i - j
}

// string is the part of the text between two positions.
func (m *run) string(from, to int) string { return string(utf16.Decode(m.text[from:to])) }

// units is a text in UTF-16. Bytes that are no UTF-8 count for U+FFFD each.
func units(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for _, c := range s {
		out = utf16.AppendRune(out, c)
	}
	return out
}
