package javaregex

import (
	"strings"
	"unicode/utf8"
)

// Replacement is a replacement string of Java for one pattern. It is safe for
// concurrent use.
type Replacement struct {
	pattern *Pattern
	parts   []part
}

// part is a piece of a replacement: a literal, or a group when group >= 0.
type part struct {
	literal string
	group   int
}

// Replacement reads a replacement string: ${name}, $n with as many digits as make a
// group that exists, and \ before a literal character. The error is an *Error.
func (p *Pattern) Replacement(text string) (*Replacement, error) {
	r := &Replacement{pattern: p}
	literal := strings.Builder{}
	flush := func() {
		if literal.Len() > 0 {
			r.parts = append(r.parts, part{literal.String(), -1})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return nil, &Error{Reason: "the character to be escaped is missing", Index: -1}
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			literal.WriteString(text[i : i+n])
			i += n
		case '$':
			group, n, reason := p.groupReference(text[i+1:])
			if reason != "" {
				return nil, &Error{Reason: reason, Index: utf8.RuneCountInString(text[:i])}
			}
			flush()
			r.parts = append(r.parts, part{group: group})
			i += 1 + n
		default:
			literal.WriteByte(c)
			i++
		}
	}
	flush()
	return r, nil
}

// groupReference reads what follows a dollar sign; n is its length.
func (p *Pattern) groupReference(s string) (group, n int, reason string) {
	if s == "" {
		return 0, 0, "illegal group reference: group index is missing"
	}
	if s[0] == '{' {
		end := 1
		for end < len(s) && isAlnum(rune(s[end])) && (end > 1 || isAlpha(rune(s[end]))) {
			end++
		}
		if end == 1 || end == len(s) || s[end] != '}' {
			return 0, 0, "named capturing group is missing trailing '}' or its name"
		}
		number, ok := p.names[s[1:end]]
		if !ok {
			return 0, 0, "no group with name {" + s[1:end] + "}"
		}
		return number, end + 1, ""
	}
	if !isDigit(rune(s[0])) {
		return 0, 0, "illegal group reference"
	}
	if group = int(s[0] - '0'); group > p.groups {
		return 0, 0, "no group " + s[:1]
	}
	for n = 1; n < len(s) && isDigit(rune(s[n])) && group*10+int(s[n]-'0') <= p.groups; n++ {
		group = group*10 + int(s[n]-'0')
	}
	return group, n, ""
}

// Prefix returns what is put before every text without line ends, when that is all
// a replacement does: its pattern is given and is one group of it all, and the
// replacement a literal and that group.
func (r *Replacement) Prefix(pattern string) (prefix string, ok bool) {
	one := pattern == "(.*)"
	for name := range r.pattern.names {
		one = one || pattern == "(?<"+name+">.*)"
	}
	switch parts := r.parts; {
	case !one:
		return "", false
	case len(parts) == 1 && parts[0].group >= 0:
		return "", true
	case len(parts) == 2 && parts[0].group < 0 && parts[1].group >= 0:
		return parts[0].literal, true
	default:
		return "", false
	}
}

// Replace replaces the first match in a text if the pattern matches the whole of it,
// as RegexRouter of Kafka Connect does: the first match begins at the start then,
// and may end before the end. The error is ErrTooLong.
func (r *Replacement) Replace(text string) (replaced string, matched bool, err error) {
	matched, err = r.pattern.Match(text)
	if err != nil || !matched {
		return text, false, err
	}
	m := r.pattern.start(text)
	if matched, err = r.pattern.atStart(m); err != nil || !matched {
		return text, false, err
	}
	var b strings.Builder
	for _, p := range r.parts {
		if p.group < 0 {
			b.WriteString(p.literal)
		} else if from := m.groups[2*p.group]; from >= 0 {
			b.WriteString(m.string(from, m.groups[2*p.group+1]))
		}
	}
	b.WriteString(m.string(m.groups[1], len(m.text)))
	return b.String(), true, nil
}
