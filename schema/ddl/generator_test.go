package ddl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

// generator makes random DDL statements, of which a server takes most.
type generator struct {
	*rand.Rand
	maria   bool
	catalog *ddl.Catalog
	names   int
}

func newGenerator(seed uint64, maria bool, c *ddl.Catalog) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 2)), maria: maria, catalog: c}
}

// one picks one of its arguments.
func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// maybe is one of its arguments in one case of n, else nothing.
func (g *generator) maybe(n int, of ...string) string {
	if g.IntN(n) > 0 {
		return ""
	}
	return " " + g.one(of...)
}

func (g *generator) cased(s string) string {
	if g.IntN(4) > 0 {
		return s
	}
	return strings.ToLower(s)
}

// MariaDB 10.11 leaves a table with a name like or`ders where it was when ALTER TABLE
// copies and renames it.
var tableNames = []string{"outbox", "_outbox_gho", "_outbox_del", "`from`", "T5", "`select`"}

// table is the name of a table, mostly of one that is there.
func (g *generator) table() string {
	var there []string
	for n, t := range g.catalog.Tables {
		if t != nil {
			there = append(there, "`"+strings.ReplaceAll(n.Table, "`", "``")+"`")
		}
	}
	slices.Sort(there) // for the seed's sake
	if len(there) > 0 && g.IntN(12) > 0 {
		return g.qualified(g.one(there...))
	}
	return g.qualified(g.one(tableNames...))
}

func (g *generator) newTable() string {
	for range 20 {
		name := g.one(tableNames...)
		plain := strings.ReplaceAll(strings.Trim(name, "`"), "``", "`")
		if g.catalog.Tables[schema.Name{Database: "shop", Table: plain}] == nil {
			return g.qualified(name)
		}
	}
	return g.qualified(g.one(tableNames...))
}

func (g *generator) qualified(name string) string {
	return g.maybe(8, "shop.", "`shop` . ", "shop /* c */ .") + name
}

// columns are the names of a table's columns.
func (g *generator) columns(table string) []string {
	_, name, qualified := strings.Cut(table, ".")
	if !qualified {
		name = table
	}
	name = strings.ReplaceAll(strings.Trim(strings.TrimSpace(name), "`"), "``", "`")
	t := g.catalog.Tables[schema.Name{Database: "shop", Table: name}]
	if t == nil {
		return []string{"id"}
	}
	var out []string
	for _, c := range t.Columns {
		out = append(out, "`"+strings.ReplaceAll(c.Name, "`", "``")+"`")
	}
	return out
}

// column is a new column's name.
func (g *generator) column() string {
	g.names++
	return g.one(
		fmt.Sprintf("c%d", g.names),
		fmt.Sprintf("`c d%d`", g.names),
		fmt.Sprintf("`na``me%d`", g.names),
		fmt.Sprintf("%dx", g.names),
		fmt.Sprintf("größe%d", g.names),
		fmt.Sprintf("`after%d`", g.names),
		"comment"+fmt.Sprint(g.names),
	)
}

func (g *generator) charset() string {
	return g.one(
		"utf8mb4",
		"utf8mb4",
		"utf8mb4",
		"utf8mb4",
		"latin1",
		"latin1",
		"latin1",
		"utf8mb3",
		"utf8mb3",
		"utf8",
		"ascii",
		"cp1251",
		"sjis",
		"gbk",
		"ucs2",
		"utf16",
		"binary",
		"latin2",
		"koi8r",
		"utf32",
	)
}

func (g *generator) collation() string {
	return g.one(
		"utf8mb4_bin",
		"latin1_swedish_ci",
		"utf8mb3_general_ci",
		"utf8_bin",
		"ascii_bin",
		"utf16_general_ci",
		"cp1251_ukrainian_ci",
		"binary",
	)
}

// characters says how texts are stored.
func (g *generator) characters() string {
	switch g.IntN(10) {
	case 0, 1:
		return g.cased(" CHARACTER SET ") + g.charset()
	case 2:
		return " COLLATE " + g.collation()
	case 3:
		return " CHARSET " + g.one("utf8mb4 COLLATE utf8mb4_bin", "'latin1' COLLATE 'latin1_bin'", "utf8mb3 BINARY")
	case 4:
		return g.one(" ASCII", " UNICODE", " BINARY", " BYTE")
	}
	return ""
}

// typed is a type with defaults that fit.
func (g *generator) typed() (text string, defaults []string) {
	n := 1 + g.IntN(20)
	integers := []string{
		"0",
		"7",
		"'7'",
		"-5",
		"+3",
		"1.5",
		"0x11",
		"b'101'",
		"TRUE",
		"FALSE",
		"NULL",
		"'007'",
		"1e1",
		"- 2",
	}
	texts := []string{
		"''",
		"'a'",
		`"b"`,
		`'it''s'`,
		`'a\\b'`,
		"'x' 'y'",
		"5",
		"1.50",
		"x'41'",
		"0x42",
		"NULL",
		"_utf8mb4'n'",
		"N'n'",
		"'a '",
		"b'1000001'",
		"'ä'",
		"-7",
	}
	switch g.IntN(34) {
	case 0, 1:
		return g.one(
			"TINYINT",
			"SMALLINT",
			"MEDIUMINT",
			"INT",
			"INTEGER",
			"BIGINT",
			"INT1",
			"INT2",
			"INT3",
			"INT4",
			"INT8",
			"MIDDLEINT",
			"int(11)",
			"BIGINT(20)",
			"TINYINT(1)",
			"INT (5)",
		) +
			g.maybe(
				3,
				"UNSIGNED",
				"ZEROFILL",
				"SIGNED",
				"UNSIGNED ZEROFILL",
				"zerofill unsigned",
			), integers
	case 2:
		return g.one("BOOL", "boolean"), integers[:2]
	case 3:
		return g.one(
				"FLOAT",
				"FLOAT4",
				"DOUBLE",
				"DOUBLE PRECISION",
				"REAL",
				"FLOAT8",
				"FLOAT(10)",
				"FLOAT(30)",
				"FLOAT(7,3)",
				"DOUBLE(10,2)",
				"REAL(8,1)",
			) +
				g.maybe(
					5,
					"UNSIGNED",
				), []string{
				"0",
				"1.5",
				"'2.25'",
				"7",
				"NULL",
				"1e2",
			}
	case 4:
		return g.one(
				"DECIMAL",
				"DEC",
				"NUMERIC",
				"FIXED",
				"DECIMAL(5)",
				"NUMERIC(12,4)",
				"DEC(10, 0)",
				"DECIMAL(6,2)",
			) + g.maybe(
				5,
				"UNSIGNED",
				"ZEROFILL",
			),
			[]string{
				"0",
				"1.5",
				"'2.25'",
				"7",
				"NULL",
				"1.005",
				"-0.5",
				"1e1",
			}
	case 5:
		return g.one("BIT", "BIT(8)", "BIT(64)"), []string{"0", "1", "b'1'", "NULL", "0x01"}
	case 6:
		return g.one("YEAR", "YEAR(4)"), []string{"2020", "'2021'", "NULL", "0", "'99'", "20"}
	case 7:
		return "DATE", []string{"'2020-01-02'", "NULL", "'2020-1-2'", "DATE'2021-05-06'"}
	case 8:
		return g.one("TIME", "TIME(3)", "TIME(6)"), []string{"'10:11:12'", "NULL", "'1:02:03'", "'10:11'"}
	case 9, 10:
		t := g.one("DATETIME", "TIMESTAMP")
		if g.IntN(2) == 0 {
			return t + "(3)", []string{
				"CURRENT_TIMESTAMP(3)",
				"NULL",
				"now(3)",
				"'2020-01-02 03:04:05.67'",
				"CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
			}
		}
		return t, []string{
			"CURRENT_TIMESTAMP",
			"NULL",
			"NOW()",
			"'2020-01-02 03:04:05'",
			"LOCALTIME",
			"CURRENT_TIMESTAMP() ON UPDATE NOW()",
			"'2020-01-02'",
			"localtimestamp()",
		}
	case 11, 12:
		return g.one("CHAR", "CHARACTER", "CHAR(10)", "character(36)", "CHAR(255)", "CHAR(8)") + g.characters(), texts
	case 13, 14, 15, 16:
		return fmt.Sprintf(
			g.one("VARCHAR(%d)", "varchar(%d)", "CHAR VARYING(%d)", "CHARACTER VARYING (%d)", "VARCHARACTER(%d)"),
			10*n,
		) + g.characters(), texts
	case 17:
		return g.one(
			"NCHAR(5)",
			"NATIONAL CHAR(6)",
			"NVARCHAR(7)",
			"NATIONAL VARCHAR(8)",
			"NCHAR VARCHAR(9)",
			"NATIONAL CHARACTER VARYING(10)",
			"NATIONAL CHAR VARYING(11)",
			"NCHAR VARYING(12)",
			"NATIONAL VARCHARACTER(13)",
		), texts
	case 18, 19, 20:
		return g.one(
				"TEXT",
				"TINYTEXT",
				"MEDIUMTEXT",
				"LONGTEXT",
				"TEXT(50)",
				"TEXT(100)",
				"TEXT(20000)",
				"TEXT(100000)",
				"LONG",
				"LONG VARCHAR",
			) + g.characters(), g.lobDefaults(
				"'t'",
			)
	case 21:
		return g.one(
				"BLOB",
				"TINYBLOB",
				"MEDIUMBLOB",
				"LONGBLOB",
				"BLOB(10)",
				"BLOB(300)",
				"BLOB(70000)",
				"LONG VARBINARY",
			), g.lobDefaults(
				"'b'",
			)
	case 22, 23:
		return g.one(
				"BINARY(4)",
				"BINARY",
				"VARBINARY(20)",
				"VARBINARY(255)",
				"binary(16)",
			), []string{
				"'a'",
				"x'41'",
				"0x00",
				"''",
				"NULL",
			}
	case 24, 25, 26:
		return g.one(
				"ENUM('a','b','c')",
				"ENUM('New','Old')",
				"enum('it''s', 'x' 'y', \"q\")",
				"ENUM('ä','ö')",
				"ENUM('a ','b')",
				"ENUM(x'61','b')",
				`ENUM('a\\b','a,b','(')`,
			) + g.characters(),
			[]string{
				"'a'",
				"'b'",
				"'New'",
				"'NEW'",
				"1",
				"NULL",
				"'ä'",
				"\"it's\"",
			}
	case 27, 28:
		return g.one(
				"SET('a','b','c')",
				"SET('x','Y')",
				"SET('x','Y')",
				"set('A','b','c')",
				"set('ä')",
			) + g.characters(), []string{
				"'a'",
				"'b,a'",
				"''",
				"'X,y'",
				"3",
				"NULL",
				"'a,a'",
			}
	case 29:
		return "JSON", g.lobDefaults("'{}'")
	case 30:
		return g.one("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION"), []string{"NULL"}
	case 31:
		if g.maria {
			return g.one("UUID", "INET6", "INET4"), []string{"NULL"}
		}
		return g.one("VECTOR(3)", "VECTOR"), []string{"NULL"}
	case 32:
		if g.maria {
			return g.one("VARCHAR(50) COMPRESSED", "TEXT COMPRESSED", "BLOB COMPRESSED=zlib"), []string{"NULL"}
		}
	}
	return "VARCHAR(255)", texts
}

// lobDefaults: MySQL takes only expressions for them.
func (g *generator) lobDefaults(literal string) []string {
	if g.maria {
		return []string{literal, "NULL"}
	}
	return []string{"(" + literal + ")", "NULL"}
}

// definition is a column's type and attributes.
func (g *generator) definition() string {
	t, defaults := g.typed()
	if g.IntN(25) == 0 {
		return t + g.one(
			" GENERATED ALWAYS AS",
			" AS",
		) + g.one(
			" (1 + 1)",
			" (concat('a', ')', \"b\"))",
		) + g.maybe(
			2,
			"VIRTUAL",
			"STORED",
		) + g.maybe(
			5,
			"NOT NULL",
			"COMMENT 'x'",
		)
	}
	var attributes []string
	if g.IntN(3) == 0 {
		attributes = append(attributes, g.one("NOT NULL", "NULL", "not null"))
	}
	switch g.IntN(8) {
	case 0, 1, 2:
		attributes = append(attributes, g.cased("DEFAULT ")+g.one(defaults...))
	case 3:
		if len(defaults) == 1 {
			break // MariaDB takes any for a POINT, and then does half of what it is told
		}
		attributes = append(attributes, "DEFAULT "+g.one("(uuid())", "(1 + 2)", "(concat('a', 'b'))", "('lit')", "(5)"))
	case 4:
		if g.maria && len(defaults) > 1 {
			attributes = append(attributes, "DEFAULT "+g.one("uuid()", "current_user()", "(1)", "pi()"))
		}
	}
	if g.IntN(12) == 0 {
		attributes = append(attributes, g.one("COMMENT 'c, d) DEFAULT 5'", "COMMENT \"it\\\"s\""))
	}
	if g.IntN(20) == 0 {
		attributes = append(attributes, "INVISIBLE")
	}
	if g.IntN(25) == 0 {
		attributes = append(attributes, g.one("UNIQUE", "UNIQUE KEY"))
	}
	if g.IntN(25) == 0 {
		attributes = append(attributes, g.one("CHECK (1 = 1)", "CONSTRAINT CHECK (2 > 1)"))
	}
	if !g.maria && g.IntN(25) == 0 {
		attributes = append(
			attributes,
			g.one(
				"COLUMN_FORMAT DYNAMIC",
				"STORAGE DISK",
				"/*!80023 INVISIBLE */",
				"ENGINE_ATTRIBUTE '{}'",
				"/*!99999 INVISIBLE */",
				"/*M! INVISIBLE */",
			),
		)
	}
	if g.maria && g.IntN(25) == 0 {
		attributes = append(
			attributes,
			g.one(
				"/*M! INVISIBLE */",
				"/*!100300 INVISIBLE */",
				"/*!999999 INVISIBLE */",
				"/*!50800 bad syntax */",
				"/*M!100303 INVISIBLE */",
				"/*!50100 COMMENT 'x' */",
			),
		)
	}
	g.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
	return strings.Join(append([]string{t}, attributes...), " ")
}

func (g *generator) create() string {
	head := "CREATE" + g.maybe(10, "OR REPLACE") + " TABLE" + g.maybe(8, "IF NOT EXISTS") + " "
	if !g.maria {
		head = strings.ReplaceAll(head, " OR REPLACE", "")
	}
	name := g.newTable()
	if g.IntN(10) == 0 {
		name = g.table()
	}
	if g.IntN(8) == 0 {
		return head + name + g.one(" LIKE "+g.table(), " (LIKE "+g.table()+")")
	}
	var parts []string
	key := g.IntN(4)
	for i := range 1 + g.IntN(8) {
		d := g.column() + " " + g.definition()
		if i == 0 {
			switch key {
			case 0:
				d = g.one(
					"id",
					"`ID`",
				) + " " + g.one(
					"BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY",
					"INT PRIMARY KEY",
					"SERIAL PRIMARY KEY",
					"CHAR(36) KEY",
					"INT NOT NULL AUTO_INCREMENT UNIQUE KEY COMMENT 'k'",
				)
			case 1:
				d = "id " + g.one("INT", "BINARY(16) NOT NULL", "VARCHAR(40)")
			}
		}
		parts = append(parts, d)
	}
	if key == 1 {
		parts = append(
			parts,
			g.one("PRIMARY KEY (id)", "CONSTRAINT pk PRIMARY KEY USING BTREE (id DESC)", "CONSTRAINT PRIMARY KEY (ID)"),
		)
	}
	if g.IntN(5) == 0 {
		parts = append(parts, g.one("CHECK (1 < 2)", "CONSTRAINT CHECK (2 > 1)"))
	}
	sql := head + name + " (" + strings.Join(parts, ", ") + ")" + g.options()
	if key == 1 && g.IntN(6) == 0 {
		sql += g.one(
			" PARTITION BY KEY (id) PARTITIONS 3",
			" PARTITION BY KEY () (PARTITION p0, PARTITION p1 COMMENT = 'SELECT')",
		)
	}
	return sql
}

func (g *generator) options() string {
	out := g.maybe(
		4,
		"ENGINE=InnoDB",
		"ENGINE InnoDB",
		"engine = innodb",
	) + g.maybe(
		8,
		"AUTO_INCREMENT=5",
		"COMMENT='SELECT (1), 2'",
		"ROW_FORMAT=DYNAMIC",
		"STATS_PERSISTENT=1",
		"MAX_ROWS 100",
	)
	return out + g.maybe(3, "DEFAULT CHARSET=", "CHARACTER SET ", "default character set = ")
}

// withCharset completes options that end with the words of a character set.
func (g *generator) withCharset(s string) string {
	if strings.HasSuffix(strings.ToLower(s), "charset=") || strings.HasSuffix(strings.ToLower(s), "set ") ||
		strings.HasSuffix(strings.ToLower(s), "set = ") {
		return s + g.charset()
	}
	return s
}

func (g *generator) position(columns []string) string {
	if g.IntN(3) > 0 {
		return ""
	}
	return g.one(" FIRST", " AFTER "+g.one(columns...))
}

// clause is one clause of ALTER TABLE.
func (g *generator) clause(columns []string) string {
	c := g.one(columns...)
	switch g.IntN(22) {
	case 0, 1, 2, 3:
		return g.cased("ADD ") + g.one("COLUMN ", "") + g.column() + " " + g.definition() + g.position(columns)
	case 4:
		return "ADD " + g.one(
			"COLUMN ",
			"",
		) + "(" + g.column() + " " + g.definition() + ", " + g.column() + " " + g.definition() + ")"
	case 5, 6, 7:
		return "DROP " + g.one("COLUMN ", "") + c + g.maybe(8, "RESTRICT", "CASCADE")
	case 8, 9:
		return "MODIFY " + g.one("COLUMN ", "") + c + " " + g.definition() + g.position(columns)
	case 10:
		return "CHANGE " + g.one(
			"COLUMN ",
			"",
		) + c + " " + g.one(
			c,
			g.column(),
		) + " " + g.definition() + g.position(
			columns,
		)
	case 11, 12:
		return "RENAME COLUMN " + c + " TO " + g.one(g.column(), g.one(columns...))
	case 13:
		return "ALTER " + g.one(
			"COLUMN ",
			"",
		) + c + g.one(
			" SET DEFAULT 5",
			" SET DEFAULT 'a'",
			" DROP DEFAULT",
			" SET DEFAULT (uuid())",
			" SET DEFAULT NULL",
		)
	case 14:
		if g.maria {
			return g.one(
				"DROP COLUMN IF EXISTS nothing",
				"ADD COLUMN IF NOT EXISTS "+c+" INT",
				"ADD COLUMN IF NOT EXISTS "+g.column()+" INT",
				"MODIFY COLUMN IF EXISTS nothing INT",
				"CHANGE COLUMN IF EXISTS nothing x INT",
				"ALTER COLUMN IF EXISTS nothing SET DEFAULT 1",
				"RENAME COLUMN IF EXISTS nothing TO x",
				"DROP INDEX IF EXISTS nothing",
				"ADD INDEX IF NOT EXISTS i ("+c+")",
				"DROP CONSTRAINT IF EXISTS nothing",
			)
		}
		return "ALTER COLUMN " + c + g.one(" SET VISIBLE", " SET INVISIBLE")
	case 15:
		return g.one(
			"ADD INDEX ("+c+")",
			"ADD UNIQUE KEY u ("+c+")",
			"ADD KEY k ("+c+" DESC)",
			"ADD CONSTRAINT UNIQUE ("+c+")",
			"DROP INDEX u",
			"DROP KEY k",
			"RENAME INDEX k TO k2",
		)
	case 16:
		return g.one(
			"ADD PRIMARY KEY ("+c+")",
			"DROP PRIMARY KEY",
			"DROP PRIMARY KEY, ADD PRIMARY KEY ("+c+")",
			"DROP INDEX `PRIMARY`",
		)
	case 17:
		if g.IntN(2) == 0 {
			return "FORCE"
		}
		return "CONVERT TO CHARACTER SET " + g.one(
			"utf8mb4",
			"latin1",
			"utf8mb3",
			"utf8mb4 COLLATE utf8mb4_bin",
			"utf8mb4",
			"utf8mb4 COLLATE utf8mb4_general_ci",
			"utf8",
			"latin1",
			g.one("utf16", "ucs2"),
		)
	case 18:
		return g.withCharset(g.one("DEFAULT CHARSET=", "CHARACTER SET = ", "default character set = "))
	case 19:
		return g.one(
			"COMMENT='x'",
			"ENGINE=InnoDB",
			"AUTO_INCREMENT 10",
			"FORCE",
			"ROW_FORMAT=DYNAMIC",
			"ALGORITHM=COPY",
			"LOCK=SHARED",
			"ALGORITHM=DEFAULT, LOCK=DEFAULT",
			"ENABLE KEYS",
		)
	case 20:
		return g.one("RENAME TO ", "RENAME ", "RENAME AS ") + g.newTable()
	}
	return g.one("ORDER BY ", "ORDER BY ") + c
}

func (g *generator) alter() string {
	t := g.table()
	columns := g.columns(t)
	var clauses []string
	for range 1 + g.IntN(3) {
		c := g.clause(columns)
		if strings.HasPrefix(c, "CONVERT") && g.IntN(4) > 0 { // as it mostly is
			clauses = []string{c}
			break
		}
		clauses = append(clauses, c)
	}
	return g.cased(
		"ALTER",
	) + g.maybe(
		20,
		"/* online */",
		"/*!50000 */",
	) + " TABLE " + t + " " + strings.Join(
		clauses,
		g.one(", ", " ,\n\t"),
	)
}

// statement is the next one.
func (g *generator) statement() string {
	if len(g.catalog.Tables) == 0 {
		return g.withCharset(g.create())
	}
	switch g.IntN(40) {
	case 0, 1, 2, 3, 4, 5, 6:
		return g.withCharset(g.create())
	case 7, 8:
		return "DROP TABLE" + g.maybe(3, "IF EXISTS") + " " + g.table() + g.maybe(6, "CASCADE", "RESTRICT")
	case 9, 10:
		a, b := strings.TrimSpace(g.table()), strings.TrimSpace(g.table())
		return g.one(
			"RENAME TABLE "+a+" TO "+g.newTable(),
			"RENAME TABLE "+a+" TO shop.swap, "+b+" TO "+a+", swap TO "+b,
		)
	case 11:
		return g.one("CREATE INDEX i ON ", "CREATE UNIQUE INDEX u USING BTREE ON ") + g.table() + " (" + "id" + ")"
	case 12:
		return g.one("TRUNCATE TABLE ", "OPTIMIZE TABLE ", "ANALYZE TABLE ") + g.table()
	case 13:
		return g.one(
			"CREATE OR REPLACE VIEW v AS SELECT 1 AS a",
			"CREATE TABLE IF NOT EXISTS seen (a INT)",
			"DROP VIEW IF EXISTS v",
			"CREATE DATABASE IF NOT EXISTS other",
			"ALTER DATABASE shop CHARACTER SET "+g.one("utf8mb4", "latin1"),
		)
	case 14:
		t := g.table()
		return "CREATE TABLE " + g.newTable() + g.one(
			" AS SELECT * FROM ",
			" SELECT * FROM ",
			" (extra INT) SELECT * FROM ",
		) + t
	}
	return g.alter()
}
