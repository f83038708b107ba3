package router

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

// Jackson's limits (com.fasterxml.jackson.core.StreamReadConstraints).
const (
	maxJSONDepth  = 1000
	maxJSONNumber = 1000
	maxJSONString = 20_000_000
	maxJSONName   = 50_000
)

var errJSON = errors.New("the payload is not JSON")

type nodeKind uint8

const (
	nodeNull nodeKind = iota
	nodeBool
	nodeInt32
	nodeInt64
	nodeBig // an integer beyond 64 bits
	nodeDouble
	nodeText
	nodeArray
	nodeObject
)

// node is a parsed JSON value.
type node struct {
	kind    nodeKind
	flag    bool
	integer int64
	double  float64
	text    string
	elems   []node
	members []member
	index   map[string]int // of members, when there are many
}

type member struct {
	name  string
	value node
}

// find returns the member's value, or nil.
func (n *node) find(name string) *node {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return &n.members[i].value
		}
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i].value
		}
	}
	return nil
}

// set adds a member; of two with one name the last value wins at the first place.
func (n *node) set(name string, v node) {
	if old := n.find(name); old != nil {
		*old = v
		return
	}
	n.members = append(n.members, member{name, v})
	switch {
	case n.index != nil:
		n.index[name] = len(n.members) - 1
	case len(n.members) > 16:
		n.index = make(map[string]int, 2*len(n.members))
		for i := range n.members {
			n.index[n.members[i].name] = i
		}
	}
}

// jsonParser reads what Jackson's default ObjectMapper reads.
type jsonParser struct {
	s     string
	pos   int
	depth int
}

// parseJSON reads the first JSON value of s; what follows it is ignored, as
// ObjectMapper.readTree does.
func parseJSON(s string) (node, error) {
	p := jsonParser{s: s}
	return p.value()
}

func (p *jsonParser) blanks() {
	for p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *jsonParser) take(c byte) bool {
	if p.pos < len(p.s) && p.s[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *jsonParser) value() (node, error) {
	p.blanks()
	if p.pos >= len(p.s) {
		return node{}, errJSON
	}
	switch c := p.s[p.pos]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		text, err := p.text(maxJSONString)
		return node{kind: nodeText, text: text}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	default:
		return p.word()
	}
}

func (p *jsonParser) word() (node, error) {
	for _, w := range [...]struct {
		text string
		node node
	}{{"true", node{kind: nodeBool, flag: true}}, {"false", node{kind: nodeBool}}, {"null", node{}}} {
		if strings.HasPrefix(p.s[p.pos:], w.text) {
			p.pos += len(w.text)
			return w.node, nil
		}
	}
	return node{}, errJSON
}

func (p *jsonParser) enter() error {
	if p.depth++; p.depth > maxJSONDepth {
		return errors.New("the JSON is nested more than 1000 deep")
	}
	p.pos++
	return nil
}

func (p *jsonParser) object() (node, error) {
	if err := p.enter(); err != nil {
		return node{}, err
	}
	n := node{kind: nodeObject}
	p.blanks()
	if p.take('}') {
		p.depth--
		return n, nil
	}
	for {
		p.blanks()
		if p.pos >= len(p.s) || p.s[p.pos] != '"' {
			return node{}, errJSON
		}
		name, err := p.text(maxJSONName)
		if err != nil {
			return node{}, err
		}
		p.blanks()
		if !p.take(':') {
			return node{}, errJSON
		}
		v, err := p.value()
		if err != nil {
			return node{}, err
		}
		n.set(name, v)
		p.blanks()
		if p.take('}') {
			p.depth--
			return n, nil
		}
		if !p.take(',') {
			return node{}, errJSON
		}
	}
}

func (p *jsonParser) array() (node, error) {
	if err := p.enter(); err != nil {
		return node{}, err
	}
	n := node{kind: nodeArray}
	p.blanks()
	if p.take(']') {
		p.depth--
		return n, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return node{}, err
		}
		n.elems = append(n.elems, v)
		p.blanks()
		if p.take(']') {
			p.depth--
			return n, nil
		}
		if !p.take(',') {
			return node{}, errJSON
		}
	}
}

// number reads a number as Jackson's tree does: integers by the bits they need,
// everything with a point or an exponent as a double.
func (p *jsonParser) number() (node, error) {
	start := p.pos
	p.take('-')
	whole := p.digits()
	if whole == 0 || whole > 1 && p.s[p.pos-whole] == '0' {
		return node{}, errJSON
	}
	integer, count := true, whole
	if whole == 1 && p.s[p.pos-1] == '0' {
		count = 0
	}
	if p.take('.') {
		n := p.digits()
		if integer, count = false, count+n; n == 0 {
			return node{}, errJSON
		}
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		n := p.digits()
		if integer, count = false, count+n; n == 0 {
			return node{}, errJSON
		}
	}
	text := p.s[start:p.pos]
	if count > maxJSONNumber {
		return node{}, errJSON
	}
	if !integer {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return node{}, errJSON
		}
		return node{kind: nodeDouble, double: f}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return node{kind: nodeBig}, nil //nolint:nilerr // it has too many digits, nothing else
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return node{kind: nodeInt32, integer: n}, nil
	default:
		return node{kind: nodeInt64, integer: n}, nil
	}
}

func (p *jsonParser) digits() int {
	start := p.pos
	for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

// text reads a string. Text without escapes is handed on without a copy.
func (p *jsonParser) text(limit int) (string, error) {
	p.pos++
	start := p.pos
	var buf []byte
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; {
		case c == '"':
			raw := p.s[start:p.pos]
			p.pos++
			if buf != nil {
				raw = string(append(buf, raw...))
			}
			// Jackson counts UTF-16 units; that only matters near the limit.
			if len(raw) > limit && utf16Length(raw) > limit {
				return "", errors.New("the JSON holds a text beyond Jackson's limit")
			}
			return raw, nil
		case c < ' ':
			return "", errJSON
		case c != '\\':
			p.pos++
		default:
			buf = append(buf, p.s[start:p.pos]...)
			if buf == nil {
				buf = []byte{}
			}
			var err error
			if buf, err = p.escape(buf); err != nil {
				return "", err
			}
			start = p.pos
		}
	}
	return "", errJSON
}

func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		if n++; r >= 0x10000 {
			n++
		}
	}
	return n
}

func (p *jsonParser) escape(buf []byte) ([]byte, error) {
	if p.pos+1 >= len(p.s) {
		return nil, errJSON
	}
	c := p.s[p.pos+1]
	p.pos += 2
	switch c {
	case '"', '\\', '/':
		return append(buf, c), nil
	case 'b':
		return append(buf, '\b'), nil
	case 'f':
		return append(buf, '\f'), nil
	case 'n':
		return append(buf, '\n'), nil
	case 'r':
		return append(buf, '\r'), nil
	case 't':
		return append(buf, '\t'), nil
	case 'u':
		return p.unicode(buf)
	default:
		return nil, errJSON
	}
}

// unicode reads the digits of \u; two halves of a pair become one character, a
// lone half stays one.
func (p *jsonParser) unicode(buf []byte) ([]byte, error) {
	r, ok := p.hex4()
	if !ok {
		return nil, errJSON
	}
	if r < 0xd800 || r > 0xdfff {
		return utf8.AppendRune(buf, r), nil
	}
	if r < 0xdc00 && strings.HasPrefix(p.s[p.pos:], `\u`) {
		back := p.pos
		p.pos += 2
		if low, ok := p.hex4(); ok && low >= 0xdc00 && low <= 0xdfff {
			return utf8.AppendRune(buf, 0x10000+(r-0xd800)<<10+(low-0xdc00)), nil
		}
		p.pos = back
	}
	return converter.AppendSurrogate(buf, r), nil
}

func (p *jsonParser) hex4() (rune, bool) {
	if p.pos+4 > len(p.s) {
		return 0, false
	}
	v := rune(0)
	for _, c := range []byte(p.s[p.pos : p.pos+4]) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return v, true
}
