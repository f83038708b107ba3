package schema

import "fmt"

// binaryCollation is the id of the collation "binary": the mark by which
// BINARY, VARBINARY and BLOB differ from CHAR, VARCHAR and TEXT on the wire.
const binaryCollation = 63

// FromTableMap builds a table from what the binlog says about it. The names
// make the difference: without them it returns ErrNoNames.
//
// What a table map never holds: defaults, and on MariaDB the difference between
// UUID, INET6, INET4, VECTOR and a plain BINARY or VARBINARY. Merge adds both.
func FromTableMap(m TableMap) (*Table, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	if m.Names == nil {
		return nil, fmt.Errorf("reading the shape of %s: %w", m.Name, ErrNoNames)
	}
	wire, err := m.columns()
	if err != nil {
		return nil, err
	}
	t := &Table{Name: m.Name, Columns: make([]Column, len(m.Types))}
	for i := range t.Columns {
		c, err := m.column(i, wire[i])
		if err != nil {
			return nil, fmt.Errorf("reading the shape of %s: column %s: %w", m.Name, m.Names[i], err)
		}
		t.Columns[i] = c
	}
	for _, k := range m.PrimaryKey {
		t.PrimaryKey = append(t.PrimaryKey, int(k))
	}
	return t, nil
}

func (m *TableMap) column(i int, w wireColumn) (Column, error) {
	c := Column{Name: m.Names[i], Unsigned: w.unsigned}
	c.Nullable, _ = m.nullable(i)
	meta := m.Metas[i]
	switch t := m.realType(i); t {
	case wireTiny, wireShort, wireInt24, wireLong, wireLongLong:
		c.Type = integerOf(t)
		if !w.signKnown {
			return c, errNotInMap("signedness")
		}
	case wireFloat:
		c.Type, c.Scale = Float, -1
	case wireDouble:
		c.Type, c.Scale = Double, -1
	case wireNewDecimal:
		c.Type, c.Length, c.Scale = Decimal, int(meta>>8), int(meta&0xff)
	case wireBit:
		c.Type, c.Length = Bit, bitLength(meta)
	case wireYear:
		c.Type, c.Unsigned = Year, false
	case wireDate, wireNewDate:
		c.Type = Date
	case wireTime, wireTime2:
		c.Type, c.FSP = Time, fspOf(t, meta)
	case wireDateTime, wireDateTime2:
		c.Type, c.FSP = DateTime, fspOf(t, meta)
	case wireTimestamp, wireTimestamp2:
		c.Type, c.FSP = Timestamp, fspOf(t, meta)
	case wireJSON:
		c.Type = JSON
	case wireGeometry:
		c.Type = Geometry
	case wireVector:
		c.Type = Vector
	case wireString, wireVarChar, wireVarString, wireBlob:
		err := m.character(&c, t, meta, w)
		return c, err
	case wireEnum, wireSet:
		err := m.elements(&c, t, w)
		return c, err
	default:
		c.Type = Unknown
	}
	return c, nil
}

// character fills in a CHAR, VARCHAR or TEXT column, or its binary sister.
func (m *TableMap) character(c *Column, t byte, meta uint16, w wireColumn) error {
	if w.collation == 0 {
		return errNotInMap("character set")
	}
	bytes := int(meta)
	if t == wireString {
		bytes = stringBytes(meta)
	}
	if w.collation == binaryCollation {
		c.Type = binaryOf(t, meta)
		if t != wireBlob {
			c.Length = bytes
		}
		return nil
	}
	name, ok := CharsetOf(w.collation)
	if !ok {
		return fmt.Errorf("collation id %d is not known", w.collation)
	}
	c.Charset, c.Type = name, textOf(t, meta)
	if t != wireBlob {
		c.Length = bytes / MaxBytes(name)
	}
	return nil
}

func (m *TableMap) elements(c *Column, t byte, w wireColumn) error {
	c.Type = Enum
	if t == wireSet {
		c.Type = Set
	}
	if !w.elementsKnown {
		return errNotInMap("element list")
	}
	name, ok := CharsetOf(w.collation)
	if !ok {
		return fmt.Errorf("collation id %d is not known", w.collation)
	}
	c.Charset, c.Elements = name, make([]string, len(w.elements))
	for i, e := range w.elements {
		s, err := DecodeText(name, string(e))
		if err != nil {
			return fmt.Errorf("element %d: %w", i+1, err)
		}
		c.Elements[i] = s
	}
	return nil
}

// Ambiguous reports whether a column may be of a type that the binlog does not
// tell apart from BINARY or VARBINARY: MariaDB's UUID, INET4, INET6 and VECTOR.
// Such a table needs information_schema (see Table.Merge) even when the map has
// names.
func (m *TableMap) Ambiguous() bool {
	if !m.MariaDB {
		return false
	}
	if m.validate() != nil {
		return true
	}
	cols, err := m.columns()
	if err != nil {
		return true
	}
	for i, w := range cols {
		if w.collation != binaryCollation && w.collation != 0 {
			continue
		}
		switch m.realType(i) {
		case wireVarChar, wireVarString:
			return true
		case wireString:
			if n := stringBytes(m.Metas[i]); n == 16 || n == 4 {
				return true
			}
		}
	}
	return false
}

func errNotInMap(what string) error {
	return fmt.Errorf("the table map does not tell its %s", what)
}

func integerOf(t byte) Type {
	switch t {
	case wireTiny:
		return TinyInt
	case wireShort:
		return SmallInt
	case wireInt24:
		return MediumInt
	case wireLong:
		return Int
	}
	return BigInt
}

// fspOf: only the "2" types of MySQL 5.6 carry the number of fraction digits.
func fspOf(t byte, meta uint16) int {
	switch t {
	case wireTime2, wireDateTime2, wireTimestamp2:
		return int(meta)
	}
	return 0
}

func textOf(t byte, meta uint16) Type {
	switch t {
	case wireString:
		return Char
	case wireBlob:
		switch meta {
		case 1:
			return TinyText
		case 2:
			return Text
		case 3:
			return MediumText
		}
		return LongText
	}
	return VarChar
}

func binaryOf(t byte, meta uint16) Type {
	switch t {
	case wireString:
		return Binary
	case wireBlob:
		switch meta {
		case 1:
			return TinyBlob
		case 2:
			return Blob
		case 3:
			return MediumBlob
		}
		return LongBlob
	}
	return VarBinary
}
