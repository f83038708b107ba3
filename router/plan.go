package router

import (
	"strings"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// plan is what the configuration means for one shape of a table. Columns are
// indexes into it, or noColumn.
type plan struct {
	row *converter.RowSchema

	id, key, payload, route, timestamp, version int
	placements                                  []placed
	// missing are the needed columns that the table lacks, in order of the
	// configuration and without repeats.
	missing []string
	// payloadPrint is the fingerprint of the payload's schema.
	payloadPrint string
}

const noColumn = -1

// placed is a Placement with its column.
type placed struct {
	Placement
	index int
}

func (r *Router) newPlan(t *schema.Table) *plan {
	p := &plan{row: converter.ForTable(r.cfg.TopicPrefix, t, r.cfg.Modes)}
	find := func(name string) int {
		i := p.column(name)
		if i < 0 {
			p.lacks(name)
		}
		return i
	}
	p.payload = find(r.cfg.Payload)
	p.timestamp, p.version = noColumn, noColumn
	if r.cfg.Timestamp != "" {
		p.timestamp = find(r.cfg.Timestamp)
	}
	p.id = find(r.cfg.ID)
	if r.cfg.SchemaVersion != "" && r.hasEnvelope {
		p.version = find(r.cfg.SchemaVersion)
	}
	for _, pl := range r.cfg.Placements {
		i := p.column(pl.Column)
		if i < 0 && (r.cfg.MissingAdditional == MissingError || pl.Where == PlaceEnvelope && r.cfg.missingEnvelopeFails) {
			p.lacks(pl.Column)
		}
		p.placements = append(p.placements, placed{pl, i})
	}
	p.key = find(r.cfg.Key)
	p.route = find(r.cfg.RouteBy)
	if p.payload >= 0 {
		p.payloadPrint = string(p.row.Columns[p.payload].Schema.Fingerprint(nil))
	}
	return p
}

// column returns the index of the column with this name, or noColumn when there is
// none, also because the configuration leaves it out.
func (p *plan) column(name string) int {
	if i := p.row.Table.Column(name); i >= 0 && !p.row.Columns[i].Excluded {
		return i
	}
	return noColumn
}

func (p *plan) lacks(name string) {
	for _, m := range p.missing {
		if m == name {
			return
		}
	}
	p.missing = append(p.missing, name)
}

// undecided is the error when it is not known which columns are left out or changed.
func (p *plan) undecided() error {
	return &Error{Code: CodeColumnRules, Table: p.row.Table.Name, Reason: p.row.Err.Error()}
}

// missingError names everything that the table lacks, so that it can be put right
// at once.
func (p *plan) missingError() error {
	noun := "the column "
	if len(p.missing) > 1 {
		noun = "the columns "
	}
	return &Error{
		Code: CodeMissingColumn, Table: p.row.Table.Name, Column: p.missing[0],
		Reason: "the table lacks " + noun + strings.Join(p.missing, ", ") + ", which the configuration names",
	}
}

// keyChanged reports an UPDATE of a primary key column. Debezium makes a delete
// and an insert of it, and the router routes the insert. A column that only the new
// image lacks did not change.
func (p *plan) keyChanged(row *schema.Row) (bool, error) {
	for _, i := range p.row.Table.PrimaryKey {
		if i < 0 || i >= len(row.Before) || i >= len(row.After) {
			return false, p.fail(CodeBadRow, "", "the row has fewer values than its table has columns")
		}
		if row.Before[i] == schema.Missing {
			return false, p.fail(CodeNotLogged, p.row.Columns[i].Name, "an update without the primary key before it")
		}
		if row.After[i] != schema.Missing && !sameValue(row.Before[i], row.After[i]) {
			return true, nil
		}
	}
	return false, nil
}

// sameValue compares two raw values of one column.
func sameValue(a, b any) bool {
	x, ok1 := a.([]byte)
	y, ok2 := b.([]byte)
	if ok1 || ok2 {
		return ok1 && ok2 && string(x) == string(y)
	}
	return a == b
}
