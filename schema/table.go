package schema

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

// Type is the SQL type of a column, without length and signedness.
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
	// column ("utf8mb4", "latin1"); empty for other types.
	Charset string
	// Elements are the texts of ENUM and SET in definition order, in UTF-8.
	Elements []string
	// Default is the DEFAULT clause as information_schema gives it; nil when the
	// column has none, when it is an expression, or when it is not known (the
	// binlog does not carry it: DefaultKnown is then false).
	Default      *string
	DefaultKnown bool
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
