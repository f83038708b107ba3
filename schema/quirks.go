package schema

import "unicode/utf8"

// javaSets are the character sets that Debezium reads as others, since Java has none like
// them.
var javaSets = map[string]string{
	"koi8u": "koi8r", "keybcs2": "cp852",
	"dec8": "latin1", "hp8": "latin1", "swe7": "latin1", "armscii8": "latin1", "geostd8": "latin1",
}

// javaOthers are the characters that Java has for codes for which the server has others,
// by the set in which they are read.
var javaOthers = map[string]map[int]rune{
	"cp866":  {0xfc: '\u2116', 0xfd: '\u00a4'},
	"greek":  {0xa1: '\u2018', 0xa2: '\u2019'},
	"hebrew": {0xaf: '\u00af'},
	"sjis":   {0x815c: '\u2014', 0x815f: '\uff3c'},
	"ujis":   {0xa1bd: '\u2014', 0xa1c0: '\uff3c'},
	"gbk":    {0xa892: '\u2641'},
	"latin1": {0x81: utf8.RuneError, 0x8d: utf8.RuneError, 0x8f: utf8.RuneError, 0x90: utf8.RuneError,
		0x9d: utf8.RuneError},
	"tis620": controls(),
}

// controls are the bytes that tis620 leaves to control characters.
func controls() map[int]rune {
	out := map[int]rune{}
	for c := 0x80; c < 0xa0; c++ {
		out[c] = utf8.RuneError
	}
	return out
}

// hasQuirks reports whether Debezium takes some texts of the set for others.
func hasQuirks(charset string) bool { return javaSets[charset] != "" || javaOthers[charset] != nil }

// quirkStep reads one character as Debezium does; set is the one in which it reads.
func quirkStep(charset string) (set string, step stepFunc) {
	set = charset
	if other := javaSets[charset]; other != "" {
		set = other
	}
	server, others := stepOf(set), javaOthers[set]
	return set, func(s string) (rune, int) {
		r, n := server(s)
		if r < 0 {
			return r, n
		}
		code := int(s[0])
		if n == 2 {
			code = code<<8 | int(s[1])
		}
		if other, differs := others[code]; differs {
			return other, n
		}
		if set == "ujis" && n == 2 && s[0] >= 0xf5 {
			return utf8.RuneError, n // what users define
		}
		return r, n
	}
}
