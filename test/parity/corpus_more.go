package parity

import "fmt"

// converterCases pair converters with columns of text, bytes and numbers.
func converterCases() []Case {
	var out []Case
	converters := []form{
		{"StringConverter", conf("", stringConverter)}, {"JsonConverter", conf("", jsonConverter)},
		{"JsonConverter without schemas", conf("", jsonConverter, ".schemas.enable", "false")},
		{"ByteArrayConverter", conf("", bytesConverter)}, {"BinaryDataConverter", conf("", binaryConverter)},
		{"BinaryDataConverter with JsonConverter", conf("", binaryConverter, ".delegate.converter.type", jsonConverter)},
		{"BinaryDataConverter with plain JsonConverter", conf("", binaryConverter, ".delegate.converter.type", jsonConverter,
			".delegate.converter.type.schemas.enable", "false")},
		{"BinaryDataConverter with StringConverter", conf("", binaryConverter, ".delegate.converter.type", stringConverter)},
	}
	at := func(f form, part string) map[string]string {
		m := map[string]string{}
		for k, v := range f.config {
			m[part+".converter"+k] = v
		}
		return m
	}
	textTable, blobTable := outbox("TEXT"), "CREATE TABLE outbox (id BINARY(2) PRIMARY KEY, aggregatetype VARCHAR(20) "+
		"NOT NULL, aggregateid VARBINARY(20), payload BLOB, h VARBINARY(8))"
	intTable := "CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid BIGINT, " +
		"payload DECIMAL(10,2), h DECIMAL(8,7))"
	for _, f := range converters {
		add := func(what, part, table, differs string, rows ...string) {
			out = append(out, Case{Group: "converters", Name: f.name + " for the " + part + ", " + what, Setup: []string{table},
				Do: rows, Config: at(f, part), Differs: differs})
		}
		buffers := ""
		if f.name == "StringConverter" {
			buffers = "byte-buffers-as-text"
		}
		quietValue := func(c *Case) {
			c.Config = merge(c.Config, conf("value.converter", jsonConverter, "key.converter", jsonConverter), at(f, "header"))
		}
		add("text", "value", textTable, "", user(0, `'{"a": 1}'`), user(1, "''"), user(2, "NULL"))
		add("bytes", "value", blobTable, "byte-buffers-as-text",
			"INSERT INTO outbox VALUES ('a1', 'User', 'key', x'0102ff', NULL)",
			"INSERT INTO outbox VALUES ('a2', 'User', 'key', '', NULL)",
			"INSERT INTO outbox VALUES ('a3', 'User', 'key', NULL, NULL)")
		out[len(out)-1].Differs = buffers
		add("DECIMAL", "value", intTable, "", "INSERT INTO outbox VALUES (1, 'User', 5, 12.5, 0)",
			"INSERT INTO outbox VALUES (2, 'User', 5, NULL, 0)")
		add("text", "key", textTable, "", user(0, "'x'"))
		add("bytes", "key", blobTable, "", "INSERT INTO outbox VALUES ('a1', 'User', 'key', NULL, NULL)",
			"INSERT INTO outbox VALUES ('a2', 'User', '', NULL, NULL)")
		out[len(out)-1].Differs = buffers
		add("BIGINT", "key", intTable, "", "INSERT INTO outbox VALUES (1, 'User', -5, 12.5, 0)")
		add("DECIMAL and INT", "header", intTable, "", "INSERT INTO outbox VALUES (1, 'User', 5, 12.5, 0.0000001)",
			"INSERT INTO outbox VALUES (2, 'User', 5, 12.5, NULL)")
		out[len(out)-1].Config = merge(out[len(out)-1].Config, placing("h:header"))
		quietValue(&out[len(out)-1])
		add("bytes", "header", blobTable, "", "INSERT INTO outbox VALUES ('a1', 'User', 'key', NULL, x'00ff')",
			"INSERT INTO outbox VALUES ('a2', 'User', 'key', NULL, NULL)")
		out[len(out)-1].Config = merge(out[len(out)-1].Config, placing("h:header"))
		out[len(out)-1].Differs = buffers
		quietValue(&out[len(out)-1])
	}
	row := user(0, `'{"a": 1}'`)
	out = append(out,
		Case{Group: "converters", Name: "worker with JsonConverter", Worker: "json", Setup: []string{outbox("JSON")},
			Do: []string{row, user(1, "NULL")}, Config: placing("type:header")},
		Case{Group: "converters", Name: "worker with JsonConverter, value.converter of the connector", Worker: "json",
			Setup: []string{outbox("JSON")}, Do: []string{row}, Config: conf("value.converter", stringConverter)},
		Case{Group: "converters", Name: "worker with JsonConverter, options alone in the connector", Worker: "json",
			Setup: []string{outbox("JSON")}, Do: []string{row}, Config: conf("value.converter.schemas.enable", "false")},
		Case{Group: "converters", Name: "worker with plain JsonConverter", Worker: "json-plain",
			Setup: []string{outbox("JSON")}, Do: []string{row, user(1, "NULL")}, Config: placing("type:envelope")},
		Case{Group: "converters", Name: "worker with plain JsonConverter, value.converter of the connector",
			Worker: "json-plain", Setup: []string{outbox("JSON")}, Do: []string{row},
			Config: conf("value.converter", jsonConverter)},
		Case{Group: "converters", Name: "worker with mixed converters and a secret in a file", Worker: "mixed",
			Setup: []string{outbox("JSON", "b VARBINARY(8)")}, Do: []string{insert(uuid(0), "User", "k", "t", `'{"a": 1}', 'x'`),
				insert(uuid(1), "User", "k", "t", "NULL, NULL")},
			Config: merge(placing("type:header,b:header"), conf("database.password",
				"${secrets:{dir}/"+secretsFile+":mysql.password}"))},
		Case{Group: "converters", Name: "worker with mixed converters, BLOB payload", Worker: "mixed",
			Setup: []string{outbox("BLOB")}, Do: []string{user(0, "x'00ff'"), user(1, "''"), user(2, "NULL")}},
		Case{Group: "converters", Name: "aliases of converters", Setup: []string{outbox("JSON")}, Do: []string{row},
			Config: conf("value.converter", "JsonConverter", "value.converter.schemas.enable", "false", "key.converter",
				"StringConverter", "header.converter", "SimpleHeaderConverter")},
		Case{Group: "converters", Name: "header.converter StringConverter",
			Setup: []string{outbox("JSON", "d DECIMAL(10,7)", "t TIME")}, Do: []string{insert(uuid(0), "User", "k", "t",
				`'{"a": 1}', 0.0000001, '-01:00:00'`), insert(uuid(1), "User", "k", "t", "NULL, NULL, NULL")},
			Config: merge(placing("type:header,d:header,t:header,payload:header"), conf("header.converter", stringConverter))},
		Case{Group: "converters", Name: "replace.null.with.default false",
			Setup: []string{outbox("VARCHAR(10) DEFAULT 'd'", "e INT DEFAULT 4")},
			Do:    []string{insert(uuid(0), "User", "k", "t", "NULL, NULL")},
			Config: merge(plainForm().config, placing("e:envelope"), conf("value.converter.replace.null.with.default",
				"false"))},
	)
	return out
}

// charsetCases read texts of many character sets.
func charsetCases() []Case {
	right := [][2]string{
		{"utf8mb4", "é漢"}, {"utf8mb3", "é漢"}, {"latin1", "é€ÿ"}, {"latin2", "žš"}, {"latin5", "ğş"}, {"latin7", "ąž"},
		{"ascii", "abc"}, {"cp1250", "žš€"}, {"cp1251", "Привет€"}, {"cp1256", "سلام"}, {"cp1257", "ąž"},
		{"cp850", "éÄ"}, {"cp852", "čš"}, {"cp866", "Привет"}, {"koi8r", "Привет"}, {"greek", "αβγ"}, {"hebrew", "שלום"},
		{"gbk", "漢字中文"}, {"gb2312", "汉字"}, {"gb18030", "漢€"}, {"big5", "漢字"},
		{"sjis", "漢字かなｱ"}, {"cp932", "漢字①"}, {"ujis", "漢字かな"}, {"eucjpms", "漢字①"}, {"euckr", "한글"}, {"tis620", "ไทย"},
		{"ucs2", "é漢"}, {"utf16", "é漢"}, {"utf16le", "é漢"}, {"utf32", "é漢"},
		{"dec8", "éü"}, {"macroman", "éü"}, {"macce", "čš"},
	}
	wrong := [][2]string{{"koi8u", "Київ"}, {"hp8", "éñ"}, {"geostd8", "აბ"}, {"armscii8", "ԱԲ"}, {"swe7", "åäö"},
		{"keybcs2", "čš"}}
	build := func(name, differs string, list [][2]string) Case {
		c := Case{Group: "charsets", Name: "character sets " + name, Config: merge(placing("h:header,e:header"),
			jsonForm().config), Differs: differs}
		for _, cs := range list {
			table := "o_" + cs[0]
			c.Tables = append(c.Tables, table)
			c.Setup = append(c.Setup, fmt.Sprintf("CREATE TABLE %s (id INT AUTO_INCREMENT PRIMARY KEY, aggregatetype "+
				"VARCHAR(20) CHARACTER SET ascii NOT NULL, aggregateid VARCHAR(50) NOT NULL DEFAULT %s, h CHAR(20), e "+
				"ENUM(%s,'b'), payload TEXT) CHARACTER SET %s", table, quote(cs[1]), quote(cs[1]), cs[0]))
			c.Do = append(c.Do, fmt.Sprintf("INSERT INTO %s (aggregatetype, aggregateid, h, e, payload) VALUES ('all', %s, "+
				"%s, %s, %s)", table, quote(cs[1]), quote(cs[1]+" x"), quote(cs[1]), quote("<"+cs[1]+">")),
				fmt.Sprintf("INSERT INTO %s (aggregatetype, payload) VALUES ('all', NULL)", table))
		}
		return c
	}
	out := []Case{build("with a twin in Java", "", right)}
	for i := 0; i < len(wrong); i++ {
		out = append(out, build("without a twin in Java: "+wrong[i][0], "charsets", wrong[i:i+1]))
	}
	beyond := Case{Group: "charsets", Name: "character sets of characters beyond U+FFFF",
		Config: merge(placing("h:header"), plainForm().config)}
	for _, cs := range []string{"utf8mb4", "gb18030", "utf16", "utf16le", "utf32"} {
		beyond.Tables = append(beyond.Tables, "o_"+cs)
		beyond.Setup = append(beyond.Setup, fmt.Sprintf("CREATE TABLE o_%s (id INT AUTO_INCREMENT PRIMARY KEY, "+
			"aggregatetype VARCHAR(20) NOT NULL, aggregateid VARCHAR(20) NOT NULL, h CHAR(20), payload TEXT) CHARACTER SET %s",
			cs, cs))
		beyond.Do = append(beyond.Do, fmt.Sprintf("INSERT INTO o_%s (aggregatetype, aggregateid, h, payload) VALUES "+
			"('all', 'a😀é', '😀', '漢😀€𝄞')", cs))
	}
	ddl := Case{Group: "charsets", Name: "characters beyond U+FFFF in ENUM and DEFAULT",
		Config: merge(placing("e:header,d:header"), plainForm().config), Differs: "ddl-beyond-bmp", Always: true,
		FullMetadata: true,
		Setup:        []string{outbox("TEXT", "e ENUM('a😀','b')", "d VARCHAR(10) DEFAULT 'x😀'")},
		Do:           []string{user(0, "'1', 'a😀', NULL"), user(1, "'1', 'b', 'y'")}}
	out = append(out, beyond, ddl)
	undefined := Case{Group: "charsets", Name: "bytes that the character set does not define", Setup: []string{
		"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid VARCHAR(50) CHARACTER " +
			"SET latin1, payload VARCHAR(50) CHARACTER SET cp1251)"},
		Do:      []string{"INSERT INTO outbox VALUES (1, 'User', _latin1 x'41815a9d', _cp1251 x'419842')"},
		Differs: "undefined-bytes", Always: true}
	latin := Case{Group: "charsets", Name: "bytes that latin1 leaves to control characters", Setup: []string{
		"CREATE TABLE outbox (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid VARCHAR(50) CHARACTER " +
			"SET latin1, payload VARCHAR(50) CHARACTER SET latin1)"},
		Do: []string{"INSERT INTO outbox VALUES (1, 'User', 'k', _latin1 x'41815a9d')"}, Differs: "undefined-bytes"}
	out = append(out, latin)
	return append(out, undefined,
		Case{Group: "charsets", Name: "tables and columns of several character sets", Setup: []string{
			"CREATE TABLE outbox (id CHAR(5) CHARACTER SET utf16 PRIMARY KEY, aggregatetype VARCHAR(20) CHARACTER SET latin1 " +
				"NOT NULL, aggregateid VARCHAR(50) COLLATE utf8mb4_bin, payload LONGTEXT CHARACTER SET gbk, h SET('é','漢') " +
				"CHARACTER SET utf8mb4) CHARACTER SET sjis"},
			Config: placing("h:header"), Do: []string{"INSERT INTO outbox VALUES ('é漢', 'User', 'é漢😀', '漢字', 'é,漢')",
				"SET NAMES latin1", "INSERT INTO outbox VALUES ('b', 'User', 'plain', 'plain', '')"}},
	)
}

// nameCases have databases, tables and columns with names that need quoting.
func nameCases() []Case {
	named := func(name, database, table string) Case {
		return Case{Group: "names", Name: "names: " + name, Database: database, Tables: []string{table},
			Config: merge(jsonForm().config, placing("type:envelope")),
			Setup: []string{"CREATE TABLE `" + table +
				"` (id INT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid VARCHAR(20), type VARCHAR(20), " +
				"payload JSON)"},
			Do: []string{"INSERT INTO `" + table + "` VALUES (1, 'A', 'k', 't', '{}')", "UPDATE `" + table + "` SET id = 2"}}
	}
	return []Case{
		named("dashes and capitals", "My-Shop-{id}", "Out-Box"), named("not ASCII", "订单库{id}", "发件箱"),
		named("blanks and signs", "db one {id}", "out box$1"), named("letters with marks", "größe{id}", "übersicht"),
		named("dots", "a.b{id}", "out"), named("numbers", "2024{id}", "1"), named("a reserved word", "select{id}", "order"),
		{Group: "names", Name: "names: columns", Setup: []string{"CREATE TABLE outbox (`my id` INT PRIMARY KEY, `Typ-A` " +
			"VARCHAR(20) NOT NULL, `schlüssel` VARCHAR(20), `数据` JSON, `select` INT, `a.b` INT)"},
			Config: merge(jsonForm().config, smt("table.field.event.id", "my id", "route.by.field", "Typ-A",
				"table.field.event.key", "schlüssel", "table.field.event.payload", "数据"),
				placing("select:header,a.b:envelope,a.b:header:Kopf-ü")),
			Do: []string{"INSERT INTO outbox VALUES (1, 'A', 'k', '{}', 5, 6)", "UPDATE outbox SET `my id` = 2"}},
		{Group: "names", Name: "names: table.include.list in another case", Setup: []string{outbox("JSON")},
			Config: conf("table.include.list", `P_{id}\.OUTBOX`, "database.include.list", "P_{id}"),
			Do:     []string{user(0, "'1'")}},
		{Group: "names", Name: "names: table.include.list as a pattern", Setup: []string{outbox("JSON"),
			"CREATE TABLE outbox_2 LIKE outbox", "CREATE TABLE other LIKE outbox"},
			Config: conf("table.include.list", `p_{id}\.out.*`), Do: []string{user(0, "'1'"),
				"INSERT INTO outbox_2 SELECT * FROM outbox", "INSERT INTO other SELECT * FROM outbox"}},
		{Group: "names", Name: "names: database.include.list alone", Setup: []string{outbox("JSON")},
			Config: conf("table.include.list", Unset), Do: []string{user(0, "'1'")}},
		{Group: "names", Name: "names: table.include.list without escape", Setup: []string{outbox("JSON")},
			Config: conf("table.include.list", `p_{id}.outbox`, "database.include.list", Unset), Do: []string{user(0, "'1'")}},
		{Group: "names", Name: "names: a topic prefix with signs", Setup: []string{outbox("JSON")},
			Config: merge(jsonForm().config, conf("topic.prefix", "Team-A.shop_1"), placing("type:envelope")),
			Do:     []string{user(0, "'1'")}},
	}
}

// statementCases write rows in other ways than by plain inserts.
func statementCases() []Case {
	c := func(name string, setup []string, do ...string) Case {
		return Case{Group: "statements", Name: "statements: " + name, Setup: append([]string{outbox("JSON")}, setup...),
			Do: do}
	}
	rows := func(n int) (out []string) {
		for i := range n {
			out = append(out, user(i, fmt.Sprintf(`'{"n": %d}'`, i)))
		}
		return out
	}
	compressed := c("compressed transactions", nil, "SET binlog_transaction_compression = ON", "BEGIN",
		user(0, `JSON_OBJECT('a', REPEAT('x', 5000))`), user(1, `'{"n": 1}'`), "COMMIT", user(2, `'{"n": 2}'`))
	many := c("many rows of one statement", nil,
		"INSERT INTO outbox SELECT UUID(), 'User', n, 't', JSON_OBJECT('n', n) FROM (WITH RECURSIVE s(n) AS (SELECT 1 "+
			"UNION ALL SELECT n + 1 FROM s WHERE n < 300) SELECT n FROM s) x")
	many.Config = smt("table.field.event.id", "type")
	xa := c("XA that is rolled back", nil, user(0, `'{"n": 0}'`), "XA START '{id}'", user(1, `'{"n": 1}'`),
		"XA END '{id}'", "XA PREPARE '{id}'", "XA ROLLBACK '{id}'")
	xa.Differs, xa.Always = "xa", true
	xaCommit := c("XA in two phases", nil, user(0, `'{"n": 0}'`), "XA START '{id}'", user(1, `'{"n": 1}'`),
		"XA END '{id}'", "XA PREPARE '{id}'", "XA COMMIT '{id}'")
	xaCommit.Differs, xaCommit.Always = "xa", true
	statement := c("binlog_format STATEMENT", nil, user(0, `'{"n": 0}'`), "SET binlog_format = STATEMENT",
		user(1, `'{"n": 1}'`), "SET binlog_format = ROW", user(2, `'{"n": 2}'`))
	statement.Differs, statement.Always = "statement-format", true
	minimal := c("binlog_row_image MINIMAL leaves a column out", nil, user(0, `'{"n": 0}'`), pause,
		"SET binlog_row_image = MINIMAL", "INSERT INTO outbox (id, aggregatetype, aggregateid, type) VALUES ('x', 'User', "+
			"'k', 't')")
	whole := c("binlog_row_image MINIMAL with all columns", nil, user(0, `'{"n": 0}'`), "SET binlog_row_image = MINIMAL",
		user(1, `'{"n": 1}'`))
	return []Case{
		c("a transaction of several rows", nil, append(append([]string{"BEGIN"}, rows(5)...), "COMMIT")...),
		c("a rolled back transaction and a savepoint", nil, "BEGIN", user(0, `'{"n": 0}'`), "ROLLBACK", "BEGIN",
			user(1, `'{"n": 1}'`), "SAVEPOINT a", user(2, `'{"n": 2}'`), "ROLLBACK TO a", user(3, `'{"n": 3}'`), "COMMIT"),
		many, compressed,
		c("rows-query events", nil, "SET binlog_rows_query_log_events = ON", user(0, `'{"n": 0}'`)),
		c("INSERT IGNORE, INSERT SELECT and multi-row INSERT", nil, user(0, `'{"n": 0}'`),
			"INSERT IGNORE INTO outbox VALUES ("+quote(uuid(0))+", 'User', 'k', 't', NULL)",
			"INSERT INTO outbox SELECT CONCAT('c-', RIGHT(id, 3)), aggregatetype, aggregateid, type, payload FROM outbox",
			"INSERT INTO outbox VALUES ('m1', 'User', 'k', 't', '1'), ('m2', 'User', 'k', 't', '2')"),
		c("rows of a trigger", []string{"CREATE TABLE orders (id INT PRIMARY KEY)",
			"CREATE TRIGGER after_order AFTER INSERT ON orders FOR EACH ROW INSERT INTO outbox VALUES (NEW.id, 'Order', " +
				"NEW.id, 'OrderPlaced', JSON_OBJECT('id', NEW.id))"},
			"INSERT INTO orders VALUES (1), (2)", "INSERT INTO orders VALUES (3)"),
		c("rows of a cascading foreign key and of other tables", []string{"CREATE TABLE orders (id INT PRIMARY KEY)"},
			"INSERT INTO orders VALUES (1)", user(0, `'{"n": 0}'`), "DELETE FROM orders"),
		xa, xaCommit, statement, minimal, whole,
		c("TRUNCATE TABLE", nil, user(0, `'{"n": 0}'`), "TRUNCATE TABLE outbox", user(1, `'{"n": 1}'`)),
	}
}

// ddlCases change tables while they are read.
func ddlCases() []Case {
	c := func(name string, config map[string]string, do ...string) Case {
		return Case{Group: "ddl", Name: "DDL: " + name, Setup: []string{outbox("JSON")}, Do: do, Config: config,
			FullMetadata: true}
	}
	streamed := func(c Case) Case { c.Differs, c.Always = "streamed-ddl", true; return c }
	plain := plainForm().config
	grows := c("an ENUM grows", placing("e:header"), user(0, `'0', 'b'`),
		"ALTER TABLE outbox MODIFY e ENUM('z','a','b','c')", user(1, `'1', 'b'`), user(2, `'2', 'z'`))
	grows.Setup = []string{outbox("JSON", "e ENUM('a','b')")}
	return []Case{
		grows,
		c("a column is added at the end", nil, user(0, `'{"n": 0}'`), "ALTER TABLE outbox ADD COLUMN extra INT",
			user(1, `'{"n": 1}', 5`)),
		c("a column is added in front and one dropped", nil, user(0, `'{"n": 0}'`),
			"ALTER TABLE outbox ADD COLUMN extra INT FIRST, DROP COLUMN type",
			`INSERT INTO outbox VALUES (7, 'b', 'User', 'k', '{"n": 1}')`),
		c("a header column is added", merge(placing("extra:header"), smt("table.field.additional.missing", "ignore")),
			user(0, `'{"n": 0}'`), "ALTER TABLE outbox ADD COLUMN extra VARCHAR(10) NOT NULL DEFAULT 'new'",
			user(1, `'{"n": 1}', 'x'`), "ALTER TABLE outbox DROP COLUMN extra", user(2, `'{"n": 2}'`)),
		c("an envelope column is added", merge(plain, placing("extra:envelope"),
			smt("table.field.additional.missing", "ignore")), user(0, `'{"n": 0}'`), "ALTER TABLE outbox ADD COLUMN extra INT",
			user(1, `'{"n": 1}', 5`)),
		c("a column is renamed and back", nil, user(0, `'{"n": 0}'`), "ALTER TABLE outbox RENAME COLUMN type TO kind",
			user(1, `'{"n": 1}'`), "ALTER TABLE outbox CHANGE kind type VARCHAR(255) NOT NULL", user(2, `'{"n": 2}'`)),
		c("the payload column is dropped", nil, user(0, `'{"n": 0}'`), "ALTER TABLE outbox DROP COLUMN payload",
			insert(uuid(1), "User", "k", "t")),
		c("the payload becomes TEXT", jsonForm().config, user(0, `'{"n": 0}'`), "ALTER TABLE outbox MODIFY payload TEXT",
			user(1, `'{"n": 1}'`)),
		c("the key becomes INT", jsonForm().config, insert(uuid(0), "User", "5", "t", "'1'"),
			"ALTER TABLE outbox MODIFY aggregateid INT NOT NULL", insert(uuid(1), "User", "5", "t", "'1'")),
		c("the character set changes", nil, user(0, `'"é"'`), "ALTER TABLE outbox CONVERT TO CHARACTER SET latin1",
			insert(uuid(1), "User", "é", "t", "'1'"), "DELETE FROM outbox",
			"ALTER TABLE outbox MODIFY aggregateid VARCHAR(50) CHARACTER SET cp1251",
			insert(uuid(2), "User", "Привет", "t", "'1'")),
		c("the table is dropped and made again", nil, user(0, `'{"n": 0}'`), "DROP TABLE outbox", outbox("TEXT", "more INT"),
			user(1, "'text', 5")),
		c("the table is renamed and another takes its name", nil, user(0, `'{"n": 0}'`), "CREATE TABLE next LIKE outbox",
			"ALTER TABLE next ADD COLUMN extra INT", "RENAME TABLE outbox TO old, next TO outbox", user(1, `'{"n": 1}', 5`)),
		c("a default is added", placing("type:header"), user(0, `'{"n": 0}'`),
			"ALTER TABLE outbox MODIFY type VARCHAR(20) DEFAULT 'dflt'",
			`INSERT INTO outbox VALUES ('b', 'User', 'k', NULL, '1')`),
		c("partitions are made and dropped", nil, "ALTER TABLE outbox PARTITION BY KEY() PARTITIONS 4", user(0, `'{"n": 0}'`),
			"ALTER TABLE outbox REMOVE PARTITIONING", user(1, `'{"n": 1}'`)),
		c("an index, a comment and a view", nil, user(0, `'{"n": 0}'`), "CREATE INDEX i ON outbox (type)",
			"ALTER TABLE outbox COMMENT = 'x', ADD COLUMN v INT AS (1) VIRTUAL", "CREATE VIEW w AS SELECT * FROM outbox",
			`INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ('b', 'User', 'k', 't', '1')`),
		c("CREATE TABLE SELECT of an outbox", conf("table.include.list", `p_{id}\.outbox,p_{id}\.outbox2`),
			user(0, `'{"n": 0}'`), "CREATE TABLE outbox2 AS SELECT * FROM outbox", "INSERT INTO outbox2 SELECT * FROM outbox"),
		c("types of a table made while streaming", merge(jsonForm().config,
			placing("a:envelope,b:envelope,c:envelope,d:envelope")), "DROP TABLE outbox",
			outbox("JSON", "a DECIMAL(8,3) DEFAULT 1.5", "b DATETIME(6) NOT NULL", "c VARCHAR(10) DEFAULT 'x'",
				"d BIGINT UNSIGNED"), user(0, `'0', NULL, '2024-02-29 12:34:56.5', NULL, 5`)),
		streamed(c("BOOLEAN added while streaming", merge(plain, placing("b:envelope,b:header")),
			"ALTER TABLE outbox ADD COLUMN b BOOLEAN DEFAULT TRUE", user(0, `'0', FALSE`), user(1, `'1', 5`))),
		streamed(c("REAL added while streaming", merge(plain, placing("r:envelope")), "ALTER TABLE outbox ADD COLUMN r REAL",
			user(0, `'0', 123456789`))),
		streamed(c("FLOAT4 added while streaming", merge(plain, placing("r:envelope")),
			"ALTER TABLE outbox ADD COLUMN r FLOAT4", user(0, `'0', 1.5`))),
		streamed(c("CHAR BYTE added while streaming", merge(plain, placing("r:envelope")),
			"ALTER TABLE outbox ADD COLUMN r CHAR(4) BYTE", user(0, `'0', 'ab'`))),
	}
}

// shapeCases are outboxes as teams have them.
func shapeCases() []Case {
	orders := Case{Group: "shapes", Name: "shape: order_db.outbox_events", Tables: []string{"outbox_events"},
		Setup: []string{
			"CREATE TABLE outbox_events (id BIGINT AUTO_INCREMENT PRIMARY KEY, event_type VARCHAR(100) NOT NULL, " +
				"aggregate_type VARCHAR(100) NOT NULL, aggregate_id VARCHAR(64) NOT NULL, payload JSON NOT NULL, status " +
				"VARCHAR(20) NOT NULL DEFAULT 'NEW', created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY (status))"},
		Config: merge(smt("table.field.event.id", "id", "table.field.event.key", "aggregate_id", "table.field.event.type",
			"event_type", "table.field.event.payload", "payload", "route.by.field", "aggregate_type", "route.topic.replacement",
			"{id}.order-events.${routedByValue}"),
			placing("event_type:header:eventType,status:header:eventStatus"))}
	for i := range 60 {
		kind := []string{"OrderPlaced", "OrderPaid", "OrderShipped"}[i%3]
		orders.Do = append(orders.Do,
			fmt.Sprintf(`INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload) VALUES ('%s', 'Order', 'order-%d', JSON_OBJECT('orderId', %d, 'total', %d.25, 'lines', JSON_ARRAY(%d)))`, kind, i%17, i, i, i))
	}
	orders.Do = append(orders.Do, "UPDATE outbox_events SET status = 'SENT'", "DELETE FROM outbox_events WHERE id < 30")
	expanded := orders
	expanded.Name = "shape: order_db.outbox_events, expanded"
	expanded.Config = merge(orders.Config, plainForm().config, smt("table.expand.json.payload", "true"))
	timed := orders
	timed.Name = "shape: order_db.outbox_events, timestamp from created_at"
	timed.Config = merge(orders.Config, smt("table.field.event.timestamp", "created_at"))
	several := Case{Group: "shapes", Name: "shape: several outbox tables in one connector",
		Tables: []string{"outbox", "billing_outbox", "audit"}, Setup: []string{
			outbox("JSON"),
			"CREATE TABLE billing_outbox (payload TEXT, aggregateid INT, id BIGINT AUTO_INCREMENT PRIMARY KEY, " +
				"aggregatetype VARCHAR(20) DEFAULT 'Bill', type CHAR(3))",
			"CREATE TABLE audit (id BINARY(4), aggregatetype ENUM('x','y') NOT NULL, aggregateid VARCHAR(9), payload JSON, " +
				"type INT)"},
		Config: merge(jsonForm().config, placing("type:header")), Do: []string{user(0, `'1'`),
			"INSERT INTO billing_outbox (payload, aggregateid, type) VALUES ('a', 1, 'B')",
			"INSERT INTO audit VALUES ('ab', 'y', NULL, '[]', 5)", user(1, `'2'`),
			"INSERT INTO billing_outbox (payload, aggregateid, type) VALUES (NULL, 2, NULL)", "BEGIN", user(2, `'3'`),
			"INSERT INTO audit VALUES ('b', 'x', 'k', NULL, NULL)", "COMMIT"}}
	mixed := several
	mixed.Name, mixed.Config = "shape: several outbox tables share the envelope's schema",
		merge(jsonForm().config, placing("type:envelope"))
	mixed.Do = slow(several.Do[0], several.Do[1], several.Do[2], several.Do[3])
	keys := Case{Group: "shapes", Name: "shape: partitions of many keys",
		Setup: []string{"CREATE TABLE outbox (id INT AUTO_INCREMENT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL " +
			"DEFAULT 'User', aggregateid VARCHAR(40), payload INT)"},
		Config: conf("topic.creation.default.partitions", "6", "topic.creation.default.replication.factor", "1"),
		Do: []string{"INSERT INTO outbox (aggregateid, payload) SELECT CONCAT('key-', n, IF(n % 5 = 0, 'é😀', '')), n " +
			"FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200) SELECT n FROM s) x ORDER BY n"}}
	groups := Case{Group: "shapes", Name: "shape: topic.creation groups", Setup: []string{outbox("JSON")},
		Config: conf("topic.creation.default.partitions", "2", "topic.creation.default.replication.factor", "1",
			"topic.creation.groups", "wide", "topic.creation.wide.include", `{id}\.Wide.*`, "topic.creation.wide.partitions",
			"7",
			"topic.creation.wide.cleanup.policy", "compact")}
	for i := range 20 {
		groups.Do = append(groups.Do, insert(uuid(2*i), "Wide", fmt.Sprint("k", i), "t", "'1'"),
			insert(uuid(2*i+1), "Narrow", fmt.Sprint("k", i), "t", "'1'"))
	}
	return []Case{orders, expanded, timed, several, mixed, keys, groups}
}

// optionCases are options of the connector and of the producer.
func optionCases() []Case {
	c := func(name string, config map[string]string, do ...string) Case {
		if do == nil {
			do = []string{user(0, `'{"n": 0}'`), user(1, `'{"n": 1}'`)}
		}
		return Case{Group: "options", Name: "option: " + name, Setup: []string{outbox("JSON",
			"secret VARCHAR(20) DEFAULT 'hush'")}, Config: config, Do: do}
	}
	rows := []string{user(0, `'{"n": 0}', 'a'`), user(1, `'{"n": 1}', 'b'`)}
	future := c("errors.tolerance all skips what the router refuses", conf("errors.tolerance", "all", "route.by.field",
		"x"), user(0, `'{"n": 0}', 'a'`), user(1, "NULL, 'b'"))
	future.Config = merge(conf("errors.tolerance", "all"), smt("table.field.event.timestamp", "secret"))
	return []Case{
		c("include.schema.changes", conf("include.schema.changes", "true"), rows...),
		c("message.key.columns", conf("message.key.columns", `p_{id}\.outbox:type`), rows...),
		c("poll.interval.ms, max.batch.size and queues", conf("poll.interval.ms", "10", "max.batch.size", "2",
			"max.queue.size", "3", "max.queue.size.in.bytes", "1000000"), rows...),
		c("producer.override of compression and linger", conf("producer.override.compression.type", "lz4",
			"producer.override.linger.ms", "5", "producer.override.batch.size", "1"), rows...),
		c("heartbeat.interval.ms", conf("heartbeat.interval.ms", "200"), rows...),
		c("aliases of the transform", merge(conf("transforms", "Router", "transforms.Router.type",
			"io.debezium.transforms.outbox.EventRouter", "transforms.Router.route.topic.replacement", "{id}.x.${routedByValue}",
			"transforms.outbox.type", Unset, "transforms.outbox.route.topic.replacement", Unset)), rows...),
		c("skip.messages.without.change", conf("skip.messages.without.change", "true"),
			append(rows[:2:2], "UPDATE outbox SET secret = 'c'", "UPDATE outbox SET id = CONCAT('k', RIGHT(id, 3))")...),
		c("event.converting.failure.handling.mode fail", conf("event.converting.failure.handling.mode", "fail"), rows...),
		c("schema.name.adjustment.mode none", merge(jsonForm().config, placing("type:envelope"),
			conf("schema.name.adjustment.mode", "none")), rows...),
		c("schema.name.adjustment.mode avro", merge(jsonForm().config, placing("type:envelope"),
			conf("schema.name.adjustment.mode", "avro")), rows...),
		c("column.exclude.list", conf("column.exclude.list", `p_{id}\.outbox\.secret`), rows...),
		c("column.mask.with.4.chars", merge(placing("secret:header"), conf("column.mask.with.4.chars",
			`p_{id}\.outbox\.secret`)), rows...),
		future,
		c("record over max.request.size", conf("producer.override.max.request.size", "2000"), user(0, `'{"n": 0}', 'a'`),
			pause, user(1, `JSON_OBJECT('a', REPEAT('x', 5000)), 'b'`)),
		c("illegal topic name", smt("route.topic.replacement", "{id} not ok ${routedByValue}"), rows...),
		c("illegal topic name after good ones", smt("route.topic.regex", ".*", "route.topic.replacement", "{id}.$0"),
			insert(uuid(0), "Good", "k", "t", "'1', 'a'"), pause, insert(uuid(1), "not ok", "k", "t", "'1', 'a'"),
			insert(uuid(2), "Good", "k", "t", "'1', 'a'")),
		{Group: "options", Name: "option: a captured table that is no outbox",
			Setup: []string{outbox("JSON"), "CREATE TABLE orders (id INT PRIMARY KEY)"}, Tables: []string{"outbox", "orders"},
			Do:      []string{user(0, "'1'"), pause, "INSERT INTO orders VALUES (1)", user(1, "'2'")},
			Differs: "checks-before-the-start", Always: true},
		{Group: "options", Name: "option: impossible dates", Setup: []string{"SET sql_mode = 'ALLOW_INVALID_DATES'",
			outbox("JSON", "d DATE")}, Do: []string{user(0, "'1', '2024-02-28'"), pause, "SET sql_mode = 'ALLOW_INVALID_DATES'",
			user(1, "'2', '2024-02-31'")},
			Differs: "impossible-dates", Always: true, Alone: true},
		{Group: "options", Name: "option: impossible dates in a header",
			Setup: []string{"SET sql_mode = 'ALLOW_INVALID_DATES'", outbox("JSON", "d DATE")}, Config: placing("d:header"),
			Do: []string{user(0, "'1', '2024-02-28'"), pause, "SET sql_mode = 'ALLOW_INVALID_DATES'",
				user(1, "'2', '2024-02-31'")}, Alone: true},
	}
}
