package converter

// ByteArrayConverter is org.apache.kafka.connect.converters.ByteArrayConverter:
// bytes as they are. A schema of another kind is refused even for null.
type ByteArrayConverter struct{}

// BinaryDataConverter is io.debezium.converters.BinaryDataConverter: bytes as they
// are, everything else through the delegate.
type BinaryDataConverter struct {
	// Delegate takes what is not bytes; nil refuses it.
	Delegate Converter
}

var (
	_ Converter = ByteArrayConverter{}
	_ Converter = BinaryDataConverter{}
)

// Append implements Converter.
func (ByteArrayConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if s != nil && s.Kind != Bytes {
		return dst, false, dataError("ByteArrayConverter", "takes bytes only, not "+describe(s))
	}
	if v == nil {
		return dst, true, nil
	}
	b, ok := v.([]byte)
	if !ok {
		return dst, false, dataError("ByteArrayConverter", "takes bytes only, not a value of "+describe(s))
	}
	return append(dst, b...), false, nil
}

// Append implements Converter.
func (c BinaryDataConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if s == nil || s.Kind == Bytes {
		if v == nil {
			return dst, true, nil
		}
		if b, ok := v.([]byte); ok {
			return append(dst, b...), false, nil
		}
	}
	if c.Delegate == nil {
		return dst, false, dataError("BinaryDataConverter",
			"takes bytes only, not "+describe(s)+", since it has no delegate.converter.type")
	}
	return c.Delegate.Append(dst, s, v)
}
