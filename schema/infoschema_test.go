package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func ptr(s string) *string { return &s }

func TestFromInformationSchema(t *testing.T) {
	const mysql, maria = "9.7.4", "11.8.9-MariaDB"
	cases := []struct {
		name string
		info ColumnInfo
		want Column
	}{
		{"bigint unsigned", ColumnInfo{DataType: "bigint", ColumnType: "bigint unsigned", Precision: 20},
			Column{Type: BigInt, Unsigned: true}},
		{"zerofill", ColumnInfo{DataType: "int", ColumnType: "int(10) unsigned zerofill"}, Column{Type: Int, Unsigned: true}},
		{"upper case", ColumnInfo{DataType: "BIGINT", ColumnType: "BIGINT(20) UNSIGNED"},
			Column{Type: BigInt, Unsigned: true}},
		{"decimal", ColumnInfo{DataType: "decimal", ColumnType: "decimal(10,2)", Precision: 10, Scale: 2},
			Column{Type: Decimal, Length: 10, Scale: 2}},
		{"float", ColumnInfo{DataType: "float", ColumnType: "float unsigned", Precision: 12, Scale: -1},
			Column{Type: Float, Scale: -1, Unsigned: true}},
		{"float(7,3)", ColumnInfo{DataType: "float", ColumnType: "float(7,3)", Precision: 7, Scale: 3},
			Column{Type: Float, Length: 7, Scale: 3}},
		{"bit", ColumnInfo{DataType: "bit", ColumnType: "bit(9)", Precision: 9, Default: ptr("b'101'")},
			Column{Type: Bit, Length: 9, Default: ptr("b'101'")}},
		{"datetime", ColumnInfo{DataType: "datetime", ColumnType: "datetime(6)", FSP: 6, Nullable: true},
			Column{Type: DateTime, FSP: 6, Nullable: true}},
		{"char", ColumnInfo{DataType: "char", ColumnType: "char(36)", CharLength: 36, Charset: "latin1"},
			Column{Type: Char, Length: 36, Charset: "latin1"}},
		{"utf8 is utf8mb3", ColumnInfo{DataType: "varchar", ColumnType: "varchar(9)", CharLength: 9, Charset: "utf8"},
			Column{Type: VarChar, Length: 9, Charset: "utf8mb3"}},
		{"longtext", ColumnInfo{DataType: "longtext", ColumnType: "longtext", CharLength: 1<<32 - 1, Charset: "utf8mb4"},
			Column{Type: LongText, Charset: "utf8mb4"}},
		{"binary", ColumnInfo{DataType: "binary", ColumnType: "binary(16)", CharLength: 16},
			Column{Type: Binary, Length: 16}},
		{"enum", ColumnInfo{DataType: "enum", ColumnType: `enum('a','b''c','d\\e','f,g','','(x)','\n\0')`, Charset: "ucs2"},
			Column{Type: Enum, Charset: "ucs2", Elements: []string{"a", "b'c", `d\e`, "f,g", "", "(x)", "\n\x00"}}},
		{"enum of binary", ColumnInfo{DataType: "enum", ColumnType: "enum('é')"},
			Column{Type: Enum, Charset: "binary", Elements: []string{"é"}}},
		{"set of binary with a default", ColumnInfo{DataType: "set", ColumnType: "set('a','b')", Default: ptr("0x612C62"),
			ServerVersion: mysql},
			Column{Type: Set, Charset: "binary", Elements: []string{"a", "b"}, Default: ptr("a,b")}},
		{"enum beyond utf8mb3", ColumnInfo{DataType: "enum", ColumnType: "enum('?','b')", Charset: "utf8mb4"},
			Column{Type: Unknown, Charset: "utf8mb4", Elements: []string{"?", "b"}}},
		{"enum with a question mark", ColumnInfo{DataType: "enum", ColumnType: "enum('?','b')", Charset: "utf8mb3"},
			Column{Type: Enum, Charset: "utf8mb3", Elements: []string{"?", "b"}}},
		{"set", ColumnInfo{DataType: "set", ColumnType: "set('x','y')", Charset: "latin1"},
			Column{Type: Set, Charset: "latin1", Elements: []string{"x", "y"}}},
		{"point", ColumnInfo{DataType: "point", ColumnType: "point"}, Column{Type: Geometry}},
		{"geomcollection", ColumnInfo{DataType: "geomcollection", ColumnType: "geomcollection"}, Column{Type: Geometry}},
		{"vector", ColumnInfo{DataType: "vector", ColumnType: "vector(3)"}, Column{Type: Vector}},
		{"uuid", ColumnInfo{DataType: "uuid", ColumnType: "uuid", ServerVersion: maria, Default: ptr("uuid()")},
			Column{Type: UUID, DefaultExpr: "uuid()"}},
		{"unknown", ColumnInfo{DataType: "xmltype", ColumnType: "xmltype"}, Column{Type: Unknown}},
		{"compressed", ColumnInfo{DataType: "varchar", ColumnType: "varchar(5) /*M!100301 COMPRESSED*/", CharLength: 5,
			Charset: "ascii"},
			Column{Type: Unknown}},
		{"enum that says compressed", ColumnInfo{DataType: "enum", ColumnType: "enum('COMPRESSED')", Charset: "ascii"},
			Column{Type: Enum, Charset: "ascii", Elements: []string{"COMPRESSED"}}},

		{"MySQL text default", ColumnInfo{DataType: "int", ColumnType: "int", Default: ptr("'x'")},
			Column{Type: Int, Default: ptr("'x'")}},
		{"MySQL default that looks like NULL", ColumnInfo{DataType: "varchar", ColumnType: "varchar(4)", CharLength: 4,
			Charset: "ascii", Default: ptr("NULL")},
			Column{Type: VarChar, Length: 4, Charset: "ascii", Default: ptr("NULL")}},
		{"MySQL expression", ColumnInfo{DataType: "varchar", ColumnType: "varchar(4)", CharLength: 4, Charset: "ascii",
			Default: ptr("uuid()"), Extra: "DEFAULT_GENERATED"},
			Column{Type: VarChar, Length: 4, Charset: "ascii", DefaultExpr: "uuid()"}},
		{"MySQL 5.7 current_timestamp", ColumnInfo{DataType: "timestamp", ColumnType: "timestamp(3)", FSP: 3,
			Default: ptr("CURRENT_TIMESTAMP(3)"), ServerVersion: "5.7.44"},
			Column{Type: Timestamp, FSP: 3, DefaultExpr: "CURRENT_TIMESTAMP(3)"}},
		{"MySQL 5.7 text", ColumnInfo{DataType: "varchar", ColumnType: "varchar(40)", CharLength: 40, Charset: "ascii",
			Default: ptr("CURRENT_TIMESTAMP"), ServerVersion: "5.7.44"},
			Column{Type: VarChar, Length: 40, Charset: "ascii", Default: ptr("CURRENT_TIMESTAMP")}},
		{"MariaDB NULL", ColumnInfo{DataType: "int", ColumnType: "int(11)", Nullable: true, Default: ptr("NULL"),
			ServerVersion: maria},
			Column{Type: Int, Nullable: true}},
		{"MariaDB text", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr(`'it''s \\ "x"'`),
			ServerVersion: maria},
			Column{Type: Int, Default: ptr(`it's \ "x"`)}},
		{"MariaDB text NULL", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr("'NULL'"),
			ServerVersion: maria},
			Column{Type: Int, Default: ptr("NULL")}},
		{"MariaDB number", ColumnInfo{DataType: "decimal", ColumnType: "decimal(5,2)", Precision: 5, Scale: 2,
			Default: ptr("-1.50"), ServerVersion: maria},
			Column{Type: Decimal, Length: 5, Scale: 2, Default: ptr("-1.50")}},
		{"MariaDB expression", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr("(1 + 2)"),
			ServerVersion: maria},
			Column{Type: Int, DefaultExpr: "(1 + 2)"}},
		{"MariaDB expression of text", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr("'a' || 'b'"),
			ServerVersion: maria},
			Column{Type: Int, DefaultExpr: "'a' || 'b'"}},
		{"MariaDB binary", ColumnInfo{DataType: "binary", ColumnType: "binary(3)", CharLength: 3, Default: ptr("x'610000'"),
			ServerVersion: maria},
			Column{Type: Binary, Length: 3, Default: ptr("0x610000")}},
		{"MariaDB timestamp", ColumnInfo{DataType: "timestamp", ColumnType: "timestamp", Default: ptr("current_timestamp()"),
			ServerVersion: maria},
			Column{Type: Timestamp, DefaultExpr: "current_timestamp()"}},
		{"MariaDB 10.2.6 text", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr("'x'"),
			ServerVersion: "10.2.6-MariaDB-log"},
			Column{Type: Int, Default: ptr("'x'")}},
		{"MariaDB behind a replication prefix", ColumnInfo{DataType: "int", ColumnType: "int(11)", Default: ptr("'x'"),
			ServerVersion: "5.5.5-10.2.7-MariaDB"},
			Column{Type: Int, Default: ptr("x")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.info.Name, c.info.Position = "c", 1
			if c.info.ServerVersion == "" {
				c.info.ServerVersion = mysql
			}
			c.want.Name, c.want.ColumnType, c.want.DefaultKnown = "c", c.info.ColumnType, true
			got, err := FromInformationSchema(Name{"d", "t"}, []ColumnInfo{c.info})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Columns[0], c.want) {
				t.Errorf("got %+v\nwant %+v", got.Columns[0], c.want)
			}
		})
	}
}

func TestFromInformationSchemaRefuses(t *testing.T) {
	cases := map[string][]ColumnInfo{
		"no columns":         nil,
		"at position 2":      {{Name: "c", Position: 2, DataType: "int", ColumnType: "int"}},
		"character set":      {{Name: "c", Position: 1, DataType: "varchar", ColumnType: "varchar(3)"}},
		"elements":           {{Name: "c", Position: 1, DataType: "enum", ColumnType: "enum()", Charset: "ascii"}},
		"closing quote":      {{Name: "c", Position: 1, DataType: "enum", ColumnType: "enum('a", Charset: "ascii"}},
		"parenthesis":        {{Name: "c", Position: 1, DataType: "int", ColumnType: "int(3"}},
		"number":             {{Name: "c", Position: 1, DataType: "int", ColumnType: "int(x)"}},
		`column type "enum"`: {{Name: "c", Position: 1, DataType: "enum", ColumnType: `enum('a\`, Charset: "ascii"}},
	}
	for says, cols := range cases {
		_, err := FromInformationSchema(Name{"d", "t"}, cols)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "d.t") {
			t.Errorf("want an error about %q, got %v", says, err)
		}
	}
}

func TestPrimaryKeyInKeyOrder(t *testing.T) {
	col := func(name string, at int, primary bool, key int) ColumnInfo {
		return ColumnInfo{Name: name, Position: at, DataType: "int", ColumnType: "int", Primary: primary, KeyPosition: key}
	}
	cases := []struct {
		name string
		cols []ColumnInfo
		want []int
	}{
		{"none", []ColumnInfo{col("a", 1, false, 0)}, nil},
		{"reversed", []ColumnInfo{col("a", 1, true, 2), col("x", 2, false, 0), col("b", 3, true, 1)}, []int{2, 0}},
		{"hidden order of one", []ColumnInfo{col("a", 1, true, 0)}, []int{0}},
		{"hidden order of two", []ColumnInfo{col("a", 1, true, 0), col("b", 2, true, 0)}, nil},
	}
	for _, c := range cases {
		table, err := FromInformationSchema(Name{"d", "t"}, c.cols)
		if err != nil || !slices.Equal(table.PrimaryKey, c.want) {
			t.Errorf("%s: %v %v, want %v", c.name, table.PrimaryKey, err, c.want)
		}
	}
}

func FuzzParseColumnType(f *testing.F) {
	for _, s := range []string{"enum('a','b''c')", "decimal(10,2) unsigned", "int(", "enum('", `set('\`, "a b(c)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseColumnType(s); err == nil && len(d.elements)+len(d.args) > len(s) {
			t.Errorf("%q: %+v", s, d)
		}
	})
}
