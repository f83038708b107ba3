package router

import (
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// ID returns the event id of a row as Route reads it, also when Route refuses the
// row; nil when it has none or it can't be read. It needs the columns of IDColumns
// alone.
func (r *Router) ID(row *schema.Row) any {
	if row == nil || row.Table == nil {
		return nil
	}
	p := r.planFor(row.Table)
	if p.id < 0 {
		return nil
	}
	id, err := p.get(p.id, row)
	if err != nil {
		return nil
	}
	return id.Value
}

// IDColumns returns the indexes of the columns that ID reads.
func (r *Router) IDColumns(t *schema.Table) []int {
	if i := r.planFor(t).id; i >= 0 {
		return []int{i}
	}
	return []int{}
}
