//go:build ignore

// Command gen writes the tables of package schema that are facts of the server:
// which character set a collation id belongs to, and which character each byte
// sequence of a character set stands for. It asks real servers, so that nothing
// depends on another library's idea of "latin1" or "sjis".
//
//	go run internal/gen/main.go -mysql 127.0.0.1:3306 -mariadb 127.0.0.1:3307
//
// Run it from the schema folder, as root without a password. Both servers are
// asked for both facts; where they disagree MySQL is taken and the difference
// is printed.
package main

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/client"
)

// singleByte are the one-byte character sets of both servers; "ascii" and
// "binary" need no table.
var singleByte = []string{
	"armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8",
	"geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2",
	"latin5", "latin7", "macce", "macroman", "swe7", "tis620",
}

func main() {
	my := flag.String("mysql", "127.0.0.1:3306", "address of a MySQL server")
	maria := flag.String("mariadb", "127.0.0.1:3307", "address of a MariaDB server")
	flag.Parse()
	m, err := client.Connect(*my, "root", "", "")
	check(err)
	a, err := client.Connect(*maria, "root", "", "")
	check(err)
	check(write("collation_table.go", collations(m, a)))
	check(os.MkdirAll("charsets", 0o755))
	check(os.WriteFile("charsets/single.txt", []byte(singles(m, a)), 0o644))
	for _, set := range multiByte {
		check(os.WriteFile("charsets/"+set+".txt", []byte(multi(m, a, set)), 0o644))
	}
}

func collations(m, a *client.Conn) string {
	sets := map[int64]string{}
	read := func(c *client.Conn, query string) {
		r, err := c.Execute(query)
		check(err)
		for i := range r.Values {
			id, _ := r.GetInt(i, 0)
			name, _ := r.GetString(i, 1)
			if name == "utf8" {
				name = "utf8mb3"
			}
			if old, ok := sets[id]; ok && old != name {
				log.Fatalf("collation %d is %s on one server and %s on the other", id, old, name)
			}
			sets[id] = name
		}
	}
	read(m, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")
	read(a, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID IS "+
		"NOT NULL")
	var ids []int64
	for id := range sets {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	var b strings.Builder
	b.WriteString("// collationRanges maps collation ids to character sets: all ids of MySQL 9 and\n// MariaDB 11, " +
		"sorted, neighbours of one set joined.\nvar collationRanges = [...]collationRange{\n")
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 && sets[ids[j+1]] == sets[ids[i]] {
			j++
		}
		fmt.Fprintf(&b, "{%d, %d, %q},\n", ids[i], ids[j], sets[ids[i]])
		i = j + 1
	}
	b.WriteString("}\n")
	return b.String()
}

// decode asks what the given byte sequences are in the character set: the rune,
// or -1 for sequences that are not valid or stand for no character.
func decode(c *client.Conn, set string, seqs [][]byte) []rune {
	out := make([]rune, 0, len(seqs))
	for start := 0; start < len(seqs); start += 500 {
		part := seqs[start:min(start+500, len(seqs))]
		var q strings.Builder
		q.WriteString("SELECT ")
		for i, s := range part {
			if i > 0 {
				q.WriteByte(',')
			}
			fmt.Fprintf(&q, "HEX(CONVERT(CONVERT(x'%x' USING %s) USING utf8mb4))", s, set)
		}
		r, err := c.Execute(q.String())
		check(err)
		for i, s := range part {
			text, _ := r.GetString(0, i)
			out = append(out, oneRune(s, text))
		}
	}
	return out
}

// oneRune reads the server's answer; '?' is how it shows "no such character".
func oneRune(seq []byte, answer string) rune {
	raw, err := hex.DecodeString(answer)
	check(err)
	if len(raw) == 0 || (string(raw) == "?" && !bytes.Equal(seq, []byte{'?'})) {
		return -1
	}
	r, n := utf8.DecodeRune(raw)
	// Two characters are no character, and big5 has codes that the server turns
	// into U+FFFD.
	if n != len(raw) || r == utf8.RuneError {
		return -1
	}
	return r
}

// singles lists the characters of the one-byte sets in runs of neighbours: the set, the
// first code in hexadecimal, the characters. Below 0x80 only what differs from ASCII.
func singles(m, a *client.Conn) string {
	var seqs [][]byte
	for i := range 256 {
		seqs = append(seqs, []byte{byte(i)})
	}
	var b strings.Builder
	for _, set := range singleByte {
		my, maria := decode(m, set, seqs), decode(a, set, seqs)
		open := false
		for i, r := range my {
			if r != maria[i] {
				fmt.Printf("%s %02x: MySQL U+%04X, MariaDB U+%04X\n", set, i, r, maria[i])
			}
			if r < 0 && i < utf8.RuneSelf {
				r = utf8.RuneError
			}
			if r < 0 || i < utf8.RuneSelf && r == rune(i) {
				if open {
					b.WriteByte('\n')
				}
				open = false
				continue
			}
			if !open {
				fmt.Fprintf(&b, "%s %02x ", set, i)
				open = true
			}
			b.WriteRune(r)
		}
		if open {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// multiByte are the sets of one to four bytes that are not Unicode's.
var multiByte = []string{"big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"}

// multi lists the characters of a set by code, in runs of neighbours: a code in
// hexadecimal, a blank, the characters. Bytes below 0x80 are ASCII in all sets
// (which is checked) and left out. For gb18030 the codes of four bytes follow as
// ranges: "+", index of the first code, its character.
func multi(m, a *client.Conn, set string) string {
	var codes [][]byte
	for i := range 0x80 {
		codes = append(codes, []byte{byte(i)})
	}
	for i, r := range decode(m, set, codes) {
		if r != rune(i) {
			log.Fatalf("%s: byte %02x is U+%04X, not ASCII", set, i, r)
		}
	}
	codes = nil
	for i := 0x80; i < 0x100; i++ {
		codes = append(codes, []byte{byte(i)})
	}
	for i := 0x80; i < 0x100; i++ {
		for j := 0x40; j < 0x100; j++ {
			codes = append(codes, []byte{byte(i), byte(j)})
		}
	}
	if set == "ujis" || set == "eucjpms" {
		for i := 0xA0; i < 0x100; i++ {
			for j := 0xA0; j < 0x100; j++ {
				codes = append(codes, []byte{0x8F, byte(i), byte(j)})
			}
		}
	}
	runes := decode(m, set, codes)
	if set != "gb18030" { // MariaDB does not have it
		for i, r := range decode(a, set, codes) {
			if r != runes[i] {
				fmt.Printf("%s %x: MySQL U+%04X, MariaDB U+%04X\n", set, codes[i], runes[i], r)
			}
		}
	}
	var b strings.Builder
	open := false
	for i, r := range runes {
		if r > 0xFFFF {
			log.Fatalf("%s %x: U+%04X is beyond the table's reach", set, codes[i], r)
		}
		neighbour := i > 0 && len(codes[i]) == len(codes[i-1]) && (len(codes[i]) == 1 ||
			codes[i][len(codes[i])-2] == codes[i-1][len(codes[i])-2])
		if open && (r < 0 || !neighbour) {
			b.WriteByte('\n')
			open = false
		}
		if r < 0 {
			continue
		}
		if !open {
			fmt.Fprintf(&b, "%x ", codes[i])
			open = true
		}
		b.WriteRune(r)
	}
	if open {
		b.WriteByte('\n')
	}
	if set == "gb18030" {
		b.WriteString(fourBytes(m))
	}
	return b.String()
}

// fourBytes lists the ranges of gb18030's codes of four bytes below U+10000, and
// checks that the ones above are one range.
func fourBytes(m *client.Conn) string {
	code := func(i int) []byte {
		return []byte{byte(0x81 + i/12600), byte(0x30 + i/1260%10), byte(0x81 + i/10%126), byte(0x30 + i%10)}
	}
	const bmp, supplement = 39420, 189000
	var codes [][]byte
	for i := range bmp {
		codes = append(codes, code(i))
	}
	var b strings.Builder
	last := rune(-2)
	for i, r := range decode(m, "gb18030", codes) {
		if r < 0 && last != -1 {
			fmt.Fprintf(&b, "+%d none\n", i)
		}
		if r >= 0 && r != last+1 {
			fmt.Fprintf(&b, "+%d %04X\n", i, r)
		}
		last = max(r, -1)
	}
	fmt.Fprintf(&b, "+%d none\n", bmp)
	codes = nil
	for i := range 0x100000 {
		codes = append(codes, code(supplement+i))
	}
	codes = append(codes, code(bmp), code(supplement-1), code(supplement+0x100000))
	runes := decode(m, "gb18030", codes)
	for i, r := range runes {
		if want := rune(0x10000 + i); r != want && i < 0x100000 || r >= 0 && i >= 0x100000 {
			log.Fatalf("gb18030 %x: U+%04X", codes[i], r)
		}
	}
	fmt.Fprintf(&b, "+%d 10000\n+%d none\n", supplement, supplement+0x100000)
	return b.String()
}

func write(name, body string) error {
	if body == "" {
		return nil
	}
	src, err := format.Source([]byte("// Code generated by internal/gen from a real server; DO NOT EDIT.\n\npackage " +
		"schema\n\n" + body))
	if err != nil {
		return err
	}
	return os.WriteFile(name, src, 0o644)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
