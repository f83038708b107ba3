package ddl

import (
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// apply does to t what the clauses say, in the server's order.
func (p *parser) apply(a *alteration, t *Table) {
	old := t.clone()
	p.skipOptional(a, old)
	p.timestamps(definitions(a.defined))
	names := map[string]string{} // what columns are called now, by their names in lower case
	late := p.keep(a, t, old, names)
	p.arrange(a, t, late)
	p.settings(a, t, names)
	if a.charset != "" {
		if slices.ContainsFunc(a.defined, func(d *place) bool {
			return isBlobText(d.Type) || d.Type >= schema.TinyBlob && d.Type <= schema.LongBlob
		}) {
			p.fail("a column of text is defined and converted at once") // MySQL may make a TINYTEXT of it
		}
		for i := range t.Columns {
			c := &t.Columns[i]
			p.convert(c, a.charset, slices.ContainsFunc(a.defined, func(d *place) bool { return d.Name == c.Name }))
		}
	}
	t.PrimaryKey = nil
	for _, k := range old.PrimaryKey {
		if name, stays := names[strings.ToLower(k)]; stays && !a.noKey {
			t.PrimaryKey = append(t.PrimaryKey, name)
		}
	}
	if a.key != nil {
		t.PrimaryKey = a.key
	}
	if p.err == nil && !t.keyed() {
		p.fail("the primary key has a column that is not known")
	}
}

func definitions(places []*place) []*definition {
	out := make([]*definition, len(places))
	for i, d := range places {
		out[i] = d.definition
	}
	return out
}

// skipOptional leaves out what IF EXISTS and IF NOT EXISTS say is not to be done.
func (p *parser) skipOptional(a *alteration, t *Table) {
	a.defined = slices.DeleteFunc(a.defined, func(d *place) bool {
		if d.was == "" {
			return d.optional && t.column(d.Name) >= 0
		}
		return d.optional && t.column(d.was) < 0
	})
}

// keep goes through the columns that are there. It returns those that are to be moved.
func (p *parser) keep(a *alteration, t, old *Table, names map[string]string) (late []*place) {
	t.Columns = nil
	for _, c := range old.Columns {
		was := strings.ToLower(c.Name)
		if slices.ContainsFunc(a.dropped, func(n string) bool { return strings.EqualFold(n, c.Name) }) {
			continue
		}
		i := slices.IndexFunc(a.defined, func(d *place) bool { return strings.EqualFold(d.was, c.Name) })
		switch {
		case i < 0:
			if n, ok := a.renames[was]; ok {
				c.Name = n
			}
			t.Columns = append(t.Columns, c)
		case a.defined[i].first || a.defined[i].after != "":
			c.Name = a.defined[i].Name
			late = append(late, a.defined[i])
		default:
			c = p.finish(a.defined[i].definition, t.Charset)
			t.Columns = append(t.Columns, c)
		}
		names[was] = c.Name
	}
	return late
}

// arrange puts new and moved columns to their places, in the order of the clauses.
func (p *parser) arrange(a *alteration, t *Table, late []*place) {
	for _, d := range a.defined {
		if d.was != "" && !slices.Contains(late, d) {
			if d.first || d.after != "" {
				p.fail("a column that is changed is not known")
			}
			continue
		}
		at := len(t.Columns)
		switch {
		case d.first:
			at = 0
		case d.after != "":
			if at = t.column(d.after) + 1; at == 0 {
				p.fail("the column behind which another is put is not known")
				return
			}
		}
		t.Columns = slices.Insert(t.Columns, at, p.finish(d.definition, t.Charset))
	}
}

func (p *parser) settings(a *alteration, t *Table, names map[string]string) {
	for _, s := range a.settings {
		at := t.column(s.name)
		if now, ok := names[strings.ToLower(s.name)]; ok {
			at = t.column(now)
		}
		if at < 0 {
			if !s.optional {
				p.fail("a column that is changed is not known")
			}
			continue
		}
		c := &t.Columns[at]
		switch {
		case s.noDefault:
			c.Default, c.DefaultExpr = nil, ""
		case s.value != nil && c.Automatic && s.value.kind != exprValue: // it is of no effect
		case s.value != nil:
			d := &definition{Column: *c, zeroFill: strings.HasSuffix(c.ColumnType, " zerofill")}
			p.setDefault(d, *s.value)
			*c = d.Column
		default:
			c.Invisible = *s.invisible
		}
	}
}

// partitioning reads the clauses about partitions. Rows change places by them, columns
// do not, but for those that make a table of a partition or the other way round.
func (p *parser) partitioning(a *alteration) bool {
	switch {
	case p.cur.is("PARTITION"):
		p.partitions()
	case p.acceptAll("EXCHANGE", "PARTITION"):
		p.ident("a partition's name")
		p.expect("EXCHANGE PARTITION", "WITH")
		p.expect("EXCHANGE PARTITION", "TABLE")
		p.table()
	case p.source.MariaDB && p.acceptAll("CONVERT", "PARTITION"):
		p.ident("a partition's name")
		p.expect("CONVERT PARTITION", "TO")
		p.expect("CONVERT PARTITION", "TABLE")
		a.toTable = append(a.toTable, p.table())
	case p.source.MariaDB && p.acceptAll("CONVERT", "TABLE"):
		a.made = append(a.made, change{name: p.table()})
		p.expect("CONVERT TABLE", "TO")
		p.partitions()
	case p.cur.isAny("REORGANIZE", "COALESCE", "TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "DISCARD",
		"IMPORT") &&
		p.peek().is("PARTITION"):
		p.partitions()
	default:
		return false
	}
	return true
}
