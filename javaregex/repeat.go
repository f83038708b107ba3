package javaregex

type (
	// runNode is a greedy repetition of one character, without end.
	runNode struct {
		fastSet
		least int
		next  node
	}
	// repeatNode repeats what does not go back into its passes, and catches nothing.
	repeatNode struct {
		repeat
		body node
		next node
	}
	// groupRepeatNode repeats a group that has only one way to match.
	groupRepeatNode struct {
		repeat
		index int
		body  node
		next  node
	}
	// loopNode stands behind the group that it repeats.
	loopNode struct {
		repeat
		count, begin, memo int
		body, next         node
	}
	loopStart struct{ *loopNode }
)

func (n *runNode) match(m *run, i int) bool {
	m.step()
	start, count := i, 0
	for ; i < len(m.text); count++ {
		c, size := m.code(i)
		if !n.has(c) {
			break
		}
		i += size
	}
	m.steps -= count / 8
	for count >= n.least {
		if n.next.match(m, i) {
			return true
		}
		if count == n.least {
			return false
		}
		m.step()
		_, size := m.before(i)
		i = max(start, i-size)
		count--
	}
	return false
}

func (n *repeatNode) match(m *run, i int) bool {
	count := int32(0)
	for ; count < n.least; count++ {
		m.step()
		if !n.body.match(m, i) {
			return false
		}
		i = m.last
	}
	switch n.mode {
	case greedy:
		return n.greedy(m, i, count)
	case lazy:
		for ; ; count++ {
			m.step()
			if n.next.match(m, i) {
				return true
			}
			if count >= n.most || !n.body.match(m, i) || i == m.last {
				return false
			}
			i = m.last
		}
	default:
		for ; count < n.most && n.body.match(m, i); count++ {
			m.step()
			if i == m.last {
				break
			}
			i = m.last
		}
		return n.next.match(m, i)
	}
}

func (n *repeatNode) greedy(m *run, i int, count int32) bool {
	m.deeper()
	defer func() { m.depth-- }()
	least := count
	if count < n.most && n.body.match(m, i) && m.last > i {
		size := m.last - i
		i = m.last
		for count++; count < n.most; count++ {
			m.step()
			if !n.body.match(m, i) {
				break
			}
			if m.last != i+size {
				if n.greedy(m, m.last, count+1) {
					return true
				}
				break
			}
			i = m.last
		}
		for ; count >= least; count-- {
			m.step()
			if n.next.match(m, i) {
				return true
			}
			i -= size
		}
		return false
	}
	return n.next.match(m, i)
}

func (n *groupRepeatNode) set(m *run, from, to int) {
	if n.index > 0 {
		m.groups[2*n.index], m.groups[2*n.index+1] = from, to
	}
}

func (n *groupRepeatNode) match(m *run, i int) bool {
	from, to := m.groups[2*n.index], m.groups[2*n.index+1]
	if n.all(m, i) {
		return true
	}
	n.set(m, from, to)
	return false
}

func (n *groupRepeatNode) all(m *run, i int) bool {
	count := int32(0)
	for ; count < n.least; count++ {
		m.step()
		if !n.body.match(m, i) {
			return false
		}
		n.set(m, i, m.last)
		i = m.last
	}
	if n.mode == greedy {
		return n.greedy(m, i, count)
	}
	for ; ; count++ {
		m.step()
		if n.next.match(m, i) {
			return true
		}
		if count >= n.most || !n.body.match(m, i) || i == m.last {
			return false
		}
		n.set(m, i, m.last)
		i = m.last
	}
}

// greedy sets the group to the last pass, also when it gives passes back.
func (n *groupRepeatNode) greedy(m *run, i int, count int32) bool {
	m.deeper()
	defer func() { m.depth-- }()
	least := count
	from, to := m.groups[2*n.index], m.groups[2*n.index+1]
	if count < n.most && n.body.match(m, i) {
		size := m.last - i
		n.set(m, i, m.last)
		i = m.last
		if size > 0 {
			for count++; count < n.most; count++ {
				m.step()
				if !n.body.match(m, i) {
					break
				}
				if m.last != i+size {
					if n.greedy(m, i, count) {
						return true
					}
					break
				}
				n.set(m, i, m.last)
				i = m.last
			}
			for ; count > least; count-- {
				m.step()
				if n.next.match(m, i) {
					n.set(m, i-size, i)
					return true
				}
				i -= size
				n.set(m, i-size, i)
			}
		}
	}
	n.set(m, from, to)
	return n.next.match(m, i)
}

func (n *loopStart) match(m *run, i int) bool {
	saved := m.locals[n.count]
	ok := n.first(m, i)
	m.locals[n.count] = saved
	return ok
}

func (n *loopStart) first(m *run, i int) bool {
	m.locals[n.count] = 1
	switch {
	case n.least > 0:
		return n.pass(m, i)
	case n.mode == lazy:
		return n.next.match(m, i) || n.most > 0 && n.pass(m, i)
	default:
		return n.most > 0 && n.pass(m, i) || n.next.match(m, i)
	}
}

// pass makes one more pass, whose number is set.
func (n *loopNode) pass(m *run, i int) bool {
	m.step()
	m.deeper()
	ok := n.body.match(m, i)
	m.depth--
	return ok
}

// match is behind a pass. One that took nothing is the last.
func (n *loopNode) match(m *run, i int) bool {
	m.step()
	if i <= m.locals[n.begin] {
		return n.next.match(m, i)
	}
	count := m.locals[n.count]
	again := func() bool {
		m.locals[n.count] = count + 1
		if n.pass(m, i) {
			return true
		}
		m.locals[n.count] = count
		return false
	}
	switch {
	case int32(count) < n.least:
		return again()
	case n.mode == lazy:
		return n.next.match(m, i) || int32(count) < n.most && again()
	case int32(count) < n.most && !(n.memo >= 0 && m.memos[n.memo][i]):
		if again() {
			return true
		}
		if n.memo >= 0 {
			if m.memos[n.memo] == nil {
				m.memos[n.memo] = make(map[int]bool)
			}
			m.memos[n.memo][i] = true
		}
	}
	return n.next.match(m, i)
}
