package canal

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

// What is kept of tables with each position is bounded. What goes beyond is asked of the
// server when it is needed, as that of a table that was never met.
const (
	maxColumnsText = 128 << 10
	maxColumnsJSON = 8 << 20
	maxOtherTables = 64
)

// columns are those of the outbox tables at the event handler's place, and those of other
// tables in the same databases that DDL has made or changed: they may become outbox
// tables by their name. It is owned by the event handler.
type columns struct {
	source  ddl.Source
	catalog *ddl.Catalog
	match   func(database, table string) (bool, error)
	// others are those that are no outbox tables, the one met last at the end.
	others []schema.Name
	// saved is what the last commit position, or the position, has.
	saved string
	dirty bool
}

// newColumns reads what a position has. What can't be read is not known.
func newColumns(source ddl.Source, match func(database, table string) (bool, error), saved string) *columns {
	c := &columns{source: source, catalog: ddl.NewCatalog(), match: match, saved: saved}
	kept, err := unpack(saved)
	if err != nil {
		c.dirty = true
		return c
	}
	for _, t := range kept.Tables {
		n := schema.Name{Database: t.Database, Table: t.Table}
		c.catalog.Tables[n] = t.Columns
		c.note(n)
	}
	for db, charset := range kept.Charsets {
		c.catalog.Charsets[db] = charset
	}
	return c
}

// keptColumns is the form in which columns are kept.
type keptColumns struct {
	Tables   []keptTable       `json:"t,omitempty"`
	Charsets map[string]string `json:"c,omitempty"`
}

type keptTable struct {
	Database string     `json:"d"`
	Table    string     `json:"t"`
	Columns  *ddl.Table `json:"c"` // null is known not to exist
}

func unpack(saved string) (k keptColumns, err error) {
	if saved == "" {
		return k, nil
	}
	packed, err := base64.RawStdEncoding.DecodeString(saved)
	if err != nil {
		return k, fmt.Errorf("reading the columns of a position: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxColumnsJSON))
	if err != nil {
		return k, fmt.Errorf("reading the columns of a position: %w", err)
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return k, fmt.Errorf("reading the columns of a position: %w", err)
	}
	return k, nil
}

// pack is what is known as a text; what is too much for that is left out.
func (c *columns) pack() string {
	k := keptColumns{Charsets: c.catalog.Charsets}
	for n, t := range c.catalog.Tables {
		k.Tables = append(k.Tables, keptTable{n.Database, n.Table, t})
	}
	// Those that are given up first come last.
	slices.SortFunc(k.Tables, func(a, b keptTable) int {
		return cmp.Or(cmp.Compare(c.rank(a), c.rank(b)), cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	for {
		text := k.text()
		if len(text) <= maxColumnsText || len(k.Tables) == 0 {
			return text
		}
		k.Tables = k.Tables[:len(k.Tables)/2]
	}
}

func (c *columns) rank(t keptTable) int {
	return slices.Index(c.others, schema.Name{Database: t.Database, Table: t.Table})
}

func (k *keptColumns) text() string {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	if err := json.NewEncoder(w).Encode(k); err != nil {
		return ""
	}
	if err := w.Close(); err != nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(out.Bytes())
}

// note keeps the number of tables that are no outbox tables bounded.
func (c *columns) note(n schema.Name) {
	if outbox, err := c.match(n.Database, n.Table); outbox || err != nil {
		return
	}
	c.others = slices.DeleteFunc(c.others, func(o schema.Name) bool { return o == n })
	if _, known := c.catalog.Tables[n]; !known {
		return
	}
	c.others = append(c.others, n)
	if len(c.others) > maxOtherTables {
		delete(c.catalog.Tables, c.others[0])
		c.others = slices.Delete(c.others, 0, 1)
	}
}

// table is what is known of a table here, or nil. A nil *columns knows nothing.
func (c *columns) table(n schema.Name) *schema.Table {
	if c == nil || c.catalog.Tables[n] == nil {
		return nil
	}
	return c.catalog.Tables[n].Schema(n)
}

// apply carries them through a statement.
func (c *columns) apply(s ddl.Statement) ddl.Outcome {
	out := c.catalog.Apply(c.source, s)
	if out.Everything {
		clear(c.catalog.Tables)
		clear(c.catalog.Charsets)
		c.others, c.dirty = nil, true
	}
	for _, n := range out.Changed {
		c.note(n)
		c.dirty = true
	}
	return out
}

// learn takes in what a server says of a table.
func (c *columns) learn(n schema.Name, a *asked, t *schema.Table) {
	c.catalog.Tables[n] = ddl.FromServer(t, a.columns, a.charset)
	if a.databaseCharset != "" {
		c.catalog.Charsets[n.Database] = a.databaseCharset
	}
	c.note(n)
	c.dirty = true
}

// forget makes a table unknown.
func (c *columns) forget(n schema.Name) {
	delete(c.catalog.Tables, n)
	c.note(n)
	c.dirty = true
}

// changed is what a commit position says of the columns: nothing when they are those of the
// one before.
func (c *columns) changed() string {
	if c == nil || !c.dirty {
		return ""
	}
	c.dirty = false
	text := c.pack()
	if text == c.saved {
		return ""
	}
	c.saved = text
	return text
}
