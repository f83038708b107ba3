package converter

import (
	"strconv"
	"strings"
)

// StringConverter is org.apache.kafka.connect.storage.StringConverter: the UTF-8
// of the value's Java text, null for null.
//
// Bytes have no such text: Debezium sends Java's "java.nio.HeapByteBuffer[pos=0
// lim=4 cap=4]" or an object identity. Without Quirks the converter writes the
// bytes themselves and refuses bytes inside a struct or array; with Quirks it
// writes the HeapByteBuffer text for binary columns.
type StringConverter struct{ Quirks bool }

var _ Converter = StringConverter{}

// Append implements Converter.
func (c StringConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	switch v := v.(type) {
	case nil:
		return dst, true, nil
	case string:
		return appendUTF8(dst, v), false, nil
	case []byte:
		if isText(s) || c.Quirks && s != nil && s.Name != BitsName {
			break
		}
		return append(dst, v...), false, nil
	}
	out, err = c.append(dst, s, v)
	return out, false, err
}

func isText(s *Schema) bool { return s != nil && s.Kind == String }

func (c StringConverter) append(dst []byte, s *Schema, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendUTF8(dst, v), nil
	case []byte:
		if isText(s) {
			return appendText(dst, s, v)
		}
		if !c.Quirks {
			return dst, dataError("StringConverter", "bytes inside a struct or array have no text")
		}
		if s != nil && s.Name == BitsName {
			return append(dst, javaArray...), nil
		}
		n := int64(len(v))
		dst = strconv.AppendInt(append(dst, "java.nio.HeapByteBuffer[pos=0 lim="...), n, 10)
		return append(strconv.AppendInt(append(dst, " cap="...), n, 10), ']'), nil
	case *Struct:
		return c.appendStruct(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			var err error
			if dst, err = c.append(dst, elem(s), e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case int64:
		if s != nil && isConnectTime(s.Name) {
			return appendJavaDate(dst, connectMillis(s, v)), nil
		}
	}
	return appendPrimitive(dst, v)
}

func elem(s *Schema) *Schema {
	if s == nil {
		return nil
	}
	return s.Elem
}

// javaArray is the text of a byte array inside a struct, in which Java has a number that
// is another for each array. Such arrays are BIT(n) and the bytes of a geometry.
const javaArray = "[B@0"

// geometryPrefix begins the names of the schemas of geometries.
const geometryPrefix = "io.debezium.data.geometry."

// appendStruct writes Connect's Struct.toString, which leaves null members out.
func (c StringConverter) appendStruct(dst []byte, v *Struct) ([]byte, error) {
	dst = append(dst, "Struct{"...)
	first := true
	for i := range v.Schema.Fields {
		if v.Values[i] == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendUTF8(dst, v.Schema.Fields[i].Name), '=')
		if _, bytes := v.Values[i].([]byte); bytes && c.Quirks && strings.HasPrefix(v.Schema.Name, geometryPrefix) {
			dst = append(dst, javaArray...)
			continue
		}
		var err error
		if dst, err = c.append(dst, v.Schema.Fields[i].Schema, v.Values[i]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendPrimitive appends the Java text of a number, boolean or decimal.
func appendPrimitive(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case float32:
		return appendFloat(dst, v), nil
	case float64:
		return appendDouble(dst, v), nil
	case Decimal:
		return v.AppendText(dst), nil
	default:
		return dst, dataError("value", "is of no Connect type")
	}
}
