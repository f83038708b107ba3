package ddl

import (
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// definition reads a column's type and attributes, behind its name.
func (p *parser) definition(name string) *definition {
	d := &definition{}
	d.Name, d.DefaultKnown = name, true
	p.columnType(d)
	for p.cur.kind != end && p.attribute(d) {
	}
	return d
}

// attribute reads one attribute of a column and reports whether there was one.
func (p *parser) attribute(d *definition) bool {
	switch {
	case p.accept("UNSIGNED"):
		d.unsigned = true
	case p.accept("SIGNED"):
	case p.accept("ZEROFILL"):
		d.unsigned, d.zeroFill = true, true
	case p.accept("NULL"):
		d.null = true
	case p.cur.is("NOT"):
		p.advance()
		if p.accept("NULL") {
			d.notNull = true
		} else {
			p.expect("a column's attributes", "SECONDARY", "ENFORCED")
		}
	case p.accept("DEFAULT"):
		v := p.value()
		d.value = &v
	case p.acceptAll("ON", "UPDATE"):
		if v := p.value(); v.kind != nowValue {
			p.unexpected("ON UPDATE")
		}
		d.onUpdate = true
	case p.accept("AUTO_INCREMENT"):
		d.Automatic = true
	case p.acceptAll("SERIAL", "DEFAULT", "VALUE"):
		d.Automatic, d.notNull = true, true
	case p.accept("PRIMARY"):
		p.accept("KEY")
		d.primary = true
	case p.accept("UNIQUE"):
		p.accept("KEY")
	case p.accept("KEY"):
		d.primary = true
	case p.accept("COMMENT"):
		p.value()
	case p.accept("INVISIBLE"):
		d.Invisible = true
	case p.accept("VISIBLE"):
		d.Invisible = false
	case p.cur.isAny("GENERATED", "AS"):
		p.generated(d)
	case p.accept("VIRTUAL", "STORED", "PERSISTENT"):
	case p.cur.isAny("CHECK", "CONSTRAINT"):
		p.check()
	case p.accept("REFERENCES"):
		p.references()
	case p.accept("COLUMN_FORMAT", "STORAGE"):
		p.expect("a column's attributes", "FIXED", "DYNAMIC", "DEFAULT", "DISK", "MEMORY")
	case p.accept("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
		p.punct("=")
		p.value()
	case p.accept("SRID"):
		p.value()
	default:
		return p.characters(d) || p.source.MariaDB && p.mariaAttribute(d)
	}
	return true
}

// characters reads what says how texts are stored.
func (p *parser) characters(d *definition) bool {
	switch {
	case p.isCharset():
		d.charset = p.charset("")
	case p.accept("COLLATE"):
		d.charset = p.collate(d.charset)
	case p.accept("ASCII"):
		d.charset = "latin1"
	case p.accept("UNICODE"):
		d.charset = "ucs2"
	case p.accept("BYTE"):
		d.charset = "binary"
	case hasCharset(d.Type) && p.accept("BINARY"): // the binary collation
	default:
		return false
	}
	return true
}

// mariaAttribute reads what only MariaDB knows.
func (p *parser) mariaAttribute(d *definition) bool {
	switch {
	case p.accept("COMPRESSED"):
		d.compressed = true
		if p.punct("=") {
			p.advance()
		}
	case p.accept("REF_SYSTEM_ID"):
		p.punct("=")
		p.value()
	case p.acceptAll("WITH", "SYSTEM", "VERSIONING"), p.acceptAll("WITHOUT", "SYSTEM", "VERSIONING"):
	case (p.cur.kind == word || p.cur.kind == quoted) && p.peek().isPunct("="): // of an engine
		p.advance()
		p.advance()
		p.advance()
	default:
		return false
	}
	return true
}

// generated reads [GENERATED ALWAYS] AS (expression).
func (p *parser) generated(d *definition) {
	if p.accept("GENERATED") {
		p.expect("GENERATED", "ALWAYS")
	}
	p.expect("GENERATED", "AS")
	d.Generated = true
	p.parens("GENERATED")
}

// check reads [CONSTRAINT [name]] CHECK (expression) [[NOT] ENFORCED].
func (p *parser) check() {
	if p.accept("CONSTRAINT") && !p.cur.is("CHECK") {
		p.ident("a constraint's name")
	}
	p.expect("a constraint", "CHECK")
	p.parens("a constraint")
	if !p.acceptAll("NOT", "ENFORCED") {
		p.accept("ENFORCED")
	}
}

// references reads a foreign key's other side, behind REFERENCES.
func (p *parser) references() {
	p.table()
	if p.cur.isPunct("(") {
		p.parens("REFERENCES")
	}
	for {
		switch {
		case p.accept("MATCH"):
			p.expect("REFERENCES", "FULL", "PARTIAL", "SIMPLE")
		case p.cur.is("ON") && p.peek().isAny("DELETE", "UPDATE"):
			p.advance()
			p.advance()
			switch {
			case p.accept("SET"):
				p.expect("REFERENCES", "NULL", "DEFAULT")
			case p.accept("NO"):
				p.expect("REFERENCES", "ACTION")
			default:
				p.expect("REFERENCES", "RESTRICT", "CASCADE")
			}
		default:
			return
		}
	}
}

// isCharset moves over the words that a character set's name follows.
func (p *parser) isCharset() bool {
	if p.acceptAll("CHARACTER", "SET") || p.acceptAll("CHAR", "SET") || p.accept("CHARSET") {
		p.punct("=")
		return true
	}
	return false
}

// name reads a character set's or a collation's name, which may stand in quotes.
func (p *parser) name(what string) string {
	if p.cur.kind == text {
		name := p.cur.text
		p.advance()
		return strings.ToLower(name)
	}
	return strings.ToLower(p.ident(what))
}

// charset reads the name of a character set. What DEFAULT stands for is the caller's.
func (p *parser) charset(standard string) string {
	if p.cur.is("DEFAULT") && standard != "" {
		p.advance()
		return standard
	}
	return canonical(p.name("the name of a character set"))
}

func canonical(charset string) string {
	if charset == "utf8" {
		return "utf8mb3"
	}
	return charset
}

// collate reads the name of a collation, and returns the character set that it implies
// where given is what stands so far.
func (p *parser) collate(given string) string {
	p.punct("=")
	if p.accept("DEFAULT") {
		return given
	}
	name := p.name("the name of a collation")
	if p.source.MariaDB && strings.HasPrefix(name, "uca1400_") {
		return given // one of every character set
	}
	charset, _, _ := strings.Cut(name, "_")
	return canonical(charset)
}

// finish makes a column of a definition in a table whose character set is charset.
func (p *parser) finish(d *definition, charset string) Column {
	d.Unsigned = d.unsigned && d.Type != schema.Year
	if d.Type == schema.Decimal || d.Type == schema.Float || d.Type == schema.Double {
		d.Unsigned = d.unsigned
	}
	if hasCharset(d.Type) {
		p.settle(d, charset)
	} else {
		d.charset = ""
	}
	if d.size > 0 {
		d.Type = blobOf(d.size*schema.MaxBytes(d.Charset), isBlobText(d.Type))
	}
	for _, w := range d.words {
		element := p.textOf(w, d.Charset)
		if d.Charset != "binary" {
			element = strings.TrimRight(element, " ")
		}
		d.Elements = append(d.Elements, element)
	}
	d.ColumnType = p.source.spell(d)
	if d.compressed {
		d.Type, d.Charset, d.Length = schema.Unknown, "", 0 // the row holds compressed bytes
	}
	d.Nullable = !d.notNull && !d.Automatic && !d.primary
	if d.value != nil {
		p.setDefault(d, *d.value)
	}
	return d.Column
}

// settle finds the character set of a column of text.
func (p *parser) settle(d *definition, charset string) {
	if d.charset == "" {
		d.charset = charset
	}
	if d.charset == "" {
		p.fail("the character set of the table is not known")
		return
	}
	d.Charset = d.charset
	if d.Charset == "binary" {
		d.Type = binaryOf(d.Type)
		if hasCharset(d.Type) {
			return
		}
		d.Charset = ""
	}
	if bytes := d.Length * schema.MaxBytes(d.Charset); d.Type == schema.VarChar && bytes > 1<<16-1 {
		d.Type, d.Length = blobOf(bytes, true), 0 // without a strict sql_mode
	}
}

// convert gives a column another character set, as CONVERT TO does. defined says that the
// same statement defines it: its type stays then.
func (p *parser) convert(c *Column, charset string, defined bool) {
	if c.Type == schema.Unknown {
		p.fail("a column whose values are not known is converted")
	}
	if !hasCharset(c.Type) || c.Charset == "binary" {
		return
	}
	d := &definition{Column: *c, charset: charset, size: -1}
	if !sameBytes(c.Charset, charset, c.Elements) {
		p.fail("the words of a column of type %s are converted", c.Type) // servers may take their bytes for others
	}
	before, after := schema.MaxBytes(c.Charset), schema.MaxBytes(charset)
	if isBlobText(c.Type) && !defined {
		d.Type = blobOf(blobBytes(c.Type)/before*after, true)
	}
	if p.settle(d, charset); d.Charset == "" {
		d.Elements = nil
	}
	d.ColumnType = p.source.spell(d)
	*c = d.Column
}

// sameBytes reports whether words have the same bytes in two character sets.
func sameBytes(a, b string, words []string) bool {
	if a == b || words == nil {
		return true
	}
	if isWide(a) || isWide(b) {
		return false
	}
	unicode := strings.HasPrefix(a, "utf8") && strings.HasPrefix(b, "utf8")
	return !slices.ContainsFunc(words, func(w string) bool { return isForeign(w) && !(unicode && holds("utf8mb3", w)) })
}

// isForeign reports whether a text has characters that are not ASCII's printable ones.
func isForeign(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// isWide reports whether all characters of a set take several bytes.
func isWide(charset string) bool {
	return charset == "ucs2" || strings.HasPrefix(charset, "utf16") || charset == "utf32"
}

// timestamps gives TIMESTAMP columns what they have without being told, where
// explicit_defaults_for_timestamp is off. list are the columns that the statement defines.
func (p *parser) timestamps(list []*definition) {
	first := true
	for _, d := range list {
		if d.Type != schema.Timestamp || d.Generated {
			continue
		}
		promoted := first
		first = false
		if d.null || d.notNull && (d.value != nil || d.onUpdate) {
			continue
		}
		if p.s.ExplicitTimestamps == nil {
			p.fail("whether explicit_defaults_for_timestamp is on is not known")
			return
		}
		if *p.s.ExplicitTimestamps {
			continue
		}
		d.notNull = true
		switch {
		case d.value != nil || d.onUpdate:
		case promoted:
			d.value = &value{kind: nowValue, fsp: d.FSP}
		default:
			d.value = &value{kind: textValue, text: "0000-00-00 00:00:00"}
		}
	}
}

// keyed makes the columns of the primary key NOT NULL, and brings its names to the
// spelling of the columns.
func (t *Table) keyed() bool {
	for i, k := range t.PrimaryKey {
		at := t.column(k)
		if at < 0 {
			return false
		}
		t.PrimaryKey[i] = t.Columns[at].Name
		t.Columns[at].Nullable = false
	}
	return true
}
