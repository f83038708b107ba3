package debezium

import (
	"fmt"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// tables turns Debezium's filters, which are lists of Java regular expressions of
// whole names, into the names of the outbox tables. Patterns that are plain names
// with their dot escaped or not are understood exactly; others are kept.
func (c *connector) tables() {
	tables, hasTables := c.get("table.include.list")
	databases, hasDatabases := c.get("database.include.list")
	hasTables, hasDatabases = hasTables && strings.TrimSpace(tables.value) != "", hasDatabases &&
		strings.TrimSpace(databases.value) != ""
	c.excludes()
	switch {
	case c.own["source.table"] || c.own["source.tables"] || c.own["source.table_patterns"]:
		for _, l := range []located{tables, databases} {
			if l.value != "" {
				c.harmless(l, ownPrefix+"source.table or tables is given")
			}
		}
		c.guarded(nil, nil)
	case hasTables && !c.literal(tables), hasDatabases && !c.literal(databases):
	case hasTables:
		c.includedTables(tables, databases, hasDatabases)
	case hasDatabases:
		c.includedDatabases(databases)
	default:
		c.refuse(c.absent("table.include.list"), "is missing; it names the outbox table")
	}
	for _, l := range []located{tables, databases} {
		if l.value != "" && !c.handled[l.key] {
			c.same(l, "one of the lists that name the outbox table")
		}
	}
}

func (c *connector) includedTables(tables, databases located, hasDatabases bool) {
	databasePatterns, err := compileList(splitPatterns(databases.value))
	if err != nil {
		c.refuse(databases, err.Error())
		return
	}
	var names, patterns []string
	for _, p := range splitPatterns(tables.value) {
		name, ok := plainTable(p)
		inDatabases := true
		if ok && hasDatabases {
			if inDatabases, err = matchAny(databasePatterns, name[0]); err != nil {
				c.refuse(databases, err.Error())
				return
			}
		}
		switch {
		case !ok:
			if p, err = withDatabases(p, splitPatterns(databases.value)); err != nil {
				c.refuse(tables, err.Error())
				return
			}
			patterns = append(patterns, p)
		case !inDatabases:
			c.refuse(tables, fmt.Sprintf("%s.%s is in no database of database.include.list, so it is never read; take it out",
				name[0], name[1]))
			return
		default:
			names = append(names, quoted(name))
		}
	}
	if hasDatabases {
		c.same(databases, "together with table.include.list")
	}
	names, ok := c.guarded(names, patterns)
	if !ok {
		return
	}
	c.tableSettings(tables, names, patterns)
}

func (c *connector) tableSettings(l located, names, patterns []string) {
	switch {
	case len(names) == 1 && len(patterns) == 0:
		c.take(l, "source.table", names[0], "")
		return
	case len(names) > 0:
		c.take(l, "source.tables", names, "")
		if len(patterns) > 0 {
			c.set(l, "source.table_patterns", patterns)
		}
	default:
		c.take(l, "source.table_patterns", patterns, "")
	}
}

// includedDatabases: every table of these databases is captured, and the router
// takes each for an outbox.
func (c *connector) includedDatabases(l located) {
	var patterns []string
	for _, p := range splitPatterns(l.value) {
		of := `(?:` + p + `)\..*`
		if _, err := compileList([]string{p, of}); err != nil {
			c.refuse(l, err.Error())
			return
		}
		patterns = append(patterns, of)
	}
	if _, ok := c.guarded(nil, patterns); ok {
		c.take(l, "source.table_patterns", patterns,
			"every table of these databases is taken for an outbox, as the router does")
	}
}

// excludes: with lists of what is included, Debezium looks at those alone.
func (c *connector) excludes() {
	for _, kind := range []string{"table", "database"} {
		l, ok := c.get(kind + ".exclude.list")
		if !ok {
			continue
		}
		include, _ := c.get("table.include.list")
		switch {
		case l.value == "":
			c.same(l, "so it is here")
		case kind == "database" && include.value != "":
			c.excludedDatabases(l, include)
		default:
			c.refuse(l, "name the outbox tables with table.include.list instead")
		}
	}
}

// excludedDatabases lets database.exclude.list pass when it touches none of the
// tables.
func (c *connector) excludedDatabases(l, include located) {
	patterns, err := compileList(splitPatterns(l.value))
	if err != nil {
		c.refuse(l, err.Error())
		return
	}
	for _, p := range splitPatterns(include.value) {
		name, ok := plainTable(p)
		shut, err := matchAny(patterns, name[0])
		if !ok || shut || err != nil {
			c.refuse(l, "it may shut out a table of table.include.list; name the outbox tables there alone")
			return
		}
	}
	c.harmless(l, "touches no table of table.include.list")
}

// guarded returns the tables that the router's predicate lets through. The others
// would be published as plain change events, which is not possible here, unless
// they are Debezium's own.
func (c *connector) guarded(names, patterns []string) ([]string, bool) {
	g := c.routerGuard
	if g == nil {
		return names, true
	}
	if len(patterns) > 0 {
		c.refuse(g.at,
			"can't be held against patterns of tables; name the outbox tables in full, with "+ownPrefix+"source.tables")
		return nil, false
	}
	prefix, _ := c.get("topic.prefix")
	signals, _ := c.get("signal.data.collection")
	var outboxes []string
	for _, name := range names {
		lets, err := g.lets(topicOf(prefix.value, name))
		switch {
		case err != nil:
			c.refuse(g.at, err.Error())
			return nil, false
		case lets:
			outboxes = append(outboxes, name)
		case strings.EqualFold(name, signals.value):
		default:
			c.refuse(g.at, fmt.Sprintf("keeps the router from %s, whose change events would be published as they are; that is "+
				"not possible here", name))
			return nil, false
		}
	}
	if len(names) > 0 && len(outboxes) == 0 {
		c.refuse(g.at, "keeps the router from every table; are topic.prefix and the pattern right?")
		return nil, false
	}
	c.same(g.at, "the router sees the outbox tables")
	return outboxes, true
}

// topicOf is the topic of a table's change events, as Debezium's default strategy
// names it: what Kafka does not allow becomes "_".
func topicOf(prefix, table string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, prefix+"."+strings.ReplaceAll(table, "`", ""))
}

// withDatabases is a pattern of tables that also asks for one of the databases, if
// there are any: both filters count.
func withDatabases(pattern string, databases []string) (string, error) {
	if _, err := compileList(append([]string{pattern}, databases...)); err != nil {
		return "", err
	}
	if len(databases) == 0 {
		return pattern, nil
	}
	all := slices.Concat(databases, []string{pattern})
	if slices.ContainsFunc(all, refersBack) {
		return "", fmt.Errorf("%q refers back to a group, or a pattern of database.include.list does; together they can't "+
			"be taken over", pattern)
	}
	both := `(?=(?:(?:` + strings.Join(databases, `)|(?:`) + `))\.)(?:` + pattern + `)`
	_, err := compileList([]string{both})
	return both, err
}

// refersBack reports whether a pattern may hold \1 or \k, whose groups are counted.
func refersBack(pattern string) bool {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			if i++; pattern[i] >= '1' && pattern[i] <= '9' || pattern[i] == 'k' {
				return true
			}
		}
	}
	return false
}

// splitPatterns splits a list at commas, except at escaped ones, as
// io.debezium.util.Strings.RegExSplitter does.
func splitPatterns(text string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if p := strings.TrimSpace(b.String()); p != "" {
			out = append(out, p)
		}
		b.Reset()
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == ',':
			b.WriteByte(',')
			i++
		case text[i] == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i++
		case text[i] == ',':
			flush()
		default:
			b.WriteByte(text[i])
		}
	}
	flush()
	return out
}

func compileList(list []string) ([]*javaregex.Pattern, error) {
	var out []*javaregex.Pattern
	for _, p := range list {
		re, err := javaregex.CompileFold(p)
		if err != nil {
			return nil, fmt.Errorf("%q is not a regular expression that can be taken over: %w", p, err)
		}
		out = append(out, re)
	}
	return out, nil
}

func matchAny(list []*javaregex.Pattern, text string) (bool, error) {
	for _, re := range list {
		if ok, err := re.Match(text); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// plainTable returns database and table of a pattern that is a name: letters,
// digits, "_", "-", escaped punctuation, and one dot between the two. That dot
// need not be escaped: as a wildcard it can only match the dot, since every
// "database.table" has one and no other character of the pattern could.
func plainTable(pattern string) (name [2]string, ok bool) {
	var b strings.Builder
	dots := 0
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; {
		case ch == '.' || ch == '\\' && i+1 < len(pattern) && pattern[i+1] == '.':
			if dots++; dots > 1 {
				return name, false
			}
			if ch == '\\' {
				i++
			}
			name[0] = b.String()
			b.Reset()
		case ch == '\\' && i+1 < len(pattern) && strings.IndexByte("$-_ @#", pattern[i+1]) >= 0:
			i++
			b.WriteByte(pattern[i])
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '_', ch == '-', ch >= 0x80:
			b.WriteByte(ch)
		default:
			return name, false
		}
	}
	name[1] = b.String()
	return name, dots == 1 && name[0] != "" && name[1] != ""
}

// quoted writes a name as source.table wants it.
func quoted(name [2]string) string { return name[0] + "." + name[1] }
