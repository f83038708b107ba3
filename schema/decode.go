package schema

import (
	"fmt"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/google/uuid"
)

// ValueError says that a value of one column can't be read. It names the column,
// never the value.
type ValueError struct {
	Column string
	Type   Type
	Err    error
}

// Error names column, type and reason.
func (e *ValueError) Error() string {
	return fmt.Sprintf("reading column %s (%s): %s", e.Column, e.Type, e.Err)
}

// Unwrap returns the reason.
func (e *ValueError) Unwrap() error { return e.Err }

// DecodeRow turns the raw values of one row into the values documented at Row,
// in place. skipped lists the columns that the row image left out, in ascending
// order; they become Missing.
//
// want says which columns the caller has a use for, nil all of them. The others
// become Missing and are not looked at, so that a column nobody needs can't fail
// the row.
func (t *Table) DecodeRow(row []any, skipped []int, want []bool) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("reading a row of %s: it has %d columns, the table has %d", t.Name, len(row), len(t.Columns))
	}
	for i := range row {
		if len(skipped) > 0 && skipped[0] == i {
			skipped = skipped[1:]
			row[i] = Missing
			continue
		}
		if want != nil && !want[i] {
			row[i] = Missing
			continue
		}
		v, err := t.Columns[i].Decode(row[i])
		if err != nil {
			return fmt.Errorf("reading a row of %s: %w", t.Name, err)
		}
		row[i] = v
	}
	return nil
}

// Decode turns what go-mysql's row decoding yields for a value of the column
// into the value documented at Row. nil stays nil.
//
// Expected of go-mysql: TIMESTAMP as text in UTC (TimestampStringLocation),
// DECIMAL as text (UseDecimal off), no parsed times, and JSON columns presented
// as BLOB, so that the document arrives as its bytes.
//
// Text and BLOB results may share memory with raw, which must not be changed
// afterwards. Errors are of type *ValueError.
func (c *Column) Decode(raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := c.decode(raw)
	if err != nil {
		return nil, &ValueError{Column: c.Name, Type: c.Type, Err: err}
	}
	return v, nil
}

func (c *Column) decode(raw any) (any, error) {
	switch c.Type {
	case TinyInt, SmallInt, MediumInt, Int, BigInt:
		return c.decodeInteger(raw)
	case Year:
		return decodeYear(raw)
	case Float:
		if _, ok := raw.(float32); ok {
			return raw, nil
		}
	case Double:
		if _, ok := raw.(float64); ok {
			return raw, nil
		}
	case Decimal, Date:
		if _, ok := raw.(string); ok {
			return raw, nil
		}
	case Time, DateTime, Timestamp:
		if v, ok := raw.(string); ok {
			return c.decodeTemporal(v)
		}
	case Bit:
		return c.decodeBit(raw)
	case Enum:
		return c.decodeEnum(raw)
	case Set:
		return c.decodeSet(raw)
	case Char, VarChar, TinyText, Text, MediumText, LongText:
		if s, ok := textOfRaw(raw); ok {
			return c.decodeText(raw, s)
		}
	case Binary:
		if b, ok := bytesOfRaw(raw); ok {
			return padBinary(b, c.Length)
		}
	case VarBinary, TinyBlob, Blob, MediumBlob, LongBlob, Geometry, Vector:
		if b, ok := bytesOfRaw(raw); ok {
			return b, nil
		}
	case JSON:
		// Only the document as it lies in the binlog will do: rendered text has
		// lost what the server would have printed.
		if b, ok := raw.([]byte); ok {
			return b, nil
		}
	case UUID, Inet4, Inet6:
		if s, ok := textOfRaw(raw); ok {
			return c.decodeFixed(s)
		}
	case Unknown:
		if c.Elements != nil {
			return nil, fmt.Errorf("information_schema shows a question mark for what it can't show of the elements; set " +
				"binlog_row_metadata=FULL so that the binlog tells them")
		}
		return nil, fmt.Errorf("values of type %s are not supported", c.sql())
	}
	return nil, errRaw(raw)
}

func errRaw(raw any) error { return fmt.Errorf("unexpected value of Go type %T", raw) }

// textOfRaw gives CHAR and VARCHAR (strings) and TEXT (bytes) as a string
// without copying: payloads may be large, and nobody writes to a read event.
func textOfRaw(raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case []byte:
		return unsafe.String(unsafe.SliceData(v), len(v)), true
	}
	return "", false
}

func bytesOfRaw(raw any) ([]byte, bool) {
	switch v := raw.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

func (c *Column) decodeText(raw any, s string) (any, error) {
	text, err := c.InvalidText.decode(c.Charset, s, false)
	if err != nil {
		return nil, err
	}
	if _, ok := raw.(string); ok && len(text) == len(s) && unsafe.StringData(text) == unsafe.StringData(s) {
		return raw, nil // UTF-8 already: not even a new string header
	}
	return text, nil
}

// decodeInteger goes by the bits: go-mysql yields signed numbers unless it saw
// signedness metadata, and the column decides what they mean.
func (c *Column) decodeInteger(raw any) (any, error) {
	bits, width, ok := integerBits(raw)
	want := c.Type.bits()
	if !ok || width != want && (c.Type != MediumInt || width != 32) {
		return nil, errRaw(raw)
	}
	shift := 64 - want
	if c.Unsigned {
		return bits << shift >> shift, nil
	}
	return int64(bits<<shift) >> shift, nil
}

func integerBits(raw any) (bits uint64, width int, ok bool) {
	switch v := raw.(type) {
	case int8:
		return uint64(v), 8, true
	case uint8:
		return uint64(v), 8, true
	case int16:
		return uint64(v), 16, true
	case uint16:
		return uint64(v), 16, true
	case int32:
		return uint64(v), 32, true
	case uint32:
		return uint64(v), 32, true
	case int64:
		return uint64(v), 64, true
	case uint64:
		return v, 64, true
	}
	return 0, 0, false
}

// bits is the width of an integer type in the row.
func (t Type) bits() int {
	switch t {
	case TinyInt:
		return 8
	case SmallInt:
		return 16
	case MediumInt:
		return 24
	case Int:
		return 32
	}
	return 64
}

func decodeYear(raw any) (any, error) {
	switch v := raw.(type) {
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	}
	return nil, errRaw(raw)
}

func (c *Column) decodeBit(raw any) (any, error) {
	v, ok := raw.(int64)
	if !ok {
		return nil, errRaw(raw)
	}
	bits := uint64(v)
	if c.Length < 64 && bits>>c.Length != 0 {
		return nil, fmt.Errorf("value has more than the column's %d bits", c.Length)
	}
	return bits, nil
}

func (c *Column) decodeEnum(raw any) (any, error) {
	i, ok := raw.(int64)
	switch {
	case !ok:
		return nil, errRaw(raw)
	case i == 0: // what the server stores for a value that is not in the list
		return "", nil
	case i < 0 || i > int64(len(c.Elements)):
		return nil, fmt.Errorf("element %d of %d", i, len(c.Elements))
	}
	return c.Elements[i-1], nil
}

func (c *Column) decodeSet(raw any) (any, error) {
	v, ok := raw.(int64)
	if !ok {
		return nil, errRaw(raw)
	}
	set := uint64(v)
	if n := len(c.Elements); n < 64 && set>>n != 0 {
		return nil, fmt.Errorf("value has a member beyond the column's %d", n)
	}
	var b strings.Builder
	for i, name := range c.Elements {
		if set&(1<<i) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	return b.String(), nil
}

// padBinary restores the zero bytes at the end of BINARY(n), which the server
// leaves out of the row.
func padBinary(b []byte, n int) (any, error) {
	if len(b) > n {
		return nil, fmt.Errorf("value of %d bytes in a column of %d", len(b), n)
	}
	if len(b) == n {
		return b, nil
	}
	out := make([]byte, n)
	copy(out, b)
	return out, nil
}

// decodeFixed prints MariaDB's fixed-size types as SELECT does.
func (c *Column) decodeFixed(s string) (any, error) {
	var b [16]byte
	size := 16
	if c.Type == Inet4 {
		size = 4
	}
	if len(s) > size {
		return nil, fmt.Errorf("value of %d bytes in a column of %d", len(s), size)
	}
	copy(b[:], s)
	switch c.Type {
	case Inet4:
		return netip.AddrFrom4([4]byte(b[:4])).String(), nil
	case Inet6:
		return netip.AddrFrom16(b).String(), nil
	}
	return uuid.UUID(b).String(), nil
}
