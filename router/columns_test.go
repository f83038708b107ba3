package router

import (
	"slices"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

func TestColumnsAreThoseThatRouteLooksAt(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Placements = []Placement{{Column: "type", Where: PlaceHeader}, {Column: "gone", Where: PlaceHeader},
		{Column: "id", Where: PlaceHeader}}
	cfg.MissingAdditional = MissingIgnore
	cfg.Timestamp = "created_at"
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	table := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}}
	for _, name := range []string{"unused", "payload", "type", "aggregateid", "big", "aggregatetype", "id", "created_at"} {
		table.Columns = append(table.Columns, schema.Column{Name: name, Type: schema.VarChar, Length: 10, Charset: "utf8mb4"})
	}
	if got, want := r.Columns(table), []int{1, 2, 3, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCheckNamesAllMissingColumns(t *testing.T) {
	r, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	table := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}}
	for _, name := range []string{"id", "aggregatetype"} {
		table.Columns = append(table.Columns, schema.Column{Name: name, Type: schema.VarChar, Length: 10, Charset: "utf8mb4"})
	}
	err = r.Check(table)
	if err == nil || !strings.Contains(err.Error(), "payload, aggregateid") ||
		!strings.Contains(err.Error(), "shop.outbox") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"payload", "aggregateid"} {
		table.Columns = append(table.Columns, schema.Column{Name: name, Type: schema.VarChar, Length: 10, Charset: "utf8mb4"})
	}
	whole := *table
	if err := r.Check(&whole); err != nil {
		t.Error(err)
	}
}
