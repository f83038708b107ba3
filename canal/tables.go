package canal

import (
	"bytes"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// maxKnownTables bounds the memory for names of foreign tables, on servers that
// make up tables all the time. Beyond it the memory starts afresh.
const maxKnownTables = 1 << 16

const (
	// maxTableMaps bounds the memory for the table maps of outbox tables, and of those
	// alone that one transaction needs.
	maxTableMaps = 64 << 20
	// columnBytes is about what a column takes in a shape.
	columnBytes = 512
)

// table is one table of the server as the stream has met it. For foreign tables
// only the fact that they are foreign counts.
type table struct {
	name   schema.Name
	outbox bool
	// maps are the table maps met since the last DDL on the table, newest last.
	maps []*tableMap
	// id is the last table id, moved says that it is another than before: the server has
	// opened the table anew, which it also does when it was changed.
	id    uint64
	moved bool
}

// tableMap is one distinct table map event of an outbox table, without its table
// id: the same bytes mean the same shape. What it says is read when the first row
// needs it, so that a table map alone can't fail the stream.
type tableMap struct {
	table        *table
	body         []byte        // from the database name on
	tableVersion *tableVersion // nil until a committed row needs it
	size         int           // with its shape
	index        int           // in hold.maps
}

// tables knows whose rows a rows event holds. It is owned by the event handler.
type tables struct {
	match  func(database, table string) (bool, error)
	known  map[string]*table // by database and table as they lie in the table map
	outbox []*table          // those of known that are outbox tables
	bytes  int               // of their table maps
	// open are the table maps of the running statement. A rows event refers to
	// one of them by id; the last rows event of a statement closes them.
	open []openTable
}

type openTable struct {
	id uint64
	tm *tableMap // nil for foreign tables
}

func newTables(match func(database, table string) (bool, error)) *tables {
	return &tables{match: match, known: map[string]*table{}}
}

// note takes in a table map event. Nothing is allocated for a table met before.
func (t *tables) note(m tableMapHead) error {
	tab, ok := t.known[string(m.name)]
	if !ok {
		var err error
		if tab, err = t.add(m); err != nil {
			return err
		}
	}
	o := openTable{id: m.id}
	if tab.outbox {
		tab.moved, tab.id = tab.moved || tab.id != m.id, m.id
		var err error
		if o.tm, err = t.mapFor(tab, m.rest); err != nil {
			return err
		}
	}
	for i := range t.open {
		if t.open[i].id == m.id {
			t.open[i] = o
			return nil
		}
	}
	t.open = append(t.open, o)
	return nil
}

func (t *tables) add(m tableMapHead) (*table, error) {
	if len(t.known) >= maxKnownTables {
		for k, tab := range t.known {
			if !tab.outbox {
				delete(t.known, k)
			}
		}
	}
	tab := &table{name: schema.Name{Database: string(m.db), Table: string(m.tab)}}
	var err error
	if tab.outbox, err = t.match(tab.name.Database, tab.name.Table); err != nil {
		return nil, err
	}
	if tab.outbox && len(t.outbox) >= maxKnownTables {
		return nil, newError(TooLarge, nil, "there are more than %d outbox tables", maxKnownTables)
	}
	if tab.outbox {
		t.outbox = append(t.outbox, tab)
	}
	t.known[string(m.name)] = tab
	return tab, nil
}

// mapFor returns the table map with these bytes, the one met last in the usual case.
func (t *tables) mapFor(tab *table, body []byte) (*tableMap, error) {
	for i := len(tab.maps) - 1; i >= 0; i-- {
		if bytes.Equal(tab.maps[i].body, body) {
			return tab.maps[i], nil
		}
	}
	// Two at most: the shapes before and after a change that shows no DDL, such
	// as session settings that change the metadata.
	const keep = 4
	if len(tab.maps) == keep {
		t.bytes -= tab.maps[0].size
		tab.maps = tab.maps[1:]
	}
	tm := &tableMap{table: tab, size: len(body)}
	r := reader{b: body}
	if columns, err := r.columns(); err == nil { // else a row will tell
		tm.size += columns * columnBytes
	}
	if t.bytes+tm.size > maxTableMaps {
		t.spare()
	}
	if t.bytes += tm.size; t.bytes > maxTableMaps {
		return nil, newError(TooLarge, nil, "the outbox tables take more than %d MiB", maxTableMaps>>20)
	}
	tm.body = bytes.Clone(body)
	tab.maps = append(tab.maps, tm)
	return tm, nil
}

// spare forgets the table maps that can be read anew. Shapes with names that the server
// was asked for can't: a change of the table must find them (event handler.tooLate).
func (t *tables) spare() {
	for _, tab := range t.outbox {
		t.drop(tab, func(tm *tableMap) bool { return tm.tableVersion == nil || tm.tableVersion.asOf.IsZero() })
	}
}

// drop forgets table maps of a table; nil means all.
func (t *tables) drop(tab *table, which func(*tableMap) bool) {
	tab.maps = slices.DeleteFunc(tab.maps, func(tm *tableMap) bool {
		if which != nil && !which(tm) {
			return false
		}
		t.bytes -= tm.size
		return true
	})
}

// find returns the table map of an open table id; known is false when there is none.
func (t *tables) find(id uint64) (tm *tableMap, known bool) {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].id == id {
			return t.open[i].tm, true
		}
	}
	return nil, false
}

// closeStatement forgets the open table maps.
func (t *tables) closeStatement() { t.open = t.open[:0] }

// forget drops all shapes: the server is another one or restarted.
func (t *tables) forget() {
	t.closeStatement()
	for _, tab := range t.outbox {
		t.drop(tab, nil)
	}
}

// changed drops the shapes of the outbox tables that a statement may concern.
func (t *tables) changed(s *schema.Statement) {
	for _, tab := range t.outbox {
		if s.Touches(tab.name) {
			t.drop(tab, nil)
		}
	}
}

// touchesOutbox names an outbox table that the statement may concern. Servers
// with lower_case_table_names log statements as they were typed. What can't be
// decided counts.
func (t *tables) touchesOutbox(s *schema.Statement) (string, bool) {
	for _, n := range s.Tables {
		for _, name := range []schema.Name{n, {Database: strings.ToLower(n.Database), Table: strings.ToLower(n.Table)}} {
			if matches, err := t.match(name.Database, name.Table); matches || err != nil {
				return n.String(), true
			}
		}
	}
	for _, tab := range t.outbox {
		if s.Touches(tab.name) {
			return tab.name.String(), true
		}
	}
	if s.Everything {
		return "a table that cannot be told, maybe an outbox table,", true
	}
	return "", false
}
