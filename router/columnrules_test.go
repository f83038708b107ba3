package router

import (
	"errors"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// TestColumnRulesComeFirst: a column that is left out is neither asked for nor there, and
// rules that can't be decided let no row pass.
func TestColumnRulesComeFirst(t *testing.T) {
	text := func(name string) schema.Column {
		return schema.Column{Name: name, Type: schema.VarChar, Length: 9, Charset: "utf8mb4", ColumnType: "varchar(9)"}
	}
	table := &schema.Table{Name: schema.Name{Database: "d", Table: "t"}, PrimaryKey: []int{0},
		Columns: []schema.Column{text("id"), text("aggregatetype"), text("aggregateid"), text("payload"), text("more")}}
	row := &schema.Row{Table: table, Op: schema.Insert, After: []any{"1", "User", "k", "p", schema.Missing}}
	cfg := DefaultConfig()
	cfg.Placements = []Placement{{Column: "more", Where: PlaceHeader}}
	cfg.MissingAdditional = MissingIgnore
	build := func(rules converter.ColumnRules) *Router {
		t.Helper()
		cfg.Modes.Columns = &rules
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var ev Event
	r := build(converter.ColumnRules{Includes: func(name string) (bool, error) { return name != "d.t.more", nil }})
	if got := r.Columns(table); len(got) != 4 {
		t.Errorf("asks for the columns %v", got)
	}
	if _, err := r.Route(&ev, row, Info{}); err != nil || len(ev.Headers) != 1 {
		t.Errorf("%v, headers %v", err, ev.Headers)
	}
	r = build(converter.ColumnRules{Includes: func(name string) (bool, error) { return name != "d.t.aggregateid", nil }})
	var e *Error
	if _, err := r.Route(&ev, row, Info{}); !errors.As(err, &e) || e.Code != CodeMissingColumn || r.Check(table) == nil {
		t.Errorf("without its key: %v", err)
	}
	slow := func(string) (bool, error) { return false, errors.New("takes too long") }
	for _, rules := range []converter.ColumnRules{{Includes: slow},
		{Changes: []converter.ColumnChange{converter.MaskColumns(slow, 3)}}} {
		r := build(rules)
		if _, err := r.Route(&ev, row, Info{}); !errors.As(err, &e) || e.Code != CodeColumnRules || r.Check(table) == nil {
			t.Errorf("undecided rules: %v", err)
		}
	}
}
