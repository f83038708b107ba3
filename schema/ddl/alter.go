package ddl

import (
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// alter reads on behind ALTER.
func (p *parser) alter() {
	for p.accept("ONLINE", "OFFLINE", "IGNORE") {
	}
	switch {
	case p.accept("TABLE"):
		p.alterTable()
	case p.accept("DATABASE", "SCHEMA"):
		p.alterDatabase()
	case p.cur.isAny("VIEW", "ALGORITHM", "DEFINER", "SQL", "EVENT", "FUNCTION", "PROCEDURE", "USER", "ROLE", "SERVER",
		"TABLESPACE", "LOGFILE", "UNDO", "INSTANCE", "RESOURCE", "SEQUENCE", "LIBRARY", "JSON", "CATALOG"):
		p.rest()
	default:
		p.unexpected("ALTER")
	}
}

func (p *parser) alterDatabase() {
	name := p.s.Database
	if !p.cur.isAny("CHARACTER", "DEFAULT", "COLLATE", "ENCRYPTION", "READ", "CHARSET", "COMMENT") ||
		p.cur.kind == quoted {
		name = p.ident("a database's name")
	}
	if p.source.FoldsNames {
		name = strings.ToLower(name)
	}
	if p.acceptAll("UPGRADE", "DATA", "DIRECTORY", "NAME") {
		return
	}
	p.databases[name] = p.databaseOptions(p.catalog.Charsets[name])
}

// alteration is what the clauses of one ALTER TABLE do. The server first goes through the
// columns that are there, and then puts the new and moved ones to their places.
type alteration struct {
	dropped  []string
	defined  []*place
	renames  map[string]string // in lower case: new names by old ones
	settings []setting
	noKey    bool
	key      []string
	charset  string // of CONVERT TO
	rename   *schema.Name
	made     []change      // tables that became partitions
	toTable  []schema.Name // partitions that become tables
}

// isEmpty reports whether no clause concerns columns.
func (a *alteration) isEmpty() bool {
	return len(a.dropped)+len(a.defined)+len(a.renames)+len(a.settings)+len(a.made)+len(a.toTable) == 0 &&
		!a.noKey && a.key == nil && a.charset == "" && a.rename == nil
}

// place is a column that is added, or changed when was is its name before.
type place struct {
	*definition
	was      string
	optional bool // IF EXISTS or IF NOT EXISTS
	first    bool
	after    string
}

// setting changes one thing of a column that stays.
type setting struct {
	name      string
	value     *value
	noDefault bool
	invisible *bool
	optional  bool
}

func (p *parser) alterTable() {
	optional := p.ifExists()
	n := p.table()
	p.wait()
	old, known := p.lookup(n)
	t := &Table{}
	if old != nil {
		t = old.clone()
	}
	a := &alteration{renames: map[string]string{}}
	p.clauses(a, t)
	if p.err != nil || optional && known && old == nil {
		return
	}
	p.changes = append(p.changes, a.made...)
	if !known || old == nil {
		for _, made := range a.toTable {
			p.unknown(made, notKnownBefore)
		}
		if a.rename == nil {
			p.unknown(n, notKnownBefore)
			return
		}
		p.unknown(*a.rename, notKnownBefore)
		if *a.rename != n {
			p.set(n, nil)
		}
		return
	}
	if a.isEmpty() && t.Charset == old.Charset {
		return // rows, indexes, partitions
	}
	p.apply(a, t)
	p.set(n, t)
	for _, made := range a.toTable {
		p.set(made, t.clone())
	}
	if a.rename != nil {
		p.move(n, *a.rename, false)
		if p.source.MariaDB && strings.ContainsFunc(n.Table, isEncoded) {
			p.unknown(n, "MariaDB may leave the old one, too") // as 10.11 does when it copies such a table
		}
	}
}

// clauses reads what ALTER TABLE is to do. Options go to t at once.
func (p *parser) clauses(a *alteration, t *Table) {
	for n := 0; p.cur.kind != end && !p.cur.isPunct(";"); n++ {
		if n >= maxClauses || len(a.defined) >= maxClauses {
			p.fail("it has more than %d clauses", maxClauses)
			return
		}
		if !p.clause(a, t) {
			p.unexpected("ALTER TABLE")
			return
		}
		p.punct(",")
	}
	if a.charset != "" && p.optional {
		p.fail("it names two character sets")
	}
}

func (p *parser) clause(a *alteration, t *Table) bool {
	switch {
	case p.accept("ADD"):
		p.add(a)
	case p.accept("DROP"):
		p.dropClause(a)
	case p.accept("CHANGE"):
		p.accept("COLUMN")
		optional := p.ifExists()
		was := p.column()
		p.define(a, was, p.column(), optional)
	case p.accept("MODIFY"):
		p.accept("COLUMN")
		optional := p.ifExists()
		name := p.column()
		p.define(a, name, name, optional)
	case p.accept("ALTER"):
		p.alterClause(a)
	case p.accept("RENAME"):
		p.renameClause(a)
	case p.acceptAll("CONVERT", "TO"):
		if !p.isCharset() {
			p.unexpected("CONVERT TO")
		}
		a.charset = p.charset(p.catalog.Charsets[p.s.Database])
		if p.accept("COLLATE") {
			a.charset = p.collate(a.charset)
		}
		t.Charset = a.charset
	case p.acceptAll("ORDER", "BY"):
		for p.column(); p.accept("ASC", "DESC") || p.cur.isPunct(",") && p.peek().kind == quoted; {
			if p.punct(",") {
				p.column()
			}
		}
	case p.accept("FORCE"), p.acceptAll("ENABLE", "KEYS"), p.acceptAll("DISABLE", "KEYS"),
		p.acceptAll("WITH", "VALIDATION"), p.acceptAll("WITHOUT", "VALIDATION"),
		p.acceptAll("DISCARD", "TABLESPACE"), p.acceptAll("IMPORT", "TABLESPACE"),
		p.accept("SECONDARY_LOAD", "SECONDARY_UNLOAD"), p.acceptAll("UPGRADE", "PARTITIONING"),
		p.acceptAll("REMOVE", "PARTITIONING"):
	default:
		return p.partitioning(a) || p.tableOption(t, t.Charset)
	}
	return true
}

// add reads on behind ADD.
func (p *parser) add(a *alteration) {
	switch {
	case p.accept("PARTITION"):
		p.partitions()
		return
	case p.cur.isAny("SYSTEM", "PERIOD") && p.source.MariaDB && p.peek().isAny("VERSIONING", "FOR"):
		p.fail("SYSTEM VERSIONING is not followed")
		return
	}
	var b body
	if !p.cur.is("COLUMN") && p.tableElement(&b) {
		if b.key != nil {
			a.key = b.key
		}
		return
	}
	p.accept("COLUMN")
	optional := p.ifNotExists()
	if !p.punct("(") {
		p.define(a, "", p.column(), optional)
		return
	}
	p.elementsOf(&b)
	p.expectPunct("ADD COLUMN", ")")
	for _, d := range b.columns {
		a.defined = append(a.defined, &place{definition: d, optional: optional})
	}
	if b.key != nil {
		a.key = b.key
	}
}

// define reads a column's definition and its place.
func (p *parser) define(a *alteration, was, name string, optional bool) {
	d := &place{definition: p.definition(name), was: was, optional: optional}
	switch {
	case p.accept("FIRST"):
		d.first = true
	case p.accept("AFTER"):
		d.after = p.column()
	}
	if d.primary {
		a.key = []string{name}
	}
	a.defined = append(a.defined, d)
}

// dropClause reads on behind DROP.
func (p *parser) dropClause(a *alteration) {
	switch {
	case p.cur.is("PARTITION"):
		p.partitions()
	case p.cur.isAny("SYSTEM", "PERIOD") && p.source.MariaDB && p.peek().isAny("VERSIONING", "FOR"):
		p.fail("SYSTEM VERSIONING is not followed")
	case p.acceptAll("PRIMARY", "KEY"):
		a.noKey = true
	case p.accept("INDEX", "KEY"):
		p.ifExists()
		if strings.EqualFold(p.ident("an index's name"), "PRIMARY") {
			a.noKey = true
		}
	case p.acceptAll("FOREIGN", "KEY"), p.accept("CHECK"):
		p.ifExists()
		p.ident("a constraint's name")
	case p.accept("CONSTRAINT"):
		p.ifExists()
		if strings.EqualFold(p.ident("a constraint's name"), "PRIMARY") {
			a.noKey = true
		}
	default:
		p.accept("COLUMN")
		p.ifExists()
		a.dropped = append(a.dropped, p.column())
		p.accept("RESTRICT", "CASCADE")
	}
}

// alterClause reads on behind ALTER inside of ALTER TABLE.
func (p *parser) alterClause(a *alteration) {
	switch {
	case p.accept("INDEX", "KEY"):
		p.ifExists()
		p.ident("an index's name")
		if !p.acceptAll("NOT", "IGNORED") {
			p.expect("ALTER INDEX", "VISIBLE", "INVISIBLE", "IGNORED")
		}
		return
	case p.accept("CHECK", "CONSTRAINT"):
		p.ident("a constraint's name")
		p.accept("NOT")
		p.expect("ALTER CONSTRAINT", "ENFORCED")
		return
	}
	p.accept("COLUMN")
	s := setting{optional: p.ifExists()}
	s.name = p.column()
	switch {
	case p.acceptAll("DROP", "DEFAULT"):
		s.noDefault = true
	case p.acceptAll("SET", "DEFAULT"):
		v := p.value()
		s.value = &v
	default:
		p.expect("ALTER COLUMN", "SET")
		invisible := p.accept("INVISIBLE")
		if !invisible {
			p.expect("ALTER COLUMN", "VISIBLE")
		}
		s.invisible = &invisible
	}
	a.settings = append(a.settings, s)
}

// renameClause reads on behind RENAME inside of ALTER TABLE.
func (p *parser) renameClause(a *alteration) {
	switch {
	case p.cur.isAny("INDEX", "KEY") && !p.peek().isPunct(".") && p.peek().kind != end:
		p.advance()
		p.ifExists()
		p.ident("an index's name")
		p.expect("RENAME INDEX", "TO")
		p.ident("an index's name")
	case p.cur.is("COLUMN") && p.peek().kind != end && !p.peek().isPunct("."):
		p.advance()
		p.ifExists()
		was := p.column()
		p.expect("RENAME COLUMN", "TO")
		a.renames[strings.ToLower(was)] = p.column()
	default:
		p.accept("TO", "AS")
		p.punct("=")
		n := p.table()
		a.rename = &n
	}
}

// isEncoded reports whether a character of a table's name is another one in its file's.
func isEncoded(r rune) bool {
	return r >= 0x80 || !isWordByte(byte(r)) || r == '$'
}
