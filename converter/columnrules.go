package converter

import (
	"crypto/md5"  //nolint:gosec // what Debezium is told to mask with
	"crypto/sha1" //nolint:gosec // the same
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// ColumnRules leave columns out and change values before anything else looks at them:
// column.include.list, column.exclude.list, column.truncate.* and column.mask.*. Names
// of columns are "database.table.column". The primary key as such, which only the header
// of an old key shows, is not touched, as in Debezium. An error of a function, when a pattern takes too long, is
// RowSchema.Err.
type ColumnRules struct {
	// Includes reports whether a column is there at all; nil for all.
	Includes func(name string) (bool, error)
	// Changes are looked at in order; the first that matches a column counts.
	Changes []ColumnChange
}

// ColumnChange changes the values of the columns that it matches.
type ColumnChange struct {
	Matches func(name string) (bool, error)

	param  Param
	change func(c *schema.Column) func(s *Schema, v any) (any, error)
}

// TruncateColumns cuts texts and bytes of more than length UTF-16 units or bytes.
func TruncateColumns(matches func(string) (bool, error), length int) ColumnChange {
	return ColumnChange{matches, Param{"truncateLength", strconv.Itoa(length)},
		func(c *schema.Column) func(*Schema, any) (any, error) {
			if n := declaredLength(c); n >= 0 && n <= length {
				return nil
			}
			return truncate(length)
		}}
}

// MaskColumns puts length asterisks in place of each text, and of NULL.
func MaskColumns(matches func(string) (bool, error), length int) ColumnChange {
	mask := strings.Repeat("*", length)
	return ColumnChange{matches, masked, func(c *schema.Column) func(*Schema, any) (any, error) {
		if !isMasked(c) {
			return nil
		}
		return func(*Schema, any) (any, error) { return mask, nil }
	}}
}

// HashColumns puts the hexadecimal hash of salt and text in place of each text, cut to
// the length of the column. algorithm is one of config.HashAlgorithms. Version 1 of Debezium hashes
// Java's serialized form of the text, version 2 the text. ok is false for an algorithm
// that is not known.
func HashColumns(matches func(string) (bool, error), algorithm, salt string,
	version int) (change ColumnChange, ok bool) {
	sum := hashes[algorithm]
	if sum == nil {
		return ColumnChange{}, false
	}
	return ColumnChange{matches, masked, func(c *schema.Column) func(*Schema, any) (any, error) {
		if !isMasked(c) {
			return nil
		}
		cut := func(_ *Schema, v any) (any, error) { return v, nil }
		if n := declaredLength(c); n > 0 {
			cut = truncate(n)
		}
		return func(s *Schema, v any) (any, error) {
			if v == nil {
				return nil, nil
			}
			text, err := Text(s, v)
			if err != nil {
				return nil, err
			}
			h := sum()
			h.Write([]byte(salt))
			if version == 1 {
				h.Write(javaSerialized(text))
			} else {
				h.Write(appendUTF8(nil, text))
			}
			return cut(s, hex.EncodeToString(h.Sum(nil)))
		}
	}}, true
}

var masked = Param{"masked", "true"}

// hashes are the algorithms of Java's own providers that Go has.
var hashes = map[string]func() hash.Hash{
	"MD5": md5.New, "SHA-1": sha1.New,
	"SHA-224": sha256.New224, "SHA-256": sha256.New, "SHA-384": sha512.New384, "SHA-512": sha512.New,
	"SHA-512/224": sha512.New512_224, "SHA-512/256": sha512.New512_256,
	"SHA3-224": func() hash.Hash { return sha3.New224() }, "SHA3-256": func() hash.Hash { return sha3.New256() },
	"SHA3-384": func() hash.Hash { return sha3.New384() }, "SHA3-512": func() hash.Hash { return sha3.New512() },
}

// isMasked reports the types that Debezium masks: those that JDBC calls characters.
func isMasked(c *schema.Column) bool {
	return c.Type.IsText() || c.Type == schema.Enum || c.Type == schema.Set
}

// declaredLength is the length of the column as Debezium reads it in the statement that
// made the table, -1 for none.
func declaredLength(c *schema.Column) int {
	switch c.Type {
	case schema.Enum:
		return 1
	case schema.Set:
		return max(0, 2*len(c.Elements)-1)
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary, schema.Decimal, schema.Bit:
		return c.Length
	}
	_, rest, ok := strings.Cut(c.ColumnType, "(")
	if !ok {
		return -1
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(rest[:digits])
	if err != nil {
		return -1
	}
	return n
}

func truncate(length int) func(*Schema, any) (any, error) {
	return func(s *Schema, v any) (any, error) {
		switch b := v.(type) {
		case []byte:
			if s.Kind != String {
				if s.Name == "" && len(b) > length {
					return b[:length:length], nil
				}
				return v, nil
			}
		case string:
		default:
			return v, nil
		}
		if s.Kind != String {
			return v, nil
		}
		text, err := Text(s, v)
		if err != nil {
			return nil, err
		}
		return cutUTF16(text, length), nil
	}
}

// cutUTF16 is the first n UTF-16 units of s; half a pair stays as a lone surrogate.
func cutUTF16(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := 0; i < len(s); {
		if n == 0 {
			return s[:i]
		}
		if _, ok := surrogate(s, i); ok {
			i, n = i+3, n-1
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r > 0xffff {
			if n == 1 {
				high, _ := utf16.EncodeRune(r)
				return string(AppendSurrogate([]byte(s[:i]), high))
			}
			n--
		}
		i, n = i+size, n-1
	}
	return s
}

// javaSerialized is what ObjectOutputStream.writeObject writes for a String.
func javaSerialized(s string) []byte {
	text := modifiedUTF8(s)
	out := []byte{0xac, 0xed, 0x00, 0x05}
	if len(text) <= 0xffff {
		out = binary.BigEndian.AppendUint16(append(out, 0x74), uint16(len(text)))
	} else {
		out = binary.BigEndian.AppendUint64(append(out, 0x7c), uint64(len(text)))
	}
	return append(out, text...)
}

// modifiedUTF8 is Java's form of UTF-8: two bytes for U+0000, and surrogates one by one.
func modifiedUTF8(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0:
			out = append(out, 0xc0, 0x80)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = AppendSurrogate(AppendSurrogate(out, high), low)
		default:
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	return out
}

// apply lets the rules say what becomes of a column.
func (r *ColumnRules) apply(name string, col *schema.Column, c *Column) error {
	if r == nil {
		return nil
	}
	if r.Includes != nil {
		if ok, err := r.Includes(name); err != nil || !ok {
			c.Excluded = true
			return err
		}
	}
	for _, rule := range r.Changes {
		ok, err := rule.Matches(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		c.change = rule.change(col)
		if c.Schema != nil && (c.change != nil || rule.param == masked) {
			s := *c.Schema
			s.Params = append(slices.Clip(s.Params), rule.param)
			c.Schema = &s
		}
		return nil
	}
	return nil
}
