package ddl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// The work and memory for a statement are bounded. Servers have at most 4,096 columns.
const (
	maxStatement = 4 << 20
	maxChanges   = 1000
	maxClauses   = 8192
	maxNested    = 8
)

// parser reads one statement and finds out what it does. After an error cur is the end,
// so that every loop ends.
type parser struct {
	lex       *lexer
	cur       token
	source    Source
	s         Statement
	catalog   *Catalog
	changes   []change
	databases map[string]string
	made      bool // a table is made
	optional  bool // an option names a character set
	nested    int  // how many parentheses were taken off a literal
	err       error
}

// change is what becomes of one table: nil is dropped, unknown says why it can't be told.
type change struct {
	name    schema.Name
	table   *Table
	unknown string
}

func newParser(source Source, s Statement, c *Catalog) *parser {
	p := &parser{source: source, s: s, catalog: c, databases: map[string]string{}}
	var sql string
	var err error
	if len(s.SQL) > maxStatement {
		err = fmt.Errorf("it has more than %d MiB", maxStatement>>20)
	} else {
		sql, err = decode(s.SQL, s.Charset)
	}
	p.lex = &lexer{sql: sql, source: source, mode: s.Mode}
	switch {
	case err != nil:
		p.err = err
	case s.Mode&(Oracle|MSSQL) != 0:
		p.err = errors.New("it was written with an sql_mode that has a grammar of its own")
	default:
		p.advance()
	}
	return p
}

// fail ends the reading. Nothing of the statement's own text is in a reason but keywords.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.cur = token{}
}

// unexpected fails at the token at hand.
func (p *parser) unexpected(where string) {
	if p.cur.kind == word && p.source.knows(p.cur.text) {
		p.fail("%s in %s is not understood", strings.ToUpper(p.cur.text), where)
		return
	}
	p.fail("something in %s is not understood", where)
}

func (p *parser) advance() { p.advanceTo(false) }

func (p *parser) advanceTo(dotted bool) {
	if p.err != nil {
		return
	}
	p.cur = p.lex.next(dotted)
	if p.lex.err != nil {
		p.fail("%w", p.lex.err)
	}
}

// peek is the token behind the one at hand.
func (p *parser) peek() token {
	l := *p.lex
	return l.next(false)
}

func (p *parser) accept(keywords ...string) bool {
	if !p.cur.isAny(keywords...) {
		return false
	}
	p.advance()
	return true
}

// acceptAll moves over keywords that stand together.
func (p *parser) acceptAll(keywords ...string) bool {
	saved, at := *p.lex, p.cur
	for _, k := range keywords {
		if !p.cur.is(k) {
			*p.lex, p.cur = saved, at
			return false
		}
		p.advance()
	}
	return true
}

func (p *parser) punct(c string) bool {
	if !p.cur.isPunct(c) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(where string, keywords ...string) {
	if !p.accept(keywords...) {
		p.unexpected(where)
	}
}

func (p *parser) expectPunct(where, c string) {
	if !p.punct(c) {
		p.unexpected(where)
	}
}

// ident reads a name.
func (p *parser) ident(what string) string {
	if p.cur.kind != word && p.cur.kind != quoted {
		p.unexpected(what)
		return ""
	}
	name := p.cur.text
	p.advance()
	return name
}

// table reads a table's name.
func (p *parser) table() schema.Name {
	if p.cur.isPunct(".") {
		p.advanceTo(true)
		return p.named(p.s.Database, p.ident("a table's name"))
	}
	if p.cur.kind != word && p.cur.kind != quoted {
		p.unexpected("a table's name")
		return schema.Name{}
	}
	first := p.cur.text
	p.advance()
	if !p.cur.isPunct(".") {
		return p.named(p.s.Database, first)
	}
	p.advanceTo(true)
	return p.named(first, p.ident("a table's name"))
}

func (p *parser) named(db, table string) schema.Name {
	return fold(p.source, schema.Name{Database: db, Table: table})
}

// column reads a column's name, which may be qualified.
func (p *parser) column() string {
	name := p.ident("a column's name")
	for p.cur.isPunct(".") {
		p.advanceTo(true)
		name = p.ident("a column's name")
	}
	return name
}

// parens passes over a group in parentheses and returns what is inside.
func (p *parser) parens(where string) string {
	if !p.cur.isPunct("(") {
		p.unexpected(where)
		return ""
	}
	from, to, depth := p.cur.end, 0, 0
	for p.cur.kind != end {
		switch {
		case p.cur.isPunct("("):
			depth++
		case p.cur.isPunct(")"):
			depth--
		}
		if to = p.cur.start; depth == 0 {
			p.advance()
			return strings.TrimSpace(p.lex.sql[from:to])
		}
		p.advance()
	}
	p.fail("a parenthesis in %s is not closed", where)
	return ""
}

func (p *parser) ifExists() bool { return p.acceptAll("IF", "EXISTS") }

func (p *parser) ifNotExists() bool { return p.acceptAll("IF", "NOT", "EXISTS") }

// lookup is what the statement finds of a table at this step; known is false if nobody
// knows whether there is one, and which.
func (p *parser) lookup(n schema.Name) (t *Table, known bool) {
	for i := len(p.changes) - 1; i >= 0; i-- {
		if c := &p.changes[i]; c.name == n {
			return c.table, c.unknown == ""
		}
	}
	t, known = p.catalog.Tables[n]
	return t, known
}

func (p *parser) set(n schema.Name, t *Table) { p.change(change{name: n, table: t}) }

func (p *parser) unknown(n schema.Name, why string) { p.change(change{name: n, unknown: why}) }

func (p *parser) change(c change) {
	if len(p.changes) >= maxChanges {
		p.fail("it changes more than %d tables", maxChanges)
		return
	}
	p.changes = append(p.changes, c)
}

const notKnownBefore = "its columns before this statement are not known"

// statement finds out what a statement changes.
func (p *parser) statement() []change {
	if p.err != nil {
		return nil
	}
	if p.source.MariaDB && p.cur.is("SET") && p.peek().is("STATEMENT") {
		p.setStatement()
	}
	switch {
	case p.accept("CREATE"):
		p.create()
	case p.accept("ALTER"):
		p.alter()
	case p.accept("DROP"):
		p.drop()
	case p.accept("RENAME"):
		p.rename()
	default:
		return nil // not one that changes columns
	}
	if p.s.Mode&NoBackslashEscapes != 0 && p.lex.backslashed && p.made {
		// A CREATE that the server has written itself has escapes under any mode.
		p.fail("whether backslashes are escapes is not known")
	}
	p.punct(";")
	if p.err == nil && p.cur.kind != end {
		p.unexpected("the statement's end")
	}
	if p.err != nil {
		return nil
	}
	return p.changes
}

// setStatement passes over MariaDB's SET STATEMENT variable = value, ... FOR, which may
// change what the statement means.
func (p *parser) setStatement() {
	p.advance()
	for p.cur.kind != end && !p.cur.is("FOR") {
		if p.cur.isAny(
			"SQL_MODE",
			"EXPLICIT_DEFAULTS_FOR_TIMESTAMP",
			"OLD_MODE",
			"CHARACTER_SET_COLLATIONS",
			"SYSTEM_VERSIONING_ALTER_HISTORY",
		) {
			p.unexpected("SET STATEMENT")
		}
		p.advance()
	}
	p.expect("SET STATEMENT", "FOR")
}

// rest passes over what is left of a statement that concerns no columns.
func (p *parser) rest() {
	for p.cur.kind != end {
		p.advance()
	}
}

// create reads on behind CREATE.
func (p *parser) create() {
	replace := p.acceptAll("OR", "REPLACE")
	temporary := p.accept("TEMPORARY")
	switch {
	case p.accept("TABLE"):
		p.made = true
		p.createTable(replace, temporary)
	case p.accept("DATABASE", "SCHEMA"):
		p.createDatabase(replace)
	case p.source.MariaDB && temporary || p.cur.is("SEQUENCE"):
		p.rest() // a sequence is no table that rows are written to by statements
	default:
		// Indexes, views, routines, users and all else that CREATE makes. None of them is
		// a table or changes the columns of one.
		for !p.cur.isAny("INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "USER", "ROLE", "SERVER",
			"TABLESPACE", "LOGFILE", "UNDO", "RESOURCE", "LIBRARY", "CATALOG", "SPATIAL") {
			if p.cur.kind == end || p.cur.isAny("TABLE", "TABLES") {
				p.unexpected("CREATE")
				return
			}
			p.advance()
		}
		p.rest()
	}
}

func (p *parser) createDatabase(replace bool) {
	optional := p.ifNotExists()
	name := p.ident("a database's name")
	if p.source.FoldsNames {
		name = strings.ToLower(name)
	}
	if replace {
		p.dropAll(name)
	}
	charset := p.databaseOptions(p.s.ServerCharset)
	if optional && !replace {
		return // it may have been there before, with another
	}
	p.databases[name] = charset
}

func (p *parser) databaseOptions(charset string) string {
	for p.cur.kind != end && !p.cur.isPunct(";") {
		switch {
		case p.isCharset():
			charset = p.charset(charset)
		case p.accept("DEFAULT"):
		case p.accept("COLLATE"):
			charset = p.collate(charset)
		case p.accept("COMMENT", "ENCRYPTION"):
			p.punct("=")
			p.advance()
		case p.acceptAll("READ", "ONLY"):
			p.punct("=")
			p.advance()
		default:
			p.unexpected("the options of a database")
		}
	}
	return charset
}

func (p *parser) dropAll(db string) {
	for n, t := range p.catalog.Tables {
		if n.Database == db && t != nil {
			p.set(n, nil)
		}
	}
	p.databases[db] = ""
}

// drop reads on behind DROP.
func (p *parser) drop() {
	switch {
	case p.accept("TEMPORARY"):
		p.rest()
	case p.accept("TABLE", "TABLES"):
		p.ifExists()
		for {
			p.set(p.table(), nil)
			if !p.punct(",") {
				break
			}
		}
		p.wait()
		p.accept("RESTRICT", "CASCADE")
	case p.accept("DATABASE", "SCHEMA"):
		p.ifExists()
		name := p.ident("a database's name")
		if p.source.FoldsNames {
			name = strings.ToLower(name)
		}
		p.dropAll(name)
	case p.accept("INDEX"):
		p.ifExists()
		name := p.ident("an index's name")
		p.expect("DROP INDEX", "ON")
		n := p.table()
		p.rest()
		if strings.EqualFold(name, "PRIMARY") {
			p.withoutKey(n)
		}
	default:
		p.rest()
	}
}

func (p *parser) withoutKey(n schema.Name) {
	t, known := p.lookup(n)
	if !known || t == nil {
		p.unknown(n, notKnownBefore)
		return
	}
	t = t.clone()
	t.PrimaryKey = nil
	p.set(n, t)
}

// wait passes over MariaDB's WAIT n and NOWAIT.
func (p *parser) wait() {
	if p.source.MariaDB && !p.accept("NOWAIT") && p.accept("WAIT") {
		p.advance()
	}
}

// rename reads on behind RENAME.
func (p *parser) rename() {
	if !p.accept("TABLE", "TABLES") {
		p.rest() // RENAME USER
		return
	}
	optional := p.ifExists()
	for {
		from := p.table()
		p.wait()
		p.expect("RENAME TABLE", "TO")
		p.move(from, p.table(), optional)
		if !p.punct(",") {
			return
		}
	}
}

// move gives a table another name.
func (p *parser) move(from, to schema.Name, optional bool) {
	if from == to {
		return
	}
	t, known := p.lookup(from)
	switch {
	case !known:
		p.unknown(to, notKnownBefore)
	case t == nil && optional:
		return
	case t == nil:
		// It is known not to be there, and the statement worked: a view, or what is known
		// is wrong.
		p.unknown(to, notKnownBefore)
	default:
		p.set(to, t)
	}
	p.set(from, nil)
}
