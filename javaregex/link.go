package javaregex

// lengths are those of the texts that a part matches, as far as Java works them
// out, in its arithmetic, which overflows.
type lengths struct {
	least, most int32
	bounded     bool
	// fixed is set when the part has only one way to match at a place.
	fixed bool
}

func (a lengths) then(b lengths) lengths {
	return lengths{a.least + b.least, a.most + b.most, a.bounded && b.bounded, a.fixed && b.fixed}
}

func lengthsOf(t tree) lengths {
	nothing := lengths{bounded: true, fixed: true}
	switch t := t.(type) {
	case sequence:
		all := nothing
		for _, part := range t {
			all = all.then(lengthsOf(part))
		}
		return all
	case choice:
		all := lengthsOf(t[0])
		for _, part := range t[1:] {
			l := lengthsOf(part)
			all = lengths{min(all.least, l.least), max(all.most, l.most), all.bounded && l.bounded, false}
		}
		all.fixed = false
		return all
	case char:
		return lengths{1, 1, true, true}
	case literal:
		n := int32(len(t.text))
		return lengths{n, n, true, true}
	case lineBreak:
		return lengths{1, 2, true, true}
	case backRef:
		return lengths{fixed: true}
	case group:
		return lengthsOf(t.body)
	case atomic:
		return lengthsOf(t.body)
	case repeat:
		return t.lengths()
	default:
		return nothing
	}
}

func (r repeat) lengths() lengths {
	l := lengthsOf(r.body)
	if r.least == 0 && r.most == 1 {
		return lengths{0, l.most, l.bounded, false}
	}
	if r.isLoop(l.fixed) {
		return lengths{}
	}
	if _, ok := r.body.(char); ok && r.mode == greedy && r.most == unlimited {
		return lengths{r.least, unlimited, true, false}
	}
	most := l.most * r.most
	return lengths{l.least * r.least, most, l.bounded && most >= 0, l.fixed && r.least == r.most}
}

// isLoop tells whether a repetition of a group may go back into its passes: if what
// is repeated is not fixed.
func (r repeat) isLoop(fixed bool) bool {
	_, ok := r.body.(group)
	return ok && r.mode != possessive && !(r.least == 0 && r.most == 1) && !fixed
}

// linker makes the nodes that match, each with what follows it.
type linker struct {
	locals, memos int
	refers        bool
	// plain is set outside of repeated groups and look-behinds, where a loop that
	// failed at a place fails there again.
	plain bool
}

func (l *linker) local() int {
	l.locals++
	return l.locals - 1
}

func (l *linker) link(t tree, next node) node {
	switch t := t.(type) {
	case sequence:
		for i := len(t) - 1; i >= 0; i-- {
			next = l.link(t[i], next)
		}
		return next
	case choice:
		n := &choiceNode{}
		for _, part := range t {
			n.ways = append(n.ways, l.link(part, next))
		}
		return n
	case char:
		return &charNode{newFastSet(t.in), next}
	case literal:
		return &literalNode{t, next}
	case anchor:
		return &anchorNode{t.holds, next}
	case lineBreak:
		return &lineBreakNode{next}
	case backRef:
		return &backRefNode{t, next}
	case group:
		if t.index == 0 {
			return l.link(t.body, next)
		}
		i := l.local()
		return &headNode{i, l.link(t.body, &tailNode{i, t.index, next})}
	case ahead:
		return &aheadNode{l.link(t.body, accept{}), t.negative, next}
	case behind:
		defer l.inside()()
		return &behindNode{l.link(t.body, behindEnd{}), t, next}
	case atomic:
		return &repeatNode{repeat{least: 1, most: 1, mode: possessive}, l.link(t.body, accept{}), next}
	case repeat:
		return l.repeat(t, next)
	}
	panic("unknown part of a pattern")
}

// inside marks what is repeated, until the function it returns is called.
func (l *linker) inside() func() {
	saved := l.plain
	l.plain = false
	return func() { l.plain = saved }
}

func (l *linker) repeat(r repeat, next node) node {
	g, isGroup := r.body.(group)
	once := r.least == 0 && r.most == 1
	if c, ok := r.body.(char); ok && r.mode == greedy && r.most == unlimited {
		return &runNode{newFastSet(c.in), int(r.least), next}
	}
	if !isGroup || r.mode == possessive {
		if isGroup {
			defer l.inside()()
		}
		return &repeatNode{r, l.link(r.body, accept{}), next}
	}
	plain := l.plain
	defer l.inside()()
	switch {
	case once && r.mode == greedy:
		return &choiceNode{[]node{l.link(g, next), next}}
	case once:
		return &choiceNode{[]node{next, l.link(g, next)}}
	case !r.isLoop(lengthsOf(g.body).fixed):
		return &groupRepeatNode{r, g.index, l.link(g.body, accept{}), next}
	}
	n := &loopNode{repeat: r, count: l.local(), memo: -1, next: next}
	if plain && !l.refers && r.mode == greedy && r.most == unlimited {
		n.memo = l.memos
		l.memos++
	}
	n.begin = l.local()
	var tail node = n
	if g.index > 0 {
		tail = &tailNode{n.begin, g.index, n}
	}
	n.body = &headNode{n.begin, l.link(g.body, tail)}
	return &loopStart{n}
}
