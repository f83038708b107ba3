package parity

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Generated cases are tables, rows and options drawn by chance, so that the corpus
// holds what nobody thought of. Each case is drawn with a seed of its own, from its
// group and its number: a new one changes none of the others.

// draw is the chance of one case.
type draw struct{ *rand.Rand }

func newDraw(group string, number int) draw {
	var seed uint64
	for _, b := range []byte(group) {
		seed = seed*131 + uint64(b)
	}
	return draw{rand.New(rand.NewPCG(seed, uint64(number)))}
}

func (d draw) pick(list ...string) string { return list[d.IntN(len(list))] }

// chance is true in n of 100 draws.
func (d draw) chance(n int) bool { return d.IntN(100) < n }

// drawn is a column with its name, and whether it takes NULL.
type drawn struct {
	column
	name     string
	nullable bool
}

func (c drawn) ddl() string {
	text := c.name + " " + c.typ
	if !c.nullable {
		text += " NOT NULL"
	}
	if c.def != "" {
		text += " DEFAULT " + c.def
	}
	return text
}

// now reports a default that is another in each run.
func now(def string) bool { return strings.Contains(def, "CURRENT") || strings.Contains(def, "NOW") }

// value is a value of the column in SQL: one of its own, NULL, or its default.
func (c drawn) value(d draw) string {
	switch {
	case c.nullable && d.chance(30):
		return "NULL"
	case c.def != "" && !now(c.def) && d.chance(20):
		return "DEFAULT"
	}
	return d.pick(c.values...)
}

// generated makes the cases of a group.
func generated(group string, n int, make func(d draw, c *Case)) []Case {
	out := []Case{}
	for i := range n {
		c := Case{Group: group, Name: fmt.Sprintf("%s %03d", group, i)}
		make(newDraw(group, i), &c)
		out = append(out, c)
	}
	return out
}

// table gives the case an outbox with these columns beside the router's own, and rows
// of it; payload and key are columns too.
func (c *Case) table(d draw, columns []drawn, rows int) {
	ddl := []string{"id INT PRIMARY KEY", "aggregatetype VARCHAR(20) NOT NULL"}
	for _, col := range columns {
		ddl = append(ddl, col.ddl())
	}
	c.Setup = append(c.Setup, "CREATE TABLE outbox ("+strings.Join(ddl, ", ")+")")
	for i := range rows {
		values := []string{fmt.Sprint(i), "'User'"}
		for _, col := range columns {
			values = append(values, col.value(d))
		}
		c.Do = append(c.Do, "INSERT INTO outbox VALUES ("+strings.Join(values, ", ")+")")
	}
}

// placements puts the columns into headers and the envelope.
func placements(d draw, columns []drawn, where ...string) map[string]string {
	var items []string
	for _, col := range columns {
		items = append(items, col.name+":"+d.pick(where...))
	}
	return placing(strings.Join(items, ","))
}

// generatedCases are all of them.
func generatedCases() []Case {
	var out []Case
	out = append(out, generated("generated-types", 130, typesCase)...)
	charsets := generated("generated-charsets", 70, charsetsCase)
	for _, i := range []int{7, 40, 44, 46, 51} { // of tis620, ujis and eucjpms
		charsets[i].Differs, charsets[i].Always = "undefined-bytes", i == 44
	}
	out = append(out, charsets...)
	out = append(out, generated("generated-options", 120, optionsCase)...)
	out = append(out, numberCases()...)
	return append(out, moreGenerated(out)...)
}

// typesCase is a table of random types, with defaults, under random handling modes.
func typesCase(d draw, c *Case) {
	columns := []drawn{{column: d.keyColumn(), name: "aggregateid"}, {column: d.column(), name: "payload",
		nullable: d.chance(70)}}
	for i := range 3 + d.IntN(4) {
		columns = append(columns, drawn{d.column(), fmt.Sprintf("c%d", i), d.chance(60)})
	}
	c.table(d, columns, 3)
	forms := []form{jsonForm(), jsonForm(), jsonForm(), plainForm(), headerForm(), stringForm()}
	c.Config = merge(forms[d.IntN(len(forms))].config, placements(d, columns[2:], "header", "envelope", "envelope"),
		d.modes())
}

func (d draw) modes() map[string]string {
	m := map[string]string{}
	put := func(key string, words ...string) {
		if d.chance(35) {
			m[key] = d.pick(words...)
		}
	}
	put("binary.handling.mode", "bytes", "base64", "base64-url-safe", "hex")
	put("decimal.handling.mode", "precise", "double", "string")
	put("time.precision.mode", "adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring")
	put("bigint.unsigned.handling.mode", "long", "precise")
	put("enable.time.adjuster", "true", "false")
	return m
}

// keyColumn is of a type whose text is the same in each run.
func (d draw) keyColumn() column {
	for {
		c := d.column()
		if kind, _, _ := strings.Cut(c.typ, "("); kind != "JSON" && kind != "POINT" && kind != "GEOMETRY" && kind != "BIT" &&
			kind != "VECTOR" {
			return c
		}
	}
}

// charsetsCase has texts of one character set, as bytes that are defined there and
// that are not.
func charsetsCase(d draw, c *Case) {
	set := charsets()[d.IntN(len(charsets()))]
	text := func() string { return "_" + set.name + " x'" + set.text(d, 1+d.IntN(6)) + "'" }
	var columns []drawn
	for i, typ := range []string{"VARCHAR(40)", d.pick("TEXT", "CHAR(30)", "TINYTEXT", "MEDIUMTEXT"), "VARCHAR(30)"} {
		name := []string{"aggregateid", "payload", "h"}[i]
		col := drawn{column{typ: typ + " CHARACTER SET " + set.name, values: []string{text(), text(), text()}}, name, i > 0}
		columns = append(columns, col)
	}
	c.table(d, columns, 4)
	c.Config = merge(placing("h:header"), conf("binlog.outbox.source.invalid_text", "replace"))
	if d.chance(50) {
		c.Config = merge(c.Config, plainForm().config)
	}
}

// optionsCase draws options of the router, of the connector and of converters.
func optionsCase(d draw, c *Case) {
	columns := []drawn{
		{column{typ: d.pick("VARCHAR(20)", "CHAR(8)", "ENUM('k1','k2','key three')", "INT", "BIGINT", "VARBINARY(9)")},
			"aggregateid", false},
		{column{typ: d.pick("JSON", "TEXT", "VARCHAR(200)", "LONGTEXT")}, "payload", true},
		{column{"VARCHAR(30)", "'O''Neil \\\\ é'", []string{"'plain'", "''", "'long text of thirty characters'", "'漢字😀 x'"}},
			"Name", d.chance(60)},
		{column{typ: d.pick("BLOB", "VARBINARY(12)", "BINARY(5)"), values: []string{"x'00ff10'", "'abcde'", "''"}},
			"raw-bytes", true},
		{d.column(), "_x", true},
		{column{"INT", d.pick("", "0", "3"), []string{"1", "2"}}, "version", d.chance(50)},
		{column{"DATETIME(3)", "", []string{"'2024-02-29 12:34:56.789'", "'2021-01-01 00:00:00'"}}, "at", true},
	}
	switch columns[0].typ {
	case "INT", "BIGINT":
		columns[0].values = []string{"1", "-7", "2147483647"}
	case "ENUM('k1','k2','key three')":
		columns[0].values = []string{"'k1'", "'key three'"}
	default:
		columns[0].values = []string{"'k1'", "'Key 2'", "''"}
	}
	columns[1].values = []string{`'{"a": 1, "b-c": {"x": [1, 2], "y": null}, "1z": "t"}'`, `'[{"a": 1.5}, {"b": true}]'`,
		`'[]'`, `'{}'`, `'"text"'`}
	for i := range columns {
		columns[i].name = "`" + columns[i].name + "`"
	}
	c.table(d, columns, 4)
	c.Do = append(c.Do, d.pick("UPDATE outbox SET payload = NULL", "DELETE FROM outbox",
		"UPDATE outbox SET id = id + 100 ORDER BY id DESC", "DO 1"))
	forms := []form{jsonForm(), jsonForm(), plainForm(), headerForm(), stringForm()}
	c.Config = merge(forms[d.IntN(len(forms))].config, d.modes(), d.columnOptions(), d.routerOptions())
}

// columnOptions mask, cut and leave out columns.
func (d draw) columnOptions() map[string]string {
	m := map[string]string{}
	table := `p_{id}\.outbox\.`
	some := func() string {
		return d.pick(table+"name", table+"(Name|_x)", `.*\.raw-bytes`, table+"_x", `p_{id}\.OUTBOX\.payload`,
			`(p_{id}|other)\.outbox\.aggregateid`, table+`at,`+table+`version`, `.*`,
			table+`n.me`, `outbox\.Name`, table+`aggregatetype`)
	}
	if d.chance(40) {
		m["column.mask.hash."+d.pick("SHA-256", "SHA-512", "MD5", "sha-1", "v2.SHA-256", "v2.MD5", "v2.SHA-384", "SHA3-256",
			"SHA-512/256")+".with.salt."+d.pick("CzQMA0cB5K", "a.b", "é")] = some()
	}
	if d.chance(30) {
		m[fmt.Sprintf("column.mask.with.%d.chars", d.IntN(6))] = some()
	}
	if d.chance(40) {
		m[fmt.Sprintf("column.truncate.to.%d.chars", d.IntN(10))] = some()
	}
	switch {
	case d.chance(20):
		m["column.exclude.list"] = d.pick(table+"name", table+"_x,"+table+"at", `.*\.raw-bytes`, `.*\.NOPE`)
	case d.chance(20):
		m["column.include.list"] = d.pick(`.*\.(id|aggregatetype|aggregateid|payload|name)`, table+`.*`, `.*`, `.*\.[a-z].*`)
	}
	if d.chance(40) {
		m["schema.name.adjustment.mode"] = d.pick("avro", "avro_unicode", "none")
	}
	if d.chance(10) {
		m["topic.prefix"] = d.pick("{id}-é", "{id}.9x")
	}
	return m
}

func (d draw) routerOptions() map[string]string {
	places := []string{}
	for _, name := range []string{"Name", "raw-bytes", "_x", "version", "at"} {
		if d.chance(60) {
			places = append(places, name+":"+d.pick("header", "envelope", "envelope")+d.pick("", ":alias-"+name))
		}
	}
	m := smt("table.field.additional.missing", "ignore")
	if len(places) > 0 {
		m = merge(m, placing(strings.Join(places, ",")))
	}
	put := func(key string, words ...string) {
		if d.chance(30) {
			m[routerAlias+key] = d.pick(words...)
		}
	}
	put("table.expand.json.payload", "true", "true", "false")
	put("table.json.payload.null.behavior", "optional_bytes", "ignore")
	put("route.tombstone.on.empty.payload", "true")
	put("table.field.event.timestamp", "at")
	put("table.field.event.schema.version", "version")
	put("field.name.adjustment.mode", "avro", "avro_unicode", "none")
	put("table.op.invalid.behavior", "warn", "error")
	return m
}

// numberCases are the converters of one kind of number, each with types that it takes
// and that it does not.
func numberCases() []Case {
	var out []Case
	types := []column{
		{"TINYINT", "", []string{"-128", "7"}}, {"SMALLINT", "", []string{"-2", "32767"}},
		{"INT", "5", []string{"0", "-2147483648"}}, {"BIGINT", "", []string{"1", "-9223372036854775808"}},
		{"BIGINT UNSIGNED", "", []string{"18446744073709551615"}}, {"FLOAT", "1.5", []string{"0.1", "-3e38"}},
		{"DOUBLE", "", []string{"0.1", "-1e300"}}, {"BIT(1)", "b'1'", []string{"b'0'", "b'1'"}},
		{"DECIMAL(5,2)", "", []string{"1.25"}}, {"DATE", "", []string{"'2024-02-29'"}},
		{"DATETIME", "", []string{"'2024-02-29 12:00:00'"}}, {"YEAR", "", []string{"2024"}},
		{"VARCHAR(9)", "", []string{"'7'"}},
	}
	for _, name := range []string{"Integer", "Long", "Short", "Float", "Double", "Boolean"} {
		class := "org.apache.kafka.connect.converters." + name + "Converter"
		for i, t := range types {
			def := ""
			if t.def != "" {
				def = " DEFAULT " + t.def
			}
			c := Case{Group: "generated-numbers", Setup: []string{fmt.Sprintf("CREATE TABLE outbox (id INT PRIMARY KEY, "+
				"aggregatetype VARCHAR(20) NOT NULL, aggregateid %s NULL%s, payload %s NULL%s)", t.typ, def, t.typ, def)}}
			// Where a record without a key goes is chance.
			for n, v := range append(t.values, "NULL") {
				c.Do = append(c.Do, fmt.Sprintf("INSERT INTO outbox VALUES (%d, 'User', %s, %s)", n,
					t.values[min(n, len(t.values)-1)], v))
			}
			part := []string{"key", "value"}[i%2]
			if name == "Integer" || name == "Boolean" || i < 8 {
				both := c
				both.Name = fmt.Sprintf("%sConverter for %s as key and value", name, t.typ)
				both.Config = conf("key.converter", class, "value.converter", class)
				out = append(out, both)
			} else {
				c.Name = fmt.Sprintf("%sConverter for %s as %s", name, t.typ, part)
				c.Config = conf(part+".converter", class)
				if t.typ == "DATE" || t.typ == "DATETIME" {
					c.Name += ", connect"
					c.Config["time.precision.mode"] = "connect"
				}
				out = append(out, c)
			}
		}
		header := Case{Group: "generated-numbers", Name: name + "Converter for headers",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid INT, " +
				"payload INT)"},
			Do:     []string{"INSERT INTO outbox VALUES (1, 'User', 2, 3)"},
			Config: conf("header.converter", class, "extended.headers.enabled", "false")}
		out = append(out, header)
	}
	return out
}
