package canal

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// snapshotKey is the primary key of an outbox table whose rows are read in its order.
// A key's value is one text for each column ("7", "a-1", the bytes of a BINARY): the
// same whether the row came with a SELECT or in the binlog.
type snapshotKey struct {
	columns []snapshotColumn
	// weighed is set when the order of some column is the server's secret.
	weighed bool
}

type snapshotColumn struct {
	*schema.Column
	index     int
	quoted    string
	collation string // of text
}

// newSnapshotKey refuses tables without a primary key, or with one whose order can't be
// followed. collations are by column name.
func newSnapshotKey(t *schema.Table, collations map[string]string) (*snapshotKey, error) {
	if len(t.PrimaryKey) == 0 {
		return nil, newError(BadConfig, nil, "outbox table %s has no primary key (or the user may not see it), so its rows "+
			"can't be told apart and read in order: "+
			"add one, or begin without the rows that stand there (source.start=current)", t.Name)
	}
	k := &snapshotKey{}
	for _, i := range t.PrimaryKey {
		c := snapshotColumn{Column: &t.Columns[i], index: i, quoted: quotedName(t.Columns[i].Name),
			collation: collations[t.Columns[i].Name]}
		switch {
		case c.IsInteger(), c.Type == schema.Year, c.Type == schema.Date, c.Type == schema.Time, c.Type == schema.DateTime,
			c.Type == schema.Timestamp,
			c.Type == schema.Decimal, c.isBytes():
		case c.Type.IsText() && c.collation != "":
			k.weighed = true
		default:
			return nil, newError(BadConfig, nil, "the primary key of outbox table %s holds column %s of type %s, in whose "+
				"order rows can't be read: "+
				"begin without the rows that stand there (source.start=current)", t.Name, c.Name, c.Type)
		}
		k.columns = append(k.columns, c)
	}
	return k, nil
}

func quotedName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// IsInteger reports an integer column.
func (c *snapshotColumn) IsInteger() bool { return c.Type.IsInteger() }

func (c *snapshotColumn) isBytes() bool {
	return c.Type == schema.Binary || c.Type == schema.VarBinary || c.Type >= schema.TinyBlob && c.Type <= schema.LongBlob
}

// of takes the key out of a row image of table, which may be another shape than the
// one the key was made for.
func (k *snapshotKey) of(table *schema.Table, image []any) ([]string, error) {
	key := make([]string, len(k.columns))
	for i := range k.columns {
		c := &k.columns[i]
		at := c.index
		if at >= len(table.Columns) || table.Columns[at].Name != c.Name {
			at = table.Column(c.Name)
		}
		if at < 0 || at >= len(image) {
			return nil, newError(SchemaMismatch, nil,
				"a row of outbox table %s has no column %s, which is part of the primary key now", table.Name, c.Name)
		}
		switch v := image[at].(type) {
		case int64:
			key[i] = strconv.FormatInt(v, 10)
		case uint64:
			key[i] = strconv.FormatUint(v, 10)
		case string:
			key[i] = v
		case []byte:
			key[i] = string(v)
		default:
			return nil, newError(MissingColumn, nil, "a row of outbox table %s was logged without column %s of its primary key",
				table.Name, c.Name)
		}
	}
	return key, nil
}

// stored is the key as positions keep it: bytes that need not be text in hex.
func (k *snapshotKey) stored(key []string) []string {
	if key == nil {
		return nil
	}
	out := make([]string, len(key))
	for i, v := range key {
		if k.columns[i].isBytes() {
			v = hex.EncodeToString([]byte(v))
		}
		out[i] = v
	}
	return out
}

// load is the inverse of stored.
func (k *snapshotKey) load(stored []string) ([]string, error) {
	if stored == nil {
		return nil, nil
	}
	if len(stored) != len(k.columns) {
		return nil, fmt.Errorf("the key has %d columns, the position %d", len(k.columns), len(stored))
	}
	key := make([]string, len(stored))
	for i, v := range stored {
		if k.columns[i].isBytes() {
			raw, err := hex.DecodeString(v)
			if err != nil {
				return nil, fmt.Errorf("column %s of the key is not in hex", k.columns[i].Name)
			}
			v = string(raw)
		}
		key[i] = v
	}
	return key, nil
}

// exact encodes a key so that two are equal when all their columns are.
func exact(key []string) []byte {
	var b []byte
	for _, v := range key {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	return b
}

// literal is the value of a column in SQL, in the column's own character set and
// collation, so that comparing it with the column uses the index.
func (c *snapshotColumn) literal(v string) string {
	switch {
	case c.isBytes():
		return "x'" + hex.EncodeToString([]byte(v)) + "'"
	case c.Type.IsText():
		text := "_utf8mb4 x'" + hex.EncodeToString([]byte(v)) + "'"
		if c.Charset != "utf8mb4" {
			text = "CONVERT(" + text + " USING " + c.Charset + ")"
		}
		return text + " COLLATE " + c.collation
	case c.IsInteger(), c.Type == schema.Year, c.Type == schema.Decimal:
		return v
	}
	return "'" + quoted(v) + "'"
}

// after is the condition for the rows behind key.
func (k *snapshotKey) after(key []string) string {
	var b strings.Builder
	for i := range k.columns {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString("(")
		for j := range i {
			fmt.Fprintf(&b, "%s = %s AND ", k.columns[j].quoted, k.columns[j].literal(key[j]))
		}
		fmt.Fprintf(&b, "%s > %s)", k.columns[i].quoted, k.columns[i].literal(key[i]))
	}
	return b.String()
}

// order is the list for ORDER BY.
func (k *snapshotKey) order() string {
	names := make([]string, len(k.columns))
	for i := range k.columns {
		names[i] = k.columns[i].quoted
	}
	return strings.Join(names, ", ")
}

// weight is the expression for the place of a text in the order of its collation.
// Where blanks at the end do not count the text is filled up with them.
func (c *snapshotColumn) weight(v string) string {
	expr := "(" + c.literal(v) + ")"
	if !strings.Contains(c.collation, "_0900_") && !strings.Contains(c.collation, "_nopad_") {
		expr += fmt.Sprintf(" AS CHAR(%d)", max(c.Length, 1))
	}
	return "HEX(WEIGHT_STRING(" + expr + "))"
}

// sortable encodes a key so that comparing bytes is comparing keys as the server
// does. weights are those of its text columns, in order.
func (k *snapshotKey) sortable(key []string, weights []string) ([]byte, error) {
	var b []byte
	for i := range k.columns {
		c, v := &k.columns[i], key[i]
		var err error
		switch {
		case c.IsInteger() && c.Unsigned, c.Type == schema.Year:
			var n uint64
			n, err = strconv.ParseUint(v, 10, 64)
			b = binary.BigEndian.AppendUint64(b, n)
		case c.IsInteger():
			var n int64
			n, err = strconv.ParseInt(v, 10, 64)
			b = binary.BigEndian.AppendUint64(b, uint64(n)^1<<63)
		case c.Type == schema.Decimal:
			b = appendDecimal(b, v)
		case c.Type == schema.Time:
			hours, rest, _ := strings.Cut(strings.TrimPrefix(v, "-"), ":")
			b = appendSigned(b, strings.HasPrefix(v, "-"), fmt.Sprintf("%03s%s", hours, rest))
		case c.Type.IsText():
			var raw []byte
			raw, err = hex.DecodeString(weights[0])
			b, weights = appendBytes(b, string(raw)), weights[1:]
		default:
			b = appendBytes(b, v)
		}
		if err != nil {
			return nil, newError(Undecodable, nil, "column %s of a primary key has a value that is not of its type", c.Name)
		}
	}
	return b, nil
}

// appendBytes ends a string so that a longer one comes behind its own beginning.
func appendBytes(b []byte, v string) []byte {
	for i := range len(v) {
		if b = append(b, v[i]); v[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return append(b, 0, 0)
}

// appendDecimal orders by sign, then by the digits before the point, filled up to
// the 65 that a DECIMAL may have, then by those behind it.
func appendDecimal(b []byte, v string) []byte {
	digits := strings.TrimPrefix(v, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	return appendSigned(b, len(digits) < len(v), strings.Repeat("0", max(0, 65-len(whole)))+whole+"."+frac)
}

// appendSigned turns the order of negative values round.
func appendSigned(b []byte, negative bool, magnitude string) []byte {
	if !negative {
		return appendBytes(append(b, 1), magnitude)
	}
	b = append(b, 0)
	for _, c := range []byte(magnitude) {
		b = append(b, 0xff-c)
	}
	return append(b, 0xff, 0xff)
}
