package router

import (
	"errors"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

// expand makes a typed value of a payload that is JSON text
// (table.expand.json.payload) and returns the fingerprint of the payload's schema.
//
// It fails in EventRouter's two ways. When parsing or inferring fails, the payload
// stays the text it was. When the data does not fit what was inferred, the payload
// stays that text too but has the inferred schema already: StringConverter still
// sends the text, the others refuse it.
func (r *Router) expand(ev *Event, p *plan) (string, error) {
	if ev.Value.Value == nil {
		return p.payloadPrint, nil
	}
	if ev.Value.Schema == nil || ev.Value.Schema.Kind != converter.String {
		ev.NotExpanded = true
		return p.payloadPrint, nil
	}
	text, err := converter.Text(ev.Value.Schema, ev.Value.Value)
	if err != nil {
		return "", &Error{Code: CodeBadValue, Table: p.row.Table.Name, Column: r.cfg.Payload, Err: err}
	}
	ev.Value.Value = text
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		ev.NotExpanded = true
		return p.payloadPrint, nil
	}
	doc, err := parseJSON(text)
	if err != nil {
		ev.NotExpanded = true
		return p.payloadPrint, nil //nolint:nilerr // then it stays text, as with Debezium
	}
	inf := &inference{
		nulls:  r.cfg.JSONNull == ExpandOptionalBytes,
		arrays: r.cfg.JSONEmptyArray == ExpandOptionalString,
		names:  r.cfg.FieldNames, nullPaths: r.cfg.nullPaths,
	}
	s, err := inf.schema(r.cfg.Payload, &doc)
	if errors.Is(err, errLargeSchema) {
		return "", &Error{Code: CodeBadValue, Table: p.row.Table.Name, Column: r.cfg.Payload, Err: err}
	}
	if err != nil {
		ev.NotExpanded = true
		return p.payloadPrint, nil //nolint:nilerr // then it stays text, as with Debezium
	}
	if s == nil {
		// A top-level empty array.
		ev.NotExpanded = true
		ev.Value.Schema = nil
		return "", nil
	}
	fingerprint := string(s.Fingerprint(nil))
	s = r.inferred.put(fingerprint, s)
	ev.Value.Schema = s
	if doc.kind != nodeObject {
		ev.NotExpanded = true
		return fingerprint, nil
	}
	v, err := build(&doc, s)
	if err != nil {
		ev.NotExpanded = true
		return fingerprint, nil //nolint:nilerr // then it stays text, as with Debezium
	}
	ev.Value.Value = v
	return fingerprint, nil
}

// Reasons why a document cannot be expanded; but for errLargeSchema they only
// decide how the payload is sent.
var (
	errMixedArray   = errors.New("the array is not homogeneous")
	errNoMember     = errors.New("the array has no member schema")
	errNoName       = errors.New("a member has no name")
	errLargeSchema  = errors.New("the names of the expanded payload's records would take more than 32 MiB")
	errDoesNotFit   = errors.New("the value does not fit its schema")
	optionalText    = &converter.Schema{Kind: converter.String, Optional: true}
	optionalBool    = &converter.Schema{Kind: converter.Boolean, Optional: true}
	optionalInt32   = &converter.Schema{Kind: converter.Int32, Optional: true}
	optionalInt64   = &converter.Schema{Kind: converter.Int64, Optional: true}
	optionalFloat64 = &converter.Schema{Kind: converter.Float64, Optional: true}
	optionalBytes   = &converter.Schema{Kind: converter.Bytes, Optional: true}
)

// inference derives Connect schemas from JSON.
type inference struct {
	nullPaths bool // names below a record without one begin with "null."

	nulls  bool // null members become optional bytes, else they are dropped
	arrays bool // empty arrays become arrays of optional text, else they are dropped
	names  string
	// paths counts the bytes of record names, which repeat the names of all
	// records above: a small document of long names can ask for gigabytes.
	paths int
}

// maxPaths bounds inference.paths.
const maxPaths = 32 << 20

// schema returns the schema of a value at this path, nil for one to be dropped.
func (f *inference) schema(path string, n *node) (*converter.Schema, error) {
	switch n.kind {
	case nodeText:
		return optionalText, nil
	case nodeBool:
		return optionalBool, nil
	case nodeInt32:
		return optionalInt32, nil
	case nodeInt64:
		return optionalInt64, nil
	case nodeBig, nodeDouble:
		return optionalFloat64, nil
	case nodeArray:
		return f.array(path, n)
	case nodeObject:
		return f.object(path, n)
	default:
		if f.nulls {
			return optionalBytes, nil
		}
		return nil, nil
	}
}

func (f *inference) object(path string, n *node) (*converter.Schema, error) {
	s := &converter.Schema{Kind: converter.Record, Name: path, Optional: true}
	var seen map[string]bool
	if f.names != NamesAsTheyAre {
		seen = make(map[string]bool, len(n.members)) // adjusted names may collide
	}
	for i := range n.members {
		name := converter.AdjustName(f.names, n.members[i].name, false)
		below := name
		if f.nullPaths && blank(path) {
			below = "null." + name
		}
		if k := n.members[i].value.kind; !blank(path) && (k == nodeObject || k == nodeArray) {
			below = path + "." + name
			if f.paths += len(below); f.paths > maxPaths {
				return nil, errLargeSchema
			}
		}
		ms, err := f.schema(below, &n.members[i].value)
		if err != nil {
			return nil, err
		}
		if ms == nil || seen[name] {
			continue
		}
		if name == "" {
			return nil, errNoName
		}
		if seen != nil {
			seen[name] = true
		}
		s.Fields = append(s.Fields, converter.Field{Name: name, Schema: ms})
	}
	return s, nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (f *inference) array(path string, n *node) (*converter.Schema, error) {
	if len(n.elems) == 0 {
		if f.arrays {
			return &converter.Schema{Kind: converter.Array, Optional: true, Elem: optionalText}, nil
		}
		return nil, nil
	}
	sample, err := f.sample(n)
	if err != nil {
		return nil, err
	}
	var elem *converter.Schema
	if sample.kind == nodeObject {
		elem, err = f.merged(path, n)
	} else {
		elem, err = f.schema("", sample)
	}
	if err != nil {
		return nil, err
	}
	if elem == nil {
		return nil, errNoMember
	}
	return &converter.Schema{Kind: converter.Array, Optional: true, Elem: elem}, nil
}

// sample returns the first element that is not null, after checking that all
// others are of its kind, and numbers of its very type.
func (f *inference) sample(n *node) (*node, error) {
	ref := &node{}
	for i := range n.elems {
		e := &n.elems[i]
		if e.kind == nodeNull {
			continue
		}
		if ref.kind == nodeNull {
			ref = e
		}
		if e.kind == ref.kind {
			continue
		}
		// An integer beyond 64 bits and a double both have the schema FLOAT64.
		double := func(k nodeKind) bool { return k == nodeBig || k == nodeDouble }
		if !double(e.kind) || !double(ref.kind) {
			return nil, errMixedArray
		}
	}
	return ref, nil
}

// merged unites the schemas of an array's objects: the union of their members, the
// first definition of each, except that another one replaces bytes, which stand for
// null. A schema that was merged from several is not optional.
func (f *inference) merged(path string, n *node) (*converter.Schema, error) {
	var result *converter.Schema
	prints := make(map[string]bool)
	fields := make(map[string]int)
	for i := range n.elems {
		if n.elems[i].kind != nodeObject {
			continue
		}
		s, err := f.object(path, &n.elems[i])
		if err != nil {
			return nil, err
		}
		fingerprint := string(s.Fingerprint(nil))
		if prints[fingerprint] {
			continue
		}
		prints[fingerprint] = true
		if result == nil {
			result = s
			for j := range s.Fields {
				fields[s.Fields[j].Name] = j
			}
			continue
		}
		result.Optional = false
		for _, field := range s.Fields {
			j, ok := fields[field.Name]
			switch {
			case !ok:
				fields[field.Name] = len(result.Fields)
				result.Fields = append(result.Fields, field)
			case result.Fields[j].Schema.Kind == converter.Bytes && field.Schema.Kind != converter.Bytes:
				result.Fields[j] = field
			}
		}
	}
	return result, nil
}

// build fills a record from an object: the members that the schema knows.
func build(n *node, s *converter.Schema) (*converter.Struct, error) {
	if s.Kind != converter.Record {
		return nil, errDoesNotFit
	}
	st := &converter.Struct{Schema: s, Values: make([]any, len(s.Fields))}
	for i := range s.Fields {
		m := n.find(s.Fields[i].Name)
		if m == nil {
			continue
		}
		v, err := buildValue(m, s.Fields[i].Schema)
		if err != nil {
			return nil, err
		}
		st.Values[i] = v
	}
	return st, nil
}

// buildValue makes the value of a member or element, as strict as Connect's
// Struct.put: a 32-bit integer does not fit INT64.
func buildValue(n *node, s *converter.Schema) (any, error) {
	switch {
	case n.kind == nodeNull:
		if s.Optional {
			return nil, nil
		}
	case n.kind == nodeText && s.Kind == converter.String:
		return n.text, nil
	case n.kind == nodeBool && s.Kind == converter.Boolean:
		return n.flag, nil
	case n.kind == nodeInt32 && s.Kind == converter.Int32, n.kind == nodeInt64 && s.Kind == converter.Int64:
		return n.integer, nil
	case n.kind == nodeDouble && s.Kind == converter.Float64:
		return n.double, nil
	case n.kind == nodeObject:
		return build(n, s)
	case n.kind == nodeArray && s.Kind == converter.Array:
		list := make([]any, len(n.elems))
		for i := range n.elems {
			v, err := buildValue(&n.elems[i], s.Elem)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	return nil, errDoesNotFit
}
