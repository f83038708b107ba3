package schema

import (
	"embed"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// charsetFiles has one file for each set of several bytes that is not Unicode's, and one
// for all sets of one byte, written by internal/gen from what a real server answers. Libraries differ from
// the server here (and from each other): MySQL's sjis has a backslash where
// Windows has a full-width one, its big5 is not Windows' either.
//
//go:embed charsets/*.txt
var charsetFiles embed.FS

// codeTable holds the characters of one set. Bytes below 0x80 are ASCII in all
// of them.
type codeTable struct {
	single [128]uint16       // one byte, from 0x80 on
	double [128]*[256]uint16 // two bytes, by the first one from 0x80 on
	triple [128]*[256]uint16 // three bytes behind 0x8F (ujis and eucjpms)
	quad   []quadRange       // four bytes (gb18030)
}

// quadRange maps gb18030's codes of four bytes from index first on to the
// characters from char on, or to none when that is negative.
type quadRange struct {
	first int
	char  rune
}

// codeTables holds each set's table, built when it is first needed: hardly
// anybody needs one, and nobody all.
var codeTables = map[string]func() *codeTable{
	"big5":    loadOnce("big5"),
	"cp932":   loadOnce("cp932"),
	"eucjpms": loadOnce("eucjpms"),
	"euckr":   loadOnce("euckr"),
	"gb18030": loadOnce("gb18030"),
	"gb2312":  loadOnce("gb2312"),
	"gbk":     loadOnce("gbk"),
	"sjis":    loadOnce("sjis"),
	"ujis":    loadOnce("ujis"),
}

func loadOnce(set string) func() *codeTable {
	return sync.OnceValue(func() *codeTable {
		data, err := charsetFiles.ReadFile("charsets/" + set + ".txt")
		if err != nil {
			return nil // the set counts as unknown; a test reads them all
		}
		return parseCodes(string(data))
	})
}

// parseCodes reads lines of a code in hexadecimal, a blank and the characters
// from that code on; or "+", an index and a character in hexadecimal or "none".
func parseCodes(data string) *codeTable {
	t := &codeTable{}
	for i := range t.single {
		t.single[i] = none
	}
	for line := range strings.Lines(data) {
		code, chars, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if index, ok := strings.CutPrefix(code, "+"); ok {
			t.addQuad(index, chars)
			continue
		}
		n, err := strconv.ParseUint(code, 16, 32)
		if err != nil {
			continue
		}
		for _, r := range chars {
			t.add(int(n), len(code)/2, uint16(r))
			n++
		}
	}
	return t
}

func (t *codeTable) addQuad(index, char string) {
	first, _ := strconv.Atoi(index)
	r, err := strconv.ParseInt(char, 16, 32)
	if err != nil {
		r = -1
	}
	t.quad = append(t.quad, quadRange{first, rune(r)})
}

func (t *codeTable) add(code, size int, r uint16) {
	pages := &t.double
	switch size {
	case 1:
		t.single[code-0x80] = r
		return
	case 3:
		pages = &t.triple
	}
	lead := code >> 8 & 0x7F
	if pages[lead] == nil {
		pages[lead] = emptyPage()
	}
	pages[lead][code&0xFF] = r
}

func emptyPage() *[256]uint16 {
	p := new([256]uint16)
	for i := range p {
		p[i] = none
	}
	return p
}

// step reads the first character of s. See stepFunc.
func (t *codeTable) step(s string) (rune, int) {
	c := s[0]
	if c < utf8.RuneSelf {
		return rune(c), 1
	}
	if r := t.single[c-0x80]; r != none {
		return rune(r), 1
	}
	pages, at := &t.double, 0
	if c == 0x8F && t.double[0x0F] == nil {
		pages, at = &t.triple, 1
	}
	if len(s) < at+2 || s[at] < utf8.RuneSelf {
		return -1, 0
	}
	if t.quad != nil && s[1] < 0x40 {
		return t.quadStep(s)
	}
	page := pages[s[at]-0x80]
	if page == nil || page[s[at+1]] == none {
		return -1, 0
	}
	return rune(page[s[at+1]]), at + 2
}

func (t *codeTable) quadStep(s string) (rune, int) {
	if len(s) < 4 || s[0] < 0x81 || s[0] > 0xFE || s[1] < '0' || s[1] > '9' ||
		s[2] < 0x81 || s[2] > 0xFE || s[3] < '0' || s[3] > '9' {
		return -1, 0
	}
	index := ((int(s[0]-0x81)*10+int(s[1]-'0'))*126+int(s[2]-0x81))*10 + int(s[3]-'0')
	i := sort.Search(len(t.quad), func(i int) bool { return t.quad[i].first > index })
	if i == 0 || t.quad[i-1].char < 0 {
		return -1, 0
	}
	return t.quad[i-1].char + rune(index-t.quad[i-1].first), 4
}
