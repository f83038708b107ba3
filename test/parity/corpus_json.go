package parity

import "fmt"

// documents are JSON values as SQL.
func documents() []string {
	text := func(list ...string) (out []string) {
		for _, s := range list {
			out = append(out, quote(s))
		}
		return out
	}
	out := text(`{"name": "Alice", "age": 22, "addr": {"code": 100}}`,
		`{"bb": 1, "a": 2, "ccc": 3, "aa": 4, "B": 5, "é": 6}`, `{}`, `[]`, `[[], {}, [[]], [{}]]`, `"x"`, `5`, `null`,
		`true`, `false`, `""`,
		`[1, -1, 0, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 65535, 65536, 2147483647, 2147483648, -2147483648, -2147483649, 4294967295, 4294967296]`,
		`[9223372036854775807, 9223372036854775808, -9223372036854775808, 18446744073709551615, 18446744073709551616, -9223372036854775809, 123456789012345678901234567890]`,
		`[0.1, 1.0, 3.0, 39.98, 0.001, 0.0009, 0.0001, 1e-5, 1e-7, 1.5e10, 1e7, 9999999.0, 9999999.5, 10000000.5, 1500000.0, 1e20, 1e21, 123456789.125, 1e22, 1e23]`,
		`[-0, -0.0, 0.0]`, `[1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, -1e-300, 4.35, 0.1e-6]`,
		`["\"", "\\", "/", "\b\f\n\r\t", "\u0000\u0001\u001f\u007f", "<>&'", "é日本", "😀", "\u2028\u2029", "\ud83d\ude00"]`,
		`{"\"k\\\n": 1, "": 2, "😀": 3, "\u0001": 4}`, `{"a": 1, "b": 2, "a": 3}`,
		`{"z": {"y": {"x": {"w": {"v": [1, [2, [3, [4]]]]}}}}}`, `  [ 1 , 2 ]  `,
		`{"null": null, "t": true, "f": false, "list": [null, true, false, "s", 1, 1.5]}`, `[1, 2.0, 3e0, 100e-2]`)
	return append(out, sqlDocuments()...)
}

// sqlDocuments are values that only SQL functions make.
func sqlDocuments() []string {
	return []string{
		"JSON_OBJECT('d', 12.50, 'e', CAST(1 AS DECIMAL(30,10)), 'f', -0.000000001, 'g', " +
			"CAST(12345678901234567890.123456789 AS DECIMAL(60,20)))",
		"JSON_ARRAY(CAST(7 AS UNSIGNED), CAST(18446744073709551615 AS UNSIGNED), CAST(2147483647 AS UNSIGNED))",
		"JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 12:34:56' AS DATETIME), CAST('2024-02-29 12:34:56.789' AS " +
			"DATETIME(3)), CAST('2024-02-29 12:34:56.100000' AS DATETIME(6)), TIMESTAMP('2024-02-29 12:34:56.000001'))",
		"JSON_ARRAY(CAST('12:34:56' AS TIME), CAST('12:34:56.789' AS TIME(3)), CAST('838:59:59' AS TIME), " +
			"CAST('00:00:00.000001' AS TIME(6)))",
		"JSON_ARRAY(x'00ff10', CAST('abc' AS BINARY), CAST('' AS BINARY))", "JSON_ARRAY(b'1', b'101010101')",
		"JSON_ARRAY(CAST(3.14 AS FLOAT), CAST(3.14 AS DOUBLE), PI(), 1e0)",
		"JSON_ARRAY(TRUE, FALSE, NULL, 1 = 1)", "JSON_ARRAY(ST_GeomFromText('POINT(1 2)'))", "CAST(5 AS JSON)",
		"CAST(12.50 AS JSON)", "CAST(CAST('2024-02-29' AS DATE) AS JSON)",
		"JSON_QUOTE('it''s \"quoted\"')", "JSON_OBJECT('k', JSON_ARRAY(), 'l', JSON_OBJECT())",
		"JSON_SET('{\"a\": 1, \"b\": [1, 2]}', '$.b[1]', 'x', '$.c', CAST('{\"d\": 1}' AS JSON))",
		"JSON_MERGE_PATCH('{\"a\": 1, \"b\": 2}', '{\"b\": null, \"c\": 3}')",
		"JSON_ARRAY(YEAR('2024-01-01'), CAST(2024 AS YEAR), CAST(-5 AS SIGNED))",
	}
}

// largeDocuments are beyond 64 KiB, where the server uses its large format.
func largeDocuments() []string {
	return []string{
		"JSON_OBJECT('a', REPEAT('x', 70000), 'n', 7, 'd', 1.5, 't', TRUE, 'z', NULL, 'i', -40000, 'big', 3000000000)",
		"CAST(CONCAT('[', REPEAT('123456,\"abc\",1.5,true,null,', 6000), '0]') AS JSON)",
		"CAST(CONCAT('{\"list\": [', REPEAT('{\"k\": \"value\", \"n\": 100000},', 4000), '{}]}') AS JSON)",
		"JSON_ARRAY(REPEAT('\u00e9\"\\\\', 30000))", "JSON_OBJECT('s', REPEAT('y', 65535))",
		"JSON_OBJECT('s', REPEAT('y', 65500), 'i', 1)", "JSON_ARRAY(REPEAT('x', 127), REPEAT('x', 128), REPEAT('x', 16384))",
		"CAST(CONCAT(REPEAT('[', 90), '1', REPEAT(']', 90)) AS JSON)",
		"CAST(CONCAT(REPEAT('{\"a\":', 60), '1', REPEAT('}', 60)) AS JSON)",
	}
}

// jsonCases print JSON columns.
func jsonCases() []Case {
	var out []Case
	add := func(name string, f form, differs string, config map[string]string, docs ...string) {
		c := Case{Group: "json", Name: "JSON column: " + name + ", " + f.name, Setup: []string{outbox("JSON", "h JSON")},
			Config: merge(f.config, placing("h:header"), config), Differs: differs}
		for i, d := range docs {
			c.Do = append(c.Do, user(i, d+", "+d))
		}
		out = append(out, c)
	}
	for _, f := range []form{stringForm(), jsonForm(), headerForm()} {
		add("documents", f, "", nil, documents()...)
	}
	add("large documents", stringForm(), "", nil, largeDocuments()...)
	add("large documents", plainForm(), "", nil, largeDocuments()[:2]...)
	add("UINT32 from SQL", stringForm(), "json-uint32", nil,
		"JSON_ARRAY(CAST(3000000000 AS UNSIGNED), CAST(4294967295 AS UNSIGNED), CAST(2147483648 AS UNSIGNED))",
		"CAST(CAST(3000000000 AS UNSIGNED) AS JSON)")
	add("UINT32 in a large document", stringForm(), "json-uint32", nil,
		"JSON_OBJECT('a', REPEAT('x', 70000), 'u', CAST(3000000000 AS UNSIGNED), 'u16', CAST(7 AS UNSIGNED))")
	add("negative TIME", stringForm(), "json-negative-time", nil,
		"JSON_ARRAY(CAST('-01:02:03' AS TIME), CAST('-01:02:03.5' AS TIME(1)), CAST('-838:59:59' AS TIME), "+
			"CAST('-00:00:00.000001' AS TIME(6)))")
	add("columns of all types inside", stringForm(), "", nil,
		`(SELECT JSON_OBJECT('e', e, 's', s, 'b', b, 'bin', bin, 'y', y, 'd', d, 'f', f, 'dec', de) FROM source)`)
	out[len(out)-1].Setup = append(out[len(out)-1].Setup,
		"CREATE TABLE source (e ENUM('a','b'), s SET('x','y'), b BIT(8), bin BINARY(3), y YEAR, d DATE, f FLOAT, de "+
			"DECIMAL(5,1))",
		"INSERT INTO source VALUES ('b', 'x,y', b'101', 'ab', 2024, '2024-02-29', 3.14, 12.5)")
	out[len(out)-1].Config["table.include.list"] = `p_{id}\.outbox`
	partial := Case{Group: "json", Name: "JSON column: partial updates between inserts", Setup: []string{outbox("JSON")},
		Do: []string{"SET binlog_row_value_options = PARTIAL_JSON", user(0,
			`'{"a": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "b": 1}'`),
			"UPDATE outbox SET payload = JSON_SET(payload, '$.a', 'y')",
			"UPDATE outbox SET payload = JSON_REMOVE(payload, '$.b')", user(1, `'{"c": 2}'`)}}
	return append(out, partial)
}

// expansions are payloads that are expanded, or left, without a failure anywhere.
func expansions() []string {
	return []string{
		`{"fullName": "John Doe", "enabled": true, "rating": 4.9, "age": 42, "pets": ["dog", "cat"], "petObjects": [{"type": "dog"}, {"type": "cat"}]}`,
		`{"email":"gh@mefi.in"}`, `{}`, `{"a":{}}`,
		`{"fullName": "John Doe", "petObjects": [{"type":"dog","colors":[]},{"type":"cat","colors":[{"name":"white"}]}]}`,
		`{"petObjects": [{"type":"dog","colors":[]}]}`, `{"numbers": [null, 2, 3]}`, `{"numbers": [2, null]}`,
		`{"heartbeat": 1, "email": null}`, `{"heartbeat": 1, "tags": []}`, `{"n": {"tags": [], "x": null}}`,
		`{"attributes":[{"id":1,"adr":null,"eans":[{"e":"1"}],"a":"x","b":true,"c":1.5}]}`,
		`{"attributes":[{"id":1,"adr":null,"eans":[{"e":"1"},{"e":"2"}],"a":"x","b":true,"c":1.5}]}`,
		`{"i32": 2147483647, "i64": 2147483648, "n32": -2147483648, "n64": -2147483649, "max": 9223372036854775807, "d": 1.0, "e": 1e2, "small": 1e-7, "big": 1.5e300, "over": 1e400}`,
		`{"a": "x", "a": 1}`, `{"a": 1} trailing`, `{"a": 1}{"b": 2}`, ` {"a": 1}`, `{"a": 1,}`, `{'a': 1}`, `{a: 1}`,
		`{"a": NaN}`, `{"a": 01}`, `{"a": .5}`, `{"a": +1}`, `// c`, `{"a": /* c */ 1}`, `{"a"`, `[`, `]`, `{"a": "\x"}`,
		`{"a": "\u00zz"}`,
		`5`, `"x"`, `null`, `true`, ``, ` `, `abc`, `{"": 1, "b": 2}`, `{"s": "\u00e9\ud83d\ude00\n\"\\/"}`,
		`{"lone": "\ud800"}`, `{"é": 1, "😀": 2, "a.b": 3, "a-b": 4, "$date": 5}`,
		`[]`, `{"x": [1, 2.0, 3.0]}`, `{"x": [1, 3000000000]}`, `{"x": [1, "a"]}`, `{"x": [null]}`, `{"x": [null, null]}`,
		`{"x": [[], [1]]}`, `{"x": [[1], []]}`, `{"x": [[1], [2, 3]]}`, `{"x": [true, false]}`, `{"x": [{}, {}]}`,
		`{"x": [{}, {"a": 1}]}`,
		`{"x": [{"a": 1}, {"a": 2, "b": "x"}]}`, `{"x": [[{"a": 1}], [{"a": 2}]]}`, `{"x": {"y": {"z": [{"q": 1}]}}}`,
		`{"schema": 1, "payload": 2}`, `{"d": 0.1, "e": 100.0, "f": 12345678.9, "g": 1e21, "h": 0.00012}`,
		`{"pub":{"address":{"floor":{"n":1}},"coord":[-73.9,40.8],"grades":[{"date":{"$date":1393804800000},"grade":"A","score":2}]}}`,
		`{"users":[{"code":"100","description":"some description"},{"code":"200","description":"another description"},{"code":"300"}]}`,
		`{"users":[{"code":"100","description":null},{"code":"200","description":"another"}]}`,
	}
}

// conversions have a schema that the value does not fit: the router hands the text
// on with the schema, which only StringConverter takes.
func conversions() []string {
	return []string{
		`[{"a":1}]`, `[1,2]`, `["x"]`, `{"a": 12345678901234567890}`, `{"x": [{"a": 1}, {"a": "x"}]}`,
		`{"x": [{"a": {"b": 1}}, {"a": 1}]}`, `{"x": [[1], ["a"]]}`,
	}
}

// expansionCases are about table.expand.json.payload.
func expansionCases() []Case {
	var out []Case
	add := func(name string, f form, config map[string]string, docs ...string) {
		c := Case{Group: "expansion", Name: "table.expand.json.payload: " + name + ", " + f.name,
			Setup:  []string{outbox("TEXT CHARACTER SET utf8mb4")},
			Config: merge(f.config, smt("table.expand.json.payload", "true"), config)}
		for i, d := range docs {
			c.Do = append(c.Do, user(i, quote(d)))
		}
		c.Do = append(c.Do, user(len(docs), "NULL"))
		out = append(out, c)
	}
	nulls := smt("table.json.payload.null.behavior", "optional_bytes")
	for _, f := range []form{stringForm(), plainForm(), jsonForm()} {
		add("ignore", f, nil, expansions()...)
		add("optional_bytes", f, nulls, expansions()...)
	}
	fit := func(docs []string) (out []string) {
		for _, d := range docs {
			if d != "[]" { // its lack of a schema fits no envelope
				out = append(out, d)
			}
		}
		return out
	}
	add("envelope", plainForm(), placing("type:envelope"), fit(expansions())...)
	add("envelope", jsonForm(), placing("type:envelope"), fit(expansions())...)
	add("values that do not fit", stringForm(), nil, conversions()...)
	for _, d := range conversions() {
		add("value that does not fit "+d, plainForm(), nil, `{"before": 1}`, d, `{"after": 1}`)
	}
	add("value that does not fit, envelope", plainForm(), placing("type:envelope"), `{"before": 1}`, conversions()[0])
	add("empty array in an envelope", plainForm(), placing("type:envelope"), `{"before": 1}`, "[]")
	add("with tombstones", plainForm(), smt("route.tombstone.on.empty.payload", "true"), `{}`, ``, ` `, `[]`, `{"a":1}`)
	add("empty array behavior of a later release", plainForm(), smt("table.json.payload.empty.array.behavior",
		"optional_string"), `{"heartbeat": 1, "tags": []}`)
	for _, mode := range []string{"avro", "avro_unicode"} {
		add("field.name.adjustment.mode "+mode, jsonForm(), smt("field.name.adjustment.mode", mode), `{"test$": 1}`,
			`{"a-b": {"1c": "x", "é": [1]}}`, `{"ok": 1}`, `{"test_": 1, "x y": "z"}`)
	}
	out = append(out, Case{Group: "expansion", Name: "table.expand.json.payload: JSON column",
		Setup: []string{outbox("JSON")}, Config: merge(jsonForm().config, smt("table.expand.json.payload", "true")),
		Do: []string{user(0, `'{"bb": 1, "a": [1.5, 2.5], "c": {"d": null}}'`), user(1, `'{"e": 1e7}'`), user(2, `'"x"'`),
			user(3, "NULL"), user(4, `'{"a": 1e20}'`)}},
		Case{Group: "expansion", Name: "table.expand.json.payload: payload column by another name",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid INT, " +
				"body VARCHAR(200))"},
			Config: merge(jsonForm().config, smt("table.expand.json.payload", "true", "table.field.event.payload", "body")),
			Do:     []string{`INSERT INTO outbox VALUES (1, 'User', 1, '{"a": {"b": [{"c": 1}]}}')`}},
		Case{Group: "expansion", Name: "table.expand.json.payload: BLOB", Setup: []string{outbox("BLOB")},
			Config: merge(jsonForm().config, smt("table.expand.json.payload", "true")), Do: []string{user(0, `'{"a": 1}'`)}},
		Case{Group: "expansion", Name: "table.expand.json.payload: BLOB as base64", Setup: []string{outbox("BLOB")},
			Config: merge(jsonForm().config, smt("table.expand.json.payload", "true"), conf("binary.handling.mode", "base64")),
			Do:     []string{user(0, `'{"a": 1}'`)}},
		Case{Group: "expansion", Name: "table.expand.json.payload: schema version and other schemas",
			Setup: []string{outbox("TEXT", "version INT")},
			Config: merge(jsonForm().config, placing("type:envelope"), smt("table.expand.json.payload", "true",
				"table.field.event.schema.version", "version")),
			Do: []string{user(0, `'{"a": 1}', 1`), user(1, `'{"a": 2}', 1`), user(2, `'{"b": 2}', 2`),
				user(3, `'{"c": 2}', 1`), user(4, `'{"a": 3}', 1`)}},
		Case{Group: "expansion", Name: "table.expand.json.payload: a large document", Setup: []string{outbox("LONGTEXT")},
			Config: merge(plainForm().config, smt("table.expand.json.payload", "true")),
			Do: []string{user(0,
				fmt.Sprintf(`CONCAT('{"list": [', REPEAT('{"k": "value", "n": 100000},', %d), '{"k": "last", "n": 1}]}')`, 4000))}},
	)
	return out
}
