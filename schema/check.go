package schema

import (
	"fmt"
	"strings"
)

// MismatchError says that a table as we know it is not the one that a row was
// written with: rows can't be read with this shape. Reading the shape again may
// help when the table has just changed; if it does not, the rows are older than
// the table's present shape and nothing here can tell what their columns were.
type MismatchError struct {
	Table Name
	// Column is the number of the first differing column, counted from 1; 0 when
	// the numbers of columns differ.
	Column int
	Reason string
	// Known and Wire are both shapes as short texts.
	Known, Wire string
}

// Error names both shapes and the first difference.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("table %s has another shape than the rows in the binlog: %s; known is (%s), the binlog has (%s)",
		e.Table, e.Reason, e.Known, e.Wire)
}

// Check reports whether rows that come with the table map wire have the shape t,
// as far as the map tells: number of columns, each type with its length, and
// what optional metadata there is. A difference is a *MismatchError. It is what
// stands between today's column names and yesterday's rows.
func (t *Table) Check(wire TableMap) error {
	if err := wire.validate(); err != nil {
		return err
	}
	cols, err := wire.columns()
	if err != nil {
		return err
	}
	mismatch := func(column int, reason string) error {
		return &MismatchError{Table: t.Name, Column: column, Reason: reason, Known: t.shape(), Wire: wire.shape(cols)}
	}
	if len(t.Columns) != len(wire.Types) {
		return mismatch(0, fmt.Sprintf("%d columns are known, the binlog has %d", len(t.Columns), len(wire.Types)))
	}
	for i := range t.Columns {
		if diff := t.Columns[i].differs(&wire, i, cols[i]); diff != "" {
			return mismatch(i+1, fmt.Sprintf("column %d (%s) %s", i+1, t.Columns[i].Name, diff))
		}
	}
	return nil
}

// differs compares one column; an empty text means that nothing speaks against it.
func (c *Column) differs(m *TableMap, i int, w wireColumn) string {
	if m.Names != nil && m.Names[i] != c.Name {
		return fmt.Sprintf("is called %s in the binlog", m.Names[i])
	}
	if !c.fitsWire(m.realType(i), m.Metas[i]) {
		return fmt.Sprintf("is %s, the binlog has %s", c.sql(), wireType(m, i, w))
	}
	if nullable, known := m.nullable(i); known && nullable != c.Nullable {
		return fmt.Sprintf("is nullable: %t, the binlog says %t", c.Nullable, nullable)
	}
	if w.signKnown && c.Type.IsInteger() && w.unsigned != c.Unsigned {
		return fmt.Sprintf("is unsigned: %t, the binlog says %t", c.Unsigned, w.unsigned)
	}
	if w.collation != 0 {
		if diff := c.differsInCharset(w.collation); diff != "" {
			return diff
		}
	}
	if w.elementsKnown && len(w.elements) != len(c.Elements) {
		return fmt.Sprintf("has %d elements, the binlog has %d", len(c.Elements), len(w.elements))
	}
	for e := range w.elements {
		if s, err := DecodeText(c.Charset, string(w.elements[e])); err != nil || s != c.Elements[e] {
			return fmt.Sprintf("has another element %d than the binlog", e+1)
		}
	}
	return ""
}

func (c *Column) differsInCharset(collation uint64) string {
	name, ok := CharsetOf(collation)
	switch {
	case !ok:
		return fmt.Sprintf("has collation id %d in the binlog, which is not known", collation)
	case c.Type.IsText() || c.Type == Enum || c.Type == Set:
		if name != c.Charset {
			return fmt.Sprintf("has character set %s, the binlog has %s", c.Charset, name)
		}
	case isBinaryType(c.Type):
		if name != "binary" {
			return fmt.Sprintf("is binary, the binlog has character set %s", name)
		}
	}
	return ""
}

func isBinaryType(t Type) bool { return t >= Binary && t <= LongBlob }

// fitsWire reports whether the server writes a column of this definition with
// the given wire type and metadata.
func (c *Column) fitsWire(t byte, meta uint16) bool {
	switch c.Type {
	case TinyInt:
		return t == wireTiny
	case SmallInt:
		return t == wireShort
	case MediumInt:
		return t == wireInt24
	case Int:
		return t == wireLong
	case BigInt:
		return t == wireLongLong
	case Float:
		return t == wireFloat
	case Double:
		return t == wireDouble
	case Year:
		return t == wireYear
	case Date:
		return t == wireDate || t == wireNewDate
	case Decimal:
		return t == wireNewDecimal && int(meta>>8) == c.Length && int(meta&0xff) == c.Scale
	case Bit:
		return t == wireBit && bitLength(meta) == c.Length
	case Time:
		return c.fitsTemporal(t, meta, wireTime, wireTime2)
	case DateTime:
		return c.fitsTemporal(t, meta, wireDateTime, wireDateTime2)
	case Timestamp:
		return c.fitsTemporal(t, meta, wireTimestamp, wireTimestamp2)
	case JSON:
		return t == wireJSON
	case Geometry:
		return t == wireGeometry
	}
	return c.fitsWireString(t, meta)
}

func (c *Column) fitsTemporal(t byte, meta uint16, old, current byte) bool {
	// The format from before MySQL 5.6.4 has no place for a fraction. MariaDB had
	// its own with one (mysql56_temporal_format=OFF), of a length that the table
	// map does not tell: it can't be read.
	return t == current && int(meta) == c.FSP || t == old && c.FSP == 0
}

func (c *Column) fitsWireString(t byte, meta uint16) bool {
	switch c.Type {
	case Char:
		return t == wireString && stringBytes(meta) == c.Length*MaxBytes(c.Charset)
	case Binary:
		return t == wireString && stringBytes(meta) == c.Length
	case VarChar:
		return isVarWire(t) && int(meta) == c.Length*MaxBytes(c.Charset)
	case VarBinary:
		return isVarWire(t) && int(meta) == c.Length
	case TinyText, TinyBlob:
		return t == wireBlob && meta == 1
	case Text, Blob:
		return t == wireBlob && meta == 2
	case MediumText, MediumBlob:
		return t == wireBlob && meta == 3
	case LongText, LongBlob:
		return t == wireBlob && meta == 4
	case Enum:
		return t == wireEnum && int(meta&0xff) == enumBytes(len(c.Elements))
	case Set:
		return t == wireSet && int(meta&0xff) == setBytes(len(c.Elements))
	case Vector:
		return t == wireVector || isVarWire(t) // MySQL, MariaDB
	case UUID, Inet6:
		return t == wireString && stringBytes(meta) == 16
	case Inet4:
		return t == wireString && stringBytes(meta) == 4
	}
	// Unknown: its value will never be read, so its wire type does not matter.
	return c.Type == Unknown
}

func isVarWire(t byte) bool { return t == wireVarChar || t == wireVarString }

func enumBytes(elements int) int {
	if elements < 256 {
		return 1
	}
	return 2
}

func setBytes(elements int) int {
	if n := (elements + 7) / 8; n <= 4 {
		return n
	}
	return 8
}

// shape lists name and type of all columns.
func (t *Table) shape() string {
	parts := make([]string, len(t.Columns))
	for i := range t.Columns {
		parts[i] = t.Columns[i].Name + " " + t.Columns[i].sql()
	}
	return strings.Join(parts, ", ")
}

// sql is the column's type as a person would write it.
func (c *Column) sql() string {
	if c.ColumnType != "" {
		return c.ColumnType
	}
	s := c.Type.String()
	switch c.Type {
	case Decimal:
		s += fmt.Sprintf("(%d,%d)", c.Length, c.Scale)
	case Bit, Char, VarChar, Binary, VarBinary:
		s += fmt.Sprintf("(%d)", c.Length)
	case Time, DateTime, Timestamp:
		if c.FSP > 0 {
			s += fmt.Sprintf("(%d)", c.FSP)
		}
	case Enum, Set:
		s += fmt.Sprintf("(%d elements)", len(c.Elements))
	}
	if c.Unsigned {
		s += " unsigned"
	}
	return s
}

func (m *TableMap) shape(cols []wireColumn) string {
	parts := make([]string, len(m.Types))
	for i := range m.Types {
		parts[i] = wireType(m, i, cols[i])
		if m.Names != nil {
			parts[i] = m.Names[i] + " " + parts[i]
		}
	}
	return strings.Join(parts, ", ")
}

// wireType describes column i of the map in SQL's words.
func wireType(m *TableMap, i int, w wireColumn) string {
	meta := m.Metas[i]
	switch t := m.realType(i); t {
	case wireTiny, wireShort, wireInt24, wireLong, wireLongLong:
		if w.unsigned {
			return integerOf(t).String() + " unsigned"
		}
		return integerOf(t).String()
	case wireFloat:
		return "float"
	case wireDouble:
		return "double"
	case wireNewDecimal:
		return fmt.Sprintf("decimal(%d,%d)", meta>>8, meta&0xff)
	case wireBit:
		return fmt.Sprintf("bit(%d)", bitLength(meta))
	case wireYear:
		return "year"
	case wireDate, wireNewDate:
		return "date"
	case wireTime, wireTime2:
		return fmt.Sprintf("time(%d)", fspOf(t, meta))
	case wireDateTime, wireDateTime2:
		return fmt.Sprintf("datetime(%d)", fspOf(t, meta))
	case wireTimestamp, wireTimestamp2:
		return fmt.Sprintf("timestamp(%d)", fspOf(t, meta))
	case wireJSON:
		return "json"
	case wireGeometry:
		return "geometry"
	case wireVector:
		return "vector"
	case wireString:
		return fmt.Sprintf("char or binary of %d bytes", stringBytes(meta))
	case wireVarChar, wireVarString:
		return fmt.Sprintf("varchar or varbinary of %d bytes", meta)
	case wireBlob:
		return fmt.Sprintf("text or blob with %d length bytes", meta)
	case wireEnum:
		return fmt.Sprintf("enum of %d bytes", meta&0xff)
	case wireSet:
		return fmt.Sprintf("set of %d bytes", meta&0xff)
	case wireBlobCompressed, wireVarCharCompressed:
		return "a compressed column"
	default:
		return fmt.Sprintf("wire type %d", t)
	}
}
