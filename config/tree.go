package config

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// node is a value as it was written, whatever it was written in, with its place.
// Decoding nodes instead of letting the YAML library fill the structs is what
// makes all problems of a file come out at once, and what lets references be
// resolved in single values and never in the text of the file.
type node struct {
	kind  nodeKind
	text  string // of a scalar
	at    Origin
	keys  []entry // of a mapping
	items []*node // of a list
	// flat marks a scalar that may stand for a list ("a,b") or a mapping
	// ("a=1,b=2"), as in the environment, where there is no other way.
	flat bool
	// remote marks what came over the network (Setting.Remote).
	remote bool
}

type nodeKind int

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mappingNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a section"}[k]
}

type entry struct {
	name  string
	at    Origin
	value *node
}

// maxDepth is far more than the settings need.
const maxDepth = 32

// parseYAML turns the text of a file into a node. It returns nil for a file
// without content.
func parseYAML(file string, data []byte) (*node, Problems) {
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntaxProblem(file, err)}
	}
	r := yamlReader{file: file, anchors: map[string]*node{}}
	var root *node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.CommentGroupType {
			continue
		}
		if root != nil {
			r.problem(doc.Body, "a second document; a configuration is one document")
			break
		}
		root = r.read(doc.Body, 0)
	}
	return root, r.problems
}

func syntaxProblem(file string, err error) Problem {
	p := Problem{Origin: Origin{File: file}, Message: err.Error()}
	if y, ok := errors.AsType[yaml.Error](err); ok {
		// Only the first line: the rest quotes the file, and it may hold secrets.
		p.Message, _, _ = strings.Cut(y.GetMessage(), "\n")
		if t := y.GetToken(); t != nil {
			p.Origin = place(file, t)
		}
	} else {
		p.Message, _, _ = strings.Cut(p.Message, "\n")
	}
	p.Message = "not valid YAML: " + p.Message
	return p
}

func place(file string, t *token.Token) Origin {
	if t == nil || t.Position == nil {
		return Origin{File: file}
	}
	return Origin{File: file, Line: t.Position.Line, Column: t.Position.Column}
}

type yamlReader struct {
	file     string
	anchors  map[string]*node
	problems Problems
}

func (r *yamlReader) problem(n ast.Node, message string) {
	r.problems = append(r.problems, Problem{Origin: place(r.file, n.GetToken()), Message: message})
}

func (r *yamlReader) read(n ast.Node, depth int) *node {
	if depth > maxDepth {
		r.problem(n, "nested too deeply")
		return &node{}
	}
	at := place(r.file, n.GetToken())
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n.Values, at, depth)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, at, depth)
	case *ast.SequenceNode:
		list := &node{kind: listNode, at: at}
		for _, item := range n.Values {
			if whole := splitInError(item); whole != "" {
				list.items = append(list.items, &node{kind: scalarNode, text: whole, at: place(r.file, item.GetToken())})
				continue
			}
			list.items = append(list.items, r.read(item, depth+1))
		}
		return list
	case *ast.AnchorNode:
		value := r.read(n.Value, depth+1)
		r.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		if value, ok := r.anchors[n.Value.GetToken().Value]; ok {
			return value
		}
		// Its name is not told: it may be a password that was not put in quotes.
		r.problem(n, "an alias without an anchor above it; a text that begins with * needs quotes")
		return &node{at: at}
	case *ast.TagNode:
		return r.read(n.Value, depth+1)
	case *ast.NullNode:
		return &node{at: at}
	case *ast.StringNode:
		return &node{kind: scalarNode, text: n.Value, at: at}
	case *ast.LiteralNode:
		return &node{kind: scalarNode, text: n.Value.Value, at: at}
	case ast.ScalarNode:
		return &node{kind: scalarNode, text: n.GetToken().Value, at: at}
	default:
		r.problem(n, "this kind of YAML is not understood here")
		return &node{at: at}
	}
}

// splitInError undoes a slip of the YAML library: in "{brokers: [kafka:9092]}" it
// takes kafka:9092 for a pair, though only a colon with a blank behind it makes
// one. It returns the text as it was written, or "" for any other item.
func splitInError(item ast.Node) string {
	if m, ok := item.(*ast.MappingNode); ok && len(m.Values) == 1 && m.Start.Type != token.MappingStartType {
		item = m.Values[0]
	}
	pair, ok := item.(*ast.MappingValueNode)
	if !ok {
		return ""
	}
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if key.Type != token.StringType && key.Type != token.IntegerType || value.Position.Line != key.Position.Line ||
		value.Position.Column != key.Position.Column+utf8.RuneCountInString(key.Value)+1 {
		return ""
	}
	if _, ok := pair.Value.(ast.ScalarNode); !ok {
		return ""
	}
	return key.Value + ":" + value.Value
}

func (r *yamlReader) mapping(values []*ast.MappingValueNode, at Origin, depth int) *node {
	m := &node{kind: mappingNode, at: at}
	if len(values) > 0 {
		m.at = place(r.file, values[0].Key.GetToken())
	}
	first := map[string]Origin{}
	var merged []entry
	for _, v := range values {
		value := r.read(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			merged = append(merged, r.merge(v, value)...)
			continue
		}
		e := entry{name: keyText(v.Key), at: place(r.file, v.Key.GetToken()), value: value}
		if before, ok := first[e.name]; ok {
			r.problems = append(r.problems, Problem{Origin: e.at, Path: e.name,
				Message: "given twice; the first one is at " + before.String()})
			continue
		}
		first[e.name] = e.at
		m.keys = append(m.keys, e)
	}
	for _, e := range merged {
		if _, ok := first[e.name]; !ok {
			first[e.name] = e.at
			m.keys = append(m.keys, e)
		}
	}
	return m
}

// merge returns what "<<: *anchor" brings in; a list of anchors is read in order.
func (r *yamlReader) merge(v *ast.MappingValueNode, value *node) []entry {
	switch value.kind {
	case mappingNode:
		return value.keys
	case listNode:
		var all []entry
		for _, item := range value.items {
			all = append(all, item.keys...)
		}
		return all
	default:
		r.problem(v.Key, "<< merges a section; write <<: *anchor")
		return nil
	}
}

func keyText(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.GetToken().Value
}
