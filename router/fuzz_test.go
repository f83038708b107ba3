package router

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// source deals out a fuzzer's bytes.
type source struct{ data []byte }

func (s *source) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) bytes() []byte {
	n := min(int(s.byte()), len(s.data))
	b := s.data[:n]
	s.data = s.data[n:]
	return b
}

func (s *source) pick(words ...string) string { return words[int(s.byte())%len(words)] }

// value deals out any raw value, right for its column or not.
func (s *source) value() any {
	switch s.byte() % 10 {
	case 0:
		return nil
	case 1:
		return schema.Missing
	case 2:
		return int64(int8(s.byte())) << (s.byte() % 57)
	case 3:
		return uint64(s.byte()) << (s.byte() % 57)
	case 4:
		return float32(s.byte()) / 7
	case 5:
		return float64(s.byte()) * 1e20
	case 6:
		return append([]byte{}, s.bytes()...)
	case 7:
		return s.pick("2024-02-29 12:34:56", "0000-00-00 00:00:00", "2024-02-31", "-838:59:59", "12.50", "-0.00000001",
			"2024-01-01 00:00:00.123456")
	default:
		return strings.ToValidUTF8(string(s.bytes()), "?")
	}
}

var fuzzTypes = []schema.Type{
	schema.Unknown, schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt, schema.Float,
	schema.Double,
	schema.Decimal, schema.Bit, schema.Year, schema.Date, schema.Time, schema.DateTime, schema.Timestamp, schema.Char,
	schema.VarChar,
	schema.Text, schema.Binary, schema.VarBinary, schema.Blob, schema.Enum, schema.Set, schema.JSON, schema.JSON,
	schema.JSON,
	schema.Geometry, schema.Vector, schema.UUID, schema.VarChar, schema.VarChar, schema.VarChar, schema.VarChar,
}

func (s *source) column(name string) schema.Column {
	c := schema.Column{
		Name: name, Type: fuzzTypes[int(s.byte())%len(fuzzTypes)], Nullable: s.byte()%2 == 0, Unsigned: s.byte()%2 == 0,
		Length: int(s.byte() % 70), Scale: int(s.byte()%32) - 1, FSP: int(s.byte() % 7),
	}
	if s.byte()%4 == 0 {
		c.Default = ptr(s.pick("", "5", "b'101'", "0x6162", "2020-01-02", "CURRENT_TIMESTAMP", "a,b", "-12:00:00", "0"))
	}
	if c.Type == schema.Enum || c.Type == schema.Set {
		c.Elements = []string{"a,b", `c\d`, ""}
	}
	return c
}

func (s *source) config() Config {
	cfg := DefaultConfig()
	flags := s.byte()
	cfg.TombstoneOnEmpty, cfg.ExpandJSON, cfg.Quirks = flags&1 != 0, flags&2 != 0, flags&4 != 0
	if flags&8 != 0 {
		cfg.Timestamp = "at"
	}
	if flags&16 != 0 {
		cfg.SchemaVersion = "extra"
	}
	if flags&32 != 0 {
		cfg.MissingAdditional = MissingIgnore
	}
	if flags&64 != 0 {
		cfg.RouteTopic = "${routedByValue}"
	}
	cfg.OnUpdate = s.pick(UpdateWarn, UpdateError, UpdateFatal)
	cfg.JSONNull = s.pick(ExpandIgnore, ExpandOptionalBytes)
	cfg.JSONEmptyArray = s.pick(ExpandIgnore, ExpandOptionalString)
	cfg.FieldNames = s.pick(NamesAsTheyAre, NamesAvro, NamesAvroUnicode)
	cfg.Modes.Time = s.pick(converter.TimeAdaptiveMicroseconds, converter.TimeConnect, converter.TimeMicroseconds,
		converter.TimeNanoseconds, converter.TimeISOString)
	cfg.Modes.Binary = s.pick(converter.BinaryBytes, converter.BinaryBase64, converter.BinaryHex,
		converter.BinaryBase64URLSafe)
	cfg.Modes.Decimal = s.pick(converter.DecimalPrecise, converter.DecimalDouble, converter.DecimalString)
	cfg.Modes.BigintUnsigned = s.pick(converter.BigintLong, converter.BigintPrecise)
	for i := range int(s.byte() % 4) {
		cfg.Placements = append(cfg.Placements, Placement{
			s.pick("type", "extra", "at", "nope"), s.pick(PlaceHeader, PlaceEnvelope, PlacePartition), string(rune('a' + i)),
		})
	}
	return cfg
}

func (s *source) converter() converter.Converter {
	switch s.byte() % 6 {
	case 0:
		return converter.NewJSONConverter(converter.JSONOptions{Schemas: true, ReplaceNullWithDefault: true})
	case 1:
		return converter.NewJSONConverter(converter.JSONOptions{NumericDecimals: true})
	case 2:
		return converter.ByteArrayConverter{}
	case 3:
		return converter.BinaryDataConverter{Delegate: converter.SimpleHeaderConverter{}}
	case 4:
		return converter.SimpleHeaderConverter{}
	default:
		return converter.StringConverter{Quirks: s.byte()%2 == 0}
	}
}

// FuzzRoute: whatever the table, the row and the configuration, a row is routed,
// dropped for a reason, or an error that says why; nothing panics, and no topic is
// handed on that Kafka would refuse.
func FuzzRoute(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte(strings.Repeat("\x1f\x00\x01\x08\x05", 40) + `{"a":[1,{"b":null}],"c":"\ud83d"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &source{data}
		r, err := New(s.config())
		if err != nil {
			t.Skip() // two fields of one name
		}
		table := &schema.Table{Name: schema.Name{Database: "db", Table: "outbox"}}
		for _, name := range []string{"id", "aggregatetype", "aggregateid", "type", "payload", "at", "extra"} {
			if s.byte()%16 != 0 {
				table.Columns = append(table.Columns, s.column(name))
			}
		}
		table.PrimaryKey = []int{0}
		by := Converters{s.converter(), s.converter(), s.converter()}
		var ev Event
		var arena txn.Arena
		for range 3 {
			row := &schema.Row{Table: table, Op: schema.Op(s.byte() % 6)}
			for range table.Columns {
				row.Before = append(row.Before, s.value())
				row.After = append(row.After, s.value())
			}
			checkRow(t, r, &by, &ev, &arena, row)
		}
	})
}

func checkRow(t *testing.T, r *Router, by *Converters, ev *Event, arena *txn.Arena, row *schema.Row) {
	t.Helper()
	outcome, err := r.Route(ev, row, Info{Timestamp: recordedNow})
	if (outcome == Failed) != (err != nil) || outcome > DroppedSkipped {
		t.Fatalf("outcome %v with error %v", outcome, err)
	}
	if (row.Op == schema.Insert || row.Op == schema.Read) && outcome != Routed && outcome != Failed {
		t.Fatalf("an inserted row is %v", outcome)
	}
	if err != nil {
		checkError(t, err)
		return
	}
	if outcome != Routed {
		return
	}
	if p := topicProblem(ev.Topic); p != "" {
		t.Fatalf("topic %q: %s", ev.Topic, p)
	}
	if ev.Timestamp < NoTimestamp || ev.Partition < NoPartition {
		t.Fatalf("timestamp %d, partition %d", ev.Timestamp, ev.Partition)
	}
	rec, err := by.Encode(arena, ev)
	if err != nil {
		checkError(t, err)
		return
	}
	if rec.Topic != ev.Topic || len(rec.Headers) != len(ev.Headers) {
		t.Fatalf("record %q with %d headers of %d", rec.Topic, len(rec.Headers), len(ev.Headers))
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code == "" {
		t.Fatalf("%T without a code: %v", err, err)
	}
}

// FuzzParseJSON: what is read as JSON is what encoding/json reads as JSON, but for
// the limits, and expanding it ends.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,null,true],"b":{"c":"\ud83d\ude00\ud800"}}`, `[]x`, `{"a":01}`, `[1,]`,
		`["\u00zz"]`, `{"":-0.0}`, `[[[[1e400]]]]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
			t.Skip()
		}
		_, err := parseJSON(s)
		var raw json.RawMessage
		want := json.NewDecoder(strings.NewReader(s)).Decode(&raw)
		if (err == nil) != (want == nil) && len(s) < maxJSONNumber {
			t.Fatalf("%q: %v, encoding/json: %v", s, err, want)
		}
		cfg := DefaultConfig()
		cfg.Key, cfg.RouteBy, cfg.RouteRegex, cfg.RouteTopic = "id", "id", "(.*)", "t"
		cfg.JSONEmptyArray, cfg.FieldNames, cfg.ExpandJSON = ExpandOptionalString, NamesAvro, true
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		table := &schema.Table{Columns: []schema.Column{{Name: "id", Type: schema.VarChar},
			{Name: "payload", Type: schema.Text}}}
		by := Converters{converter.StringConverter{}, converter.NewJSONConverter(converter.JSONOptions{}),
			converter.StringConverter{}}
		var ev Event
		var arena txn.Arena
		rec, err := routeAndEncode(r, &by, &ev, &arena, &schema.Row{Table: table, Op: schema.Insert, After: []any{"1", s}})
		if err != nil {
			checkError(t, err)
		} else if !json.Valid(rec.Value) {
			t.Fatalf("%q becomes %q", s, rec.Value)
		}
	})
}
