// Package javaregex matches the regular expressions of Java (java.util.regex of
// Java 17), in which Kafka Connect and Debezium are configured. A pattern is parsed
// as Java parses it and matched by going back as Java does, so that groups catch the
// same. What Java refuses is refused, and so is what is not done here: \X, \b{g},
// \N{...}, blocks of Unicode (\p{InGreek}), short names of scripts, canonical
// equivalence and halves of surrogate pairs.
//
// Matching is bounded in steps, not in time: the same pattern and text always give
// the same result.
package javaregex

import "errors"

// What a match may take before it is given up: about a tenth of a second.
const (
	maxSteps      = 2_000_000
	maxOpenPasses = 10_000 // of loops; each takes stack
)

// ErrTooLong is returned for a match that takes more steps than it may.
var ErrTooLong = errors.New("matching takes too many steps; the pattern goes back over the text again and again")

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	root                  node
	groups, locals, memos int
	names                 map[string]int
}

// Compile compiles a pattern. The error is an *Error.
func Compile(pattern string) (*Pattern, error) { return compile(pattern, 0) }

// CompileFold compiles a pattern with Java's CASE_INSENSITIVE, which counts for
// ASCII alone unless the pattern says (?u).
func CompileFold(pattern string) (*Pattern, error) { return compile(pattern, fold) }

func compile(pattern string, f flags) (_ *Pattern, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			err = r
		default:
			panic(r)
		}
	}()
	p := parser{scanner: newScanner(pattern, f), names: make(map[string]int)}
	t := p.whole()
	l := linker{refers: p.refers, plain: true}
	root := l.link(t, finish{})
	return &Pattern{root: root, groups: p.groups, locals: l.locals, memos: l.memos, names: p.names}, nil
}

// Match reports whether a pattern matches the whole of a text, as Matcher.matches
// does. The error is ErrTooLong.
func (p *Pattern) Match(text string) (bool, error) {
	m := p.start(text)
	m.whole = true
	return p.atStart(m)
}

func (p *Pattern) start(text string) *run {
	size := 2 * max(p.groups+1, 10)
	slots := make([]int, size+p.locals)
	for i := range slots {
		slots[i] = -1
	}
	m := &run{text: units(text), groups: slots[:size:size], locals: slots[size:], steps: maxSteps}
	if p.memos > 0 {
		m.memos = make([]map[int]bool, p.memos)
	}
	return m
}

// atStart matches at the start of m's text.
func (p *Pattern) atStart(m *run) (ok bool, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case tooLong:
			ok, err = false, ErrTooLong
		default:
			panic(r)
		}
	}()
	if ok = p.root.match(m, 0); ok {
		m.groups[0], m.groups[1] = 0, m.last
	}
	return ok, nil
}
