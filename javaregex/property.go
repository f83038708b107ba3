package javaregex

import (
	"strings"
	"unicode"
)

// property reads the name behind \p or \P.
func (p *parser) property(negated bool) set {
	var name string
	if p.peek() == '{' {
		p.pos++
		start := p.pos
		for !p.atEnd() && p.rune(p.pos) != '}' {
			p.pos++
		}
		if p.atEnd() {
			p.fail("unclosed character family")
		}
		name = string(p.text[start:p.pos])
		p.pos++
		if name == "" {
			p.fail("empty character family")
		}
		if p.has(comments) && strings.ContainsAny(name, " \t\n\v\f\r#") {
			p.unsupported("a comment in the name of a property")
		}
	} else {
		if p.atEnd() {
			p.fail("unknown character property")
		}
		name = string(p.read())
	}
	in := p.lookup(name)
	if in == nil {
		p.unsupported("the character property {%s}", name)
	}
	if negated {
		return complement(in)
	}
	return in
}

func (p *parser) lookup(name string) set {
	if kind, value, ok := strings.Cut(name, "="); ok {
		switch strings.ToLower(kind) {
		case "sc", "script":
			return script(value)
		case "gc", "general_category":
			return p.general(value)
		}
		return nil
	}
	if strings.HasPrefix(name, "In") {
		return nil // blocks
	}
	if short, ok := strings.CutPrefix(name, "Is"); ok {
		upper := strings.ToUpper(short)
		if in, ok := binary[strings.ReplaceAll(upper, "_", "")]; ok && (upper == strings.ReplaceAll(upper, "_", "") ||
			spelled[upper]) {
			return p.anyCase(in, upper)
		}
		if in, ok := posix[upper]; ok {
			return p.anyCase(in, upper)
		}
		if in := p.general(short); in != nil {
			return in
		}
		return script(short)
	}
	if p.has(unicodeClass) {
		upper := strings.ToUpper(name)
		if in, ok := posix[upper]; ok {
			return p.anyCase(in, upper)
		}
	}
	return p.general(name)
}

// anyCase widens what tells cases apart where they don't count.
func (p *parser) anyCase(in set, name string) set {
	switch name {
	case "LOWER", "UPPER", "LOWERCASE", "UPPERCASE", "TITLECASE":
		if p.has(fold) {
			return cased
		}
	}
	return in
}

func script(name string) set {
	for known, table := range unicode.Scripts {
		if strings.EqualFold(known, name) {
			return in(table)
		}
	}
	return nil
}

func in(tables ...*unicode.RangeTable) set {
	return func(c rune) bool { return unicode.In(c, tables...) }
}

var (
	alphabetic = in(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	lowercase  = in(unicode.Ll, unicode.Other_Lowercase)
	uppercase  = in(unicode.Lu, unicode.Other_Uppercase)
	cased      = in(unicode.Ll, unicode.Lu, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
	control    = in(unicode.Cc)
	blank      = union(in(unicode.Zs), between('\t', '\t'))
	whiteSpace = union(in(unicode.Z), union(between('\t', '\r'), between(0x85, 0x85)))
	unassigned = complement(in(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf,
		unicode.Co, unicode.Cs))
	graph     = complement(union(in(unicode.Z, unicode.Cc, unicode.Cs), unassigned))
	wideDigit = in(unicode.Nd)
	hexDigit  = union(wideDigit, union(union(between('A', 'F'), between('a', 'f')),
		union(between(0xff21, 0xff26), between(0xff41, 0xff46))))
	joiner   = between(0x200c, 0x200d)
	wideWord = union(alphabetic, union(in(unicode.M, unicode.Nd, unicode.Pc), joiner))

	// posix are the POSIX classes under (?U) and with "Is", in capitals.
	posix = map[string]set{
		"ALPHA": alphabetic, "LOWER": lowercase, "UPPER": uppercase, "SPACE": whiteSpace, "PUNCT": in(unicode.P),
		"XDIGIT": hexDigit, "ALNUM": union(alphabetic, wideDigit), "CNTRL": control, "DIGIT": wideDigit,
		"BLANK": blank, "GRAPH": graph, "PRINT": intersection(union(graph, blank), complement(control)),
	}

	// binary are the properties behind "Is", in capitals and without underscores.
	binary = map[string]set{
		"ALPHABETIC": alphabetic, "ASSIGNED": complement(unassigned), "CONTROL": control, "HEXDIGIT": hexDigit,
		"IDEOGRAPHIC": in(unicode.Ideographic), "JOINCONTROL": joiner, "LETTER": in(unicode.L), "LOWERCASE": lowercase,
		"NONCHARACTERCODEPOINT": func(c rune) bool { return c&0xfffe == 0xfffe || c >= 0xfdd0 && c <= 0xfdef },
		"TITLECASE":             in(unicode.Lt), "PUNCTUATION": in(unicode.P), "UPPERCASE": uppercase,
		"WHITESPACE": whiteSpace,
		"WORD":       wideWord,
	}
	spelled = map[string]bool{"HEX_DIGIT": true, "JOIN_CONTROL": true, "NONCHARACTER_CODE_POINT": true,
		"WHITE_SPACE": true}

	// named are the classes of ASCII, Java's own, and the categories that Go's tables
	// have not or differently.
	named = map[string]set{
		"ASCII": between(0, 0x7f), "Alnum": isAlnum, "Alpha": isAlpha, "Blank": func(c rune) bool {
			return c == ' ' ||
				c == '\t'
		},
		"Cntrl": func(c rune) bool { return c < 0x20 || c == 0x7f }, "Digit": isDigit, "Graph": between('!', '~'),
		"Lower": isLower, "Print": between(' ', '~'), "Space": isSpace, "Upper": isUpper, "XDigit": isHex,
		"Punct": func(c rune) bool { return c >= '!' && c <= '~' && !isAlnum(c) },
		"L1":    between(0, 0xff), "all": func(rune) bool { return true }, "LC": in(unicode.Lu, unicode.Ll, unicode.Lt),
		"LD": in(unicode.L, unicode.Nd), "Cn": unassigned, "C": union(unassigned,
			in(unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)),
		"javaLowerCase": lowercase, "javaUpperCase": uppercase, "javaTitleCase": in(unicode.Lt), "javaAlphabetic": alphabetic,
		"javaIdeographic": in(unicode.Ideographic), "javaDigit": wideDigit, "javaDefined": complement(unassigned),
		"javaLetter": in(unicode.L), "javaLetterOrDigit": in(unicode.L, unicode.Nd), "javaSpaceChar": in(unicode.Z),
		"javaWhitespace": func(c rune) bool {
			return c >= '\t' && c <= '\r' || c >= 0x1c && c <= 0x1f || unicode.In(c, unicode.Z) && c != 0xa0 && c != 0x2007 &&
				c != 0x202f
		},
		"javaISOControl": func(c rune) bool { return c <= 0x1f || c >= 0x7f && c <= 0x9f },
	}
)

// general is a category, a class of ASCII or one of Java's own.
func (p *parser) general(name string) set {
	if p.has(fold) {
		switch name {
		case "Lu", "Ll", "Lt":
			return named["LC"]
		case "Lower", "Upper":
			return isAlpha
		case "javaLowerCase", "javaUpperCase", "javaTitleCase":
			return cased
		}
	}
	if in, ok := named[name]; ok {
		return in
	}
	if table, ok := unicode.Categories[name]; ok && len(name) <= 2 {
		return in(table)
	}
	return nil
}
