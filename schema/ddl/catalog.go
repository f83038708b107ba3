package ddl

import (
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Source says what a server makes of a statement's text.
type Source struct {
	MariaDB bool
	// Version is the server's as comments name it: 80036 is 8.0.36, 101118 is 10.11.18.
	Version int
	// FoldsNames says that names of tables and databases are in lower case, whatever was
	// typed (lower_case_table_names).
	FoldsNames bool
}

// Mode is the sql_mode of a session, in the bits of its query events.
type Mode uint64

// The modes that a statement's meaning depends on.
const (
	RealAsFloat        Mode = 1 << 0
	AnsiQuotes         Mode = 1 << 2
	Oracle             Mode = 1 << 9
	MSSQL              Mode = 1 << 10
	NoBackslashEscapes Mode = 1 << 20
	StrictTransTables  Mode = 1 << 21
	StrictAllTables    Mode = 1 << 22
)

// Statement is one statement of a query event, with what the event tells of its session.
type Statement struct {
	SQL []byte
	// Database completes names without one.
	Database string
	Mode     Mode
	// Charset is that of SQL (character_set_client); empty stands for utf8mb4.
	Charset string
	// Connection is that of its texts (collation_connection); empty stands for Charset.
	Connection string
	// ServerCharset is what databases without one get (collation_server), if it is known.
	ServerCharset string
	// Failed says that it ended with an error and is in the binlog for what it did until then.
	Failed bool
	// ExplicitTimestamps is explicit_defaults_for_timestamp; nil when it is not known.
	ExplicitTimestamps *bool
}

// Column is a column with what its table's rows do not show.
type Column struct {
	schema.Column
	Invisible bool
	Generated bool
	// Automatic is AUTO_INCREMENT.
	Automatic bool
}

// Table is what is known of a table. It is not changed once it is in a Catalog.
type Table struct {
	Columns []Column
	// Charset is what columns without one get; empty when it is not known.
	Charset string
	// PrimaryKey are the names of its columns, in the key's order.
	PrimaryKey []string
}

// Schema is the table as rows are decoded with it.
func (t *Table) Schema(name schema.Name) *schema.Table {
	out := &schema.Table{Name: name, Columns: make([]schema.Column, len(t.Columns))}
	for i := range t.Columns {
		out.Columns[i] = t.Columns[i].Column
	}
	for _, k := range t.PrimaryKey {
		out.PrimaryKey = append(out.PrimaryKey, t.column(k))
	}
	return out
}

// FromServer is the table as information_schema describes it. charset is that of the
// table's collation.
func FromServer(table *schema.Table, infos []schema.ColumnInfo, charset string) *Table {
	out := &Table{Charset: charset, Columns: make([]Column, len(table.Columns))}
	for i := range table.Columns {
		extra := strings.ToUpper(infos[i].Extra)
		c := Column{
			Column:    table.Columns[i],
			Invisible: strings.Contains(extra, "INVISIBLE"),
			Automatic: strings.Contains(extra, "AUTO_INCREMENT"),
			Generated: strings.Contains(extra, "VIRTUAL") || strings.Contains(extra, "STORED") ||
				strings.Contains(extra, "PERSISTENT"),
		}
		out.Columns[i] = c
	}
	for _, k := range table.PrimaryKey {
		// A unique key that stands in for a primary key has no place in it.
		if infos[k].KeyPosition > 0 {
			out.PrimaryKey = append(out.PrimaryKey, table.Columns[k].Name)
		}
	}
	return out
}

func (t *Table) clone() *Table {
	return &Table{Columns: slices.Clone(t.Columns), Charset: t.Charset, PrimaryKey: slices.Clone(t.PrimaryKey)}
}

// column returns the index of the column of this name in any case, or -1.
func (t *Table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
}

// Catalog is what is known of tables at one place of a binlog. A table that is not in
// Tables is not known; one that is nil there is known not to exist.
type Catalog struct {
	Tables map[schema.Name]*Table
	// Charsets are those of databases.
	Charsets map[string]string
}

// NewCatalog is one that knows nothing.
func NewCatalog() *Catalog {
	return &Catalog{Tables: map[schema.Name]*Table{}, Charsets: map[string]string{}}
}

// Outcome is what a statement has done to a catalog.
type Outcome struct {
	// Changed are the tables that got other columns, came or went.
	Changed []schema.Name
	// Unknown are those whose columns the server has to be asked for.
	Unknown []schema.Name
	// Reason says why, without any of the statement's text.
	Reason string
	// Everything says that any table may be concerned: all that was known is forgotten.
	Everything bool
}

func (o *Outcome) changed(n schema.Name) {
	if !slices.Contains(o.Changed, n) {
		o.Changed = append(o.Changed, n)
	}
}

// Apply carries the catalog through a statement.
func (c *Catalog) Apply(source Source, s Statement) Outcome {
	p := newParser(source, s, c)
	if s.Failed {
		p.fail("it ended with an error, after it had done a part of what it says")
	}
	changes := p.statement()
	if p.err != nil {
		return c.forget(source, s, p.err)
	}
	var out Outcome
	for _, ch := range changes {
		out.changed(ch.name)
		if ch.unknown == "" {
			c.Tables[ch.name] = ch.table
			continue
		}
		delete(c.Tables, ch.name)
		out.Reason = ch.unknown
		if !slices.Contains(out.Unknown, ch.name) {
			out.Unknown = append(out.Unknown, ch.name)
		}
	}
	// What became known again by a later step of the same statement.
	out.Unknown = slices.DeleteFunc(out.Unknown, func(n schema.Name) bool { _, known := c.Tables[n]; return known })
	for name, charset := range p.databases {
		if c.Charsets[name] = charset; charset == "" {
			delete(c.Charsets, name)
		}
	}
	return out
}

// forget drops what a statement that can't be followed may have changed.
func (c *Catalog) forget(source Source, s Statement, why error) Outcome {
	out := Outcome{Reason: why.Error()}
	scanned := schema.Scan(s.SQL, s.Database)
	out.Everything = scanned.Everything
	drop := func(n schema.Name) {
		if _, known := c.Tables[n]; known {
			delete(c.Tables, n)
			out.changed(n)
		}
		if !slices.Contains(out.Unknown, n) {
			out.Unknown = append(out.Unknown, n)
		}
	}
	for _, n := range scanned.Tables {
		drop(fold(source, n))
	}
	for n := range c.Tables {
		if scanned.Touches(n) {
			drop(n)
		}
	}
	for _, db := range scanned.Databases {
		delete(c.Charsets, db)
	}
	if scanned.Everything {
		clear(c.Charsets)
	}
	return out
}

func fold(source Source, n schema.Name) schema.Name {
	if source.FoldsNames {
		return schema.Name{Database: strings.ToLower(n.Database), Table: strings.ToLower(n.Table)}
	}
	return n
}
