package parity

import (
	"fmt"
	"strings"
)

// moreGenerated are cases made from those drawn before, and tables that change.
func moreGenerated(drawn []Case) []Case {
	out := generated("generated-ddl", 40, ddlCase)
	out[33].Differs, out[33].Always = "streamed-ddl", true // a default that is a hexadecimal literal
	for i, c := range drawn {
		if i%7 != 3 || c.Always || c.Group == "generated-numbers" {
			continue
		}
		in := c.initial()
		in.Group = "generated-initial"
		out = append(out, in)
	}
	return append(out, bytesDefaultCase(), otherCharactersCase())
}

// ddlCase has a table to which columns are added while it is read, some with defaults
// that stand in for the NULL of a later row.
func ddlCase(d draw, c *Case) {
	c.table(d, []drawn{{column{"INT", "", []string{"1", "2"}}, "aggregateid", false},
		{column{"VARCHAR(20)", "", []string{"'a'", "'b'"}}, "payload", true}}, 1)
	names, placed := "id, aggregatetype, aggregateid, payload", []drawn{}
	for i := range 1 + d.IntN(3) {
		col := drawn{d.column(), fmt.Sprintf("n%d", i), d.chance(70)}
		if spelledInDDL(col.typ) {
			col.column = column{"VARBINARY(9)", d.bytesLiteral(9), []string{"'a'"}}
		}
		col.nullable = col.nullable || col.def == "" // there are rows
		c.Do = append(c.Do, "ALTER TABLE outbox ADD COLUMN "+col.ddl()+d.pick("", " FIRST", " AFTER payload"))
		names += ", " + col.name
		placed = append(placed, col)
		for n := range 2 {
			values := fmt.Sprintf("%d, 'User', 5, 'x'", 10*(i+1)+n)
			for _, p := range placed {
				values += ", " + p.value(d)
			}
			c.Do = append(c.Do, "INSERT INTO outbox ("+names+") VALUES ("+values+")")
		}
	}
	c.FullMetadata = true
	c.Config = merge([]form{jsonForm(), plainForm()}[d.IntN(2)].config, placements(d, placed, "envelope", "header"),
		smt("table.field.additional.missing", "ignore"), d.modes())
}

// spelledInDDL reports types that Debezium takes as the statement spells them, which is
// the difference streamed-ddl.
func spelledInDDL(typ string) bool {
	for _, word := range []string{"BOOL", "REAL", "FLOAT", "DOUBLE", "INT2", "INT8", "MIDDLEINT", "N", "DEC", "FIXED"} {
		if strings.HasPrefix(typ, word) {
			return true
		}
	}
	return false
}

// bytesDefaultCase has defaults that information_schema cuts or does not show.
func bytesDefaultCase() Case {
	ddl, items := "CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid INT NOT "+
		"NULL, payload VARBINARY(9) DEFAULT x'00'", []string{}
	for i, def := range []string{"x'6100ff62'", `'a\0b'`, `'\0'`, "x'00'", `'it''s \\'`, "x'c3a900'", "x'ff00'", "''",
		`'a\n\r'`} {
		ddl += fmt.Sprintf(", v%d VARBINARY(9) DEFAULT %s, b%d BINARY(6) DEFAULT %s COMMENT ' DEFAULT ''x'''", i, def, i, def)
		items = append(items, fmt.Sprintf("v%d:header,b%d:envelope", i, i))
	}
	return Case{
		Group: "generated-types", Name: "defaults of bytes with zeros, quotes and no text", Differs: "binary-defaults",
		Setup: []string{ddl + ")"},
		Do: []string{"INSERT INTO outbox (id, aggregatetype, aggregateid) VALUES (1, 'User', 1)",
			"INSERT INTO outbox VALUES (2, 'User', 1" + strings.Repeat(", NULL", 19) + ")"},
		Config: merge(jsonForm().config, placing(strings.Join(items, ","))),
	}
}

// otherCharactersCase has the codes for which Java has other characters than the server.
func otherCharactersCase() Case {
	c := Case{Group: "generated-charsets", Name: "codes for which Java has other characters", Differs: "charsets"}
	for _, set := range [][2]string{
		{"cp866", "fbfcfd"}, {"greek", "a1a2a3"}, {"hebrew", "adafb0"}, {"sjis", "815b815c815f8160"},
		{"ujis", "a1bca1bda1c0f5a1"}, {"gbk", "a891a892a893"},
		{"latin1", "80818d8f909d9e"}, {"tis620", "8090a1"}, {"dec8", "8090a4a6a8d7dddff7fd"}, {"koi8u", "a4a6a7adb4b6b7bd"},
		{"swe7", "405b5c5d5e607b7c7d7e"},
	} {
		name := "o_" + set[0]
		c.Tables = append(c.Tables, name)
		c.Setup = append(c.Setup, fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, "+
			"aggregateid VARCHAR(20) NOT NULL, payload VARCHAR(50) CHARACTER SET %s)", name, set[0]))
		c.Do = append(c.Do, fmt.Sprintf("INSERT INTO %s VALUES (1, 'User', '%s', _%s x'%s')", name, set[0], set[0], set[1]))
	}
	return c
}
