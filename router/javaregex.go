package router

import (
	"fmt"
	"strconv"
	"strings"
)

// javaRegex is a Java regular expression (java.util.regex.Pattern) rewritten for
// regexp2, whose own dialect is .NET's. All that differs is written out: line
// ends, \d \w \s \b and case folding, which are ASCII in Java, possessive
// quantifiers, character class algebra, quoting, comments and flags. Groups are
// all plain groups, numbered as in Java. What cannot be written out is refused.
type javaRegex struct {
	pattern string
	groups  int
	names   map[string]int
}

const maxRegexDepth = 200

// translateJavaRegex refuses what Java refuses, and what would mean something else.
func translateJavaRegex(pattern string) (javaRegex, error) {
	p := regexParser{src: []rune(pattern), names: make(map[string]int)}
	out, err := p.alternatives(regexFlags{})
	if err == nil && p.pos < len(p.src) {
		err = p.fail("unmatched closing ')'")
	}
	if err != nil {
		return javaRegex{}, err
	}
	return javaRegex{pattern: out, groups: p.groups, names: p.names}, nil
}

type regexFlags struct{ fold, multiline, dotAll, comments bool }

type regexParser struct {
	src    []rune
	pos    int
	groups int
	names  map[string]int
	depth  int
}

func (p *regexParser) fail(reason string) error {
	return fmt.Errorf("%s near index %d of the pattern", reason, p.pos)
}

func (p *regexParser) more() bool { return p.pos < len(p.src) }

func (p *regexParser) peek(s string) bool {
	return strings.HasPrefix(string(p.src[p.pos:min(len(p.src), p.pos+len(s))]), s)
}

// take consumes s if it is next.
func (p *regexParser) take(s string) bool {
	if p.peek(s) {
		p.pos += len(s)
		return true
	}
	return false
}

// alternatives reads to the end of the group or pattern. Flags set inside hold to
// there, over the bars.
func (p *regexParser) alternatives(f regexFlags) (string, error) {
	if p.depth++; p.depth > maxRegexDepth {
		return "", p.fail("groups are nested too deep")
	}
	defer func() { p.depth-- }()
	var out strings.Builder
	for p.more() && p.src[p.pos] != ')' {
		if p.take("|") {
			out.WriteByte('|')
			continue
		}
		if f.comments && p.skipComment() {
			continue
		}
		if p.take(`\Q`) {
			for _, r := range p.quoted() {
				out.WriteString(literalRune(r, f))
			}
			if err := p.quantifierAfterQuote(); err != nil {
				return "", err
			}
			continue
		}
		atom, err := p.atom(&f)
		if err != nil {
			return "", err
		}
		if atom, err = p.quantified(atom, f); err != nil {
			return "", err
		}
		out.WriteString(atom)
	}
	return out.String(), nil
}

func (p *regexParser) skipComment() bool {
	switch r := p.src[p.pos]; {
	case r == ' ' || r >= '\t' && r <= '\r':
		p.pos++
		return true
	case r == '#':
		for p.more() && !strings.ContainsRune("\n\r\u0085\u2028\u2029", p.src[p.pos]) {
			p.pos++
		}
		return true
	default:
		return false
	}
}

// quoted reads to \E or the end.
func (p *regexParser) quoted() []rune {
	start := p.pos
	for p.more() {
		if p.peek(`\E`) {
			text := p.src[start:p.pos]
			p.pos += 2
			return text
		}
		p.pos++
	}
	return p.src[start:]
}

// quantifierAfterQuote refuses \Qabc\E*, which in Java counts for the last letter
// only: easy to misread, and never needed.
func (p *regexParser) quantifierAfterQuote() error {
	if p.more() && strings.ContainsRune("*+?{", p.src[p.pos]) {
		return p.fail(`a quantifier after \Q...\E is not supported`)
	}
	return nil
}

// quantified reads a quantifier, if one follows, and appends it to the atom.
func (p *regexParser) quantified(atom string, f regexFlags) (string, error) {
	for f.comments && p.more() && p.skipComment() {
	}
	if !p.more() || atom == "" {
		return atom, nil
	}
	var q string
	switch r := p.src[p.pos]; r {
	case '*', '+', '?':
		q = string(r)
		p.pos++
	case '{':
		var err error
		if q, err = p.counts(); err != nil {
			return "", err
		}
	default:
		return atom, nil
	}
	switch {
	case p.take("?"):
		return atom + q + "?", nil
	case p.take("+"):
		return "(?>" + atom + q + ")", nil
	default:
		return atom + q, nil
	}
}

// counts reads {n}, {n,} or {n,m}.
func (p *regexParser) counts() (string, error) {
	start := p.pos
	p.pos++
	low, ok := p.number()
	high := low
	if ok && p.take(",") {
		if p.more() && p.src[p.pos] == '}' {
			high = low
		} else if high, ok = p.number(); !ok {
			return "", p.fail("illegal repetition")
		}
	}
	if !ok || !p.take("}") || high < low {
		return "", p.fail("illegal repetition")
	}
	return string(p.src[start:p.pos]), nil
}

func (p *regexParser) number() (int, bool) {
	start := p.pos
	for p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	n, err := strconv.Atoi(string(p.src[start:p.pos]))
	return n, err == nil && n <= 1<<16
}

// Translations of Java's zero-width and predefined forms.
const (
	javaDot       = `[^\n\r\u0085\u2028\u2029]`
	javaAnything  = `[\s\S]`
	javaEnd       = `(?:(?=(?:\r\n|[\r\u0085\u2028\u2029])\z)|(?<!\r)(?=\n\z)|\z)`
	javaLineStart = `(?:(?:\A|(?<=\n)|(?<=\r)(?!\n)|(?<=[\u0085\u2028\u2029]))(?!\z))`
	javaLineEnd   = `(?:(?=\r)|(?<!\r)(?=\n)|(?=[\u0085\u2028\u2029])|\z)`
	javaWord      = `[a-zA-Z0-9_]`
	javaBoundary  = `(?:(?<=` + javaWord + `)(?!` + javaWord + `)|(?<!` + javaWord + `)(?=` + javaWord + `))`
	javaInside    = `(?:(?<=` + javaWord + `)(?=` + javaWord + `)|(?<!` + javaWord + `)(?!` + javaWord + `))`
	javaLineBreak = `(?:\r\n|[\n\x0B\f\r\u0085\u2028\u2029])`
)

// atom reads one element. It may change the flags: (?i) stands alone.
func (p *regexParser) atom(f *regexFlags) (string, error) {
	switch r := p.src[p.pos]; r {
	case '(':
		return p.group(f)
	case '[':
		p.pos++
		set, err := p.class(*f, 0)
		return set.String(), err
	case '.':
		p.pos++
		if f.dotAll {
			return javaAnything, nil
		}
		return javaDot, nil
	case '^':
		p.pos++
		if f.multiline {
			return javaLineStart, nil
		}
		return `\A`, nil
	case '$':
		p.pos++
		if f.multiline {
			return javaLineEnd, nil
		}
		return javaEnd, nil
	case '*', '+', '?':
		return "", p.fail(fmt.Sprintf("dangling meta character '%c'", r))
	case '{':
		return "", p.fail("illegal repetition")
	case '\\':
		p.pos++
		return p.escape(*f)
	default:
		p.pos++
		return literalRune(r, *f), nil
	}
}

func (p *regexParser) group(f *regexFlags) (string, error) {
	p.pos++
	inner, open := *f, "("
	switch {
	case p.take("?<="):
		open = "(?<="
	case p.take("?<!"):
		open = "(?<!"
	case p.take("?<"):
		name, err := p.groupName()
		if err != nil {
			return "", err
		}
		p.groups++
		p.names[name] = p.groups
	case p.take("?:"):
		open = "(?:"
	case p.take("?="):
		open = "(?="
	case p.take("?!"):
		open = "(?!"
	case p.take("?>"):
		open = "(?>"
	case p.take("?"):
		if err := p.flags(&inner); err != nil {
			return "", err
		}
		if p.take(")") {
			*f = inner
			return "", nil
		}
		if !p.take(":") {
			return "", p.fail("unknown inline modifier")
		}
		open = "(?:"
	default:
		p.groups++
	}
	body, err := p.alternatives(inner)
	if err != nil {
		return "", err
	}
	if !p.take(")") {
		return "", p.fail("unclosed group")
	}
	return open + body + ")", nil
}

func (p *regexParser) groupName() (string, error) {
	start := p.pos
	for p.more() && p.src[p.pos] < 0x80 && isGroupNameByte(byte(p.src[p.pos]), p.pos == start) {
		p.pos++
	}
	name := string(p.src[start:p.pos])
	if name == "" || !p.take(">") {
		return "", p.fail("named capturing group is missing a name or trailing '>'")
	}
	if _, ok := p.names[name]; ok {
		return "", p.fail("named capturing group <" + name + "> is already defined")
	}
	return name, nil
}

// flags reads the letters of (?imsx-imsx).
func (p *regexParser) flags(f *regexFlags) error {
	on := true
	for ; p.more(); p.pos++ {
		switch p.src[p.pos] {
		case 'i':
			f.fold = on
		case 'm':
			f.multiline = on
		case 's':
			f.dotAll = on
		case 'x':
			f.comments = on
		case '-':
			if !on {
				return p.fail("unknown inline modifier")
			}
			on = false
		case 'd', 'u', 'U':
			return p.fail(fmt.Sprintf("the inline modifier %q is not supported", p.src[p.pos]))
		default:
			return nil
		}
	}
	return nil
}

// escape reads what follows a backslash outside a class.
func (p *regexParser) escape(f regexFlags) (string, error) {
	if !p.more() {
		return "", p.fail(`unexpected internal error: a lone \ at the end`)
	}
	switch r := p.src[p.pos]; r {
	case 'b', 'B', 'A', 'G', 'Z', 'z', 'R':
		p.pos++
		if p.peek("{") {
			return "", p.fail(`\b{...} is not supported`)
		}
		return map[rune]string{
			'b': javaBoundary, 'B': javaInside, 'A': `\A`, 'G': `\A`, 'Z': javaEnd, 'z': `\z`, 'R': javaLineBreak,
		}[r], nil
	case 'k':
		p.pos++
		if !p.take("<") {
			return "", p.fail(`\k is not followed by '<' for a named capturing group`)
		}
		start := p.pos
		for p.more() && p.src[p.pos] != '>' {
			p.pos++
		}
		number, ok := p.names[string(p.src[start:p.pos])]
		if !ok || !p.take(">") {
			return "", p.fail("named capturing group does not exist")
		}
		return p.reference(number, f)
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		number := int(r - '0')
		for p.pos++; p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '9'; p.pos++ {
			next := number*10 + int(p.src[p.pos]-'0')
			if next > p.groups {
				break
			}
			number = next
		}
		return p.reference(number, f)
	}
	if set, ok, err := p.namedSet(f); err != nil || ok {
		return set.String(), err
	}
	r, err := p.escapedRune()
	if err != nil {
		return "", err
	}
	return literalRune(r, f), nil
}

func (p *regexParser) reference(group int, f regexFlags) (string, error) {
	if group > p.groups {
		return "", p.fail("a back reference to a group that does not exist")
	}
	if f.fold {
		return "", p.fail("a back reference under (?i) is not supported")
	}
	return `(?:\k<` + strconv.Itoa(group) + `>)`, nil
}

// escapedRune reads an escape that stands for one character.
func (p *regexParser) escapedRune() (rune, error) {
	r := p.src[p.pos]
	p.pos++
	switch r {
	case 't':
		return '\t', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 'f':
		return '\f', nil
	case 'a':
		return 7, nil
	case 'e':
		return 27, nil
	case 'c':
		if !p.more() {
			return 0, p.fail("illegal control escape sequence")
		}
		p.pos++
		return p.src[p.pos-1] ^ 64, nil
	case '0':
		return p.octal()
	case 'x':
		if p.take("{") {
			return p.hex(1, 6, "}")
		}
		return p.hex(2, 2, "")
	case 'u':
		return p.hex(4, 4, "")
	}
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return 0, p.fail(fmt.Sprintf(`illegal or unsupported escape sequence \%c`, r))
	}
	return r, nil
}

func (p *regexParser) octal() (rune, error) {
	start, v := p.pos, rune(0)
	for p.more() && p.pos-start < 3 && p.src[p.pos] >= '0' && p.src[p.pos] <= '7' && v*8 < 0o400 {
		v = v*8 + p.src[p.pos] - '0'
		p.pos++
	}
	if p.pos == start {
		return 0, p.fail("illegal octal escape sequence")
	}
	return v, nil
}

func (p *regexParser) hex(least, most int, end string) (rune, error) {
	start := p.pos
	for p.more() && p.pos-start < most && strings.ContainsRune("0123456789abcdefABCDEF", p.src[p.pos]) {
		p.pos++
	}
	v, err := strconv.ParseInt(string(p.src[start:p.pos]), 16, 32)
	if err != nil || p.pos-start < least || v > 0x10ffff || end != "" && !p.take(end) {
		return 0, p.fail("illegal hexadecimal escape sequence")
	}
	return rune(v), nil
}

// literalRune writes one character; under (?i) an ASCII letter in both cases.
func literalRune(r rune, f regexFlags) string {
	if f.fold && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
		return "[" + strings.ToLower(string(r)) + strings.ToUpper(string(r)) + "]"
	}
	if strings.ContainsRune(`\*+?|{}[]()^$.# `, r) {
		return `\` + string(r)
	}
	return string(r)
}
