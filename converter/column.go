package converter

import (
	"errors"
	"strings"
	"unicode/utf16"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// ErrNotLogged is returned when the row image left a column out. The value is not
// NULL, it is unknown (binlog_row_image is not FULL).
var ErrNotLogged = errors.New("the binlog does not hold the column's value; binlog_row_image must be FULL")

// Column is one column in Connect's terms.
type Column struct {
	Name   string
	Schema *Schema // nil when the column's type has no Connect form
	// Excluded says that ColumnRules leave the column out.
	Excluded bool

	where string
	// convert makes the Connect value; nil where the raw value is one already.
	// (nil, nil) is null.
	convert func(raw any) (any, error)
	// convertRead is convert for rows that were read with SELECT; nil where it is
	// the same.
	convertRead func(raw any) (any, error)
	// fallback stands for null in a column that must not be null and has no
	// default, as Debezium's converters have it.
	fallback any
	// change is what ColumnRules make of the value; nil for nothing.
	change func(s *Schema, v any) (any, error)
}

// Value returns the Connect value of raw, which is as schema.Row documents it; op
// is the row's. Strings and []byte are handed through, not copied. The error is
// ErrNotLogged or a *DataError that names the column.
func (c *Column) Value(raw any, op schema.Op) (any, error) {
	if raw == schema.Missing {
		return nil, ErrNotLogged
	}
	if c.Schema == nil {
		return nil, dataError(c.where, "has a type that is not known")
	}
	v := raw
	if raw != nil {
		convert := c.convert
		if op == schema.Read && c.convertRead != nil {
			convert = c.convertRead
		}
		if convert != nil {
			var err error
			if v, err = convert(raw); err != nil {
				return nil, err
			}
		}
	}
	if v == nil && !c.Schema.Optional {
		if v = c.Schema.Default; v == nil {
			v = c.fallback
		}
	}
	if c.change != nil {
		return c.change(c.Schema, v)
	}
	return v, nil
}

// RowSchema is a table in Connect's terms. It is immutable.
type RowSchema struct {
	Table   *schema.Table
	Columns []Column
	// ValueName is the name of the row's record schema,
	// "<topic.prefix>.<database>.<table>.Value".
	ValueName string
	// Key is the record schema of the primary key, in key order, and KeyColumns are its
	// columns, which ColumnRules do not touch; nil without one.
	Key        *Schema
	KeyColumns []Column
	// Err says that ColumnRules can't tell what becomes of the columns, joined; no value
	// may be used then.
	Err error
}

// ForTable works out what the columns of t become. prefix is the connector's
// topic.prefix. The modes must be valid. The caller keeps the result for as long as
// it sees the same *schema.Table.
func ForTable(prefix string, t *schema.Table, m Modes) *RowSchema {
	topic := sanitize(prefix + "." + t.Database + "." + t.Table)
	rs := &RowSchema{Table: t, Columns: make([]Column, len(t.Columns)),
		ValueName: AdjustName(m.SchemaNames, topic+".Value", true)}
	for i := range t.Columns {
		b := builder{col: &t.Columns[i], modes: m, out: &rs.Columns[i]}
		b.build()
	}
	if len(t.PrimaryKey) > 0 {
		rs.Key = &Schema{Kind: Record, Name: AdjustName(m.SchemaNames, topic+".Key", true)}
		for _, i := range t.PrimaryKey {
			if i >= 0 && i < len(rs.Columns) {
				rs.KeyColumns = append(rs.KeyColumns, rs.Columns[i])
				rs.Key.Fields = append(rs.Key.Fields, Field{Name: rs.Columns[i].Name, Schema: rs.Columns[i].Schema})
			}
		}
	}
	for i := range rs.Columns {
		rs.Err = errors.Join(rs.Err, m.Columns.apply(t.Name.String()+"."+t.Columns[i].Name, &t.Columns[i], &rs.Columns[i]))
	}
	return rs
}

// sanitize replaces what must not be in a topic name, as Debezium does before it
// derives schema names: every UTF-16 unit outside [A-Za-z0-9._-] becomes '_'.
func sanitize(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case utf16.RuneLen(r) == 2:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// builder works out one column.
type builder struct {
	col   *schema.Column
	modes Modes
	out   *Column
}

func (b *builder) build() {
	b.out.Name = b.col.Name
	b.out.where = "column " + b.col.Name
	switch b.col.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
		b.integer()
	case schema.Year:
		b.set(&Schema{Kind: Int32, Name: "io.debezium.time.Year", Version: version1()}, int64(0), b.year)
		b.out.convertRead = b.yearRead
	case schema.Float, schema.Double:
		b.float()
	case schema.Decimal:
		b.decimal(b.col.Length, max(b.col.Scale, 0))
	case schema.Bit:
		b.bit()
	case schema.Date, schema.Time, schema.DateTime, schema.Timestamp:
		b.temporal()
	case schema.Char, schema.VarChar, schema.TinyText, schema.Text, schema.MediumText, schema.LongText,
		schema.UUID, schema.Inet4, schema.Inet6:
		b.set(&Schema{Kind: String}, "", b.text)
	case schema.Binary, schema.VarBinary, schema.TinyBlob, schema.Blob, schema.MediumBlob, schema.LongBlob:
		b.binary()
	case schema.Enum, schema.Set:
		b.choice()
	case schema.JSON:
		b.set(&Schema{Kind: String, Name: "io.debezium.data.Json", Version: version1(), quirks: b.modes.Quirks}, "{}", b.json)
	case schema.Geometry:
		b.geometry()
	case schema.Vector:
		b.vector()
	}
	if b.out.Schema != nil {
		b.defaultValue()
	}
}

// set gives the column its schema, its stand-in for null, and its conversion.
func (b *builder) set(s *Schema, fallback any, convert func(any) (any, error)) {
	s.Optional = b.col.Nullable
	b.out.Schema, b.out.fallback, b.out.convert = s, fallback, convert
}

func (b *builder) refuse(reason string) error { return dataError(b.out.where, reason) }

// wrong is the error for a raw value that is not what schema.Row says it is.
func (b *builder) wrong() error { return b.refuse("value is not of the column's type") }

func (b *builder) integer() {
	kind := map[schema.Type]Kind{
		schema.TinyInt: Int16, schema.SmallInt: Int16, schema.MediumInt: Int32, schema.Int: Int32, schema.BigInt: Int64,
	}[b.col.Type]
	if b.col.Type == schema.TinyInt && !b.col.Unsigned && b.modes.TinyIntIsInt8 {
		kind = Int8
	}
	if b.col.Unsigned {
		switch b.col.Type {
		case schema.SmallInt:
			kind = Int32
		case schema.Int:
			kind = Int64
		case schema.BigInt:
			if b.modes.BigintUnsigned == BigintPrecise {
				b.set(decimalSchema(20, 0), Decimal("0"), b.unsignedDecimal)
				return
			}
		}
	}
	b.set(&Schema{Kind: kind}, int64(0), b.int)
}

func (b *builder) float() {
	if b.col.Type == schema.Float && b.col.Scale < 0 {
		b.set(&Schema{Kind: Float32}, float32(0), b.float32)
		if b.modes.Quirks {
			b.out.convertRead = b.float32Read
		}
		return
	}
	b.set(&Schema{Kind: Float64}, float64(0), b.float64)
}

func decimalSchema(precision, scale int) *Schema {
	return &Schema{Kind: Bytes, Name: DecimalName, Version: version1(), Params: []Param{
		{"scale", itoa(scale)}, {"connect.decimal.precision", itoa(precision)},
	}}
}

func (b *builder) decimal(precision, scale int) {
	zero := "0"
	if scale > 0 {
		zero += "." + strings.Repeat("0", scale)
	}
	switch b.modes.Decimal {
	case DecimalDouble:
		b.set(&Schema{Kind: Float64}, float64(0), b.decimalDouble)
	case DecimalString:
		b.set(&Schema{Kind: String}, zero, b.decimalString)
	default:
		b.set(decimalSchema(precision, scale), Decimal(zero), b.decimalPrecise)
	}
}

func (b *builder) bit() {
	if b.col.Length <= 1 {
		b.set(&Schema{Kind: Boolean}, false, b.bool)
		return
	}
	s := &Schema{Kind: Bytes, Name: BitsName, Version: version1(), Params: []Param{{"length", itoa(b.col.Length)}}}
	b.set(s, make([]byte, (b.col.Length+7)/8), b.bits)
}

func (b *builder) binary() {
	if b.modes.Binary == BinaryBytes {
		b.set(&Schema{Kind: Bytes}, []byte{}, b.bytes)
		return
	}
	b.set(&Schema{Kind: String}, "", b.binaryText)
}

func (b *builder) choice() {
	name := "io.debezium.data.Enum"
	if b.col.Type == schema.Set {
		name = "io.debezium.data.EnumSet"
	}
	// Debezium takes the options from the text of SHOW CREATE TABLE and leaves
	// them escaped; in ENUM it escapes commas too.
	allowed := make([]string, len(b.col.Elements))
	escaped := false
	for i, e := range b.col.Elements {
		allowed[i] = strings.ReplaceAll(ddlEscapes.Replace(e), ",", `\,`)
		escaped = escaped || allowed[i] != e
	}
	s := &Schema{Kind: String, Name: name, Version: version1(), Params: []Param{{"allowed", strings.Join(allowed, ",")}}}
	b.set(s, "", b.text)
	if !escaped {
		return
	}
	// Rows that were read with SELECT carry the plain text.
	b.out.convertRead = b.text
	if b.col.Type == schema.Set {
		b.out.convert = b.escapedSet
		return
	}
	values := make(map[string]any, len(allowed))
	for i, e := range b.col.Elements {
		values[e] = allowed[i]
	}
	b.out.convert = func(raw any) (any, error) {
		s, ok := raw.(string)
		if !ok {
			return nil, b.wrong()
		}
		if v, ok := values[s]; ok {
			return v, nil
		}
		return raw, nil
	}
}

// ddlEscapes is how SHOW CREATE TABLE writes a text between quotes, without the
// doubling of quotes, which Debezium undoes.
var ddlEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)
