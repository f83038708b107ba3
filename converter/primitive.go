package converter

import (
	"encoding/binary"
	"math"
)

// NumberConverter is one of org.apache.kafka.connect.converters' ShortConverter,
// IntegerConverter, LongConverter, FloatConverter and DoubleConverter: the number in
// big-endian bytes, null for null. A number of another kind is refused, even a smaller
// one, and so are Connect's dates and times, which are no numbers in Java.
type NumberConverter struct {
	// Kind is Int16, Int32, Int64, Float32 or Float64.
	Kind Kind
}

// BooleanConverter is org.apache.kafka.connect.converters.BooleanConverter: one byte, 0
// or 1. A schema of another kind is refused even for null.
type BooleanConverter struct{}

var (
	_ Converter = NumberConverter{}
	_ Converter = BooleanConverter{}
)

// Append implements Converter.
func (c NumberConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if v == nil {
		return dst, true, nil
	}
	if s != nil && s.Kind == c.Kind && !isConnectTime(s.Name) {
		switch v := v.(type) {
		case int64:
			switch c.Kind {
			case Int16:
				return binary.BigEndian.AppendUint16(dst, uint16(v)), false, nil
			case Int32:
				return binary.BigEndian.AppendUint32(dst, uint32(v)), false, nil
			case Int64:
				return binary.BigEndian.AppendUint64(dst, uint64(v)), false, nil
			}
		case float32:
			return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), false, nil
		case float64:
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), false, nil
		}
	}
	return dst, false, dataError("converter of "+c.Kind.String(), "does not take "+describe(s))
}

// Append implements Converter.
func (BooleanConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if s != nil && s.Kind != Boolean {
		return dst, false, dataError("BooleanConverter", "takes booleans only, not "+describe(s))
	}
	switch v := v.(type) {
	case nil:
		return dst, true, nil
	case bool:
		if v {
			return append(dst, 1), false, nil
		}
		return append(dst, 0), false, nil
	}
	return dst, false, dataError("BooleanConverter", "takes booleans only, not a value of "+describe(s))
}
