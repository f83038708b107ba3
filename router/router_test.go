package router

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// What one row becomes is held against Debezium's records in TestRecordedDebezium.
// Here is what those records cannot show.

func newRouter(t *testing.T, change func(*Config)) *Router {
	t.Helper()
	cfg := DefaultConfig()
	cfg.TopicPrefix = "shop"
	if change != nil {
		change(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func code(t *testing.T, err error) Code {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	return e.Code
}

// with returns the default row with one column changed.
func with(table *schema.Table, column string, value any) *schema.Row {
	row := defaultRow(table)
	row.After[table.Column(column)] = value
	return row
}

func TestB070Operations(t *testing.T) {
	table := defaultTable()
	update := func(change string) *schema.Row {
		row := defaultRow(table)
		row.Op, row.Before = schema.Update, append([]any{}, row.After...)
		if change != "" {
			row.After[table.Column(change)] = "changed"
		}
		return row
	}
	op := func(op schema.Op) *schema.Row {
		row := defaultRow(table)
		row.Op = op
		row.Before = row.After
		return row
	}
	skip := func(c *Config) { c.SkipOperations = []string{"c", "u", "d"} }
	cases := []struct {
		name   string
		change func(*Config)
		row    *schema.Row
		want   Outcome
		code   Code
	}{
		{"insert", nil, op(schema.Insert), Routed, ""},
		{"read", nil, op(schema.Read), Routed, ""},
		{"delete", nil, op(schema.Delete), DroppedDelete, ""},
		{"update, warn", nil, update("payload"), DroppedUpdate, ""},
		{"update, error", func(c *Config) { c.OnUpdate = UpdateError }, update("payload"), DroppedUpdate, ""},
		{"update, fatal", func(c *Config) { c.OnUpdate = UpdateFatal }, update("payload"), Failed, CodeUpdate},
		{"update of nothing", nil, update(""), DroppedUpdate, ""},
		{"update of the key", nil, update("id"), Routed, ""},
		{"update of the key, fatal", func(c *Config) { c.OnUpdate = UpdateFatal }, update("id"), Routed, ""},
		{"update without the key before it", nil, &schema.Row{Table: table, Op: schema.Update,
			Before: []any{schema.Missing, nil, nil, nil, nil}, After: defaultRow(table).After}, Failed, CodeNotLogged},
		{"update that leaves the key out", nil, &schema.Row{Table: table, Op: schema.Update,
			Before: []any{"1", nil, nil, nil, nil}, After: []any{schema.Missing, nil, nil, nil, nil}}, DroppedUpdate, ""},
		{"update without values", nil, &schema.Row{Table: table, Op: schema.Update}, Failed, CodeBadRow},
		{"skipped insert", skip, op(schema.Insert), DroppedSkipped, ""},
		{"skipped update", skip, update("payload"), DroppedSkipped, ""},
		{"skipped update of the key", skip, update("id"), DroppedSkipped, ""},
		{"skipped delete", skip, op(schema.Delete), DroppedSkipped, ""},
		{"read is never skipped", skip, op(schema.Read), Routed, ""},
		{"no operation", nil, op(0), Failed, CodeBadRow},
		{"no table", nil, &schema.Row{Op: schema.Insert}, Failed, CodeBadRow},
		{"no row", nil, nil, Failed, CodeBadRow},
		{"too few values", nil, &schema.Row{Table: table, Op: schema.Insert, After: []any{"1"}}, Failed, CodeBadRow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var ev Event
			got, err := newRouter(t, c.change).Route(&ev, c.row, Info{})
			if got != c.want || (err != nil) != (c.code != "") {
				t.Fatalf("%v, %v, want %v", got, err, c.want)
			}
			if err != nil && code(t, err) != c.code {
				t.Errorf("%v, want code %s", err, c.code)
			}
		})
	}
}

func TestUpdateOfTheKeyCarriesTheOldKeyFirst(t *testing.T) {
	table := defaultTable()
	row := defaultRow(table)
	row.Op, row.Before = schema.Update, append([]any{}, row.After...)
	row.After[0] = "new"
	r := newRouter(t, func(c *Config) { c.Context = ContextHeaders("shop", "run") })
	by := textConverters()
	var ev Event
	var arena txn.Arena
	rec, err := routeAndEncode(r, &by, &ev, &arena, row)
	if err != nil {
		t.Fatal(err)
	}
	want := []txn.Header{
		{Key: "__debezium.oldkey", Value: []byte(`{"id":"59a42efd-b015-44a9-9dde-cb36d9002425"}`)},
		{Key: "__debezium.context.connectorLogicalName", Value: []byte("shop")},
		{Key: "__debezium.context.taskId", Value: []byte("0")},
		{Key: "__debezium.context.connectorName", Value: []byte("mysql")},
		{Key: "__debezium.context.runId", Value: []byte("run")},
		{Key: "id", Value: []byte("new")},
	}
	if d := cmp.Diff(want, rec.Headers); d != "" {
		t.Error(d)
	}
}

func TestUpdateWithoutAKeyIsAnUpdate(t *testing.T) {
	table := defaultTable()
	table.PrimaryKey = nil
	row := defaultRow(table)
	row.Op, row.Before = schema.Update, append([]any{}, row.After...)
	row.After[0] = "new"
	var ev Event
	if got, err := newRouter(t, nil).Route(&ev, row, Info{}); got != DroppedUpdate || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMissingColumnsAreNamedTogether(t *testing.T) {
	change := func(c *Config) {
		c.ID, c.Payload, c.Timestamp, c.RouteBy = "no_id", "no_payload", "no_time", "no_route"
		c.Placements = []Placement{{"type", PlaceHeader, ""}, {"no_header", PlaceHeader, "h"},
			{"no_header", PlaceEnvelope, ""}}
	}
	var ev Event
	_, err := newRouter(t, change).Route(&ev, defaultRow(defaultTable()), Info{})
	if code(t, err) != CodeMissingColumn || !strings.Contains(err.Error(),
		"no_payload, no_time, no_id, no_header, no_route") {
		t.Error(err)
	}
	quirks := func(c *Config) { change(c); c.Quirks = true }
	_, err = newRouter(t, quirks).Route(&ev, defaultRow(defaultTable()), Info{})
	if code(t, err) != CodeMissingColumn || !strings.Contains(err.Error(), "no_payload") ||
		strings.Contains(err.Error(), "no_route") {
		t.Error(err)
	}
}

func TestB033NeededColumnNotLogged(t *testing.T) {
	table := defaultTable()
	r := newRouter(t, nil)
	for _, name := range []string{"id", "aggregatetype", "aggregateid", "payload"} {
		var ev Event
		_, err := r.Route(&ev, with(table, name, schema.Missing), Info{})
		if code(t, err) != CodeNotLogged || !strings.Contains(err.Error(), "column "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var ev Event
	if got, err := r.Route(&ev, with(table, "type", schema.Missing), Info{}); got != Routed {
		t.Errorf("a column that is not needed: %v", err)
	}
}

func TestUnusedColumnNeverFailsARow(t *testing.T) {
	table := defaultTable()
	table.Columns = append(table.Columns, schema.Column{Name: "d", Type: schema.Date}, schema.Column{Name: "u"})
	row := defaultRow(table)
	row.After = append(row.After, "2024-02-31", struct{}{})
	var ev Event
	if got, err := newRouter(t, nil).Route(&ev, row, Info{}); got != Routed {
		t.Error(err)
	}
}

func TestB061RouteValues(t *testing.T) {
	table := defaultTable()
	table.Columns[1].Nullable = true
	cases := []struct {
		value any
		topic string
		code  Code
	}{
		{"Order", "outbox.event.Order", ""},
		{"", "outbox.event.", ""},
		{"$1${x}", "", CodeInvalidTopic},
		{"order/created", "", CodeInvalidTopic},
		{"Bestellung ä", "", CodeInvalidTopic},
		{"a\nb", "", CodeInvalidTopic},
		{"__consumer_offsets\n", "", CodeInvalidTopic},
		{"__consumer_offsets", "outbox.event.__consumer_offsets", ""},
		{"..", "outbox.event...", ""},
		{strings.Repeat("x", 236), "outbox.event." + strings.Repeat("x", 236), ""},
		{strings.Repeat("x", 237), "", CodeInvalidTopic},
		{nil, "", CodeNullRouteValue},
	}
	r := newRouter(t, nil)
	for range 2 { // the second time from the cache
		for _, c := range cases {
			var ev Event
			_, err := r.Route(&ev, with(table, "aggregatetype", c.value), Info{})
			switch {
			case c.code != "":
				if code(t, err) != c.code {
					t.Errorf("%q: %v", c.value, err)
				}
			case err != nil || ev.Topic != c.topic:
				t.Errorf("%q: %q, %v", c.value, ev.Topic, err)
			}
		}
	}
	raw := newRouter(t, func(c *Config) { c.RouteTopic = "${routedByValue}" })
	for _, name := range []string{".", "..", ""} {
		var ev Event
		if _, err := raw.Route(&ev, with(table, "aggregatetype", name), Info{}); code(t, err) != CodeInvalidTopic {
			t.Errorf("topic %q: %v", name, err)
		}
	}
}

func TestRouteRegexThatNeverEndsIsStopped(t *testing.T) {
	r := newRouter(t, func(c *Config) { c.RouteRegex, c.RouteTopic = "((a+)+)+b", "x" })
	var ev Event
	_, err := r.Route(&ev, with(defaultTable(), "aggregatetype", strings.Repeat("a", 60)), Info{})
	if code(t, err) != CodeRouteRegex {
		t.Error(err)
	}
}

func TestTopicCacheIsBounded(t *testing.T) {
	tp, err := newTopics("(.*)", "t-$1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxTopicCache {
		if _, err := tp.name(strings.Repeat("x", i%200) + string(rune('a'+i%26)) + strings.Repeat("y", i/200)); err != nil &&
			len(tp.cache) == 0 {
			t.Fatal(err)
		}
		if len(tp.cache) > maxTopicCache {
			t.Fatalf("%d topics are kept", len(tp.cache))
		}
	}
	if _, err := tp.name(strings.Repeat("z", 1000)); err == nil {
		t.Error("a topic of 1002 letters")
	}
	if _, ok := tp.cache[strings.Repeat("z", 1000)]; ok {
		t.Error("a value longer than any topic is kept")
	}
}

func TestB069TimestampColumn(t *testing.T) {
	for _, c := range []struct {
		name string
		col  schema.Column
		raw  any
		want int64
		code Code
	}{
		{"seconds", schema.Column{Type: schema.DateTime}, "2019-03-24 20:52:59", 1553460779000, ""},
		{"microseconds", schema.Column{Type: schema.DateTime, FSP: 6}, "2019-03-24 20:52:59.123999", 1553460779123, ""},
		{"half a millisecond before 1970", schema.Column{Type: schema.DateTime, FSP: 6}, "1969-12-31 23:59:59.999500", 0, ""},
		{"one millisecond before 1970", schema.Column{Type: schema.DateTime, FSP: 3}, "1969-12-31 23:59:59.999", NoTimestamp,
			""},
		{"two milliseconds before 1970", schema.Column{Type: schema.DateTime, FSP: 3}, "1969-12-31 23:59:59.998", 0,
			CodeInvalidTimestamp},
		{"null", schema.Column{Type: schema.DateTime, Nullable: true, Default: ptr("2020-01-01 00:00:00")}, nil, recordedNow,
			""},
		{"zero date", schema.Column{Type: schema.DateTime, Nullable: true}, "0000-00-00 00:00:00", recordedNow, ""},
		{"zero date in a required column", schema.Column{Type: schema.DateTime}, "2020-00-01 00:00:00", 0, ""},
		{"TIMESTAMP is a text", schema.Column{Type: schema.Timestamp}, "2019-03-24 20:52:59", 0, CodeColumnType},
		{"TIMESTAMP is a text even when null", schema.Column{Type: schema.Timestamp, Nullable: true}, nil, 0, CodeColumnType},
		{"BIGINT has no unit", schema.Column{Type: schema.BigInt}, int64(5), 0, CodeColumnType},
		{"impossible day", schema.Column{Type: schema.DateTime}, "2023-02-29 00:00:00", 0, CodeBadValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := defaultTable()
			c.col.Name = "at"
			table.Columns = append(table.Columns, c.col)
			row := defaultRow(table)
			row.After = append(row.After, c.raw)
			var ev Event
			_, err := newRouter(t, func(cfg *Config) { cfg.Timestamp = "at" }).Route(&ev, row, Info{Timestamp: recordedNow})
			switch {
			case c.code != "":
				if code(t, err) != c.code {
					t.Error(err)
				}
			case err != nil || ev.Timestamp != c.want:
				t.Errorf("%d, %v, want %d", ev.Timestamp, err, c.want)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestPartitionColumn(t *testing.T) {
	table := defaultTable()
	table.Columns = append(table.Columns, schema.Column{Name: "p", Type: schema.Int, Nullable: true})
	r := newRouter(t, func(c *Config) { c.Placements = []Placement{{"p", PlacePartition, ""}} })
	for _, c := range []struct {
		raw  any
		want int32
		code Code
	}{{int64(7), 7, ""}, {int64(0), 0, ""}, {nil, NoPartition, ""}, {int64(-1), 0, CodeInvalidPartition}} {
		row := defaultRow(table)
		row.After = append(row.After, c.raw)
		var ev Event
		_, err := r.Route(&ev, row, Info{})
		if c.code != "" {
			if code(t, err) != c.code {
				t.Errorf("%v: %v", c.raw, err)
			}
		} else if err != nil || ev.Partition != c.want {
			t.Errorf("%v: %d, %v", c.raw, ev.Partition, err)
		}
	}
}

func TestB059NeverATombstoneByAccident(t *testing.T) {
	table := defaultTable()
	table.Columns[4].Nullable = true
	for _, v := range []any{nil, "", " ", "\n", "\x00"} {
		var ev Event
		if _, err := newRouter(t, nil).Route(&ev, with(table, "payload", v), Info{}); err != nil || ev.Value.Schema == nil ||
			ev.Value.Value != v {
			t.Errorf("%q without the option: %v, %v", v, ev.Value, err)
		}
		if _, err := newRouter(t, func(c *Config) { c.TombstoneOnEmpty = true }).Route(&ev, with(table, "payload", v),
			Info{}); err != nil || ev.Value != (Datum{}) {
			t.Errorf("%q with the option: %v, %v", v, ev.Value, err)
		}
	}
	for _, v := range []string{"\u00a0", "null", `""`, "{}"} {
		var ev Event
		if _, err := newRouter(t, func(c *Config) { c.TombstoneOnEmpty = true }).Route(&ev, with(table, "payload", v),
			Info{}); err != nil || ev.Value.Value != v {
			t.Errorf("%q with the option: %v, %v", v, ev.Value, err)
		}
	}
}

func TestStringConverterSendsABlobAsItIs(t *testing.T) {
	table := defaultTable()
	table.Columns[4].Type = schema.Blob
	by := textConverters()
	var ev Event
	var arena txn.Arena
	rec, err := routeAndEncode(newRouter(t, nil), &by, &ev, &arena, with(table, "payload", []byte{0, 0xff}))
	if err != nil || string(rec.Value) != "\x00\xff" {
		t.Errorf("%q, %v", rec.Value, err)
	}
}

func TestConvertErrorNamesTablePartAndConverter(t *testing.T) {
	by := textConverters()
	by.Value = converter.ByteArrayConverter{}
	var ev Event
	var arena txn.Arena
	_, err := routeAndEncode(newRouter(t, nil), &by, &ev, &arena, defaultRow(defaultTable()))
	if code(t, err) != CodeConvert {
		t.Fatal(err)
	}
	if want := "routing a row of shop.outbox: convert: value: ByteArrayConverter: takes bytes only, " +
		"not string"; err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
}

func TestNewNamesEveryProblem(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ID, cfg.OnUpdate, cfg.MissingAdditional, cfg.RouteRegex = "", "never", "x", " [[a-z]"
	cfg.JSONNull, cfg.JSONEmptyArray, cfg.FieldNames, cfg.Modes.Binary = "x", "x", "x", "x"
	cfg.Placements = []Placement{{"a", "foo", ""}, {"a", PlaceEnvelope, "payload"}, {"", PlaceHeader, "x"}}
	_, err := New(cfg)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, key := range []string{
		"table.field.event.id", "table.op.invalid.behavior", "table.field.additional.missing", "route.topic.regex",
		"table.json.payload.null.behavior", "table.json.payload.empty.array.behavior", "field.name.adjustment.mode",
		"binary.handling.mode",
		`table.fields.additional.placement of a: "foo"`, `two envelope fields are called "payload"`, "a column name is empty",
	} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not named in:\n%v", key, err)
		}
	}
}

func TestParsePlacementsNamesEveryProblem(t *testing.T) {
	got, err := ParsePlacements(" a : HEADER ,b:envelope:c,:x,d,e:f:g:h,i:header:,")
	want := []Placement{{"a", PlaceHeader, ""}, {"b", PlaceEnvelope, "c"}, {"", "x", ""}, {"i", PlaceHeader, ""}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err == nil || !strings.Contains(err.Error(), `"d"`) || !strings.Contains(err.Error(), `"e:f:g:h"`) {
		t.Error(err)
	}
}

func TestDefaultConfigIsValid(t *testing.T) {
	if _, err := New(DefaultConfig()); err != nil {
		t.Error(err)
	}
}

// A table that DDL changed comes as a new *schema.Table.
func TestB037TableShapesAreKeptApart(t *testing.T) {
	v1 := defaultTable()
	v2 := defaultTable()
	v2.Columns[2], v2.Columns[3] = v2.Columns[3], v2.Columns[2]
	r := newRouter(t, nil)
	for _, c := range []struct {
		table *schema.Table
		key   string
	}{{v1, "10711fa5"}, {v2, "UserCreated"}, {v1, "10711fa5"}} {
		var ev Event
		row := defaultRow(v1)
		row.Table = c.table
		if _, err := r.Route(&ev, row, Info{}); err != nil || ev.Key.Value != c.key {
			t.Errorf("%v, %v", ev.Key.Value, err)
		}
	}
}

func TestB074TablesOfDifferentShapesShareARouter(t *testing.T) {
	a, b := defaultTable(), defaultTable()
	b.Columns[4].Type = schema.JSON
	r := newRouter(t, func(c *Config) { c.Placements = []Placement{{"type", PlaceEnvelope, ""}} })
	by := Converters{converter.StringConverter{}, converter.NewJSONConverter(converter.JSONOptions{Schemas: true,
		ReplaceNullWithDefault: true}), converter.SimpleHeaderConverter{}}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			table, payload := a, any("x")
			if i%2 == 1 {
				table, payload = b, []byte{0x0c, 1, 'x'}
			}
			var ev Event
			var arena txn.Arena
			for n := range 200 {
				rec, err := routeAndEncode(r, &by, &ev, &arena, with(table, "payload", payload))
				want := `"payload":{"payload":"x","type":"UserCreated"}}`
				if table == b {
					want = `"payload":{"payload":"\"x\"","type":"UserCreated"}}`
				}
				if err != nil || !strings.HasSuffix(string(rec.Value), want) {
					t.Errorf("row %d: %s, %v", n, rec.Value, err)
					return
				}
				arena.Reset()
			}
		})
	}
	wg.Wait()
}

// Debezium keeps envelope schemas by the payload's schema alone, so that a second
// table gets the name of the first.
func TestEnvelopeNameIsSharedByTables(t *testing.T) {
	r := newRouter(t, func(c *Config) { c.Placements = []Placement{{"type", PlaceEnvelope, ""}} })
	other := defaultTable()
	other.Table = "outbox2"
	for _, table := range []*schema.Table{defaultTable(), other} {
		var ev Event
		if _, err := r.Route(&ev, defaultRow(table), Info{}); err != nil ||
			ev.Value.Schema.Name != "shop.shop.outbox.User.Value" {
			t.Errorf("%v: %v, %v", table.Name, ev.Value.Schema, err)
		}
	}
}
