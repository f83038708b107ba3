package parity

import (
	"fmt"
	"strings"
)

// column is a SQL type with values, as SQL, and a default, as SQL; empty for none.
type column struct {
	typ    string
	def    string
	values []string
}

// family is a set of types that one connector carries, a table for each.
type family struct {
	name    string
	columns []column
}

// slug makes a type fit for a table's name.
func slug(typ string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(typ) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")[:min(40, len(strings.Trim(b.String(), "_")))]
}

// table is an outbox whose key, header and payload have one type: the key NOT NULL,
// the header nullable, both with the default, the payload nullable without.
func (c column) table(i int) (name, ddl string, rows []string) {
	name = fmt.Sprintf("o%d_%s", i, slug(c.typ))
	def := ""
	if c.def != "" {
		def = " DEFAULT " + c.def
	}
	null := "NULL"
	ddl = fmt.Sprintf("CREATE TABLE %s (id BIGINT AUTO_INCREMENT PRIMARY KEY, aggregatetype VARCHAR(64) NOT NULL, k %s "+
		"NOT NULL%s, h %s %s%s, payload %s %s)", name, c.typ, def, c.typ, null, def, c.typ, null)
	// One topic for all tables: making topics is what takes longest.
	into := "INSERT INTO " + name + " (aggregatetype, k, h, payload) VALUES ('all', "
	for _, v := range c.values {
		rows = append(rows, into+v+", "+v+", "+v+")")
	}
	rows = append(rows, into+c.values[0]+", NULL, NULL)")
	if c.def != "" && !strings.HasPrefix(c.def, "CURRENT") && !strings.HasPrefix(c.def, "(") {
		rows = append(rows, into+"DEFAULT, DEFAULT, "+c.values[0]+")")
	}
	return name, ddl, rows
}

// carry makes the cases of a family: one for each set of converters.
func (f family) carry(group string, forms []form, config map[string]string, sessionSQL ...string) []Case {
	var out []Case
	for _, fm := range forms {
		c := Case{Group: group, Name: f.name + ", " + fm.name, Setup: sessionSQL, Do: sessionSQL}
		placement := "h:header"
		if fm.name == jsonForm().name {
			placement += ",h:envelope:e"
		}
		c.Config = merge(fm.config, smt("table.field.event.key", "k"), placing(placement), config)
		for i, col := range f.columns {
			name, ddl, rows := col.table(i)
			c.Tables = append(c.Tables, name)
			c.Setup = append(c.Setup[:len(c.Setup):len(c.Setup)], ddl)
			c.Do = append(c.Do[:len(c.Do):len(c.Do)], rows...)
		}
		out = append(out, c)
	}
	return out
}

func integers() family {
	return family{"integers", []column{
		{"TINYINT", "5", []string{"-128", "127", "0"}}, {"TINYINT UNSIGNED", "5", []string{"0", "128", "255"}},
		{"TINYINT(1)", "1", []string{"1", "0", "-128", "127"}}, {"BOOLEAN", "TRUE", []string{"TRUE", "FALSE", "5"}},
		{"SMALLINT", "-5", []string{"-32768", "32767"}}, {"SMALLINT UNSIGNED", "5", []string{"0", "32768", "65535"}},
		{"MEDIUMINT", "5", []string{"-8388608", "8388607"}}, {"MEDIUMINT UNSIGNED", "5",
			[]string{"0", "8388608", "16777215"}},
		{"INT", "5", []string{"-2147483648", "2147483647", "0"}}, {"INT UNSIGNED", "5",
			[]string{"0", "2147483648", "4294967295"}},
		{"INT(5) ZEROFILL", "5", []string{"7", "4294967295"}},
		{"BIGINT", "-9223372036854775808", []string{"-9223372036854775808", "9223372036854775807", "0"}},
		{"BIGINT UNSIGNED", "18446744073709551615", []string{"0", "9223372036854775808", "18446744073709551615"}},
		{"YEAR", "2020", []string{"2024", "1901", "2155", "0", "70", "'69'"}}, {"BIT(1)", "b'1'", []string{"b'0'", "b'1'"}},
	}}
}

func bits() family {
	return family{"bits", []column{
		{"BIT(8)", "b'101'", []string{"b'0'", "b'1'", "b'11111111'"}}, {"BIT(12)", "b'100000000001'",
			[]string{"b'0'", "b'100000000010'", "4095"}},
		{"BIT(16)", "b'1'", []string{"0x0102"}}, {"BIT(64)", "b'1'", []string{"1", "18446744073709551615",
			"0x0102030405060708"}},
	}}
}

func decimals() family {
	return family{"decimals", []column{
		{"DECIMAL(10,0)", "7", []string{"0", "-1", "9999999999"}}, {"DECIMAL(10,2)", "1.5",
			[]string{"0", "12.50", "-0.01", "99999999.99"}},
		{"DECIMAL(20,8)", "0", []string{"0.00000001", "0", "-0.0000001", "100000", "123456789012.12345678"}},
		{"NUMERIC(38,30)", "0.000000000000000000000000000001", []string{"-0.000000000000000000000000000001", "0",
			"12345678.5"}},
		{"DECIMAL(65,0)", "1", []string{strings.Repeat("9", 65), "-" + strings.Repeat("9", 65), "10"}},
		{"DECIMAL(5,2) UNSIGNED", "3.14", []string{"0.00", "999.99"}},
	}}
}

func floats() family {
	return family{"floats", []column{
		{"FLOAT", "1.5", []string{"0", "3.14", "-0.001", "3.40282e38", "1.17549e-38", "16777216", "123456789", "0.0009",
			"1e7", "9999999"}},
		{"FLOAT(7,3)", "3.14", []string{"3.14", "9999.999", "-0.001"}}, {"FLOAT(20)", "1", []string{"3.14"}},
		{"FLOAT(30)", "3.14", []string{"3.14", "123456789.125"}},
		{"DOUBLE", "1.5", []string{"0", "-0.0", "3.14", "39.98", "1e7", "9999999.5", "1e-3", "9e-4", "1.7976931348623157e308",
			"2.2250738585072014e-308", "1e20", "123456789", "0.1", "-1e-10", "5e-324"}},
		{"DOUBLE(10,3)", "2.5", []string{"3.14", "1234567.891"}}, {"REAL", "1.25", []string{"123456789", "3.14"}},
	}}
}

func texts() family {
	odd := quote("\u00e9\U0001f600<>&/\u2028\x7f\\\"\b\f\t\x01\x1f \u65e5\u672c")
	return family{"texts", []column{
		{"CHAR(20)", "'a'", []string{"''", "'abc  '", "' lead'", odd}}, {"VARCHAR(100)", "'it''s'",
			[]string{"''", "'abc  '", odd, quote("a\nb\r\nc"), quote("\x00")}},
		{"VARCHAR(5000)", "'d'", []string{"REPEAT('\u00e9x', 1000)"}}, {"TINYTEXT", "", []string{"''", odd}},
		{"TEXT", "", []string{"'{\"a\": 1}'", odd}},
		{"MEDIUMTEXT", "", []string{odd, "REPEAT('ab\u00e9', 30000)"}}, {"LONGTEXT", "", []string{odd, "'true'"}},
		{"NCHAR(5)", "'n'", []string{"'\u00e9'"}}, {"NVARCHAR(5)", "", []string{"'\u00e9'"}},
		{"ENUM('a','b,c','d\\\\e','it''s','\u00e9','')", "'b,c'", []string{"'a'", "'b,c'", "'d\\\\e'", "'it''s'", "'\u00e9'",
			"''"}},
		{"SET('x','y z','e\\\\f','\u00e9')", "'x,y z'", []string{"''", "'x'", "'x,y z'", "'e\\\\f'", "'\u00e9,x'"}},
		{"ENUM('1','2','3')", "'2'", []string{"'3'", "1"}},
	}}
}

func binaries() family {
	return family{"binaries", []column{
		{"BINARY(4)", "", []string{"x'00'", "'ab'", "x'ff00ff00'", "''"}},
		{"BINARY(16)", "", []string{"x'00112233445566778899aabbccddeeff'", "x'fb'"}},
		{"VARBINARY(20)", "'a b'", []string{"''", "x'00ff10'", "'abc'", "x'fbff'"}},
		{"VARBINARY(300)", "'z'", []string{"REPEAT('x', 300)"}},
		{"TINYBLOB", "", []string{"''", "x'00ff'"}}, {"BLOB", "", []string{"x'0102'", "''"}},
		{"MEDIUMBLOB", "", []string{"REPEAT(x'00', 70000)"}}, {"LONGBLOB", "", []string{"x'ff'"}},
	}}
}

// binaryDefaults are what SHOW CREATE TABLE does not print as plain text. There is no
// zero byte among those of VARBINARY: information_schema cuts a default there.
func binaryDefaults() family {
	return family{"defaults that are not text", []column{
		{"BINARY(4)", "'ab'", []string{"'ab'"}}, {"VARBINARY(21)", "x'ff'", []string{"'x'"}},
		{"VARBINARY(23)", "x'0a0d09'", []string{"'x'"}},
		{"VARBINARY(24)", "x'c3a9'", []string{"'x'"}}, {"BINARY(2)", "x'ff10'", []string{"'x'"}},
		{"VARBINARY(25)", "x'ff1020'", []string{"'x'"}}, {"VARBINARY(26)", "'it''s'", []string{"'x'"}},
		{"BINARY(1)", "''", []string{"'x'"}},
	}}
}

func temporals() family {
	return family{"dates and times", []column{
		{"DATE", "'2020-01-02'", []string{"'1000-01-01'", "'1969-12-31'", "'1970-01-01'", "'2024-02-29'", "'9999-12-31'"}},
		{"TIME", "'01:02:03'", []string{"'00:00:00'", "'12:34:56'", "'23:59:59'", "'24:00:00'"}},
		{"TIME(3)", "'01:02:03.500'", []string{"'12:34:56.789'", "'00:00:00.001'"}},
		{"TIME(6)", "'01:02:03.000001'", []string{"'12:34:56.789012'", "'12:34:56.780000'", "'23:59:59.999999'"}},
		{"DATETIME", "'2020-01-02 03:04:05'", []string{"'1700-01-01 00:00:00'", "'1969-12-31 23:59:59'",
			"'1970-01-01 00:00:00'", "'2024-02-29 12:34:56'", "'2261-12-31 23:59:59'"}},
		{"DATETIME(1)", "'2020-01-02 03:04:05.6'", []string{"'2024-02-29 12:34:56.7'"}},
		{"DATETIME(3)", "'2020-01-02 03:04:05.678'", []string{"'1969-12-31 23:59:59.999'", "'2024-02-29 12:34:56.780'",
			"'2024-02-29 00:00:00.000'"}},
		{"DATETIME(6)", "'2020-01-02 03:04:05.678901'", []string{"'1969-12-31 23:59:59.999999'",
			"'2024-02-29 12:34:56.789100'"}},
		{"TIMESTAMP", "'2020-01-02 03:04:05'", []string{"'1970-01-01 00:00:01'", "'2024-02-29 12:34:56'",
			"'2038-01-19 03:14:07'"}},
		{"TIMESTAMP(3)", "'2020-01-02 03:04:05.600'", []string{"'2024-02-29 12:34:56.120'", "'2024-02-29 12:34:56.000'"}},
		{"TIMESTAMP(6)", "'2020-01-02 03:04:05.000001'", []string{"'2024-02-29 12:34:56.123456'", "'2024-02-29 12:34:56'"}},
	}}
}

// longTimes are beyond a day, which some modes cannot express.
func longTimes() family {
	return family{"times beyond a day", []column{
		{"TIME", "'01:02:03'", []string{"'-01:02:03'", "'838:59:59'", "'-838:59:59'", "'24:00:01'"}},
		{"TIME(3)", "'01:02:03.500'", []string{"'-00:00:00.001'", "'24:00:00.001'"}},
		{"TIME(6)", "'01:02:03.000001'", []string{"'-12:34:56.789012'"}},
	}}
}

// farDates are beyond what a number of nanoseconds holds.
func farDates() family {
	return family{"far dates", []column{
		{"DATETIME", "'2020-01-02 03:04:05'", []string{"'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"}},
		{"DATETIME(3)", "'2020-01-02 03:04:05.678'", []string{"'1677-09-21 00:12:43.144'", "'2262-04-11 23:47:16.855'"}},
		{"DATETIME(6)", "'2020-01-02 03:04:05.678901'", []string{"'1600-01-01 00:00:00'", "'2300-01-01 00:00:00'"}},
	}}
}

func defaultsNow() family {
	return family{"CURRENT_TIMESTAMP defaults", []column{
		{"DATETIME", "CURRENT_TIMESTAMP", []string{"'2024-02-29 12:34:56'"}},
		{"DATETIME(6)", "CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", []string{"'2024-02-29 12:34:56.123456'"}},
		{"TIMESTAMP", "CURRENT_TIMESTAMP", []string{"'2024-02-29 12:34:56'"}},
		{"TIMESTAMP(3)", "CURRENT_TIMESTAMP(3)", []string{"'2024-02-29 12:34:56.100'"}},
		{"DATE", "(CURRENT_DATE)", []string{"'2024-02-29'"}}, {"VARCHAR(40)", "(UUID())", []string{"'x'"}},
		{"JSON", "(JSON_OBJECT('a', 1))", []string{"'[]'"}}, {"INT", "(1 + 1)", []string{"3"}},
	}}
}

func zeros() family {
	return family{"zero dates", []column{
		{"DATE", "", []string{"'0000-00-00'", "'2024-00-10'", "'2024-05-00'"}},
		{"DATETIME", "", []string{"'0000-00-00 00:00:00'", "'2024-00-00 01:02:03'"}},
		{"DATETIME(6)", "", []string{"'0000-00-00 00:00:00'"}}, {"TIMESTAMP", "", []string{"'0000-00-00 00:00:00'"}},
		{"TIMESTAMP(3)", "", []string{"'0000-00-00 00:00:00'"}},
		{"YEAR", "", []string{"0"}},
	}}
}

func zerosWithDefault() family {
	return family{"zero dates and defaults", []column{
		{"DATE", "'2020-01-02'", []string{"'0000-00-00'", "'2024-00-00'"}},
		{"DATETIME", "'2020-01-02 03:04:05'", []string{"'0000-00-00 00:00:00'"}},
		{"DATETIME(3)", "'0000-00-00 00:00:00'", []string{"'0000-00-00 00:00:00'"}},
		{"DATE", "'0000-00-00'", []string{"'0000-00-00'", "'2024-02-29'"}},
		{"TIMESTAMP", "'2020-01-02 03:04:05'", []string{"'0000-00-00 00:00:00'"}},
		{"TIMESTAMP", "'0000-00-00 00:00:00'", []string{"'2024-02-29 00:00:00'"}},
		{"YEAR", "2020", []string{"0", "2024"}},
	}}
}

func spatial() family {
	return family{"geometry and vectors", []column{
		{"POINT", "", []string{"ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(10.5 -20)', 4326)"}},
		{"GEOMETRY", "", []string{"ST_GeomFromText('LINESTRING(0 0, 1 1)')"}},
		{"POLYGON", "", []string{"ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))')"}},
		{"VECTOR(3)", "", []string{"TO_VECTOR('[1,2.5,-3]')"}},
	}}
}

// typeCases carry every type as key, header, payload and envelope field.
func typeCases() []Case {
	all := []form{stringForm(), jsonForm(), headerForm()}
	quirky := func(cases []Case, name, differs string, always bool) []Case {
		for i := range cases {
			if strings.HasSuffix(cases[i].Name, name) {
				cases[i].Differs, cases[i].Always = differs, always
			}
		}
		return cases
	}
	lax := []string{"SET sql_mode = ''"}
	out := integers().carry("integers", all, nil)
	out = append(out, named("bigint.unsigned.handling.mode precise", family{"integers",
		integers().columns[12:13]}.carry("integers", all, conf("bigint.unsigned.handling.mode", "precise")))...)
	// Random keys go to random partitions.
	one := conf("topic.creation.default.partitions", "1", "topic.creation.default.replication.factor", "1")
	out = append(out, quirky(bits().carry("integers", all[:1], one), ", string", "byte-arrays-as-text", true)...)
	out = append(out, bits().carry("integers", all[1:], nil)...)
	for _, mode := range []string{"precise", "string", "double"} {
		out = append(out, named("decimal.handling.mode "+mode, decimals().carry("decimals", all,
			conf("decimal.handling.mode", mode)))...)
	}
	out = append(out, named("decimal.format NUMERIC", decimals().carry("decimals", []form{headerForm()},
		conf("value.converter.decimal.format", "NUMERIC", "key.converter.decimal.format", "numeric",
			"header.converter.decimal.format", "NUMERIC")))...)
	out = append(out, floats().carry("floats", all, nil)...)
	out = append(out, texts().carry("texts", all, nil)...)
	for _, mode := range []string{"bytes", "base64", "base64-url-safe", "hex"} {
		cases := named("binary.handling.mode "+mode, binaries().carry("binaries", all, conf("binary.handling.mode", mode)))
		if mode == "bytes" {
			cases = quirky(cases, ", string", "byte-buffers-as-text", false)
		}
		out = append(out, cases...)
	}
	for _, mode := range []string{"bytes", "hex"} {
		cases := named("binary.handling.mode "+mode, binaryDefaults().carry("binaries", all[1:2],
			conf("binary.handling.mode", mode)))
		out = append(out, quirky(cases, "", "binary-defaults", false)...)
	}
	for _, mode := range []string{"adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring"} {
		out = append(out, named("time.precision.mode "+mode, temporals().carry("temporals", all,
			conf("time.precision.mode", mode)))...)
		long, far := "", ""
		switch mode {
		case "connect", "isostring":
			long = "lost-times"
		case "nanoseconds":
			far = "lost-times"
		}
		out = append(out, quirky(named("time.precision.mode "+mode, longTimes().carry("temporals", all[:2],
			conf("time.precision.mode", mode))), "", long, false)...)
		out = append(out, quirky(named("time.precision.mode "+mode, farDates().carry("temporals", all[:2],
			conf("time.precision.mode", mode))), "", far, false)...)
		out = append(out, named("time.precision.mode "+mode, zeros().carry("temporals", all[1:2],
			conf("time.precision.mode", mode), lax...))...)
	}
	for _, lost := range []struct{ mode, typ, fits, value string }{{"connect", "TIME", "01:00:00", "24:00:01"},
		{"isostring", "TIME", "01:00:00", "-00:00:01"}, {"nanoseconds", "DATETIME", "2024-02-29 00:00:00",
			"9999-12-31 00:00:00"}} {
		out = append(out, Case{Group: "temporals", Name: "time.precision.mode " + lost.mode +
			": a value that the mode can't express in a required column",
			Setup: []string{outbox("TEXT", "t "+lost.typ+" NOT NULL")}, Config: merge(placing("t:header"),
				conf("time.precision.mode", lost.mode)),
			Do: slow(user(0, "'1', "+quote(lost.fits)), user(1, "'1', "+quote(lost.value)))})
	}
	out = append(out, defaultsNow().carry("temporals", all, nil)...)
	out = append(out, zeros().carry("temporals", all[:1], nil, lax...)...)
	out = append(out, zerosWithDefault().carry("temporals", all, nil, lax...)...)
	out = append(out, named("enable.time.adjuster false", family{"years below 100",
		[]column{{"DATE", "", []string{"'0024-02-03'", "'0099-01-01'", "'0100-01-01'"}},
			{"DATETIME", "", []string{"'0024-02-03 04:05:06'", "'0070-01-01 00:00:00'"}}}}.carry("temporals", all[1:2],
		conf("enable.time.adjuster", "false")))...)
	out = append(out, named("enable.time.adjuster true", family{"years below 100",
		[]column{{"DATE", "", []string{"'0024-02-03'", "'0099-01-01'", "'0100-01-01'"}},
			{"DATETIME", "", []string{"'0024-02-03 04:05:06'", "'0070-01-01 00:00:00'"}}}}.carry("temporals", all[1:2], nil))...)
	out = append(out, spatial().carry("spatial", all[1:], nil)...)
	return out
}

// named puts an option before the names of cases.
func named(option string, cases []Case) []Case {
	for i := range cases {
		cases[i].Name = option + ": " + cases[i].Name
	}
	return cases
}

// valueCases carry several columns of types that no generated case has.
func valueCases() []Case {
	return []Case{
		{Group: "integers", Name: "SERIAL and an id of DECIMAL",
			Setup: []string{"CREATE TABLE outbox (id SERIAL, aggregatetype VARCHAR(50) NOT NULL, aggregateid DECIMAL(12,7) " +
				"NOT NULL, payload TEXT)"},
			Config: conf("key.converter", jsonConverter),
			Do: []string{"INSERT INTO outbox (aggregatetype, aggregateid, payload) VALUES ('User', 0.0000001, 'x'), ('User', " +
				"12, 'y')"}},
		{Group: "binaries", Name: "BINARY(16) as id",
			Setup: []string{"CREATE TABLE outbox (id BINARY(16) PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid " +
				"VARCHAR(50) NOT NULL, payload TEXT)"},
			Do: []string{"INSERT INTO outbox VALUES (x'00112233445566778899aabbccddeeff', 'User', 'k', 'x')",
				"INSERT INTO outbox VALUES (x'ff00000000000000000000000000', 'User', 'k', 'x')",
				"UPDATE outbox SET id = x'01' WHERE id = x'00112233445566778899aabbccddeeff'"}},
		{Group: "binaries", Name: "BINARY(16) as id with binary.handling.mode hex",
			Config: conf("binary.handling.mode", "hex"),
			Setup: []string{"CREATE TABLE outbox (id BINARY(16) PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid " +
				"VARCHAR(50) NOT NULL, payload BLOB)"},
			Do: []string{"INSERT INTO outbox VALUES (x'00112233445566778899aabbccddeeff', 'User', 'k', x'7b7d')",
				"UPDATE outbox SET id = x'01'"}},
	}
}
