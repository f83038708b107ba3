package parity

// place is a case of the usual table with more columns.
func place(name string, config map[string]string, setup string, do ...string) Case {
	return Case{Group: "placement", Name: name, Setup: []string{setup}, Do: do, Config: config}
}

// placementCases are about headers, envelope, partition and schema version.
func placementCases() []Case {
	usual := outbox("JSON")
	more := outbox("JSON", "version INT", "n INT", "big BIGINT", "note VARCHAR(50)", "flag TINYINT(1) NOT NULL DEFAULT 0")
	one := func(n int, payload, rest string) string { return user(n, payload+", "+rest) }
	out := []Case{
		place("type into a header", placing("type:header:eventType"), usual, user(0, `'{"a": 1}'`)),
		place("type into a header without alias", placing("type:header"), usual, user(0, `'{"a": 1}'`)),
		place("type into the envelope, string", placing("type:envelope"), usual, user(0, `'{"a": 1}'`), user(1, "NULL")),
		place("type into the envelope, plain JSON", merge(placing("type:envelope:eventType"), plainForm().config), usual,
			user(0, `'{"a": 1}'`), user(1, "NULL")),
		place("type into the envelope, JSON with schemas", merge(placing("type:envelope:eventType"), jsonForm().config),
			usual, user(0, `'{"a": 1}'`), insert(uuid(1), "Order", "k", "OrderPlaced", `'{"b": 2}'`), user(2, "NULL")),
		place("blanks, cases and aliases", merge(placing("type:envelope:payloadType, aggregateid:ENVELOPE:payloadId "+
			",type:Header:payloadType"), jsonForm().config), usual, user(0, `'{"a": 1}'`)),
		place("text 'type:header,'", placing("type:header,"), usual, user(0, `'{}'`)),
		place("text 'type:header:'", placing("type:header:"), usual, user(0, `'{}'`)),
		place("one header twice", placing("type:header:x,aggregateid:header:x,type:header:id"), usual, user(0, `'{}'`)),
		place("the order of headers and partition", placing("n:header,note:header:b,n:partition,type:header:a"), more,
			one(0, `'{}'`, "1, 2, 3, 'note', 1"), one(1, `'{}'`, "1, NULL, 3, NULL, 1")),
		place("partition", placing("n:partition"), more, one(0, `'{"n": 0}'`, "1, 0, 3, NULL, 1"),
			one(1, `'{"n": 1}'`, "1, 1, 3, NULL, 1"), one(2, `'{"n": 2}'`, "1, 2, 3, NULL, 1"),
			one(3, `'{"n": 3}'`, "1, NULL, 3, NULL, 1")),
		place("the last partition wins", placing("n:partition,version:partition:x"), more,
			one(0, `'{"n": 0}'`, "1, 0, 3, NULL, 1"), one(1, `'{"n": 1}'`, "NULL, 2, 3, NULL, 1")),
		place("partition from BIGINT", placing("big:partition"), more, one(0, `'{}'`, "1, 0, 3, NULL, 1")),
		place("partition from TINYINT", placing("flag:partition"), more, one(0, `'{}'`, "1, 0, 3, NULL, 1")),
		place("partition from VARCHAR", placing("note:partition"), more, one(0, `'{}'`, "1, 0, 3, '1', 1")),
		place("partition negative", placing("n:partition"), more, slow(one(0, `'{"n": 0}'`, "1, 0, 3, NULL, 1"),
			one(1, `'{"n": 1}'`, "1, -1, 3, NULL, 1"), one(2, `'{"n": 2}'`, "1, 1, 3, NULL, 1"))...),
		place("missing header", placing("fake:header,type:header"), usual, user(0, `'{}'`)),
		place("missing envelope", placing("fake:envelope:alias"), usual, user(0, `'{}'`)),
		place("missing partition", placing("fake:partition"), usual, user(0, `'{}'`)),
		place("missing header ignored", merge(placing("fake:header,type:header"),
			smt("table.field.additional.missing", "ignore")), usual, user(0, `'{}'`)),
		place("missing envelope ignored", merge(placing("fake:envelope:alias,type:envelope"),
			smt("table.field.additional.missing", "ignore"), plainForm().config), usual, user(0, `'{}'`)),
		place("only a missing envelope, ignored", merge(placing("fake:envelope:alias"),
			smt("table.field.additional.missing", "ignore"), jsonForm().config), usual, user(0, `'{}'`)),
		place("missing partition ignored", merge(placing("fake:partition"), smt("table.field.additional.missing", "ignore")),
			usual, user(0, `'{}'`)),
		place("missing with the old option", merge(placing("fake:header"),
			smt("table.fields.additional.error.on.missing", "false")), usual, user(0, `'{}'`)),
		place("envelope alias payload", placing("type:envelope:payload"), usual, user(0, `'{}'`)),
		place("envelope alias twice", placing("type:envelope:x,aggregateid:envelope:x"), usual, user(0, `'{}'`)),
		place("unknown placement", placing("type:foo"), usual, user(0, `'{}'`)),
		place("schema version in the envelope", merge(jsonForm().config, placing("type:envelope:eventType"),
			smt("table.field.event.schema.version", "version")), more,
			one(0, `'{}'`, "1, 0, 0, NULL, 0"), one(1, `'{}'`, "3, 0, 0, NULL, 0"), one(2, `'{}'`, "1, 0, 0, NULL, 0"),
			one(3, `'{}'`, "NULL, 0, 0, NULL, 0")),
		place("schema version without envelope", merge(jsonForm().config, smt("table.field.event.schema.version", "version")),
			more, one(0, `'{}'`, "1, 0, 0, NULL, 0"), one(1, `'{}'`, "3, 0, 0, NULL, 0")),
		place("schema version BIGINT", merge(jsonForm().config, placing("type:envelope"),
			smt("table.field.event.schema.version", "big")), more, one(0, `'{}'`, "1, 0, 0, NULL, 0")),
		place("schema version missing with envelope", merge(jsonForm().config, placing("type:envelope"),
			smt("table.field.event.schema.version", "fake")), more, one(0, `'{}'`, "1, 0, 0, NULL, 0")),
		place("schema version missing without envelope", merge(jsonForm().config,
			smt("table.field.event.schema.version", "fake")), more, one(0, `'{}'`, "1, 0, 0, NULL, 0")),
		place("envelope name of the first route value", merge(jsonForm().config, placing("type:envelope")), usual,
			insert(uuid(0), "First", "k", "t", `'1'`), insert(uuid(1), "Second", "k", "t", `'2'`)),
		place("defaults in the envelope", merge(jsonForm().config, placing("a:envelope,b:envelope,c:header")),
			outbox("VARCHAR(50) DEFAULT 'none'", "a INT DEFAULT 5", "b VARCHAR(9) NOT NULL DEFAULT 'b'",
				"c DECIMAL(6,2) DEFAULT 1.5"), user(0, "NULL, NULL, 'x', NULL"), user(1, "'p', 1, DEFAULT, 2")),
	}
	for _, tombstones := range []string{"true", "false"} {
		for _, f := range []form{stringForm(), plainForm(), jsonForm()} {
			for _, envelope := range []bool{false, true} {
				name := "route.tombstone.on.empty.payload " + tombstones + ", " + f.name
				config := merge(f.config, smt("route.tombstone.on.empty.payload", tombstones))
				if envelope {
					name += ", envelope"
					config = merge(config, placing("deleted:envelope"))
				}
				out = append(out, place(name, config, outbox("VARCHAR(50)", "deleted TINYINT(1) DEFAULT 0"),
					user(0, "'{}', 1"), user(1, "'', 1"), user(2, `' \t\n', 1`), user(3, "NULL, NULL"), user(4, "'\u00a0', 0")))
			}
		}
	}
	out = append(out,
		place("tombstones and an empty BLOB", merge(plainForm().config, smt("route.tombstone.on.empty.payload", "true")),
			outbox("BLOB"), user(0, "''"), user(1, "NULL"), user(2, "'x'")),
		place("tombstones and JSON payloads", merge(plainForm().config, smt("route.tombstone.on.empty.payload", "true")),
			usual, user(0, `'""'`), user(1, `'null'`), user(2, "NULL"), user(3, `'{}'`)),
		place("all features", merge(jsonForm().config, smt("table.field.event.schema.version", "version",
			"table.field.event.timestamp", "createdat"),
			placing("version:envelope:eventVersion,aggregatetype:envelope:aggregateType,somebooltype:envelope:someBoolType,somebooltype:header,is_deleted:envelope:deleted")),
			outbox("JSON", "version INT NOT NULL", "somebooltype BOOLEAN NOT NULL", "createdat DATETIME NOT NULL",
				"is_deleted BOOLEAN DEFAULT false"),
			insert("f9171eb6-19f3-4579-9206-0e179d2ebad7", "UserEmail", "7bdf2e9e", "UserUpdated",
				`'{"email": "gh@mefi.in"}', 1, true, '2019-03-24 20:52:59', DEFAULT`),
			insert("a9d76f78-bda6-48d3-97ed-13a146163218", "UserEmail", "a9d76f78", "UserUpdated",
				"NULL, 1, true, '2019-03-24 20:52:59', true")),
		place("all features with tombstones", merge(plainForm().config, smt("table.field.event.schema.version", "version",
			"table.field.event.timestamp", "createdat", "route.tombstone.on.empty.payload", "true"),
			placing("version:envelope:eventVersion,somebooltype:header,is_deleted:envelope:deleted")),
			outbox("JSON", "version INT NOT NULL", "somebooltype BOOLEAN NOT NULL", "createdat DATETIME(6) NOT NULL",
				"is_deleted BOOLEAN DEFAULT false"),
			insert(uuid(0), "UserEmail", "7bdf2e9e", "UserUpdated",
				`'{"email": "gh@mefi.in"}', 1, true, '2019-03-24 20:52:59.123456', DEFAULT`),
			insert(uuid(1), "UserEmail", "a9d76f78", "UserUpdated", "NULL, 1, true, '2019-03-24 20:52:59.999999', true")),
	)
	return out
}

// timestampCases are about table.field.event.timestamp.
func timestampCases() []Case {
	var out []Case
	add := func(name, column string, config map[string]string, values ...string) {
		c := Case{Group: "timestamp", Name: "table.field.event.timestamp from " + name,
			Setup:  []string{outbox("TEXT", "t "+column)},
			Config: merge(smt("table.field.event.timestamp", "t"), placing("t:header"), config)}
		for i, v := range values {
			c.Do = append(c.Do, user(i, "'x', "+v))
		}
		if len(values) == 2 {
			c.Do = slow(c.Do...)
		}
		out = append(out, c)
	}
	add("DATETIME", "DATETIME", nil, "'2019-03-24 20:52:59'", "NULL", "'1970-01-01 00:00:00'", "'2024-02-29 23:59:59'")
	add("DATETIME(3)", "DATETIME(3)", nil, "'2019-03-24 20:52:59.123'", "NULL", "'1970-01-01 00:00:00.001'")
	add("DATETIME(6)", "DATETIME(6)", nil, "'2019-03-24 20:52:59.999999'", "NULL", "'1969-12-31 23:59:59.999500'",
		"'1970-01-01 00:00:00.000999'")
	add("DATETIME before 1970", "DATETIME", nil, "'1970-01-01 00:00:01'", "'1969-12-31 23:59:58'")
	add("DATETIME(3) of -1 ms", "DATETIME(3)", nil, "'1970-01-01 00:00:00.001'", "'1969-12-31 23:59:59.999'")
	add("DATETIME(3) of -2 ms", "DATETIME(3)", nil, "'1970-01-01 00:00:00.001'", "'1969-12-31 23:59:59.998'")
	add("DATETIME far in the future", "DATETIME", nil, "'2019-03-24 20:52:59'", "'2999-01-01 00:00:00'")
	add("DATETIME of a day that comes", "DATETIME", nil, "'2019-03-24 20:52:59'", "'2100-01-01 00:00:00'")
	add("DATETIME with default CURRENT_TIMESTAMP", "DATETIME DEFAULT CURRENT_TIMESTAMP", nil, "'2019-03-24 20:52:59'",
		"NULL")
	add("DATETIME(6) in nanoseconds", "DATETIME(6)", conf("time.precision.mode", "nanoseconds"),
		"'2019-03-24 20:52:59.999999'", "NULL")
	add("DATETIME in microseconds", "DATETIME", conf("time.precision.mode", "microseconds"), "'2019-03-24 20:52:59'",
		"NULL")
	add("DATETIME in connect mode", "DATETIME", conf("time.precision.mode", "connect"), "'2019-03-24 20:52:59'")
	add("DATETIME in isostring mode", "DATETIME", conf("time.precision.mode", "isostring"), "'2019-03-24 20:52:59'")
	add("TIMESTAMP", "TIMESTAMP NULL", nil, "'2019-03-24 20:52:59'")
	add("DATE", "DATE", nil, "'2019-03-24'")
	add("TIME", "TIME", nil, "'20:52:59'")
	add("BIGINT", "BIGINT", nil, "1553460779000")
	add("INT UNSIGNED", "INT UNSIGNED", nil, "1553460779")
	add("VARCHAR", "VARCHAR(30)", nil, "'2019-03-24'")
	c := Case{Group: "timestamp", Name: "table.field.event.timestamp that is not there", Setup: []string{outbox("TEXT")},
		Do: []string{user(0, "'x'")}, Config: smt("table.field.event.timestamp", "fake")}
	return append(out, c)
}

// refusalCases are configurations that Debezium or the worker refuses.
func refusalCases() []Case {
	var out []Case
	add := func(name string, config map[string]string) {
		out = append(out, Case{Group: "refused", Name: name, Setup: []string{outbox("JSON")},
			Do: []string{user(0, `'{"a": 1}'`)}, Config: config})
	}
	for _, kv := range [][2]string{
		{"route.topic.regex", " [[a-z]"}, {"table.fields.additional.placement", "type"},
		{"table.fields.additional.placement", ""},
		{"table.fields.additional.placement", "a:b:c:d"}, {"table.fields.additional.placement", ",type:header"},
		{"table.op.invalid.behavior", "invalidOption"}, {"table.json.payload.null.behavior", "x"},
		{"table.field.additional.missing", "x"},
		{"route.topic.replacement", "{id}${nogroup}"}, {"route.topic.replacement", "{id}$9"},
		{"route.topic.replacement", "{id}$"},
		{"route.tombstone.on.empty.payload", "maybe"}, {"table.expand.json.payload", "yes"},
	} {
		add(kv[0]+"="+kv[1], smt(kv[0], kv[1]))
	}
	add("field.name.adjustment.mode=x", merge(smt("table.expand.json.payload", "true", "field.name.adjustment.mode", "x")))
	add("snapshot.mode=schema_only", conf("snapshot.mode", "schema_only"))
	out[len(out)-1].Taken = "releases up to 3.2 take it for no_data"
	add("time.precision.mode=adaptive", conf("time.precision.mode", "adaptive"))
	add("binary.handling.mode=x", conf("binary.handling.mode", "x"))
	out[len(out)-1].Refused = "binary.handling.mode"
	add("decimal.handling.mode=x", conf("decimal.handling.mode", "x"))
	add("value.converter of no class", conf("value.converter", "no.such.Converter"))
	add("no topic.prefix", conf("topic.prefix", Unset))
	return out
}
