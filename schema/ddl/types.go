package ddl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// definition is a column as a statement writes it, before the table's character set and
// the session decide the rest.
type definition struct {
	Column
	// charset is what was written, or what a collation implies; empty stands for the table's.
	charset string
	// size is the N of TEXT(N) and BLOB(N), -1 without.
	size     int
	unsigned bool
	zeroFill bool
	width    int // of an integer
	words    []value
	args     []int
	// spelled is COLUMN_TYPE where the type's own fields do not tell it.
	spelled string

	null, notNull bool
	value         *value
	onUpdate      bool
	primary       bool
	compressed    bool
}

// plain are the types that are one word, with the arguments that they may take.
var plain = map[string]schema.Type{
	"TINYINT": schema.TinyInt, "INT1": schema.TinyInt, "SMALLINT": schema.SmallInt, "INT2": schema.SmallInt,
	"MEDIUMINT": schema.MediumInt, "INT3": schema.MediumInt, "MIDDLEINT": schema.MediumInt,
	"INT": schema.Int, "INTEGER": schema.Int, "INT4": schema.Int, "BIGINT": schema.BigInt, "INT8": schema.BigInt,
	"BOOL": schema.TinyInt, "BOOLEAN": schema.TinyInt,
	"FLOAT": schema.Float, "FLOAT4": schema.Float, "DOUBLE": schema.Double, "FLOAT8": schema.Double, "REAL": schema.Double,
	"DECIMAL": schema.Decimal, "DEC": schema.Decimal, "NUMERIC": schema.Decimal, "FIXED": schema.Decimal,
	"BIT": schema.Bit, "YEAR": schema.Year, "DATE": schema.Date, "TIME": schema.Time, "DATETIME": schema.DateTime,
	"TIMESTAMP": schema.Timestamp,
	"CHAR":      schema.Char, "CHARACTER": schema.Char, "NCHAR": schema.Char,
	"VARCHAR": schema.VarChar, "VARCHARACTER": schema.VarChar, "NVARCHAR": schema.VarChar,
	"BINARY": schema.Binary, "VARBINARY": schema.VarBinary,
	"TINYTEXT": schema.TinyText, "TEXT": schema.Text, "MEDIUMTEXT": schema.MediumText, "LONGTEXT": schema.LongText,
	"TINYBLOB": schema.TinyBlob, "BLOB": schema.Blob, "MEDIUMBLOB": schema.MediumBlob, "LONGBLOB": schema.LongBlob,
	"ENUM": schema.Enum, "SET": schema.Set,
	"JSON": schema.JSON, "VECTOR": schema.Vector,
	"GEOMETRY": schema.Geometry, "POINT": schema.Geometry, "LINESTRING": schema.Geometry, "POLYGON": schema.Geometry,
	"MULTIPOINT": schema.Geometry, "MULTILINESTRING": schema.Geometry, "MULTIPOLYGON": schema.Geometry,
	"GEOMETRYCOLLECTION": schema.Geometry, "GEOMCOLLECTION": schema.Geometry,
}

var plainMaria = map[string]schema.Type{"UUID": schema.UUID, "INET4": schema.Inet4, "INET6": schema.Inet6}

// columnType reads a type with what belongs to it.
func (p *parser) columnType(d *definition) {
	name := strings.ToUpper(p.cur.text)
	t, known := plain[name]
	if !known && p.source.MariaDB {
		t, known = plainMaria[name]
	}
	d.size, d.Scale = -1, 0
	switch {
	case p.cur.kind != word || p.peek().isPunct("."):
		p.fail("a column's type is not understood")
	case name == "SERIAL":
		p.advance()
		d.Type, d.unsigned, d.notNull, d.Automatic = schema.BigInt, true, true, true
		return
	case name == "NATIONAL":
		p.advance()
		p.national(d)
		return
	case name == "LONG":
		p.advance()
		p.long(d)
		return
	case !known:
		p.fail("a column's type is not understood")
	}
	p.advance()
	d.Type = t
	switch name {
	case "BOOL", "BOOLEAN":
		d.width = 1
		return
	case "REAL":
		if p.s.Mode&RealAsFloat != 0 {
			d.Type = schema.Float
		}
	case "DOUBLE":
		p.accept("PRECISION")
	case "NCHAR":
		d.charset = "utf8mb3"
		if p.accept("VARCHAR", "VARCHARACTER", "VARYING") {
			d.Type = schema.VarChar
		}
	case "NVARCHAR":
		d.charset = "utf8mb3"
	case "CHAR", "CHARACTER":
		if p.accept("VARYING") {
			d.Type = schema.VarChar
		}
	}
	p.arguments(d, name)
}

func (p *parser) national(d *definition) {
	d.charset = "utf8mb3"
	d.Type = schema.VarChar
	switch {
	case p.accept("CHAR", "CHARACTER"):
		if !p.accept("VARYING") {
			d.Type = schema.Char
		}
	default:
		p.expect("a column's type", "VARCHAR", "VARCHARACTER")
	}
	p.arguments(d, "")
}

func (p *parser) long(d *definition) {
	d.Type = schema.MediumText
	switch {
	case p.accept("VARBINARY"):
		d.Type = schema.MediumBlob
	case p.accept("VARCHAR", "VARCHARACTER"):
	case p.cur.isAny("CHAR", "CHARACTER") && p.peek().is("VARYING"):
		p.advance()
		p.advance()
	}
}

// arguments reads what stands in parentheses behind a type.
func (p *parser) arguments(d *definition, name string) {
	switch d.Type {
	case schema.Enum, schema.Set:
		p.elements(d)
		return
	case schema.Geometry:
		d.spelled = strings.ToLower(name)
		if d.spelled == "geometrycollection" && !p.source.MariaDB {
			d.spelled = "geomcollection"
		}
		return
	case schema.JSON:
		if p.source.MariaDB {
			d.Type, d.charset = schema.LongText, "utf8mb4"
		}
		return
	}
	if p.punct("(") {
		for {
			n, err := strconv.Atoi(p.cur.text)
			if p.cur.kind != number || err != nil {
				p.unexpected("a column's type")
				return
			}
			d.args = append(d.args, n)
			p.advance()
			if !p.punct(",") {
				break
			}
		}
		p.expectPunct("a column's type", ")")
	}
	p.measures(d)
}

// measures makes lengths of the numbers behind a type.
func (p *parser) measures(d *definition) {
	first := func(otherwise int) int {
		if len(d.args) > 0 {
			return d.args[0]
		}
		return otherwise
	}
	switch d.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
		d.width = first(0)
	case schema.Float, schema.Double:
		d.Scale = -1
		switch len(d.args) {
		case 1:
			if d.Type = schema.Float; d.args[0] > 24 {
				d.Type = schema.Double
			}
		case 2:
			d.Length, d.Scale = d.args[0], d.args[1]
		}
	case schema.Decimal:
		d.Length = first(10)
		if d.Length == 0 {
			d.Length = 10
		}
		if len(d.args) == 2 {
			d.Scale = d.args[1]
		}
	case schema.Bit:
		d.Length = max(first(1), 1)
	case schema.Char, schema.Binary, schema.VarChar, schema.VarBinary:
		d.Length = first(1)
	case schema.Time, schema.DateTime, schema.Timestamp:
		d.FSP = first(0)
	case schema.Text, schema.Blob:
		d.size = first(-1)
	case schema.Vector:
		d.spelled = fmt.Sprintf("vector(%d)", first(2048))
	}
}

// elements reads the words of an ENUM or SET.
func (p *parser) elements(d *definition) {
	p.expectPunct("a column's words", "(")
	for p.cur.kind != end {
		v := p.value()
		if v.kind != textValue && v.kind != hexValue {
			p.fail("a column's words are not understood")
			return
		}
		d.words = append(d.words, v)
		if !p.punct(",") {
			break
		}
	}
	p.expectPunct("a column's words", ")")
}

// blobOf is the smallest type that holds so many bytes.
func blobOf(bytes int, isText bool) schema.Type {
	t := schema.TinyBlob
	if isText {
		t = schema.TinyText
	}
	for _, limit := range []int{1<<8 - 1, 1<<16 - 1, 1<<24 - 1} {
		if bytes <= limit {
			return t
		}
		t++
	}
	return t
}

// blobBytes is what a TEXT or BLOB type holds.
func blobBytes(t schema.Type) int {
	switch t {
	case schema.TinyText, schema.TinyBlob:
		return 1<<8 - 1
	case schema.Text, schema.Blob:
		return 1<<16 - 1
	case schema.MediumText, schema.MediumBlob:
		return 1<<24 - 1
	}
	return 1<<32 - 1
}

func isBlobText(t schema.Type) bool { return t >= schema.TinyText && t <= schema.LongText }

// hasCharset reports whether columns of the type have one.
func hasCharset(t schema.Type) bool { return t.IsText() || t == schema.Enum || t == schema.Set }

// binaryOf is what a text column becomes in the character set binary.
func binaryOf(t schema.Type) schema.Type {
	switch t {
	case schema.Char:
		return schema.Binary
	case schema.VarChar:
		return schema.VarBinary
	case schema.Enum, schema.Set:
		return t
	}
	return t - schema.TinyText + schema.TinyBlob
}

// spell is COLUMN_TYPE as the server shows it.
func (s Source) spell(d *definition) string {
	out := d.Type.String()
	switch d.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
		out += s.intWidth(d)
	case schema.Float, schema.Double:
		if d.Scale >= 0 {
			out += fmt.Sprintf("(%d,%d)", d.Length, d.Scale)
		}
	case schema.Decimal:
		out += fmt.Sprintf("(%d,%d)", d.Length, d.Scale)
	case schema.Bit, schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		out += fmt.Sprintf("(%d)", d.Length)
	case schema.Year:
		if s.showsWidths() {
			out += "(4)"
		}
	case schema.Time, schema.DateTime, schema.Timestamp:
		if d.FSP > 0 {
			out += fmt.Sprintf("(%d)", d.FSP)
		}
	case schema.Enum, schema.Set:
		out += "(" + s.quoteAll(d.Elements) + ")"
	}
	if d.spelled != "" {
		out = d.spelled
	}
	if d.Unsigned && d.Type != schema.Year ||
		d.unsigned && (d.Type == schema.Decimal || d.Type == schema.Float || d.Type == schema.Double) {
		out += " unsigned"
	}
	if d.zeroFill {
		out += " zerofill"
	}
	if d.compressed {
		out += " /*M!100301 COMPRESSED*/"
	}
	return out
}

// showsWidths: MySQL shows them since 8.0.19 only where they mean something.
func (s Source) showsWidths() bool { return s.MariaDB || s.Version < 80019 }

var standardWidths = map[schema.Type]int{
	schema.TinyInt: 4, schema.SmallInt: 6, schema.MediumInt: 9, schema.Int: 11, schema.BigInt: 20,
}

func (s Source) intWidth(d *definition) string {
	n := d.width
	if n == 0 {
		n = standardWidths[d.Type]
		if d.unsigned && d.Type != schema.BigInt {
			n--
		}
	}
	if s.showsWidths() || d.zeroFill || d.Type == schema.TinyInt && n == 1 && !d.unsigned {
		return fmt.Sprintf("(%d)", n)
	}
	return ""
}

var escapes = strings.NewReplacer("'", "''", "\\", "\\\\", "\x00", "\\0", "\n", "\\n", "\r", "\\r")

func (s Source) quoteAll(texts []string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\'')
		b.WriteString(escapes.Replace(t))
		b.WriteByte('\'')
	}
	return b.String()
}
