package javaregex

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes patterns over Java's grammar, and texts that they may match. The
// same seed gives the same.
type generator struct {
	*rand.Rand
	groups int
	names  []string
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

type generated struct {
	pattern, replacement string
	fold                 bool
	texts                []string
}

var letters = strings.Split("a a a b b c A B k K s i I 0 1 7 _ - . . ö Ö é ß ſ K İ ı 日 😀 𝒜 \u0301 \u00b5 \u2028", " ")

func newCase(r *rand.Rand) generated {
	g := generator{Rand: r}
	out := generated{fold: g.chance(20), pattern: g.alternatives(0)}
	if g.chance(12) {
		out.pattern = g.flags() + out.pattern
	}
	if g.chance(3) { // what a typing error makes of it
		runes := []rune(out.pattern)
		i := g.IntN(len(runes) + 1)
		out.pattern = string(runes[:i]) + g.pick("(", ")", "[", "]", "{", "}", "\\", "*", "?", "+", "&&", "^", "-", "|",
			"\\E") + string(runes[i:])
	}
	for range g.IntN(4) {
		out.replacement += g.pick("x", "$0", "$1", "$2", "$10", "$12", "\\$", "\\\\", "-", "${n1}", "${n2}", "😀", "events.")
	}
	out.texts = append(out.texts, "", g.text(3), g.text(6), g.text(10), g.text(14))
	out.texts = append(out.texts, g.like(out.pattern), g.like(out.pattern))
	return out
}

func (g *generator) text(most int) string {
	var b strings.Builder
	narrow := g.chance(60)
	for range g.IntN(most + 1) {
		switch {
		case narrow:
			b.WriteString(g.pick("a", "b", "c", "ab", ".", "-"))
		case g.chance(10):
			b.WriteString(g.pick("\n", "\r\n", "\r", "\u0085", " ", "\t", "\v"))
		case g.chance(15):
			b.WriteString(g.pick("]", "^", "\\", "[", "&", "$", "{", "}", "*", "#", ",", "/"))
		default:
			b.WriteString(g.pick(letters...))
		}
	}
	return b.String()
}

// like makes a text of the letters of a pattern.
func (g *generator) like(pattern string) string {
	var from []rune
	for _, c := range pattern {
		if !strings.ContainsRune(`\()[]{}*+?|^$<>=!:&`, c) {
			from = append(from, c)
		}
	}
	var b strings.Builder
	for range g.IntN(9) {
		if len(from) > 0 && g.chance(85) {
			c := from[g.IntN(len(from))]
			b.WriteRune(c)
			if g.chance(30) {
				b.WriteRune(c)
			}
		} else {
			b.WriteString(g.pick(letters...))
		}
	}
	return b.String()
}

func (g *generator) alternatives(depth int) string {
	out := g.sequence(depth)
	for g.chance(20) {
		out += "|" + g.sequence(depth)
	}
	return out
}

func (g *generator) sequence(depth int) string {
	var b strings.Builder
	for range g.IntN(5) {
		b.WriteString(g.element(depth))
		if g.chance(35) {
			b.WriteString(g.quantifier())
		}
	}
	return b.String()
}

func (g *generator) quantifier() string {
	q := g.pick("*", "+", "?", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{0}", "{2,}", "{0,3}", "{1}", "{0,0}")
	return q + g.pick("", "", "", "?", "+")
}

func (g *generator) flags() string {
	return "(?" + g.pick("i", "s", "m", "d", "u", "U", "iu", "ms", "x", "md", "i-s", "iU", "-i", "", "ix", "c") + ")"
}

func (g *generator) element(depth int) string {
	switch n := g.IntN(100); {
	case n < 34:
		return g.letter()
	case n < 42:
		return g.pick(".", ".", ".*", ".+", ".*?", ".*+")
	case n < 58:
		return g.class(0)
	case n < 66:
		return g.predefined()
	case n < 72:
		return g.pick("^", "$", `\b`, `\B`, `\A`, `\z`, `\Z`, `\G`, `\R`)
	case n < 75:
		return g.escape()
	case n < 77:
		return `\Q` + g.pick("a.b", "1", "[", "a-c", "]^", "", "\\", "\\d", "é#", " ", "(a)") + g.pick(`\E`, `\E`, `\E`, "")
	case n < 80:
		return g.pick(fmt.Sprintf(`\%d`, 1+g.IntN(max(g.groups, 2))), `\1`, `\12`, `\k<n1>`)
	case n < 81:
		return g.pick(" ", "#", "# b\n", "]", "}", "{", "&&", "-")
	case n < 82:
		return g.pick(`\X`, `\b{g}`, `\N{DIGIT ONE}`, `\p{InGreek}`, `\ud83d\ude00`, `\ud83d`, `\x{1F600}`, `\p{IsLatn}`,
			`\_`, `\y`, `\8`)
	case n < 84:
		return g.flags()
	case depth > 3:
		return g.letter()
	default:
		return g.group(depth + 1)
	}
}

func (g *generator) group(depth int) string {
	switch n := g.IntN(100); {
	case n < 45:
		g.groups++
		return "(" + g.alternatives(depth) + ")"
	case n < 62:
		return "(?:" + g.alternatives(depth) + ")"
	case n < 68:
		g.groups++
		name := fmt.Sprintf("n%d", len(g.names)+1)
		g.names = append(g.names, name)
		return "(?<" + name + ">" + g.alternatives(depth) + ")"
	case n < 75:
		return "(?>" + g.alternatives(depth) + ")"
	case n < 90:
		return g.pick("(?=", "(?!") + g.alternatives(depth) + ")"
	case n < 97:
		return g.pick("(?<=", "(?<!") + g.pick("a", "ab|c", ".", "[^.]", "a{1,3}", "a+", "(a)", "a?b", "😀", "^", g.class(0),
			g.sequence(depth)) + ")"
	default:
		return strings.TrimSuffix(g.flags(), ")") + ":" + g.alternatives(depth) + ")"
	}
}

func (g *generator) letter() string {
	c := g.pick(letters...)
	if c == "." && g.chance(70) {
		return `\.`
	}
	return c
}

func (g *generator) predefined() string {
	return g.pick(`\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\h`, `\H`, `\v`, `\V`, `\w+`, `\pL`, `\PL`,
		`\p{`+g.pick(properties...)+"}", `\P{`+g.pick(properties...)+"}")
}

func (g *generator) escape() string {
	return g.pick(`\t`, `\n`, `\r`, `\f`, `\a`, `\e`, `\cA`, `\c?`, `\0101`, `\07`, `\0377`, `\0400`, `\x61`, `\x{62}`,
		`\u0061`, `\u00f6`,
		`\-`, `\.`, `\[`, `\]`, `\\`, `\^`, `\$`, `\&`, `\{`, `\ `, `\é`, `\#`, `\<`, `\"`)
}

func (g *generator) class(depth int) string {
	var b strings.Builder
	b.WriteString("[")
	if g.chance(35) {
		b.WriteString("^")
	}
	for range 1 + g.IntN(4) {
		switch n := g.IntN(100); {
		case n < 40:
			b.WriteString(g.pick(letters...))
		case n < 58:
			b.WriteString(g.pick("a-c", "A-Z", "a-z", "0-9", "!-.", ",-/", "+--", "Z-a", "[-^", `\[-\]`, `X-\]`, "_-b", `\--0`,
				"ä-ü", "À-Þ", "a-", "-a", "😀-😃", `\x41-\x{43}`))
		case n < 66:
			b.WriteString(g.pick("-", ".", "]", "^", `\]`, `\^`, `\\`, `\-`, "&", ",", " ", "#", "$", "|", "("))
		case n < 76:
			b.WriteString(g.predefined())
		case n < 80:
			b.WriteString(g.escape())
		case n < 83:
			b.WriteString(g.pick(`\Qa-z\E`, `\Q]\E`, `\Q1\E`, `\Q^&&\E`))
		case depth < 2 && n < 92:
			b.WriteString(g.class(depth + 1))
		default:
			b.WriteString("&&")
			if g.chance(50) {
				b.WriteString(g.class(depth + 1))
			}
		}
	}
	b.WriteString("]")
	return b.String()
}

// properties are the names of \p{...} that are supported.
var properties = strings.Fields(`Lower Upper ASCII Alpha Digit Alnum Punct Graph Print Blank Cntrl XDigit Space L1 all LC LD
	L Lu Ll Lt Lm Lo M Mn Me Mc N Nd Nl No P Pd Ps Pe Pc Po Pi Pf S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn
	IsL IsLu IsAlphabetic IsAssigned IsControl IsHexDigit IsHex_Digit IsIdeographic IsJoin_Control IsLetter IsLowercase
	IsUppercase IsTitlecase IsNoncharacter_Code_Point IsPunctuation IsWhite_Space IsWhiteSpace IsWord IsDigit IsAlnum IsGraph IsPrint
	IsBlank IsCntrl IsSpace IsXDigit IsUpper IsLower IsPunct IsAlpha IsLatin IsGREEK IsCyrillic IsHan IsCommon sc=Latin script=Greek gc=Lu
	general_category=Nd javaLowerCase javaUpperCase javaTitleCase javaAlphabetic javaIdeographic javaDigit javaDefined
	javaLetter javaLetterOrDigit javaSpaceChar javaWhitespace javaISOControl`)
