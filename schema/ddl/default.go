package ddl

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

type valueKind uint8

const (
	nullValue valueKind = iota + 1
	textValue
	numberValue
	hexValue
	bitValue
	nowValue
	exprValue
)

// value is a literal or an expression of a statement.
type value struct {
	kind    valueKind
	text    string
	charset string // of an introducer
	raw     bool
	fsp     int
	parens  bool
}

// value reads a literal, or the expression of a DEFAULT.
func (p *parser) value() value {
	t := p.cur
	switch {
	case t.isPunct("("):
		return p.expression()
	case t.isPunct("-"), t.isPunct("+"):
		p.advance()
		if p.cur.kind != number {
			p.unexpected("a value")
			return value{}
		}
		v := value{kind: numberValue, text: strings.TrimPrefix(t.text, "+") + p.cur.text}
		p.advance()
		return v
	case t.kind == text:
		return p.literal("")
	case t.kind == number:
		p.advance()
		return value{kind: numberValue, text: t.text}
	case t.kind == bytesHex:
		p.advance()
		return value{kind: hexValue, text: t.text}
	case t.kind == bits:
		p.advance()
		return value{kind: bitValue, text: t.text}
	case t.kind == word:
		return p.wordValue()
	}
	p.unexpected("a value")
	return value{}
}

// expression reads an expression in parentheses.
func (p *parser) expression() value {
	v := value{kind: exprValue, text: p.parens("an expression"), parens: true}
	if p.err != nil || !p.source.MariaDB || p.nested == maxNested {
		return v
	}
	// MariaDB takes the parentheses off a literal.
	inner := &parser{
		source: p.source,
		s:      p.s,
		nested: p.nested + 1,
		lex:    &lexer{sql: v.text, source: p.source, mode: p.s.Mode},
	}
	inner.advance()
	if literal := inner.value(); inner.err == nil && inner.cur.kind == end {
		return literal
	}
	return v
}

// literal reads texts that stand side by side.
func (p *parser) literal(charset string) value {
	v := value{kind: textValue, charset: charset}
	for p.cur.kind == text {
		v.text += p.cur.text
		v.raw = v.raw || p.cur.raw
		p.advance()
	}
	return v
}

// functions are those whose result MariaDB does not take in place of a call.
var functions = set(
	"UUID SYS_GUID RAND CURRENT_USER USER SESSION_USER SYSTEM_USER CURRENT_ROLE DATABASE SCHEMA " +
		"CONNECTION_ID UNIX_TIMESTAMP " +
		"CURDATE CURTIME CURRENT_DATE CURRENT_TIME UTC_DATE UTC_TIME UTC_TIMESTAMP SYSDATE NEXTVAL LASTVAL",
)

// calls are functions that MariaDB takes without parentheses.
var calls = set("CURRENT_USER CURRENT_ROLE CURRENT_DATE CURRENT_TIME UTC_DATE UTC_TIME UTC_TIMESTAMP")

func (p *parser) wordValue() value {
	t := p.cur
	switch {
	case p.accept("NULL"):
		return value{kind: nullValue}
	case p.accept("TRUE"):
		return value{kind: numberValue, text: "1"}
	case p.accept("FALSE"):
		return value{kind: numberValue, text: "0"}
	case p.accept("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"):
		return p.now()
	}
	next := p.peek()
	switch {
	case t.text[0] == '_' && (next.kind == text || next.kind == bytesHex || next.kind == bits):
		p.advance()
		charset := canonical(strings.ToLower(t.text[1:]))
		if next.kind != text {
			v := p.value()
			v.charset = charset
			return v
		}
		return p.literal(charset)
	case t.is("N") && next.kind == text && next.start == t.end:
		p.advance()
		return p.literal("utf8mb3")
	case t.isAny("DATE", "TIME", "TIMESTAMP") && next.kind == text:
		p.advance()
		return p.literal("")
	case p.source.MariaDB && next.isPunct("(") && functions[strings.ToUpper(t.text)]:
		p.advance()
		args := p.parens("an expression")
		return value{kind: exprValue, text: strings.ToLower(t.text) + "(" + args + ")"}
	case p.source.MariaDB && calls[strings.ToUpper(t.text)]:
		p.advance()
		return value{kind: exprValue, text: strings.ToLower(t.text) + "()"}
	case p.source.MariaDB && p.acceptAll("NEXT", "VALUE", "FOR"):
		p.table()
		return value{kind: exprValue, text: "nextval()"}
	}
	p.unexpected("a value")
	return value{}
}

// now reads on behind CURRENT_TIMESTAMP and its other names.
func (p *parser) now() value {
	v := value{kind: nowValue}
	if p.punct("(") {
		if p.cur.kind == number {
			v.fsp, _ = strconv.Atoi(p.cur.text)
			p.advance()
		}
		p.expectPunct("CURRENT_TIMESTAMP", ")")
	}
	return v
}

// textOf is a literal as a column of the character set has it.
func (p *parser) textOf(v value, charset string) string {
	from := v.charset
	if v.kind == hexValue {
		if from == "" || from == "binary" {
			from = charset
		}
		if from == "" {
			from = "binary"
		}
		bytes := v.text
		for isWide(from) && len(bytes)%2 > 0 || from == "utf32" && len(bytes)%4 > 0 {
			bytes = "\x00" + bytes
		}
		out, err := schema.DecodeText(from, bytes)
		if err != nil {
			p.fail("a text in hexadecimal is not one in its character set")
		}
		return out
	}
	if v.raw && !holds(charset, v.text) {
		p.fail("a text may have characters that its column's character set has not")
	}
	if v.raw && (from != "" || !p.keepsText()) {
		p.fail("a text whose character set differs from the statement's is not followed")
	}
	return v.text
}

// holds reports whether the character set certainly has all characters of a text.
func holds(charset, s string) bool {
	switch charset {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return true
	case "utf8mb3", "ucs2":
		return !strings.ContainsFunc(s, func(r rune) bool { return r > 0xffff })
	case "latin1":
		return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 && r < 0xa0 || r > 0xff })
	case "binary":
		return true
	}
	return !isForeign(s)
}

// keepsText reports whether texts lose nothing on their way from the statement.
func (p *parser) keepsText() bool {
	switch p.s.Connection {
	case "", p.s.Charset, "utf8mb4", "utf8mb3", "utf16", "utf32", "utf16le":
		return true
	}
	return false
}

// setDefault gives a column a default, as information_schema shows it.
func (p *parser) setDefault(d *definition, v value) {
	c := &d.Column
	c.Default, c.DefaultExpr = nil, ""
	switch v.kind {
	case nullValue:
		return
	case nowValue:
		c.DefaultExpr = p.nowText(v.fsp)
		return
	case exprValue:
		c.DefaultExpr = v.text
		return
	}
	s, err := p.defaultText(d, v)
	if err != nil {
		p.fail("%w", err)
		return
	}
	c.Default = &s
}

func (p *parser) nowText(fsp int) string {
	switch {
	case p.source.MariaDB && fsp == 0:
		return "current_timestamp()"
	case p.source.MariaDB:
		return fmt.Sprintf("current_timestamp(%d)", fsp)
	case fsp == 0:
		return "CURRENT_TIMESTAMP"
	}
	return fmt.Sprintf("CURRENT_TIMESTAMP(%d)", fsp)
}

// defaultText is the literal as a value of the column.
func (p *parser) defaultText(d *definition, v value) (string, error) {
	switch d.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
		return integerDefault(d, v)
	case schema.Decimal:
		return decimalDefault(d, v)
	case schema.Float, schema.Double:
		return floatDefault(d, v)
	case schema.Year:
		return yearDefault(v)
	case schema.Bit:
		return bitDefault(v)
	case schema.Date, schema.Time, schema.DateTime, schema.Timestamp:
		return temporalDefault(d, v)
	case schema.Enum:
		return p.enumDefault(d, v)
	case schema.Set:
		return p.setOfDefault(d, v)
	case schema.Binary, schema.VarBinary:
		return p.bytesDefault(d, v)
	}
	s, err := p.stringOf(v, d.Charset)
	if d.Type == schema.Char {
		s = strings.TrimRight(s, " ")
	}
	return s, err
}

func errDefault(t schema.Type) error { return fmt.Errorf("a default of type %s is not followed", t) }

// stringOf is a literal as text.
func (p *parser) stringOf(v value, charset string) (string, error) {
	switch v.kind {
	case numberValue:
		if strings.ContainsAny(v.text, "eE") {
			return "", errDefault(schema.VarChar)
		}
		return v.text, nil
	case bitValue:
		n, ok := new(big.Int).SetString("0"+v.text, 2)
		if !ok {
			return "", errDefault(schema.Bit)
		}
		out, err := schema.DecodeText(charset, string(n.FillBytes(make([]byte, (len(v.text)+7)/8))))
		if err != nil {
			return "", errDefault(schema.VarChar)
		}
		return out, nil
	}
	return p.textOf(v, charset), p.err
}

// rational reads a number of any literal.
func rational(v value) (*big.Rat, bool) {
	switch v.kind {
	case hexValue:
		return new(big.Rat).SetInt(new(big.Int).SetBytes([]byte(v.text))), len(v.text) <= 8
	case bitValue:
		n, ok := new(big.Int).SetString("0"+v.text, 2)
		return new(big.Rat).SetInt(n), ok
	}
	s := strings.TrimSpace(v.text)
	if len(s) > 80 || strings.ContainsAny(s, "/_xXpPbBoOiInN") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// round gives a number with so many decimals, halves away from zero.
func round(r *big.Rat, decimals int) string { return r.FloatString(decimals) }

func integerDefault(d *definition, v value) (string, error) {
	r, ok := rational(v)
	if !ok || v.kind == hexValue && len(v.text) > 8 {
		return "", errDefault(d.Type)
	}
	s := round(r, 0)
	if s == "-0" {
		s = "0"
	}
	return d.padded(s), nil
}

// padded puts zeros before a number of a ZEROFILL column.
func (d *definition) padded(s string) string {
	if !d.zeroFill {
		return s
	}
	n := 0
	_, rest, _ := strings.Cut(d.ColumnType, "(")
	for i := 0; i < len(rest) && isDigit(rest[i]); i++ {
		n = 10*n + int(rest[i]-'0')
	}
	if d.Type == schema.Decimal && d.Scale > 0 {
		n++ // the point
	}
	return strings.Repeat("0", max(n-len(s), 0)) + s
}

func decimalDefault(d *definition, v value) (string, error) {
	r, ok := rational(v)
	if !ok {
		return "", errDefault(d.Type)
	}
	s := round(r, d.Scale)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return d.padded(s), nil
}

func floatDefault(d *definition, v value) (string, error) {
	r, ok := rational(v)
	if !ok || d.zeroFill {
		return "", errDefault(d.Type)
	}
	if d.Scale >= 0 {
		s := round(r, d.Scale)
		if exact, _ := new(big.Rat).SetString(s); exact.Cmp(r) != 0 {
			return "", errDefault(d.Type) // rounded in binary
		}
		return s, nil
	}
	bits := 64
	if d.Type == schema.Float {
		bits = 32
	}
	f, _ := r.Float64()
	if f != 0 && (f > 1e6 || f < -1e6 || -1e-4 < f && f < 1e-4) {
		return "", errDefault(d.Type)
	}
	s := strconv.FormatFloat(f, 'f', -1, bits)
	if len(strings.Trim(s, "-.")) > 6 {
		return "", errDefault(d.Type)
	}
	return s, nil
}

func yearDefault(v value) (string, error) {
	n, err := strconv.Atoi(v.text)
	switch {
	case err != nil || v.kind != textValue && v.kind != numberValue:
		return "", errDefault(schema.Year)
	case n == 0 && (v.kind == numberValue || len(v.text) == 4):
		return "0000", nil
	case n < 70:
		n += 2000
	case n < 100:
		n += 1900
	}
	return strconv.Itoa(n), nil
}

func bitDefault(v value) (string, error) {
	n := new(big.Int)
	switch v.kind {
	case textValue:
		n.SetBytes([]byte(v.text))
	default:
		r, ok := rational(v)
		if !ok || r.Sign() < 0 {
			return "", errDefault(schema.Bit)
		}
		n.SetString(round(r, 0), 10)
	}
	return "b'" + n.Text(2) + "'", nil
}

func (p *parser) bytesDefault(d *definition, v value) (string, error) {
	s := v.text
	switch v.kind {
	case textValue:
		if v.raw &&
			(p.s.Connection != "utf8mb4" && p.s.Connection != "utf8mb3" && (p.s.Connection != "" || p.s.Charset != "") ||
				v.charset != "") {
			return "", errDefault(d.Type)
		}
	case bitValue:
		return "", errDefault(d.Type)
	}
	if d.Type == schema.Binary && len(s) < d.Length {
		s += strings.Repeat("\x00", d.Length-len(s))
	}
	return fmt.Sprintf("0x%x", s), nil
}

// enumDefault is the word as the definition spells it.
func (p *parser) enumDefault(d *definition, v value) (string, error) {
	if v.kind == numberValue {
		n, err := strconv.Atoi(v.text)
		if err != nil || n < 1 || n > len(d.Elements) {
			return "", errDefault(d.Type)
		}
		return d.Elements[n-1], nil
	}
	s, err := p.stringOf(v, d.Charset)
	if err != nil {
		return "", err
	}
	if i := wordIn(d.Elements, s); i >= 0 {
		return d.Elements[i], nil
	}
	return "", errDefault(d.Type)
}

// wordIn finds a word: exactly, or in another case if only one is like it.
func wordIn(words []string, w string) int {
	w = strings.TrimRight(w, " ")
	if i := slices.Index(words, w); i >= 0 {
		return i
	}
	at := -1
	for i, e := range words {
		if strings.EqualFold(e, w) {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

func (p *parser) setOfDefault(d *definition, v value) (string, error) {
	chosen := make([]bool, len(d.Elements))
	if v.kind == numberValue {
		n, err := strconv.ParseUint(v.text, 10, 64)
		if err != nil {
			return "", errDefault(d.Type)
		}
		for i := range chosen {
			chosen[i] = n&(1<<i) != 0
		}
	} else {
		s, err := p.stringOf(v, d.Charset)
		if err != nil {
			return "", err
		}
		for w := range strings.SplitSeq(s, ",") {
			if s == "" {
				break
			}
			i := wordIn(d.Elements, w)
			if i < 0 {
				return "", errDefault(d.Type)
			}
			chosen[i] = true
		}
	}
	var out []string
	for i, e := range d.Elements {
		if chosen[i] {
			out = append(out, e)
		}
	}
	return strings.Join(out, ","), nil
}
