package router

import (
	"slices"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Columns returns the indexes of t's columns that Route looks at, sorted: what a
// source must deliver of a row. All others may be schema.Missing.
func (r *Router) Columns(t *schema.Table) []int {
	p := r.planFor(t)
	columns := []int{p.id, p.key, p.payload, p.route, p.timestamp, p.version}
	for _, pl := range p.placements {
		columns = append(columns, pl.index)
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	return slices.DeleteFunc(columns, func(i int) bool { return i < 0 })
}

// Check returns an error that names all columns that t lacks and the configuration
// names, nil when there are none.
func (r *Router) Check(t *schema.Table) error {
	p := r.planFor(t)
	if p.row.Err != nil {
		return p.undecided()
	}
	if len(p.missing) > 0 {
		return p.missingError()
	}
	return nil
}
