package schema

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// singleByteTables holds the one-byte character sets but ASCII: each byte's character, or
// none. They are built when one is first needed, from charsets/single.txt, which
// internal/gen writes from what a real server answers: a set, a code in hexadecimal, and the
// characters from that code on. Below 0x80 it has only what differs from ASCII, with U+FFFD
// for no character.
var singleByteTables = sync.OnceValue(func() map[string]*[256]uint16 {
	tables := map[string]*[256]uint16{}
	data, err := charsetFiles.ReadFile("charsets/single.txt")
	if err != nil {
		return nil // the sets count as unknown; a test reads them all
	}
	for line := range strings.Lines(string(data)) {
		set, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		code, chars, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseUint(code, 16, 8)
		if err != nil {
			continue
		}
		if tables[set] == nil {
			tables[set] = emptyPage()
			for i := range utf8.RuneSelf {
				tables[set][i] = uint16(i)
			}
		}
		for _, r := range chars {
			if r == utf8.RuneError {
				r = none
			}
			tables[set][n] = uint16(r)
			n++
		}
	}
	return tables
})
