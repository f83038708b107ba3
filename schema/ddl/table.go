package ddl

import (
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// createTable reads on behind CREATE [OR REPLACE] [TEMPORARY] TABLE.
func (p *parser) createTable(replace, temporary bool) {
	optional := p.ifNotExists()
	n := p.table()
	if temporary {
		p.rest()
		return
	}
	there, known := p.lookup(n)
	if optional && known && there != nil && !replace {
		p.rest() // it stays as it is
		return
	}
	t := p.createBody(n)
	switch {
	case p.err != nil:
	case optional && !known && !replace:
		p.unknown(n, "whether the table was there before is not known")
	case t == nil:
		p.unknown(n, "the table that it is like is not known")
	default:
		p.set(n, t)
	}
}

// createBody reads what makes up a new table. Nil means that it is like one that is not
// known.
func (p *parser) createBody(n schema.Name) *Table {
	if p.accept("LIKE") {
		return p.like()
	}
	if p.cur.isPunct("(") && p.peek().is("LIKE") {
		p.advance()
		p.advance()
		t := p.like()
		p.expectPunct("CREATE TABLE", ")")
		return t
	}
	var b body
	if p.punct("(") {
		p.elementsOf(&b)
		p.expectPunct("CREATE TABLE", ")")
	}
	t := &Table{Charset: p.catalog.Charsets[n.Database]}
	if charset, changed := p.databases[n.Database]; changed {
		t.Charset = charset
	}
	p.tableOptions(t, t.Charset)
	if p.cur.isAny("PARTITION") {
		p.partitions()
	}
	if p.cur.isAny("SELECT", "AS", "IGNORE", "REPLACE", "VALUES", "TABLE", "WITH") || p.cur.isPunct("(") {
		p.fail("columns that come from a SELECT are not told by the statement")
	}
	if len(b.columns) == 0 {
		p.unexpected("CREATE TABLE")
	}
	p.timestamps(b.columns)
	for _, d := range b.columns {
		t.Columns = append(t.Columns, p.finish(d, t.Charset))
	}
	t.PrimaryKey = b.key
	if p.err == nil && !t.keyed() {
		p.fail("the primary key has a column that is not known")
	}
	return t
}

func (p *parser) like() *Table {
	source, known := p.lookup(p.table())
	if !known || source == nil {
		return nil
	}
	return source.clone()
}

// body is what stands in the parentheses of CREATE TABLE.
type body struct {
	columns []*definition
	key     []string
}

func (p *parser) elementsOf(b *body) {
	for p.cur.kind != end {
		if len(b.columns) >= maxClauses {
			p.fail("it has more than %d columns", maxClauses)
			return
		}
		if !p.tableElement(b) {
			name := p.column()
			d := p.definition(name)
			b.columns = append(b.columns, d)
			if d.primary {
				b.key = []string{name}
			}
		}
		if !p.punct(",") {
			return
		}
	}
}

// tableElement reads an index or constraint, if one stands there.
func (p *parser) tableElement(b *body) bool {
	if p.source.MariaDB && p.cur.is("PERIOD") && p.peek().is("FOR") {
		p.fail("PERIOD is not followed")
		return true
	}
	if p.accept("CONSTRAINT") && !p.cur.isAny("PRIMARY", "UNIQUE", "FOREIGN", "CHECK") {
		p.ifNotExists()
		p.ident("a constraint's name")
	}
	switch {
	case p.cur.is("PRIMARY"):
		p.advance()
		p.expect("a primary key", "KEY")
		b.key = p.index()
	case p.accept("UNIQUE"):
		p.accept("KEY", "INDEX")
		p.index()
	case p.cur.isAny("FULLTEXT", "SPATIAL") || p.cur.is("VECTOR") && p.peek().isAny("KEY", "INDEX"):
		p.advance()
		p.accept("KEY", "INDEX")
		p.index()
	case p.accept("KEY", "INDEX"):
		p.index()
	case p.accept("FOREIGN"):
		p.expect("a foreign key", "KEY")
		p.ifNotExists()
		if !p.cur.isPunct("(") {
			p.ident("a foreign key's name")
		}
		p.parens("a foreign key")
		p.expect("a foreign key", "REFERENCES")
		p.references()
	case p.cur.is("CHECK"):
		p.check()
	default:
		return false
	}
	return true
}

// index reads on behind [KEY | INDEX], and returns the columns.
func (p *parser) index() []string {
	p.ifNotExists()
	if !p.cur.isPunct("(") && !p.cur.is("USING") {
		p.ident("an index's name")
	}
	p.using()
	p.expectPunct("an index", "(")
	var columns []string
	for p.cur.kind != end {
		if p.cur.isPunct("(") {
			p.parens("an index")
		} else {
			columns = append(columns, p.column())
			if p.cur.isPunct("(") {
				p.parens("an index")
			}
		}
		p.accept("ASC", "DESC")
		if p.acceptAll("WITHOUT", "OVERLAPS") || !p.punct(",") {
			break
		}
	}
	p.expectPunct("an index", ")")
	for p.cur.kind != end && p.indexOption() {
	}
	return columns
}

func (p *parser) using() {
	if p.accept("USING") {
		p.advance()
	}
}

func (p *parser) indexOption() bool {
	switch {
	case p.cur.is("USING"):
		p.using()
	case p.accept("TYPE"):
		p.advance()
	case p.accept("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING"):
		p.punct("=")
		p.advance()
	case p.acceptAll("WITH", "PARSER"):
		p.advance()
	case p.accept("COMMENT"):
		p.value()
	case p.accept("VISIBLE", "INVISIBLE", "IGNORED"), p.acceptAll("NOT", "IGNORED"):
	case p.source.MariaDB && (p.cur.kind == word || p.cur.kind == quoted) && p.peek().isPunct("="):
		p.advance()
		p.advance()
		p.advance()
	default:
		return false
	}
	return true
}

// tableWords are the options of a table that have a value and concern no columns.
var tableWords = set(
	"AUTO_INCREMENT AUTOEXTEND_SIZE AVG_ROW_LENGTH CHECKSUM COMMENT COMPRESSION CONNECTION DELAY_KEY_WRITE " +
		"ENCRYPTION ENGINE ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT " +
		"SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES " +
		"TABLE_CHECKSUM TYPE " +
		"PAGE_CHECKSUM TRANSACTIONAL ENCRYPTED ENCRYPTION_KEY_ID PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL IETF_QUOTES " +
		"SEQUENCE " +
		"ALGORITHM LOCK",
)

// tableOptions reads the options of a table. standard is what DEFAULT stands for.
func (p *parser) tableOptions(t *Table, standard string) {
	for p.cur.kind != end && p.tableOption(t, standard) {
		p.punct(",")
	}
}

func (p *parser) tableOption(t *Table, standard string) bool {
	switch {
	case p.cur.is("DEFAULT") && p.peek().isAny("CHARACTER", "CHARSET", "CHAR", "COLLATE"):
		p.advance()
	case p.isCharset():
		t.Charset = p.charset(standard)
		p.optional = true
	case p.accept("COLLATE"):
		p.optional = true
		t.Charset = p.collate(t.Charset)
	case p.acceptAll("START", "TRANSACTION"):
	case p.acceptAll("DATA", "DIRECTORY"), p.acceptAll("INDEX", "DIRECTORY"):
		p.punct("=")
		p.value()
	case p.accept("TABLESPACE"):
		p.punct("=")
		p.ident("a tablespace's name")
		if p.accept("STORAGE") {
			p.advance()
		}
	case p.accept("STORAGE"):
		p.advance()
	case p.accept("UNION"):
		p.punct("=")
		p.parens("UNION")
	case p.cur.kind == word && tableWords[strings.ToUpper(p.cur.text)]:
		p.advance()
		p.punct("=")
		p.optionValue()
	case p.source.MariaDB && (p.cur.kind == word || p.cur.kind == quoted) && p.peek().isPunct("="): // of an engine
		p.advance()
		p.advance()
		p.optionValue()
	default:
		return false
	}
	return true
}

func (p *parser) optionValue() {
	if p.cur.kind == punct || p.cur.kind == end {
		p.unexpected("the options of a table")
		return
	}
	p.advance()
}

// partitions passes over PARTITION BY, with what the partitions are, up to a SELECT.
func (p *parser) partitions() {
	depth := 0
	for p.cur.kind != end {
		switch {
		case p.cur.isPunct("("):
			depth++
		case p.cur.isPunct(")"):
			depth--
		case depth == 0 && p.cur.isAny("SELECT", "AS", "IGNORE", "REPLACE"):
			return
		case depth == 0 && p.cur.isPunct(";"):
			return
		}
		p.advance()
	}
}
