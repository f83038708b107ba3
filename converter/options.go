package converter

import "fmt"

// The types of converters, in the configuration's words.
const (
	TypeString  = "string"
	TypeJSON    = "json"
	TypeBytes   = "bytes"
	TypeBinary  = "binary"
	TypeSimple  = "simple" // of headers only
	TypeShort   = "short"
	TypeInteger = "integer"
	TypeLong    = "long"
	TypeFloat   = "float"
	TypeDouble  = "double"
	TypeBoolean = "boolean"
)

// kinds are the types of which there are several of one kind.
var kinds = map[string]Kind{TypeShort: Int16, TypeInteger: Int32, TypeLong: Int64, TypeFloat: Float32,
	TypeDouble: Float64}

// Classes returns the types by the Java classes that they stand for.
func Classes() map[string]string {
	const connect = "org.apache.kafka.connect.converters."
	return map[string]string{
		"org.apache.kafka.connect.storage.StringConverter":       TypeString,
		"org.apache.kafka.connect.json.JsonConverter":            TypeJSON,
		connect + "ByteArrayConverter":                           TypeBytes,
		"io.debezium.converters.BinaryDataConverter":             TypeBinary,
		"io.debezium.converters.ByteArrayConverter":              TypeBinary,
		"org.apache.kafka.connect.storage.SimpleHeaderConverter": TypeSimple,
		connect + "ShortConverter":                               TypeShort,
		connect + "IntegerConverter":                             TypeInteger,
		connect + "LongConverter":                                TypeLong,
		connect + "FloatConverter":                               TypeFloat,
		connect + "DoubleConverter":                              TypeDouble,
		connect + "BooleanConverter":                             TypeBoolean,
	}
}

// Options choose a converter, with the options that change bytes. They are a section of
// the configuration file.
type Options struct {
	Type                   string `yaml:"type"`
	Schemas                bool   `yaml:"schemas"`
	Decimal                string `yaml:"decimal"` // base64 or numeric
	ReplaceNullWithDefault bool   `yaml:"replace_null_with_default"`
	// Delegate is what the binary converter hands everything but bytes to; empty
	// for none. The options with the prefix are the delegate's.
	Delegate                       string `yaml:"delegate"`
	DelegateSchemas                bool   `yaml:"delegate_schemas"`
	DelegateDecimal                string `yaml:"delegate_decimal"`
	DelegateReplaceNullWithDefault bool   `yaml:"delegate_replace_null_with_default"`
}

// New returns the converter that o chooses. With quirks it damages what Debezium damages.
func New(o Options, quirks bool) (Converter, error) {
	switch o.Type {
	case TypeString:
		return StringConverter{Quirks: quirks}, nil
	case TypeSimple:
		return SimpleHeaderConverter{}, nil
	case TypeBytes:
		return ByteArrayConverter{}, nil
	case TypeJSON:
		return NewJSONConverter(JSONOptions{
			Schemas: o.Schemas, NumericDecimals: o.Decimal == "numeric", ReplaceNullWithDefault: o.ReplaceNullWithDefault,
		}), nil
	case TypeShort, TypeInteger, TypeLong, TypeFloat, TypeDouble:
		return NumberConverter{Kind: kinds[o.Type]}, nil
	case TypeBoolean:
		return BooleanConverter{}, nil
	case TypeBinary:
		if o.Delegate == "" {
			return BinaryDataConverter{}, nil
		}
		d, err := New(Options{
			Type: o.Delegate, Schemas: o.DelegateSchemas, Decimal: o.DelegateDecimal,
			ReplaceNullWithDefault: o.DelegateReplaceNullWithDefault,
		}, quirks)
		return BinaryDataConverter{Delegate: d}, err
	default:
		return nil, fmt.Errorf("unknown converter %q", o.Type)
	}
}
