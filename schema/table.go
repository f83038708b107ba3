package schema

import "slices"

// Name is a table's qualified name, as the server spells it.
type Name struct{ Database, Table string }

// String returns "database.table".
func (n Name) String() string { return n.Database + "." + n.Table }

// Table is one shape of a table: immutable once built. When DDL changes the
// table, a new Table takes its place, so a pointer identifies a shape and caches
// may be keyed by it.
type Table struct {
	Name
	Columns []Column
	// PrimaryKey lists indexes into Columns, in key order; empty without a key.
	PrimaryKey []int
}

// Column returns the index of the column with exactly this name, or -1.
func (t *Table) Column(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Type is the SQL type of a column, without length and signedness. Unknown is a
// type this package has no decoding for: such a column may stand in a table, but
// reading its value is an error.
type Type uint8

// The column types of MySQL and MariaDB.
const (
	Unknown Type = iota
	TinyInt
	SmallInt
	MediumInt
	Int
	BigInt
	Float
	Double
	Decimal
	Bit
	Year
	Date
	Time
	DateTime
	Timestamp
	Char
	VarChar
	TinyText
	Text
	MediumText
	LongText
	Binary
	VarBinary
	TinyBlob
	Blob
	MediumBlob
	LongBlob
	Enum
	Set
	JSON
	Geometry
	Vector
	UUID  // MariaDB
	Inet4 // MariaDB
	Inet6 // MariaDB
)

// String returns the SQL keyword in lower case ("mediumint").
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return typeNames[Unknown]
}

// MarshalText writes the keyword: the numbers of types are not for ever.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText has written; what it does not know is Unknown.
func (t *Type) UnmarshalText(text []byte) error {
	*t = Type(max(slices.Index(typeNames[:], string(text)), 0))
	return nil
}

var typeNames = [...]string{
	Unknown: "unknown", TinyInt: "tinyint", SmallInt: "smallint", MediumInt: "mediumint",
	Int: "int", BigInt: "bigint", Float: "float", Double: "double", Decimal: "decimal",
	Bit: "bit", Year: "year", Date: "date", Time: "time", DateTime: "datetime",
	Timestamp: "timestamp", Char: "char", VarChar: "varchar", TinyText: "tinytext",
	Text: "text", MediumText: "mediumtext", LongText: "longtext", Binary: "binary",
	VarBinary: "varbinary", TinyBlob: "tinyblob", Blob: "blob", MediumBlob: "mediumblob",
	LongBlob: "longblob", Enum: "enum", Set: "set", JSON: "json", Geometry: "geometry",
	Vector: "vector", UUID: "uuid", Inet4: "inet4", Inet6: "inet6",
}

// IsText reports whether values of the type have a character set of their own:
// CHAR, VARCHAR and the TEXT types. (ENUM and SET have one only in their
// definition.)
func (t Type) IsText() bool { return t >= Char && t <= LongText }

// IsInteger reports whether the type is TINYINT .. BIGINT.
func (t Type) IsInteger() bool { return t >= TinyInt && t <= BigInt }

// Column describes one column. Which fields count depends on Type.
type Column struct {
	Name     string
	Type     Type
	Unsigned bool
	Nullable bool
	// Length is the declared length: characters of CHAR/VARCHAR, bytes of
	// BINARY/VARBINARY, bits of BIT, M of FLOAT(M,D), precision of DECIMAL.
	Length int
	// Scale is the D of DECIMAL(M,D) and FLOAT(M,D); -1 when FLOAT has none.
	Scale int
	// FSP is the number of fraction digits of TIME, DATETIME and TIMESTAMP.
	FSP int
	// Charset is the server's name of the character set of a text, ENUM or SET
	// column ("utf8mb4", "latin1"; always "utf8mb3", never its alias "utf8");
	// empty for other types.
	Charset string
	// InvalidText says what is done with text that is not valid; nil refuses it.
	InvalidText *InvalidText
	// Elements are the texts of ENUM and SET in definition order, in UTF-8. With
	// Type Unknown some of them are not what they are on the server.
	Elements []string
	// Default is the value of the DEFAULT clause as MySQL's information_schema
	// gives it, also for MariaDB: text without quotes, b'101' for BIT, 0x00ff for
	// BINARY. It is nil when the column has none, when it is an expression, or when
	// it is not known (the binlog does not carry it: DefaultKnown is then false).
	Default      *string
	DefaultKnown bool
	// DefaultExpr is the text of the DEFAULT clause when that is an expression
	// ("CURRENT_TIMESTAMP(3)", "uuid()"); Default is nil then.
	DefaultExpr string
	// ColumnType is information_schema's COLUMN_TYPE ("bigint unsigned"), for
	// messages; empty when the shape came from the binlog alone.
	ColumnType string
}

// Op is what a row event did.
type Op uint8

// The kinds of row changes. Read is a row found in the table by initial reading.
const (
	Insert Op = iota + 1
	Update
	Delete
	Read
)

// Row is one changed row of an outbox table.
//
// Before and After hold one value per column of Table; the receiver owns them.
// nil is SQL NULL, Missing a column that the row image does not hold. Otherwise
// the value's Go type follows from the column's type:
//
//	TINYINT..BIGINT, YEAR          int64 (uint64 when Unsigned)
//	BIT, SET as a number           never: BIT is uint64, SET and ENUM are string
//	FLOAT                          float32
//	DOUBLE                         float64
//	DECIMAL                        string, plain digits with Scale decimals
//	DATE, TIME, DATETIME, TIMESTAMP  string as the server prints it, TIMESTAMP in UTC,
//	                               with exactly FSP fraction digits
//	CHAR, VARCHAR, *TEXT, ENUM, SET  string, UTF-8
//	BINARY (padded), VARBINARY, *BLOB, GEOMETRY, VECTOR  []byte
//	JSON                           []byte: MySQL's binary document, not text
//	                               (MariaDB's JSON is LONGTEXT: string)
//	UUID, INET4, INET6             string as SELECT prints it
type Row struct {
	Table  *Table
	Op     Op
	Before []any // Update and Delete only
	After  []any // Insert, Update and Read
}

// Missing stands for a column that the row image left out (binlog_row_image
// MINIMAL or NOBLOB). It is not NULL and must never be published as such.
var Missing any = missing{}

type missing struct{}
