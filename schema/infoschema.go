package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ColumnsQuery asks for the columns of one table: two parameters, the database
// and the table. Its result has one row per column, in the order and with the
// meaning of ColumnInfo's fields, and no row when the table is not there or not
// visible to the user. It runs on MySQL 5.7 and newer and MariaDB 10.0 and newer
// with nothing but SELECT on the table; the connection should speak utf8mb4,
// because ENUM and SET texts come in the connection's character set.
const ColumnsQuery = `SELECT c.COLUMN_NAME, c.ORDINAL_POSITION, c.COLUMN_DEFAULT, c.IS_NULLABLE = 'YES',` +
	` c.DATA_TYPE, c.COLUMN_TYPE, COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(c.NUMERIC_PRECISION, 0),` +
	` COALESCE(c.NUMERIC_SCALE, -1), COALESCE(c.DATETIME_PRECISION, 0), COALESCE(c.CHARACTER_SET_NAME, ''),` +
	` c.EXTRA, c.COLUMN_KEY = 'PRI', COALESCE(s.SEQ_IN_INDEX, 0), VERSION()` +
	` FROM information_schema.COLUMNS c LEFT JOIN information_schema.STATISTICS s` +
	` ON s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME` +
	` AND s.COLUMN_NAME = c.COLUMN_NAME AND s.INDEX_NAME = 'PRIMARY'` +
	` WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ? ORDER BY c.ORDINAL_POSITION`

// ColumnInfo is one row of ColumnsQuery.
type ColumnInfo struct {
	Name string // COLUMN_NAME
	// Position is ORDINAL_POSITION, counted from 1.
	Position int
	// Default is COLUMN_DEFAULT: its meaning differs between servers.
	Default    *string
	Nullable   bool   // IS_NULLABLE = 'YES'
	DataType   string // DATA_TYPE ("bigint")
	ColumnType string // COLUMN_TYPE ("bigint unsigned")
	// CharLength is CHARACTER_MAXIMUM_LENGTH: characters of text, bytes of
	// binary columns, 0 for other types.
	CharLength uint64
	Precision  int // NUMERIC_PRECISION, 0 for other types; bits of BIT
	Scale      int // NUMERIC_SCALE, -1 for types and columns without
	FSP        int // DATETIME_PRECISION
	Charset    string
	Extra      string // EXTRA ("auto_increment", "DEFAULT_GENERATED", ...)
	// Primary says that the column is in the primary key, KeyPosition where
	// (counted from 1); KeyPosition may be 0 when the user may not see it.
	Primary     bool
	KeyPosition int
	// ServerVersion is VERSION(), which decides how Default is to be read.
	ServerVersion string
}

// FromInformationSchema builds a table from the rows of ColumnsQuery. Types that
// it does not know become Unknown; a known type whose definition it can't read is
// an error.
func FromInformationSchema(name Name, cols []ColumnInfo) (*Table, error) {
	if len(cols) == 0 {
		return nil, fmt.Errorf("table %s: information_schema has no columns of it", name)
	}
	t := &Table{Name: name, Columns: make([]Column, len(cols))}
	for i := range cols {
		if cols[i].Position != i+1 {
			return nil, fmt.Errorf("table %s: column %s is at position %d of information_schema, want %d",
				name, cols[i].Name, cols[i].Position, i+1)
		}
		c, err := cols[i].column()
		if err != nil {
			return nil, fmt.Errorf("table %s: column %s: %w", name, cols[i].Name, err)
		}
		t.Columns[i] = c
	}
	t.PrimaryKey = primaryKey(cols)
	return t, nil
}

// primaryKey lists the key columns in key order. A key over several columns whose
// order is hidden from us is left out rather than guessed.
func primaryKey(cols []ColumnInfo) []int {
	var key []int
	hidden := false
	for i := range cols {
		if cols[i].Primary {
			key = append(key, i)
			hidden = hidden || cols[i].KeyPosition == 0
		}
	}
	if hidden && len(key) > 1 {
		return nil
	}
	slices.SortFunc(key, func(a, b int) int { return cmp.Compare(cols[a].KeyPosition, cols[b].KeyPosition) })
	return key
}

func (i *ColumnInfo) column() (Column, error) {
	c := Column{Name: i.Name, Nullable: i.Nullable, ColumnType: i.ColumnType, DefaultKnown: true}
	def, err := parseColumnType(i.ColumnType)
	if err != nil {
		return c, err
	}
	c.Type = typeByName(strings.ToLower(i.DataType))
	if strings.Contains(i.ColumnType, "COMPRESSED") && !strings.Contains(i.ColumnType, "'") {
		c.Type = Unknown // MariaDB: the row holds compressed bytes, not the text
	}
	c.Unsigned = def.unsigned
	switch c.Type {
	case Decimal:
		c.Length, c.Scale = i.Precision, max(i.Scale, 0)
	case Float, Double:
		c.Scale = -1
		if len(def.args) == 2 {
			c.Length, c.Scale = def.args[0], def.args[1]
		}
	case Bit:
		c.Length = i.Precision
	case Time, DateTime, Timestamp:
		c.FSP = i.FSP
	case Char, VarChar, TinyText, Text, MediumText, LongText:
		c.Charset = charsetName(i.Charset)
		if c.Charset == "" {
			return c, fmt.Errorf("information_schema does not tell its character set")
		}
		if c.Type == Char || c.Type == VarChar {
			c.Length = int(i.CharLength)
		}
	case Binary, VarBinary:
		c.Length = int(i.CharLength)
	case Enum, Set:
		c.Charset, c.Elements = charsetName(i.Charset), def.elements
		if c.Charset == "" { // how MySQL says it; MariaDB has the name
			c.Charset = "binary"
		}
		if len(c.Elements) == 0 {
			return c, fmt.Errorf("information_schema does not tell its elements")
		}
		if i.hidesElements() {
			c.Type = Unknown
		}
	case Year:
		c.Unsigned = false
	}
	i.defaultTo(&c)
	return c, nil
}

// hidesElements reports whether elements may be other texts than COLUMN_TYPE says:
// it is in utf8mb3, with a question mark for every character beyond.
func (i *ColumnInfo) hidesElements() bool {
	return MaxBytes(i.Charset) == 4 && strings.Contains(i.ColumnType, "?")
}

// charsetName undoes the alias that servers before MySQL 8.0.28 and MariaDB 10.6 use.
func charsetName(s string) string {
	if s == "utf8" {
		return "utf8mb3"
	}
	return s
}

func typeByName(name string) Type {
	switch name {
	case "integer":
		return Int
	case "numeric", "dec", "fixed":
		return Decimal
	case "real":
		return Double
	case "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return Geometry
	}
	for t, n := range typeNames {
		if n == name && Type(t) != Unknown {
			return Type(t)
		}
	}
	return Unknown
}
