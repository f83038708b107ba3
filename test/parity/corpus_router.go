package parity

import "fmt"

// uuid makes the id of the n-th row of a case.
func uuid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// user is a row of the usual table with a payload.
func user(n int, payload string) string {
	return insert(uuid(n), "User", "10711fa5", "UserCreated", payload)
}

// router is a case of the usual table with a JSON payload.
func router(name string, config map[string]string, do ...string) Case {
	return Case{Group: "router", Name: name, Setup: []string{outbox("JSON")}, Do: do, Config: config}
}

// routerCases are the tests of the router that its project has, and what they leave out.
func routerCases() []Case {
	out := []Case{
		router("defaults", nil, user(0, `'{}'`), user(1, `'{"email": "gh@mefi.in"}'`), user(2, "NULL")),
		router("a deleted row is dropped with its tombstone", nil,
			user(0, `'{"n": 0}'`), "DELETE FROM outbox", user(1, `'{"n": 1}'`), "DELETE FROM outbox WHERE id = "+quote(uuid(1)),
			user(2, `'{"n": 2}'`)),
		router("tombstones.on.delete false", conf("tombstones.on.delete", "false"), user(0, `'{}'`), "DELETE FROM outbox",
			user(1, `'{}'`)),
		router("table.op.invalid.behavior warn", smt("table.op.invalid.behavior", "warn"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET type = 'x'", user(1, `'{"n": 1}'`)),
		router("table.op.invalid.behavior error", smt("table.op.invalid.behavior", "error"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET type = 'x'", user(1, `'{"n": 1}'`)),
		router("table.op.invalid.behavior fatal", smt("table.op.invalid.behavior", " FATAL "), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET type = 'x'", user(1, `'{"n": 1}'`)),
		router("an update of the primary key is routed with the old key", nil, user(0, `'{"n": 0}'`),
			"UPDATE outbox SET id = 'changed', type = 'x'", user(1, `'{"n": 1}'`)),
		router("an update of the primary key with fatal", smt("table.op.invalid.behavior", "fatal"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET id = 'changed'", user(1, `'{"n": 1}'`)),
		router("skipped.operations u drops updates of the primary key too", conf("skipped.operations", "u"),
			user(0, `'{"n": 0}'`), "UPDATE outbox SET id = 'changed'", user(1, `'{"n": 1}'`)),
		router("skipped.operations d", conf("skipped.operations", "d"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET id = 'changed'", "DELETE FROM outbox", user(1, `'{"n": 1}'`)),
		router("skipped.operations none", conf("skipped.operations", "none"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET id = 'changed'", "DELETE FROM outbox", user(1, `'{"n": 1}'`)),
		router("skipped.operations u,d", conf("skipped.operations", "u,d"), user(0, `'{"n": 0}'`),
			"UPDATE outbox SET id = 'changed'", "DELETE FROM outbox", user(1, `'{"n": 1}'`)),
		router("skipped.operations c drops inserts", conf("skipped.operations", "c"), user(0, `'{"n": 0}'`),
			user(1, `'{"n": 1}'`)),
		router("skipped.operations c with an update of the primary key", conf("skipped.operations", "c"),
			user(0, `'{"n": 0}'`), "UPDATE outbox SET id = 'changed'", user(1, `'{"n": 1}'`)),
		router("updates and deletes of many rows", nil, user(0, `'{"n": 0}'`), user(1, `'{"n": 1}'`), user(2, `'{"n": 2}'`),
			"UPDATE outbox SET id = CONCAT('k-', RIGHT(id, 12)) ORDER BY id", "UPDATE outbox SET type = 'y'",
			"DELETE FROM outbox"),
		router("insert, update and delete in one transaction", nil,
			"BEGIN", user(0, `'{"n": 0}'`), "UPDATE outbox SET type = 'x'", "UPDATE outbox SET id = 'changed'",
			"DELETE FROM outbox", user(1, `'{"n": 1}'`), "COMMIT"),
		router("REPLACE and ON DUPLICATE KEY UPDATE", nil, user(0, `'{"n": 0}'`),
			"REPLACE INTO outbox VALUES ("+quote(uuid(0))+", 'User', 'k2', 'Replaced', '{\"n\": 1}')",
			user(0, `'{"n": 2}'`)+" ON DUPLICATE KEY UPDATE type = 'x'", user(0,
				`'{"n": 3}'`)+" ON DUPLICATE KEY UPDATE id = 'other'"),
		router("table.field.event.key type", smt("table.field.event.key", "type"), user(0, `'{}'`)),
		router("table.field.event.key that is not there", smt("table.field.event.key", "fakefield"), user(0, `'{}'`)),
		router("table.field.event.id that is not there", smt("table.field.event.id", "fakefield"), user(0, `'{}'`)),
		router("table.field.event.payload that is not there", smt("table.field.event.payload", "fakefield"), user(0, `'{}'`)),
		router("table.field.event.type is not read", smt("table.field.event.type", "fakefield"), user(0, `'{}'`)),
		router("column names count with their case", smt("table.field.event.key", "AggregateId"), user(0, `'{}'`)),
		router("route.by.field type", smt("route.by.field", "type"), user(0, `'{}'`)),
		router("route.by.field that is not there", smt("route.by.field", "fakefield"), user(0, `'{}'`)),
		router("route.by.field JSON", smt("route.by.field", "payload", "route.topic.regex", `"?(\w+)"?`,
			"route.topic.replacement", "{id}.$1"), user(0, `'"Order"'`)),
		router("route values", nil, insert(uuid(0), "User", "k", "t", `'1'`), insert(uuid(1), "Address", "k", "t", `'2'`),
			insert(uuid(2), "", "k", "t", `'3'`),
			insert(uuid(3), "a.b-c_d", "k", "t", `'4'`), insert(uuid(4), "User", "k", "t", `'5'`)),
		router("route.topic.replacement default", smt("route.topic.replacement", Unset),
			insert(uuid(0), "{id}User", "k", "t", `'1'`), insert(uuid(1), "{id}", "k", "t", `'2'`)),
		router("route.topic.regex and replacement with a number", smt("route.topic.regex", "(.*)", "route.topic.replacement",
			"{id}ev-$1"), user(0, `'{}'`)),
		router("route.topic.replacement constant", smt("route.topic.replacement", "{id}events"), user(0, `'1'`),
			insert(uuid(1), "Other", "k", "t", `'2'`)),
		router("route.topic.regex groups", smt("route.topic.regex", `(?<a>[a-z]+)-(?<b>\d+)`, "route.topic.replacement",
			`{id}.${b}.${a}.$2$1`), insert(uuid(0), "order-42", "k", "t", `'1'`),
			insert(uuid(1), "{id}unmatched", "k", "t", `'2'`)),
		router("route.topic.regex matches a part only", smt("route.topic.regex", "x|xy{id}", "route.topic.replacement",
			"{id}Z"), insert(uuid(0), "xy{id}", "k", "t", `'1'`), insert(uuid(1), "x", "k", "t", `'2'`)),
		router("route.topic.regex look-around and back reference", smt("route.topic.regex", `(?=.*{id})(\w)\1(?!z)(.*)`,
			"route.topic.replacement", "$2.$1"), insert(uuid(0), "aa-{id}", "k", "t", `'1'`),
			insert(uuid(1), "aaz{id}", "k", "t", `'2'`)),
		router("route.topic.regex possessive, case-insensitive, classes",
			smt("route.topic.regex", `(?i)ORDER([\p{Alnum}&&[^b]]++)\.?({id})`, "route.topic.replacement", `$2-x`),
			insert(uuid(0), "order1a.{id}", "k", "t", `'1'`)),
		router("route.topic.replacement escapes", smt("route.topic.replacement", `{id}\.\x\-${routedByValue}`),
			user(0, `'1'`)),
		router("route.topic.replacement greedy group numbers", smt("route.topic.regex", `(.)(.)(.*)`,
			"route.topic.replacement", `{id}-$12-$3`), insert(uuid(0), "abc", "k", "t", `'1'`)),
		router("predicate that lets the outbox through", merge(smt("predicate", "isOutbox"), conf("predicates", "isOutbox",
			"predicates.isOutbox.type", "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
			"predicates.isOutbox.pattern", `{id}\.p_{id}\.outbox`)), user(0, `'{}'`)),
		router("negated predicate", merge(smt("predicate", "other", "negate", "true"), conf("predicates", "other",
			"predicates.other.type", "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
			"predicates.other.pattern", `.*\.orders`)), user(0, `'{}'`)),
		router("extended.headers.enabled false", conf("extended.headers.enabled", "false"), user(0, `'{}'`),
			"UPDATE outbox SET id = 'changed'"),
		router("tracing options without OpenTelemetry", merge(smt("tracing.span.context.field", "type",
			"tracing.operation.name", "x", "tracing.with.context.field.only", "false")), user(0, `'{}'`)),
		refusedBy("transforms.outbox.table.field.event.nonsense", router("unknown option of the router",
			smt("table.field.event.nonsense", "x", "debezium.expand.json.payload", "true"), user(0, `'{"a": 1}'`))),
		router("provide.transaction.metadata false and heartbeats off", conf("provide.transaction.metadata", "false",
			"heartbeat.interval.ms", "0"), user(0, `'{}'`)),
	}
	return append(out, renamedCases()...)
}

// refusedBy marks a case that our program refuses because of a key.
func refusedBy(key string, c Case) Case {
	c.Refused = key
	return c
}

func renamedCases() []Case {
	names := smt("table.field.event.id", "event_id", "table.field.event.key", "payload_id", "table.field.event.type",
		"event_type",
		"table.field.event.payload", "payload_body", "route.by.field", "payload_id")
	return []Case{
		{Group: "router", Name: "every column by another name", Config: names,
			Setup: []string{"CREATE TABLE outbox (event_id CHAR(36) PRIMARY KEY, payload_id VARCHAR(50) NOT NULL, event_type " +
				"VARCHAR(50) NOT NULL, payload_body JSON)"},
			Do: []string{`INSERT INTO outbox VALUES ('da8d6de6-3b77-45ff-8f44-57db55a7a06c', '10711fa5', 'UserCreated', '{}')`}},
		{Group: "router", Name: "columns of other types", Config: merge(plainForm().config,
			placing("some_boolean:envelope:bool")),
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid INT NOT " +
				"NULL, payload BLOB, some_boolean BIT(1) NOT NULL)"},
			Do: []string{`INSERT INTO outbox VALUES (2, 'routename', 1232, '{}', 1), (3, 'routename', -1, NULL, 0)`}},
		{Group: "router", Name: "a table without primary key",
			Setup: []string{"CREATE TABLE outbox (id CHAR(36), aggregatetype VARCHAR(50), aggregateid VARCHAR(50), type " +
				"VARCHAR(50), payload TEXT)"},
			Do: []string{user(0, `'a'`), "UPDATE outbox SET id = 'changed'", "DELETE FROM outbox", user(1, `'b'`)}},
		{Group: "router", Name: "a primary key of several columns that changes", Config: conf("key.converter", jsonConverter),
			Setup: []string{"CREATE TABLE outbox (id CHAR(36), n INT UNSIGNED, aggregatetype VARCHAR(50), aggregateid " +
				"VARCHAR(50) NOT NULL, payload TEXT, raw VARBINARY(8), PRIMARY KEY (n, id, raw))"},
			Do: []string{"INSERT INTO outbox VALUES ('a', 1, 'User', 'k', 'one', x'00ff')", "UPDATE outbox SET n = 4000000000",
				"UPDATE outbox SET id = 'quote\"back\\\\'",
				"UPDATE outbox SET raw = x'01', payload = 'two'", "UPDATE outbox SET payload = 'three'"}},
		{Group: "router", Name: "an update of the primary key with all features",
			Config: merge(jsonForm().config, placing("type:header:eventType,type:envelope"),
				conf("header.converter", jsonConverter)),
			Setup: []string{outbox("JSON")}, Do: []string{user(0, `'{"n": 0}'`),
				"UPDATE outbox SET id = 'changed', payload = NULL", user(1, `'{"n": 1}'`)}},
		{Group: "router", Name: "an update that changes nothing of a key compared without case",
			Setup: []string{outbox("JSON")},
			Do: []string{insert("abc", "User", "k", "t", `'{"n": 0}'`), "UPDATE outbox SET id = 'ABC'",
				user(1, `'{"n": 1}'`)}},
		{Group: "router", Name: "route.by.field NULL",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50), aggregateid VARCHAR(50), " +
				"payload TEXT)"},
			Do: slow("INSERT INTO outbox VALUES (1, 'User', 'k', 'a')", "INSERT INTO outbox VALUES (2, NULL, 'k', 'b')",
				"INSERT INTO outbox VALUES (3, 'User', 'k', 'c')")},
		{Group: "router", Name: "route.by.field NULL with a default",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50) DEFAULT 'User', aggregateid " +
				"VARCHAR(50), payload TEXT)"},
			Do: []string{"INSERT INTO outbox (id, aggregateid, payload) VALUES (1, 'k', 'a')",
				"INSERT INTO outbox VALUES (2, NULL, 'k', 'b')"}},
		{Group: "router", Name: "route.by.field INT", Config: smt("route.by.field", "aggregateid"),
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregateid INT, payload TEXT)"},
			Do:    []string{"INSERT INTO outbox VALUES (1, 2, 'a')"}},
		{Group: "router", Name: "route.by.field BINARY",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARBINARY(20), aggregateid INT, " +
				"payload TEXT)"}, Do: []string{"INSERT INTO outbox VALUES (1, 'User', 2, 'a')"}},
		{Group: "router", Name: "route.by.field BINARY as text", Config: conf("binary.handling.mode", "hex"),
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARBINARY(20), aggregateid INT, " +
				"payload TEXT)"}, Do: []string{"INSERT INTO outbox VALUES (1, 'User', 2, 'a')"}},
		{Group: "router", Name: "route.by.field ENUM",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype ENUM('User','Order') NOT NULL, " +
				"aggregateid INT, payload TEXT)"},
			Do: []string{"INSERT INTO outbox VALUES (1, 'Order', 2, 'a'), (2, 'User', 2, 'b')"}},
		{Group: "router", Name: "route.by.field with a line end", Config: smt("route.topic.regex",
			`(?s)(?<routedByValue>.*)\n(.*)`, "route.topic.replacement", "{id}.$2"), Setup: []string{outbox("JSON")},
			Do: []string{insert(uuid(0), "a\nb", "k", "t", `'1'`)}},
		{Group: "router", Name: "key NULL", Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype " +
			"VARCHAR(50) NOT NULL, aggregateid VARCHAR(50), payload TEXT)"}, Config: merge(jsonForm().config,
			smt("route.topic.replacement", "{id}.one"), conf("topic.creation.default.partitions", "1",
				"topic.creation.default.replication.factor", "1")),
			Do: []string{"INSERT INTO outbox VALUES (1, 'User', NULL, 'a')", "INSERT INTO outbox VALUES (2, 'User', '', 'b')"}},
		{Group: "router", Name: "key NULL with plain JSON",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid " +
				"VARCHAR(50), payload TEXT)"}, Config: plainForm().config,
			Do: []string{"INSERT INTO outbox VALUES (1, 'User', NULL, 'a')", "INSERT INTO outbox VALUES (2, 'User', '', 'b')"}},
		{Group: "router", Name: "key NULL with StringConverter, one partition",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid " +
				"VARCHAR(50), payload TEXT)"},
			Config: conf("topic.creation.default.partitions", "1", "topic.creation.default.replication.factor", "1"),
			Do: []string{"INSERT INTO outbox VALUES (1, 'User', NULL, 'a')",
				"INSERT INTO outbox VALUES (2, 'User', '', 'b')"}},
		{Group: "router", Name: "key NULL with a default",
			Setup: []string{"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid " +
				"VARCHAR(50) DEFAULT 'dflt', payload VARCHAR(50) DEFAULT 'empty')"},
			Do: []string{"INSERT INTO outbox VALUES (1, 'User', NULL, NULL)",
				"INSERT INTO outbox VALUES (2, 'User', 'x', 'y')"}},
		{Group: "router", Name: "id NULL and id with a default",
			Setup: []string{"CREATE TABLE outbox (n INT PRIMARY KEY, id VARCHAR(20), aggregatetype VARCHAR(50) NOT NULL, " +
				"aggregateid VARCHAR(50), other VARCHAR(20) DEFAULT 'o', payload TEXT)"},
			Config: placing("other:header"), Do: []string{"INSERT INTO outbox VALUES (1, NULL, 'User', 'k', NULL, 'a')",
				"INSERT INTO outbox VALUES (2, 'id', 'User', 'k', 'p', 'a')"}},
		{Group: "router", Name: "generated, invisible and generated key columns", Setup: []string{
			"SET sql_generate_invisible_primary_key = ON",
			"CREATE TABLE outbox (id CHAR(36) NOT NULL, aggregatetype VARCHAR(50) NOT NULL, aggregateid VARCHAR(50) AS " +
				"(CONCAT('k-', id)) STORED, v VARCHAR(50) AS (UPPER(id)) VIRTUAL, hidden INT DEFAULT 7 INVISIBLE, payload TEXT)"},
			Config: placing("hidden:header,my_row_id:header:row,v:header"),
			Do: []string{"INSERT INTO outbox (id, aggregatetype, payload) VALUES ('a', 'User', 'x')",
				"INSERT INTO outbox (id, aggregatetype, payload, hidden) VALUES ('b', 'User', 'y', 8)"}},
	}
}
