package schema

import (
	"errors"
	"fmt"
)

// The column types that a table map event carries (MySQL's enum_field_types).
const (
	wireTiny       = 1
	wireShort      = 2
	wireLong       = 3
	wireFloat      = 4
	wireDouble     = 5
	wireTimestamp  = 7
	wireLongLong   = 8
	wireInt24      = 9
	wireDate       = 10
	wireTime       = 11
	wireDateTime   = 12
	wireYear       = 13
	wireNewDate    = 14
	wireVarChar    = 15
	wireBit        = 16
	wireTimestamp2 = 17
	wireDateTime2  = 18
	wireTime2      = 19
	// MariaDB's COMPRESSED column attribute.
	wireBlobCompressed    = 140
	wireVarCharCompressed = 141
	wireVector            = 242 // MySQL 9
	wireJSON              = 245
	wireNewDecimal        = 246
	wireEnum              = 247
	wireSet               = 248
	wireBlob              = 252
	wireVarString         = 253
	wireString            = 254
	wireGeometry          = 255
)

// TableMap is a binlog table map event in plain values: the shape of a row as
// it lies in the binlog. Names and the other optional fields are there when the
// server runs with binlog_row_metadata=FULL; signedness and character sets are
// there with MINIMAL too (MySQL 8.0.1+, MariaDB 10.5+), and nothing of it on
// older servers.
//
// The slices may alias the event's packet: whatever this package keeps it copies.
type TableMap struct {
	Name
	// MariaDB says which server wrote the event: MariaDB counts GEOMETRY among
	// the character columns.
	MariaDB bool
	// Types holds one wire type per column, Metas its metadata: for STRING the
	// real type in the high and the length in the low byte, for DECIMAL precision
	// and scale, for the others the number as it stands in the event.
	Types []byte
	Metas []uint16
	// NullBitmap has bit i (least significant first) set when column i is nullable.
	NullBitmap []byte
	// Names are all column names, nil when the event has none.
	Names []string
	// Signedness has one bit per numeric column (most significant first), set
	// when it is unsigned; nil when the event has none.
	Signedness []byte
	// DefaultCharset is the default collation id, then pairs of index among the
	// character columns and collation id. ColumnCharset is one collation id per
	// character column. At most one of the two is there. EnumSet... are the same
	// for ENUM and SET columns.
	DefaultCharset        []uint64
	ColumnCharset         []uint64
	EnumSetDefaultCharset []uint64
	EnumSetColumnCharset  []uint64
	// EnumValues and SetValues have the element texts of each ENUM or SET column
	// in the column's own character set.
	EnumValues [][][]byte
	SetValues  [][][]byte
	// PrimaryKey lists column indexes in key order, nil without a key or metadata.
	PrimaryKey []uint64
}

// ErrNoNames is returned by FromTableMap when the table map event holds no
// column names (binlog_row_metadata=MINIMAL): the names must come from
// information_schema then.
var ErrNoNames = errors.New("the binlog's table map has no column names (binlog_row_metadata is not FULL)")

// validate refuses maps whose parts do not fit together, so that nothing below
// needs to think about lengths.
func (m *TableMap) validate() error {
	n := len(m.Types)
	switch {
	case n == 0:
		return fmt.Errorf("table map of %s has no columns", m.Name)
	case len(m.Metas) != n:
		return fmt.Errorf("table map of %s has %d columns but metadata for %d", m.Name, n, len(m.Metas))
	case m.Names != nil && len(m.Names) != n:
		return fmt.Errorf("table map of %s has %d columns but %d names", m.Name, n, len(m.Names))
	case m.NullBitmap != nil && len(m.NullBitmap) < (n+7)/8:
		return fmt.Errorf("table map of %s has %d columns but a null bitmap of %d bytes", m.Name, n, len(m.NullBitmap))
	}
	for _, k := range m.PrimaryKey {
		if k >= uint64(n) {
			return fmt.Errorf("table map of %s has %d columns but a primary key over column %d", m.Name, n, k)
		}
	}
	return nil
}

// realType is the wire type, with ENUM and SET taken out of the metadata where
// the server hides them (they travel as STRING).
func (m *TableMap) realType(i int) byte {
	if t := m.Types[i]; t == wireString {
		if real := byte(m.Metas[i] >> 8); real == wireEnum || real == wireSet {
			return real
		}
	}
	return m.Types[i]
}

// stringBytes is the declared length in bytes of a STRING column. Lengths above
// 255 have two of their bits inverted in the type byte, a trick of MySQL 5.0 to
// stay compatible (see Field_string::do_save_field_metadata).
func stringBytes(meta uint16) int {
	hi, lo := meta>>8, int(meta&0xff)
	if meta < 256 {
		return int(meta)
	}
	if hi&0x30 != 0x30 {
		return lo | int((hi&0x30)^0x30)<<4
	}
	return lo
}

func bitLength(meta uint16) int { return int(meta>>8)*8 + int(meta&0xff) }

// nullable answers whether column i may be NULL, and whether that is known.
func (m *TableMap) nullable(i int) (yes, known bool) {
	if m.NullBitmap == nil {
		return false, false
	}
	return m.NullBitmap[i/8]&(1<<(i%8)) != 0, true
}

func isNumericWire(t byte) bool {
	switch t {
	case wireTiny, wireShort, wireInt24, wireLong, wireLongLong, wireYear,
		wireFloat, wireDouble, wireNewDecimal, 0: // 0 is the DECIMAL of MySQL 4
		return true
	}
	return false
}

func (m *TableMap) isCharacterWire(t byte) bool {
	switch t {
	case wireString, wireVarString, wireVarChar, wireBlob, wireBlobCompressed, wireVarCharCompressed:
		return true
	case wireVector: // of the BLOB family in MySQL's source, like GEOMETRY in MariaDB's
		return true
	case wireGeometry:
		return m.MariaDB
	}
	return false
}

// wireColumn is what the table map says about one column beyond type and metadata.
type wireColumn struct {
	unsigned, signKnown bool
	collation           uint64 // 0 when not known
	elements            [][]byte
	elementsKnown       bool
}

// columns spreads the optional metadata, which is listed per kind of column,
// over the columns.
func (m *TableMap) columns() ([]wireColumn, error) {
	out := make([]wireColumn, len(m.Types))
	chars := newCollationList(m.DefaultCharset, m.ColumnCharset)
	enums := newCollationList(m.EnumSetDefaultCharset, m.EnumSetColumnCharset)
	numeric, enum, set := 0, 0, 0
	for i := range out {
		c, t := &out[i], m.realType(i)
		switch {
		case isNumericWire(t):
			if m.Signedness != nil {
				if numeric/8 >= len(m.Signedness) {
					return nil, fmt.Errorf("table map of %s: signedness of column %d is missing", m.Name, i+1)
				}
				c.unsigned, c.signKnown = m.Signedness[numeric/8]&(0x80>>(numeric%8)) != 0, true
			}
			numeric++
		case t == wireEnum || t == wireSet:
			values, n := m.EnumValues, &enum
			if t == wireSet {
				values, n = m.SetValues, &set
			}
			if values != nil {
				if *n >= len(values) {
					return nil, fmt.Errorf("table map of %s: elements of column %d are missing", m.Name, i+1)
				}
				c.elements, c.elementsKnown = values[*n], true
			}
			*n++
			if err := enums.next(&c.collation); err != nil {
				return nil, fmt.Errorf("table map of %s: character set of column %d: %w", m.Name, i+1, err)
			}
		case m.isCharacterWire(t):
			if err := chars.next(&c.collation); err != nil {
				return nil, fmt.Errorf("table map of %s: character set of column %d: %w", m.Name, i+1, err)
			}
		}
	}
	return out, nil
}

// collationList deals out the collation ids of the character columns one by one.
type collationList struct {
	standard uint64
	except   map[uint64]uint64
	list     []uint64
	at       int
	known    bool
}

func newCollationList(byDefault, list []uint64) *collationList {
	l := &collationList{list: list, known: len(byDefault) > 0 || len(list) > 0}
	if len(byDefault) > 0 {
		l.standard, l.list = byDefault[0], nil
		l.except = make(map[uint64]uint64, len(byDefault)/2)
		for i := 1; i+1 < len(byDefault); i += 2 {
			l.except[byDefault[i]] = byDefault[i+1]
		}
	}
	return l
}

func (l *collationList) next(id *uint64) error {
	at := l.at
	l.at++
	switch {
	case !l.known:
	case l.except == nil:
		if at >= len(l.list) {
			return errors.New("not in the event")
		}
		*id = l.list[at]
	default:
		*id = l.standard
		if other, ok := l.except[uint64(at)]; ok {
			*id = other
		}
	}
	return nil
}
