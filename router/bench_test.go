package router

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// defaultTable is the outbox table of Debezium's documentation, with texts only.
func defaultTable() *schema.Table {
	t := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}, PrimaryKey: []int{0}}
	for _, name := range []string{"id", "aggregatetype", "aggregateid", "type", "payload"} {
		t.Columns = append(t.Columns, schema.Column{Name: name, Type: schema.VarChar, Length: 255, Charset: "utf8mb4",
			DefaultKnown: true})
	}
	return t
}

func defaultRow(t *schema.Table) *schema.Row {
	payload := make([]byte, 250)
	for i := range payload {
		payload[i] = 'x'
	}
	return &schema.Row{Table: t, Op: schema.Insert, After: []any{
		"59a42efd-b015-44a9-9dde-cb36d9002425", "User", "10711fa5", "UserCreated", `{"p":"` + string(payload) + `"}`,
	}}
}

// textConverters are what outbox connectors commonly run with.
func textConverters() Converters {
	return Converters{Key: converter.StringConverter{}, Value: converter.StringConverter{},
		Header: converter.SimpleHeaderConverter{}}
}

// BenchmarkRouteDefaultRow routes and serialises one row of the default form with
// the four context headers. The budget is 2 µs and 8 allocations.
func BenchmarkRouteDefaultRow(b *testing.B) {
	cfg := DefaultConfig()
	cfg.TopicPrefix = "shop"
	cfg.Context = ContextHeaders("shop", "01890a5d-ac96-774b-bcce-b302099a8057")
	benchmarkRoute(b, cfg, textConverters(), defaultRow(defaultTable()))
}

// BenchmarkRouteJSONColumn is the same with the payload as a JSON column: its binary
// document is printed straight into the record.
func BenchmarkRouteJSONColumn(b *testing.B) {
	table := defaultTable()
	table.Columns[4].Type = schema.JSON
	row := defaultRow(table)
	text := row.After[4].(string)
	doc := []byte{0x00, 1, 0, 0, 0, 11, 0, 1, 0, 0x0c, 12, 0, 'p', 0xfa, 0x01}
	doc = append(doc, text[6:len(text)-2]...)
	doc[3], doc[4] = byte(len(doc)-1), byte((len(doc)-1)>>8)
	row.After[4] = doc
	cfg := DefaultConfig()
	cfg.Context = ContextHeaders("shop", "01890a5d-ac96-774b-bcce-b302099a8057")
	benchmarkRoute(b, cfg, textConverters(), row)
}

func benchmarkRoute(b *testing.B, cfg Config, by Converters, row *schema.Row) {
	r, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	var ev Event
	var arena txn.Arena
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if outcome, err := r.Route(&ev, row, Info{Timestamp: recordedNow}); outcome != Routed {
			b.Fatal(err)
		}
		if _, err = by.Encode(&arena, &ev); err != nil {
			b.Fatal(err)
		}
		if n++; n%1000 == 0 {
			arena.Reset()
		}
	}
}

// TestRouteDefaultRowAllocates holds the budget where benchmarks are not looked at.
func TestRouteDefaultRowAllocates(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Context = ContextHeaders("shop", "01890a5d-ac96-774b-bcce-b302099a8057")
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	by, row := textConverters(), defaultRow(defaultTable())
	var ev Event
	var arena txn.Arena
	n := testing.AllocsPerRun(1000, func() {
		arena.Reset()
		if _, err := r.Route(&ev, row, Info{}); err != nil {
			t.Fatal(err)
		}
		if _, err = by.Encode(&arena, &ev); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2 {
		t.Errorf("routing and serialising one row takes %v allocations", n)
	}
}
