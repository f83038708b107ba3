package converter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Most of what columns become is held against Debezium's records in package router.
// Here is what those records cannot show.

func column(t *testing.T, c schema.Column, m Modes) *Column {
	t.Helper()
	c.Name = "c"
	table := &schema.Table{Name: schema.Name{Database: "db", Table: "t"}, Columns: []schema.Column{c}}
	return &ForTable("p", table, m).Columns[0]
}

func def(s string) *string { return &s }

func TestColumnValueOfReadRows(t *testing.T) {
	enum := schema.Column{Type: schema.Enum, Elements: []string{"a,b", `c\d`}}
	set := schema.Column{Type: schema.Set, Elements: []string{`e\f`, "g"}}
	stamp := schema.Column{Type: schema.Timestamp, FSP: 3}
	cases := []struct {
		name           string
		col            schema.Column
		raw            any
		streamed, read any
	}{
		{"enum with comma", enum, "a,b", `a\,b`, "a,b"},
		{"enum with backslash", enum, `c\d`, `c\\d`, `c\d`},
		{"enum index 0", enum, "", "", ""},
		{"set with backslash", set, `e\f,g`, `e\\f,g`, `e\f,g`},
		{"timestamp fraction", stamp, "2024-01-01 00:00:03.120", "2024-01-01T00:00:03.120Z", "2024-01-01T00:00:03.12Z"},
		{"timestamp zero fraction", stamp, "2024-01-01 00:00:03.000", "2024-01-01T00:00:03.000Z", "2024-01-01T00:00:03Z"},
		{"timestamp tens of seconds", schema.Column{Type: schema.Timestamp}, "2024-01-01 00:00:30", "2024-01-01T00:00:30Z",
			"2024-01-01T00:00:30Z"},
		{"year 0", schema.Column{Type: schema.Year}, int64(0), int64(1900), int64(2000)},
		{"float", schema.Column{Type: schema.Float, Scale: -1}, float32(123456789), float32(123456789), float32(123456789)},
		{"json text of the server", schema.Column{Type: schema.JSON}, `{"a": 1}`, `{"a": 1}`, `{"a": 1}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			col := column(t, c.col, DefaultModes())
			for op, want := range map[schema.Op]any{schema.Insert: c.streamed, schema.Read: c.read} {
				if got, err := col.Value(c.raw, op); err != nil || got != want {
					t.Errorf("op %d: %v, %v, want %v", op, got, err, want)
				}
			}
		})
	}
}

// With quirks a FLOAT is what is left of it in the text of a SELECT.
func TestFloatOfReadRowsWithQuirks(t *testing.T) {
	m := DefaultModes()
	m.Quirks = true
	col := column(t, schema.Column{Type: schema.Float, Scale: -1}, m)
	for _, c := range []struct{ raw, want float32 }{{123456789, 123457000}, {16777216, 16777200}, {3.14, 3.14},
		{-0.001, -0.001}, {0, 0}} {
		if got, err := col.Value(c.raw, schema.Read); err != nil || got != c.want {
			t.Errorf("%v is read as %v, %v, want %v", c.raw, got, err, c.want)
		}
		if got, err := col.Value(c.raw, schema.Insert); err != nil || got != c.raw {
			t.Errorf("%v is streamed as %v, %v", c.raw, got, err)
		}
	}
}

func TestColumnValueRefuses(t *testing.T) {
	connect := DefaultModes()
	connect.Time = TimeConnect
	nanos := DefaultModes()
	nanos.Time = TimeNanoseconds
	nullable := func(ty schema.Type) schema.Column { return schema.Column{Type: ty, Nullable: true} }
	cases := []struct {
		name string
		col  schema.Column
		m    Modes
		raw  any
	}{
		{"impossible day in a date", nullable(schema.Date), DefaultModes(), "2024-02-31"},
		{"29 February of no leap year", nullable(schema.Date), DefaultModes(), "2023-02-29"},
		{"impossible day in a datetime", nullable(schema.DateTime), DefaultModes(), "2024-02-31 00:00:00"},
		{"date that is none", nullable(schema.Date), DefaultModes(), "yesterday!"},
		{"datetime cut", nullable(schema.DateTime), DefaultModes(), "2024-02-01 00:00"},
		{"datetime at 24", nullable(schema.DateTime), DefaultModes(), "2024-02-01 24:00:00"},
		{"time that is none", nullable(schema.Time), DefaultModes(), "12:61:00"},
		{"time outside a day, connect", nullable(schema.Time), connect, "-00:00:01"},
		{"datetime outside nanoseconds", nullable(schema.DateTime), nanos, "9999-01-01 00:00:00"},
		{"text for a number", nullable(schema.Int), DefaultModes(), "5"},
		{"number for a text", nullable(schema.VarChar), DefaultModes(), int64(5)},
		{"text for bytes", nullable(schema.Blob), DefaultModes(), "x"},
		{"decimal that is none", nullable(schema.Decimal), DefaultModes(), "1e5"},
		{"vector cut", nullable(schema.Vector), DefaultModes(), []byte{1, 2, 3}},
		{"geometry cut", nullable(schema.Geometry), DefaultModes(), []byte{1, 2, 3}},
		{"unknown type", nullable(schema.Unknown), DefaultModes(), "x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var de *DataError
			if v, err := column(t, c.col, c.m).Value(c.raw, schema.Insert); !errors.As(err, &de) {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
}

// With quirks a value that a time mode cannot express is lost to null or to the
// column's default, as in Debezium; it stops where there is neither.
func TestColumnValueLostWithQuirks(t *testing.T) {
	m := DefaultModes()
	m.Time, m.Quirks = TimeConnect, true
	if v, err := column(t, schema.Column{Type: schema.Time, Nullable: true}, m).Value("-00:00:01",
		schema.Insert); v != nil || err != nil {
		t.Errorf("nullable: %v, %v", v, err)
	}
	if v, err := column(t, schema.Column{Type: schema.Time}, m).Value("-00:00:01", schema.Insert); err == nil {
		t.Errorf("required: %v", v)
	}
	withDefault := schema.Column{Type: schema.Time, Default: def("00:00:01"), DefaultKnown: true}
	if v, err := column(t, withDefault, m).Value("-00:00:01", schema.Insert); v != int64(1000) || err != nil {
		t.Errorf("required with a default: %v, %v", v, err)
	}
}

func TestB033ColumnNotLoggedIsNotNull(t *testing.T) {
	c := column(t, schema.Column{Type: schema.VarChar, Nullable: true, Default: def("d")}, DefaultModes())
	if v, err := c.Value(schema.Missing, schema.Insert); !errors.Is(err, ErrNotLogged) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestColumnDefaults(t *testing.T) {
	quirks := DefaultModes()
	quirks.Quirks = true
	cases := []struct {
		name        string
		col         schema.Column
		right, with any
	}{
		{"bigint unsigned beyond 63 bits", schema.Column{Type: schema.BigInt, Unsigned: true,
			Default: def("18446744073709551615")}, int64(-1), int64(9223372036854775807)},
		{"bigint beyond 53 bits", schema.Column{Type: schema.BigInt, Default: def("9007199254740993")},
			int64(9007199254740993), int64(9007199254740992)},
		{"bigint least", schema.Column{Type: schema.BigInt, Default: def("-9223372036854775808")},
			int64(-9223372036854775808), int64(-9223372036854775808)},
		{"text with a quote", schema.Column{Type: schema.VarChar, Default: def("x'y")}, "x'y", "x''y"},
		{"text", schema.Column{Type: schema.VarChar, Default: def("")}, "", ""},
		{"binary in hex is padded", schema.Column{Type: schema.Binary, Length: 4, Default: def("0x6162")},
			[]byte("ab\x00\x00"), []byte(`ab\0\0`)},
		{"varbinary in hex", schema.Column{Type: schema.VarBinary, Length: 4, Default: def("0x00FF")}, []byte{0, 0xff},
			[]byte("00F")},
		{"varbinary with escapes", schema.Column{Type: schema.VarBinary, Length: 9, Default: def("0x0A5C27C3A9")},
			[]byte("\n\\'é"), []byte(`\n\\''é`)},
		{"decimal", schema.Column{Type: schema.Decimal, Length: 10, Scale: 2, Default: def("1.5")}, Decimal("1.50"),
			Decimal("1.50")},
		{"year of two digits", schema.Column{Type: schema.Year, Default: def("0000")}, int64(2000), int64(2000)},
		{"zero date, nullable", schema.Column{Type: schema.Date, Nullable: true, Default: def("0000-00-00")}, nil, nil},
		{"zero date, required", schema.Column{Type: schema.Date, Default: def("0000-00-00")}, int64(0), int64(0)},
		{"number that is none", schema.Column{Type: schema.Int, Default: def("uuid()")}, nil, nil},
		{"json", schema.Column{Type: schema.JSON, Default: def("{}")}, nil, nil},
		{"now in a nullable timestamp", schema.Column{Type: schema.Timestamp, Nullable: true,
			DefaultExpr: "CURRENT_TIMESTAMP"}, nil, nil},
		{"now in a required timestamp", schema.Column{Type: schema.Timestamp, DefaultExpr: "CURRENT_TIMESTAMP(6)"},
			"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"now in MariaDB", schema.Column{Type: schema.DateTime, Nullable: true, DefaultExpr: "current_timestamp()"}, int64(0),
			int64(0)},
		{"another expression", schema.Column{Type: schema.DateTime, DefaultExpr: "(now() + interval 1 day)"}, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := column(t, c.col, DefaultModes()).Schema.Default; !cmp.Equal(got, c.right) {
				t.Errorf("%#v, want %#v", got, c.right)
			}
			if got := column(t, c.col, quirks).Schema.Default; !cmp.Equal(got, c.with) {
				t.Errorf("with quirks %#v, want %#v", got, c.with)
			}
		})
	}
}

func TestB052MariaDBTypesAreText(t *testing.T) {
	for _, ty := range []schema.Type{schema.UUID, schema.Inet4, schema.Inet6} {
		c := column(t, schema.Column{Type: ty}, DefaultModes())
		if v, err := c.Value("::1", schema.Insert); v != "::1" || err != nil || c.Schema.Kind != String {
			t.Errorf("type %d: %v, %v", ty, v, err)
		}
	}
}

func TestPointIsARecord(t *testing.T) {
	c := column(t, schema.Column{Type: schema.Geometry, ColumnType: "point"}, DefaultModes())
	raw := []byte("\xe6\x10\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x40")
	v, err := c.Value(raw, schema.Insert)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{1.0, 2.0, raw[4:], int64(4326)}
	if st, ok := v.(*Struct); !ok || !cmp.Equal(st.Values, want) {
		t.Errorf("%v", v)
	}
	if v, err := c.Value(raw[:20], schema.Insert); err == nil {
		t.Errorf("a point cut: %v", v)
	}
}

func TestForTableNamesAndKey(t *testing.T) {
	table := &schema.Table{
		Name:       schema.Name{Database: "订单库", Table: "out box$1😀"},
		Columns:    []schema.Column{{Name: "a", Type: schema.Int}, {Name: "b", Type: schema.VarChar}},
		PrimaryKey: []int{1, 0},
	}
	rs := ForTable("My-Shop", table, DefaultModes())
	if want := "My-Shop.___.out_box_1__.Value"; rs.ValueName != want {
		t.Errorf("%s, want %s", rs.ValueName, want)
	}
	want := &Schema{Kind: Record, Name: "My-Shop.___.out_box_1__.Key",
		Fields: []Field{{"b", &Schema{Kind: String}}, {"a", &Schema{Kind: Int32}}}}
	if d := cmp.Diff(want, rs.Key, cmpopts.IgnoreUnexported(Schema{})); d != "" {
		t.Error(d)
	}
}

func TestModesValidateNamesEveryProblem(t *testing.T) {
	err := Modes{Binary: "b", Decimal: "d", Time: "t", BigintUnsigned: "u", SchemaNames: "s"}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 5 {
		t.Errorf("%v", err)
	}
	if err := DefaultModes().Validate(); err != nil {
		t.Error(err)
	}
}
