package router

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// testdata/debezium-3.6.1.json holds what Debezium 3.6.1's own classes made of rows:
// its DDL parser and value converters, its EventRouter, and Connect 4.3.1's
// converters, called one after the other. "expect" is theirs, everything else is input.

type recordedCase struct {
	Name        string            `json:"name"`
	Columns     []recordedColumn  `json:"columns"`
	Modes       map[string]string `json:"modes"`
	SMT         map[string]string `json:"smt"`
	Key         recordedConverter `json:"key"`
	Value       recordedConverter `json:"value"`
	Header      recordedConverter `json:"header"`
	PK          *int              `json:"pk"`
	Database    string            `json:"db"`
	Table       string            `json:"table"`
	Prefix      string            `json:"prefix"`
	Rows        [][]*recordedRaw  `json:"rows"`
	ConfigError string            `json:"configError"`
	Expect      []recordedRecord  `json:"expect"`
}

type recordedColumn struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Unsigned bool     `json:"unsigned"`
	Nullable bool     `json:"nullable"`
	Length   int      `json:"length"`
	Scale    int      `json:"scale"`
	FSP      int      `json:"fsp"`
	Elements []string `json:"elements"`
	Default  *string  `json:"default"`
}

type recordedConverter struct {
	Class  string            `json:"class"`
	Config map[string]string `json:"config"`
}

type recordedRaw struct{ T, V string }

type recordedBytes struct {
	Text *string `json:"text"`
	Hex  *string `json:"hex"`
}

func (b *recordedBytes) bytes(t *testing.T) []byte {
	t.Helper()
	switch {
	case b == nil:
		return nil
	case b.Text != nil:
		return append([]byte{}, *b.Text...)
	default:
		raw, err := hex.DecodeString(*b.Hex)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
}

type recordedRecord struct {
	Topic      string         `json:"topic"`
	Partition  *int32         `json:"partition"`
	Timestamp  int64          `json:"timestamp"`
	Key        *recordedBytes `json:"key"`
	Value      *recordedBytes `json:"value"`
	Error      string         `json:"error"`
	KeyError   string         `json:"keyError"`
	ValueError string         `json:"valueError"`
	Headers    []struct {
		Name  string         `json:"name"`
		Value *recordedBytes `json:"value"`
		Error string         `json:"error"`
	} `json:"headers"`
}

// failed reports that the task would have stopped at this record.
func (r *recordedRecord) failed() bool {
	if r.Error != "" || r.KeyError != "" || r.ValueError != "" {
		return true
	}
	for _, h := range r.Headers {
		if h.Error != "" {
			return true
		}
	}
	// The producer refuses these.
	return topicProblem(r.Topic) != "" || r.Timestamp < -1
}

const recordedNow = 1700000000000

func TestRecordedDebezium(t *testing.T) {
	raw, err := os.ReadFile("testdata/debezium-3.6.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recordedCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		c := &cases[i]
		t.Run(c.Name, func(t *testing.T) { c.run(t) })
	}
}

func (c *recordedCase) run(t *testing.T) {
	cfg, err := c.config()
	var r *Router
	if err == nil {
		r, err = New(cfg)
	}
	if err != nil {
		// What Debezium refuses at the first row may be refused at the start.
		for i := range c.Expect {
			if !c.Expect[i].failed() {
				t.Fatalf("refused at the start: %v", err)
			}
		}
		return
	}
	if c.ConfigError != "" {
		t.Fatalf("accepted, Debezium refuses: %s", c.ConfigError)
	}
	table := c.table()
	by := Converters{Key: c.Key.build(t), Value: c.Value.build(t), Header: c.Header.build(t)}
	var ev Event
	var arena txn.Arena
	for i, values := range c.Rows {
		row := &schema.Row{Table: table, Op: schema.Insert}
		for j, v := range values {
			row.After = append(row.After, v.goValue(t, &table.Columns[j]))
		}
		want := &c.Expect[i]
		rec, err := routeAndEncode(r, &by, &ev, &arena, row)
		if want.failed() {
			if err == nil {
				t.Errorf("row %d: topic %q value %q, Debezium fails: %s%s%s", i, rec.Topic, rec.Value, want.Error, want.KeyError,
					want.ValueError)
			}
			continue
		}
		if err != nil {
			t.Errorf("row %d: %v, Debezium sends key %q value %q", i, err, want.Key.bytes(t), want.Value.bytes(t))
			continue
		}
		want.compare(t, i, rec)
	}
}

func routeAndEncode(r *Router, by *Converters, ev *Event, a *txn.Arena, row *schema.Row) (txn.Record, error) {
	outcome, err := r.Route(ev, row, Info{Timestamp: recordedNow})
	if err != nil || outcome != Routed {
		return txn.Record{}, err
	}
	return by.Encode(a, ev)
}

func (r *recordedRecord) compare(t *testing.T, i int, rec txn.Record) {
	t.Helper()
	partition := NoPartition
	if r.Partition != nil {
		partition = *r.Partition
	}
	if rec.Topic != r.Topic || rec.Timestamp != r.Timestamp || rec.Partition != partition {
		t.Errorf("row %d: topic %q timestamp %d partition %d, want %q %d %d", i, rec.Topic, rec.Timestamp, rec.Partition,
			r.Topic, r.Timestamp, partition)
	}
	same(t, i, "key", rec.Key, r.Key.bytes(t))
	same(t, i, "value", rec.Value, r.Value.bytes(t))
	if len(rec.Headers) != len(r.Headers) {
		t.Fatalf("row %d: %d headers, want %d", i, len(rec.Headers), len(r.Headers))
	}
	for j, h := range r.Headers {
		if rec.Headers[j].Key != h.Name {
			t.Errorf("row %d: header %d is %q, want %q", i, j, rec.Headers[j].Key, h.Name)
		}
		same(t, i, "header "+h.Name, rec.Headers[j].Value, h.Value.bytes(t))
	}
}

// same compares bytes and, apart from them, null with empty.
func same(t *testing.T, i int, what string, got, want []byte) {
	t.Helper()
	if string(got) != string(want) || (got == nil) != (want == nil) {
		t.Errorf("row %d: %s\n got %q (null %v)\nwant %q (null %v)", i, what, got, got == nil, want, want == nil)
	}
}

func (c *recordedCase) table() *schema.Table {
	t := &schema.Table{Name: schema.Name{Database: "db", Table: "outbox"}}
	if c.Database != "" {
		t.Database = c.Database
	}
	if c.Table != "" {
		t.Table = c.Table
	}
	for i := range c.Columns {
		t.Columns = append(t.Columns, c.Columns[i].column())
	}
	if c.PK != nil {
		t.PrimaryKey = []int{*c.PK}
	}
	return t
}

var recordedTypes = map[string]schema.Type{
	"tinyint": schema.TinyInt, "smallint": schema.SmallInt, "mediumint": schema.MediumInt, "int": schema.Int,
	"bigint": schema.BigInt,
	"float":  schema.Float, "double": schema.Double, "decimal": schema.Decimal, "bit": schema.Bit, "year": schema.Year,
	"date": schema.Date, "time": schema.Time, "datetime": schema.DateTime, "timestamp": schema.Timestamp,
	"char": schema.Char, "varchar": schema.VarChar, "text": schema.Text, "mediumtext": schema.MediumText,
	"longtext": schema.LongText,
	"binary":   schema.Binary, "varbinary": schema.VarBinary, "blob": schema.Blob,
	"enum": schema.Enum, "set": schema.Set, "json": schema.JSON, "geometry": schema.Geometry, "vector": schema.Vector,
}

func (c *recordedColumn) column() schema.Column {
	col := schema.Column{
		Name: c.Name, Type: recordedTypes[c.Type], Unsigned: c.Unsigned, Nullable: c.Nullable,
		Length: c.Length, Scale: c.Scale, FSP: c.FSP, Elements: c.Elements, Default: c.Default, DefaultKnown: true,
	}
	if c.Default != nil && strings.HasPrefix(*c.Default, "CURRENT_TIMESTAMP") {
		col.Default, col.DefaultExpr = nil, *c.Default
	}
	return col
}

// goValue turns an input value, which is what Debezium's binlog reader hands on,
// into what schema.Row says for the column.
func (v *recordedRaw) goValue(t *testing.T, c *schema.Column) any {
	t.Helper()
	if v == nil {
		return nil
	}
	switch v.T {
	case "int", "long":
		n, err := strconv.ParseInt(v.V, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return integer(n, c)
	case "float":
		f, _ := strconv.ParseFloat(v.V, 32)
		return float32(f)
	case "double":
		f, _ := strconv.ParseFloat(v.V, 64)
		return f
	case "bits":
		n, _ := strconv.ParseUint(v.V, 10, 64)
		return n
	case "year":
		if v.V == "1900" {
			return int64(0)
		}
		n, _ := strconv.ParseInt(v.V, 10, 64)
		return n
	case "datetime", "ts":
		return fraction(strings.Replace(v.V, "T", " ", 1), c.FSP)
	case "time":
		return fraction(v.V, c.FSP)
	case "zero":
		if c.Type == schema.Date {
			return "0000-00-00"
		}
		return fraction("0000-00-00 00:00:00", c.FSP)
	case "hex":
		b, err := hex.DecodeString(v.V)
		if err != nil {
			t.Fatal(err)
		}
		if c.Type == schema.Binary {
			b = append(b, make([]byte, c.Length-len(b))...)
		}
		return b
	default:
		return v.V
	}
}

func integer(n int64, c *schema.Column) any {
	switch c.Type {
	case schema.Enum:
		if n == 0 {
			return ""
		}
		return c.Elements[n-1]
	case schema.Set:
		var chosen []string
		for i, e := range c.Elements {
			if n&(1<<i) != 0 {
				chosen = append(chosen, e)
			}
		}
		return strings.Join(chosen, ",")
	}
	if !c.Unsigned {
		return n
	}
	width := map[schema.Type]uint{schema.TinyInt: 8, schema.SmallInt: 16, schema.MediumInt: 24, schema.Int: 32,
		schema.BigInt: 64}[c.Type]
	return uint64(n) & (1<<width - 1)
}

// fraction gives a time exactly fsp decimals.
func fraction(s string, fsp int) string {
	whole, frac, _ := strings.Cut(s, ".")
	if fsp == 0 {
		return whole
	}
	return whole + "." + (frac + "000000")[:fsp]
}

func (c *recordedConverter) build(t *testing.T) converter.Converter {
	t.Helper()
	prefixed := func(prefix string) map[string]string {
		out := make(map[string]string)
		for k, v := range c.Config {
			if rest, ok := strings.CutPrefix(k, prefix); ok {
				out[rest] = v
			}
		}
		return out
	}
	switch c.Class[strings.LastIndexByte(c.Class, '.')+1:] {
	case "StringConverter":
		return converter.StringConverter{Quirks: true}
	case "JsonConverter":
		opts := converter.JSONOptions{Schemas: true, ReplaceNullWithDefault: true}
		opts.Schemas = c.Config["schemas.enable"] != "false"
		opts.NumericDecimals = c.Config["decimal.format"] == "NUMERIC"
		return converter.NewJSONConverter(opts)
	case "ByteArrayConverter":
		return converter.ByteArrayConverter{}
	case "BinaryDataConverter":
		if class := c.Config["delegate.converter.type"]; class != "" {
			d := recordedConverter{Class: class, Config: prefixed("delegate.converter.type.")}
			return converter.BinaryDataConverter{Delegate: d.build(t)}
		}
		return converter.BinaryDataConverter{}
	case "SimpleHeaderConverter":
		return converter.SimpleHeaderConverter{}
	default:
		t.Fatalf("converter %s", c.Class)
		return nil
	}
}

func (c *recordedCase) config() (Config, error) {
	cfg := DefaultConfig()
	cfg.Quirks = true
	cfg.TopicPrefix = "p"
	if c.Prefix != "" {
		cfg.TopicPrefix = c.Prefix
	}
	for k, v := range c.Modes {
		switch k {
		case "binary.handling.mode":
			cfg.Modes.Binary = v
		case "decimal.handling.mode":
			cfg.Modes.Decimal = v
		case "time.precision.mode":
			cfg.Modes.Time = v
		case "bigint.unsigned.handling.mode":
			cfg.Modes.BigintUnsigned = v
		case "enable.time.adjuster":
			cfg.Modes.AdjustYears = v == "true"
		}
	}
	word := func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
	for k, v := range c.SMT {
		switch k {
		case "table.field.event.id":
			cfg.ID = v
		case "table.field.event.key":
			cfg.Key = v
		case "table.field.event.payload":
			cfg.Payload = v
		case "table.field.event.timestamp":
			cfg.Timestamp = v
		case "table.field.event.schema.version":
			cfg.SchemaVersion = v
		case "route.by.field":
			cfg.RouteBy = v
		case "route.topic.regex":
			cfg.RouteRegex = v
		case "route.topic.replacement":
			cfg.RouteTopic = v
		case "route.tombstone.on.empty.payload":
			cfg.TombstoneOnEmpty = v == "true"
		case "table.op.invalid.behavior":
			cfg.OnUpdate = word(v)
		case "table.field.additional.missing":
			cfg.MissingAdditional = word(v)
		case "table.expand.json.payload":
			cfg.ExpandJSON = v == "true"
		case "table.json.payload.null.behavior":
			cfg.JSONNull = word(v)
		case "field.name.adjustment.mode":
			cfg.FieldNames = v
		case "table.fields.additional.placement":
			var err error
			if cfg.Placements, err = ParsePlacements(v); err != nil {
				return cfg, err
			}
		}
	}
	return cfg, nil
}

func TestRecordedCasesAreReadable(t *testing.T) {
	raw, err := os.ReadFile("testdata/debezium-3.6.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(raw) {
		t.Fatal("the recorded cases are not UTF-8")
	}
}
