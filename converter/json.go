package converter

import (
	"encoding/base64"
	"math"
	"strconv"
	"sync"
)

// JSONOptions are the options of Connect's JsonConverter. The zero value is not
// its default.
type JSONOptions struct {
	// Schemas is schemas.enable: whether the schema goes with each value.
	Schemas bool
	// NumericDecimals is decimal.format=NUMERIC; otherwise decimals are the base64
	// of their unscaled bytes.
	NumericDecimals bool
	// ReplaceNullWithDefault is replace.null.with.default: null becomes the
	// schema's default where it has one.
	ReplaceNullWithDefault bool
}

// JSONConverter is org.apache.kafka.connect.json.JsonConverter, with Jackson's
// escaping. It keeps the text of the schemas it has written, at most 1000 as
// Connect's schemas.cache.size, and is safe for concurrent use.
type JSONConverter struct {
	opts  JSONOptions
	mu    sync.RWMutex
	texts map[*Schema]schemaText
}

// schemaText is a schema as JSON, or why it has none.
type schemaText struct {
	text []byte
	err  error
}

var _ Converter = (*JSONConverter)(nil)

// maxSchemaTexts is schemas.cache.size; maxWriteDepth is Jackson's limit of nesting
// (com.fasterxml.jackson.core.StreamWriteConstraints).
const (
	maxSchemaTexts = 1000
	maxWriteDepth  = 1000
)

// NewJSONConverter returns a converter with these options.
func NewJSONConverter(opts JSONOptions) *JSONConverter {
	return &JSONConverter{opts: opts, texts: make(map[*Schema]schemaText)}
}

// Append implements Converter.
func (c *JSONConverter) Append(dst []byte, s *Schema, v any) (out []byte, isNull bool, err error) {
	if s == nil && v == nil {
		return dst, true, nil
	}
	if !c.opts.Schemas {
		out, err = c.value(dst, s, v, 0)
		return out, false, err
	}
	schema := c.schemaText(s)
	if schema.err != nil {
		return dst, false, schema.err
	}
	dst = append(dst, `{"schema":`...)
	dst = append(dst, schema.text...)
	dst = append(dst, `,"payload":`...)
	if out, err = c.value(dst, s, v, 1); err != nil {
		return out, false, err
	}
	return append(out, '}'), false, nil
}

func (c *JSONConverter) schemaText(s *Schema) schemaText {
	c.mu.RLock()
	text, ok := c.texts[s]
	c.mu.RUnlock()
	if ok {
		return text
	}
	if 1+schemaDepth(s) > maxWriteDepth {
		text.err = errTooDeep
	} else {
		text.text = c.appendSchema(nil, s, "")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.texts) >= maxSchemaTexts {
		clear(c.texts)
	}
	c.texts[s] = text
	return text
}

var errTooDeep = dataError("JsonConverter", "the value or its schema is nested more than 1000 deep")

// schemaDepth is how deep the JSON of a schema nests.
func schemaDepth(s *Schema) int {
	if s == nil {
		return 0
	}
	depth := 1
	if s.Elem != nil {
		depth = 1 + schemaDepth(s.Elem)
	}
	for i := range s.Fields {
		depth = max(depth, 2+schemaDepth(s.Fields[i].Schema))
	}
	return depth
}

// appendSchema writes the members in the order in which JsonConverter adds them.
func (c *JSONConverter) appendSchema(dst []byte, s *Schema, field string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	dst = append(append(append(dst, `{"type":"`...), s.Kind.String()...), '"')
	if s.Kind == Array {
		dst = c.appendSchema(append(dst, `,"items":`...), s.Elem, "")
	}
	if s.Kind == Record {
		dst = append(dst, `,"fields":[`...)
		for i := range s.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = c.appendSchema(dst, s.Fields[i].Schema, s.Fields[i].Name)
		}
		dst = append(dst, ']')
	}
	dst = strconv.AppendBool(append(dst, `,"optional":`...), s.Optional)
	if s.Name != "" {
		dst = appendQuoted(append(dst, `,"name":`...), s.Name)
	}
	if s.Version != nil {
		dst = strconv.AppendInt(append(dst, `,"version":`...), int64(*s.Version), 10)
	}
	if s.Doc != "" {
		dst = appendQuoted(append(dst, `,"doc":`...), s.Doc)
	}
	dst = appendParams(dst, s.Params)
	if s.Default != nil {
		if d, err := c.value(append(dst, `,"default":`...), s, s.Default, 0); err == nil {
			dst = d
		}
	}
	if field != "" {
		dst = appendQuoted(append(dst, `,"field":`...), field)
	}
	return append(dst, '}')
}

func appendParams(dst []byte, params []Param) []byte {
	if len(params) == 0 {
		return dst
	}
	dst = append(dst, `,"parameters":{`...)
	for i, p := range params {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(appendQuoted(dst, p.Name), ':'), p.Value)
	}
	return append(dst, '}')
}

// value writes one value; depth is how many objects and arrays it is in.
func (c *JSONConverter) value(dst []byte, s *Schema, v any, depth int) ([]byte, error) {
	if v == nil {
		switch {
		case s == nil:
			return append(dst, "null"...), nil
		case s.Default != nil && c.opts.ReplaceNullWithDefault:
			v = s.Default
		case s.Optional:
			return append(dst, "null"...), nil
		default:
			return dst, dataError("JsonConverter", "null value for "+describe(s)+" that is required and has no default value")
		}
	}
	if s == nil {
		return c.schemaless(dst, v)
	}
	switch s.Kind {
	case String:
		return c.text(dst, s, v)
	case Bytes:
		return c.bytes(dst, v)
	case Array:
		list, ok := v.([]any)
		if !ok {
			return dst, mismatch(s)
		}
		return c.list(dst, s, list, depth+1)
	case Record:
		st, ok := v.(*Struct)
		if !ok {
			return dst, mismatch(s)
		}
		return c.record(dst, st, depth+1)
	}
	switch v := v.(type) {
	case float64:
		return appendJSONFloat(dst, v, 64), nil
	case float32:
		return appendJSONFloat(dst, float64(v), 32), nil
	case int64, bool:
		return appendPrimitive(dst, v)
	default:
		return dst, mismatch(s)
	}
}

// schemaless writes a value that has lost its schema, which happens to texts only:
// a top-level empty array whose expansion inferred nothing.
func (c *JSONConverter) schemaless(dst []byte, v any) ([]byte, error) {
	switch v.(type) {
	case string:
		return c.text(dst, nil, v)
	case []byte, Decimal:
		return c.bytes(dst, v)
	default:
		return appendPrimitive(dst, v)
	}
}

func (c *JSONConverter) text(dst []byte, s *Schema, v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return appendQuoted(dst, v), nil
	case []byte:
		text, err := Text(s, v)
		if err != nil {
			return dst, err
		}
		return appendQuoted(dst, text), nil
	default:
		return dst, mismatch(s)
	}
}

func (c *JSONConverter) bytes(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v), '"'), nil
	case Decimal:
		if c.opts.NumericDecimals {
			return v.AppendText(dst), nil
		}
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.unscaled(nil)), '"'), nil
	default:
		return dst, dataError("JsonConverter", "value does not fit the schema bytes")
	}
}

func (c *JSONConverter) list(dst []byte, s *Schema, list []any, depth int) (out []byte, err error) {
	if depth > maxWriteDepth {
		return dst, errTooDeep
	}
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = c.value(dst, s.Elem, e, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (c *JSONConverter) record(dst []byte, v *Struct, depth int) (out []byte, err error) {
	if depth > maxWriteDepth {
		return dst, errTooDeep
	}
	dst = append(dst, '{')
	for i := range v.Schema.Fields {
		f := &v.Schema.Fields[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, f.Name), ':')
		if dst, err = c.value(dst, f.Schema, v.Values[i], depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendJSONFloat appends a double, quoted where JSON has no number for it.
func appendJSONFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(appendJavaNumber(append(dst, '"'), f, bits), '"')
	}
	return appendJavaNumber(dst, f, bits)
}

func mismatch(s *Schema) error {
	return dataError("JsonConverter", "value does not fit the schema "+describe(s))
}
