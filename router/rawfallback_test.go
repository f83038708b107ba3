package router

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// What can be read of a row that can't be routed is its key and its payload as they are.
func TestRawFallback(t *testing.T) {
	r, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	table := func(payload schema.Type) *schema.Table {
		return &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}, Columns: []schema.Column{
			{Name: "aggregateid", Type: schema.VarChar}, {Name: "payload", Type: payload},
		}}
	}
	for name, test := range map[string]struct {
		table      *schema.Table
		after      []any
		key, value string
		null       bool
	}{
		"texts":       {table(schema.Text), []any{"k", "v"}, "k", "v", false},
		"bytes":       {table(schema.Blob), []any{"k", []byte{0xff, 0}}, "k", "\xff\x00", false},
		"JSON":        {table(schema.JSON), []any{"k", []byte{0x04, 0x01}}, "k", "true", false},
		"broken JSON": {table(schema.JSON), []any{"k", []byte{0x00, 0x01}}, "k", "", true},
		"number":      {table(schema.BigInt), []any{"k", int64(-7)}, "k", "-7", false},
		"NULL":        {table(schema.Text), []any{"k", nil}, "k", "", true},
		"not logged":  {table(schema.Text), []any{"k", schema.Missing}, "k", "", true},
		"too short":   {table(schema.Text), []any{"k"}, "k", "", true},
		"no columns":  {&schema.Table{}, []any{"k", "v"}, "", "", true},
	} {
		key, value := r.RawFallback(&schema.Row{Table: test.table, Op: schema.Insert, After: test.after})
		if string(key) != test.key || string(value) != test.value || (value == nil) != test.null {
			t.Errorf("%s: key %q, value %q (%v)", name, key, value, value == nil)
		}
	}
	if k, v := r.RawFallback(nil); k != nil || v != nil {
		t.Error("something came of no row")
	}
}
