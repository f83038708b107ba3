package converter

import (
	"encoding/base64"
	"strings"
)

// SimpleHeaderConverter is org.apache.kafka.connect.storage.SimpleHeaderConverter,
// the default for headers: plain text without quotes, base64 for bytes, JSON-like
// text for structs and arrays, null for null.
type SimpleHeaderConverter struct{}

var _ Converter = SimpleHeaderConverter{}

// Append implements Converter.
func (SimpleHeaderConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if v == nil {
		return dst, true, nil
	}
	out, err = appendHeader(dst, s, v, false)
	return out, false, err
}

func appendHeader(dst []byte, s *Schema, v any, embedded bool) (out []byte, err error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		if embedded {
			return appendEmbedded(dst, v), nil
		}
		return appendUTF8(dst, v), nil
	case []byte:
		if isText(s) {
			if !embedded {
				return appendText(dst, s, v)
			}
			text, err := Text(s, v)
			return appendEmbedded(dst, text), err
		}
		return quoteIf(embedded, dst, func(d []byte) []byte { return base64.StdEncoding.AppendEncode(d, v) }), nil
	case int64:
		if s != nil && isConnectTime(s.Name) {
			return quoteIf(embedded, dst, func(d []byte) []byte { return appendISODate(d, connectMillis(s, v)) }), nil
		}
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendHeader(dst, elem(s), e, true); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case *Struct:
		dst = append(dst, '{')
		for i := range v.Schema.Fields {
			f := &v.Schema.Fields[i]
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendEmbedded(dst, f.Name), ':')
			if dst, err = appendHeader(dst, f.Schema, f.Schema.Or(v.Values[i]), true); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	return appendPrimitive(dst, v)
}

func quoteIf(quote bool, dst []byte, text func([]byte) []byte) []byte {
	if !quote {
		return text(dst)
	}
	return append(text(append(dst, '"')), '"')
}

// appendEmbedded appends a quoted string in which backslashes and quotes are
// escaped and nothing else.
func appendEmbedded(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if !strings.ContainsAny(s, `\"`) {
		return append(appendUTF8(dst, s), '"')
	}
	return append(appendUTF8(dst, embeddedEscapes.Replace(s)), '"')
}

var embeddedEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
