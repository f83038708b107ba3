package router_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// A row of an outbox table becomes a record as Debezium's EventRouter makes it.
func ExampleEncoder_Encode() {
	cfg := router.DefaultConfig()
	cfg.Additional = []string{"type:header:eventType"}
	text := converter.StringConverter{}
	enc, err := router.NewEncoder(cfg, router.Converters{Key: text, Value: text, Header: text}, "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	table := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}}
	for _, name := range []string{"id", "aggregatetype", "aggregateid", "type", "payload"} {
		table.Columns = append(table.Columns, schema.Column{Name: name, Type: schema.VarChar, Charset: "utf8mb4"})
	}
	row := &schema.Row{Table: table, Op: schema.Insert, After: []any{"e-1", "Order", "42", "OrderPlaced", `{"total":9}`}}

	var arena txn.Arena // holds the record's bytes until its Reset
	rec, ok, err := enc.Encode(&arena, row)
	if err != nil || !ok {
		fmt.Println(ok, err)
		return
	}
	fmt.Printf("%s %s %s\n", rec.Topic, rec.Key, rec.Value)
	for _, h := range rec.Headers {
		fmt.Printf("%s: %s\n", h.Key, h.Value)
	}
	// Output:
	// outbox.event.Order 42 {"total":9}
	// id: e-1
	// eventType: OrderPlaced
}
