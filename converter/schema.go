package converter

import (
	"strconv"
)

// Kind is a type of Kafka Connect's data model (org.apache.kafka.connect.data.Schema.Type).
// Connect's MAP is left out: no column of MySQL or MariaDB becomes one.
type Kind uint8

// The kinds of Connect values and the Go type that holds a value of each. nil is
// Connect's null for all of them.
const (
	Int8    Kind = iota + 1 // int64
	Int16                   // int64
	Int32                   // int64
	Int64                   // int64
	Float32                 // float32
	Float64                 // float64
	Boolean                 // bool
	String                  // string; or []byte, MySQL's binary form of a JSON document
	Bytes                   // []byte; or Decimal under the name DecimalName
	Array                   // []any
	Record                  // *Struct; Connect's STRUCT
)

var kindNames = [...]string{
	Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", Float32: "float", Float64: "double",
	Boolean: "boolean", String: "string", Bytes: "bytes", Array: "array", Record: "struct",
}

// String returns the kind's name in JsonConverter's schemas, "int32" or "struct".
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// Names of the logical types that change how a value is written or read.
const (
	DecimalName          = "org.apache.kafka.connect.data.Decimal"
	ConnectDateName      = "org.apache.kafka.connect.data.Date"
	ConnectTimeName      = "org.apache.kafka.connect.data.Time"
	ConnectTimestampName = "org.apache.kafka.connect.data.Timestamp"
	TimestampName        = "io.debezium.time.Timestamp"
	MicroTimestampName   = "io.debezium.time.MicroTimestamp"
	NanoTimestampName    = "io.debezium.time.NanoTimestamp"
	BitsName             = "io.debezium.data.Bits"
)

// Param is one schema parameter. Their order is part of what JsonConverter writes.
type Param struct{ Name, Value string }

// Field is one member of a Record schema.
type Field struct {
	Name   string
	Schema *Schema
}

// Schema is a Connect schema. It must not change once it is in use: schemas are
// shared by pointer between goroutines, and converters keep what they derive from
// one under its pointer.
type Schema struct {
	Kind     Kind
	Optional bool
	Name     string // logical type or record name; empty for none
	Version  *int   // nil for none
	Doc      string // empty for none
	Params   []Param
	Default  any     // nil for none
	Fields   []Field // of a Record
	Elem     *Schema // of an Array

	// quirks makes a JSON document print as Debezium prints it even where that is
	// damaged; see AppendJSONDocument.
	quirks bool
}

// Struct is a value of a Record schema: one value per field, in the order of
// Schema.Fields.
type Struct struct {
	Schema *Schema
	Values []any
}

// version1 is the version that Debezium's and Connect's logical types carry.
func version1() *int { v := 1; return &v }

// Or returns v, or the schema's default when v is null, as Connect's Struct.get does.
func (s *Schema) Or(v any) any {
	if v == nil {
		return s.Default
	}
	return v
}

// Field returns the index of the field with this name, or -1.
func (s *Schema) Field(name string) int {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// Fingerprint appends a text to dst that is equal for two schemas exactly when
// Connect's ConnectSchema.equals holds for them.
func (s *Schema) Fingerprint(dst []byte) []byte {
	if s == nil {
		return append(dst, '0')
	}
	dst = append(dst, 'a'+byte(s.Kind))
	if s.Optional {
		dst = append(dst, '?')
	}
	dst = appendCounted(dst, s.Name)
	if s.Version != nil {
		dst = append(dst, 'v')
		dst = strconv.AppendInt(dst, int64(*s.Version), 10)
	}
	dst = appendCounted(dst, s.Doc)
	for _, p := range s.Params {
		dst = append(dst, 'p')
		dst = appendCounted(appendCounted(dst, p.Name), p.Value)
	}
	if s.Default != nil {
		dst = append(dst, 'd')
		dst = appendDefault(dst, s.Default)
	}
	for i := range s.Fields {
		dst = append(dst, 'f')
		dst = s.Fields[i].Schema.Fingerprint(appendCounted(dst, s.Fields[i].Name))
	}
	if s.Elem != nil {
		dst = s.Elem.Fingerprint(append(dst, 'e'))
	}
	return append(dst, ';')
}

func appendCounted(dst []byte, s string) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	return append(append(dst, ':'), s...)
}

func appendDefault(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendCounted(dst, v)
	case []byte:
		return appendCounted(dst, string(v))
	case Decimal:
		return appendCounted(dst, string(v))
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case float32:
		return appendFloat(dst, v)
	case float64:
		return appendDouble(dst, v)
	default:
		return dst // columns have no other defaults
	}
}
