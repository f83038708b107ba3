package schema

import (
	"fmt"
	"strings"
)

// Roles names the columns that play a part in an outbox table. An empty name
// means that the role is not filled.
type Roles struct {
	ID            string // event id
	Key           string // record key (Debezium's aggregateid)
	Type          string // event type
	Payload       string
	Timestamp     string
	SchemaVersion string
	Route         string // topic (Debezium's aggregatetype)
	// Additional columns, for headers, envelope or partition.
	Additional []string
}

// Places are the column indexes of Roles in one table; -1 for roles that are not
// filled. Additional is in the order of Roles.Additional.
type Places struct {
	ID, Key, Type, Payload, Timestamp, SchemaVersion, Route int
	Additional                                              []int
}

// MissingColumn is a column that a role asks for and the table does not have.
type MissingColumn struct {
	Role   string
	Column string
	// Nearest is the column of the table with the most similar name, empty when
	// none is similar.
	Nearest string
}

// MissingColumnsError lists every column that the roles ask for and the table
// does not have, so that one look is enough to put the configuration right.
type MissingColumnsError struct {
	Table   Name
	Missing []MissingColumn
	// Columns are all columns that the table has.
	Columns []string
}

// Error is one line with all of it.
func (e *MissingColumnsError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		parts[i] = fmt.Sprintf("%q (%s)", m.Column, m.Role)
		if m.Nearest != "" {
			parts[i] += fmt.Sprintf(", did you mean %q?", m.Nearest)
		}
	}
	return fmt.Sprintf("table %s lacks %s; it has the columns %s",
		e.Table, strings.Join(parts, "; "), strings.Join(e.Columns, ", "))
}

// Resolve finds the columns of the roles in the table, by exact name as Debezium
// does. Missing ones are reported all at once in a *MissingColumnsError.
func (t *Table) Resolve(r Roles) (Places, error) {
	var missing []MissingColumn
	find := func(role, column string) int {
		if column == "" {
			return -1
		}
		i := t.Column(column)
		if i < 0 {
			missing = append(missing, MissingColumn{Role: role, Column: column, Nearest: t.nearest(column)})
		}
		return i
	}
	p := Places{
		ID:            find("id", r.ID),
		Key:           find("key", r.Key),
		Type:          find("type", r.Type),
		Payload:       find("payload", r.Payload),
		Timestamp:     find("timestamp", r.Timestamp),
		SchemaVersion: find("schema version", r.SchemaVersion),
		Route:         find("route", r.Route),
	}
	for _, name := range r.Additional {
		p.Additional = append(p.Additional, find("additional", name))
	}
	if missing == nil {
		return p, nil
	}
	e := &MissingColumnsError{Table: t.Name, Missing: missing}
	for i := range t.Columns {
		e.Columns = append(e.Columns, t.Columns[i].Name)
	}
	return p, e
}

// nearest is the column whose name differs from name in the fewest edits, if
// they are few enough to look like a slip. Case and underscores do not count.
func (t *Table) nearest(name string) string {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") }
	want := plain(name)
	best, bestAt := len(want)/3+1, -1
	for i := range t.Columns {
		if d := distance(want, plain(t.Columns[i].Name)); d < best {
			best, bestAt = d, i
		}
	}
	if bestAt < 0 {
		return ""
	}
	return t.Columns[bestAt].Name
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
