package history

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// EventType is the value of the outbox column "type" of every row that a
// workload writes; it is expected in the header "eventType".
const EventType = "Created"

// Row is the identity of one outbox row: the Number-th row (from 1) that
// transaction Txn inserted.
type Row struct {
	Txn    uint64
	Number uint32
}

// ID returns the row's id column: 36 characters in the form of a UUID.
func (r Row) ID() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Number, r.Txn)
}

// ParseID reads what ID returns.
func ParseID(id string) (r Row, err error) {
	if _, err := fmt.Sscanf(id, "%08x-0000-4000-8000-%012x", &r.Number, &r.Txn); err != nil || r.ID() != id {
		return Row{}, fmt.Errorf("id %q is not one that a writer made", id)
	}
	return r, nil
}

// String names the row in counter-examples.
func (r Row) String() string { return fmt.Sprintf("row %d of transaction %d", r.Number, r.Txn) }

// Key returns the aggregate id of key number n.
func Key(n int32) string { return fmt.Sprintf("key-%05d", n) }

func parseKey(b []byte) (int32, bool) {
	digits, ok := bytes.CutPrefix(b, []byte("key-"))
	if !ok || len(digits) < 5 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 32)
	return int32(n), err == nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sample opens every body that has room for it: what text loses on a wrong
// character set, a wrong escape or a cut at a byte that is not a character.
const sample = "é漢😀\t\"'\\\r\n"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// AppendBody appends the size bytes of r's body to dst. The same row always has
// the same body, so that a checker can tell a changed byte without having kept
// what was written.
func AppendBody(dst []byte, r Row, size int) []byte {
	end := len(dst) + size
	if size >= len(sample) {
		dst = append(dst, sample...)
	}
	x := r.Txn*0x9E3779B97F4A7C15 + uint64(r.Number)*0xBF58476D1CE4E5B9 + 1
	for len(dst) < end {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		for v, i := x, 0; i < 10 && len(dst) < end; i++ {
			dst = append(dst, alphabet[v&63])
			v >>= 6
		}
	}
	return dst
}

// Payload is what a payload says about itself.
type Payload struct {
	Row  Row
	Seq  uint64 // the transaction's place in the commit order of its partition
	Key  string
	CRC  uint32 // CRC32C of the body
	Size int    // bytes of the body
}

// Head returns the payload's first line in two halves: the sequence number goes
// between them. It is known only to the server while the transaction runs.
func (p Payload) Head() (before, after string) {
	return fmt.Sprintf("txn=%d row=%d seq=", p.Row.Txn, p.Row.Number),
		fmt.Sprintf(" key=%s crc=%08x size=%d\n", p.Key, p.CRC, p.Size)
}

// Checksum is the CRC32C that a payload carries of its body.
func Checksum(body []byte) uint32 { return crc32.Checksum(body, castagnoli) }

// ParsePayload splits a payload and checks that it is what a writer made: the
// checksum, the length and each byte of the body.
func ParsePayload(b []byte) (Payload, error) {
	head, body, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return Payload{}, fmt.Errorf("payload of %d bytes has no head line", len(b))
	}
	p, err := parseHead(string(head))
	if err != nil {
		return Payload{}, err
	}
	if len(body) != p.Size {
		return p, fmt.Errorf("body has %d bytes, %d were written", len(body), p.Size)
	}
	if got := Checksum(body); got != p.CRC {
		return p, fmt.Errorf("body's CRC32C is %08x, %08x was written", got, p.CRC)
	}
	if want := AppendBody(make([]byte, 0, p.Size), p.Row, p.Size); !bytes.Equal(body, want) {
		return p, fmt.Errorf("body differs from the one written in byte %d", firstDifference(body, want))
	}
	return p, nil
}

func parseHead(head string) (p Payload, err error) {
	rest := head
	field := func(name string) string {
		value, ok := strings.CutPrefix(rest, name+"=")
		if !ok && err == nil {
			err = fmt.Errorf("payload head %.80q lacks %s", head, name)
		}
		value, rest, _ = strings.Cut(value, " ")
		return value
	}
	number := func(name string, base, bits int) uint64 {
		text := field(name)
		n, parseErr := strconv.ParseUint(text, base, bits)
		if parseErr != nil && err == nil {
			err = fmt.Errorf("payload head %.80q: %s: %w", head, name, parseErr)
		}
		return n
	}
	p.Row.Txn = number("txn", 10, 64)
	p.Row.Number = uint32(number("row", 10, 32))
	p.Seq = number("seq", 10, 64)
	p.Key = field("key")
	p.CRC = uint32(number("crc", 16, 32))
	p.Size = int(number("size", 10, 31))
	if err == nil && rest != "" {
		err = fmt.Errorf("payload head %.80q has more than was written", head)
	}
	return p, err
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
