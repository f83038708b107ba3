package ddl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

var (
	mysql9  = ddl.Source{Version: 90704}
	maria10 = ddl.Source{MariaDB: true, Version: 101118}
)

// apply runs statements of the database shop and returns what is known of all its tables.
func apply(t *testing.T, source ddl.Source, s ddl.Statement, statements ...string) (string, ddl.Outcome) {
	t.Helper()
	c := ddl.NewCatalog()
	c.Charsets["shop"] = "utf8mb4"
	var out ddl.Outcome
	for _, sql := range statements {
		s.SQL, s.Database = []byte(sql), "shop"
		out = c.Apply(source, s)
	}
	return shown(c), out
}

// shown lists tables with their columns, as "outbox(id:int!,note:varchar(10)=x)".
func shown(c *ddl.Catalog) string {
	var tables []string
	for n, t := range c.Tables {
		if t == nil {
			continue
		}
		var columns []string
		for _, c := range t.Columns {
			s := c.Name + ":" + c.ColumnType
			if !c.Nullable {
				s += "!"
			}
			if c.Charset != "" && c.Charset != "utf8mb4" {
				s += " " + c.Charset
			}
			if c.Default != nil {
				s += "=" + *c.Default
			}
			if c.DefaultExpr != "" {
				s += "=(" + c.DefaultExpr + ")"
			}
			if c.Invisible {
				s += " invisible"
			}
			if c.Generated {
				s += " generated"
			}
			columns = append(columns, s)
		}
		s := n.Table + "(" + strings.Join(columns, ",") + ")"
		if t.PrimaryKey != nil {
			s += fmt.Sprint(t.PrimaryKey)
		}
		tables = append(tables, s)
	}
	slices.Sort(tables)
	return strings.Join(tables, " ")
}

func TestStatements(t *testing.T) {
	const outbox = "CREATE TABLE outbox (id INT PRIMARY KEY, a VARCHAR(10), b VARCHAR(10))"
	cases := map[string]struct {
		sql  []string
		want string
	}{
		"create": {[]string{outbox}, "outbox(id:int!,a:varchar(10),b:varchar(10))[id]"},
		"drop and add": {
			[]string{
				outbox,
				"ALTER TABLE outbox DROP COLUMN b",
				"ALTER TABLE outbox ADD COLUMN b VARCHAR(10) AFTER id",
			},
			"outbox(id:int!,b:varchar(10),a:varchar(10))[id]",
		},
		"in one statement": {
			[]string{outbox, "ALTER TABLE outbox DROP b, ADD b VARCHAR(10) FIRST"},
			"outbox(b:varchar(10),id:int!,a:varchar(10))[id]",
		},
		"names that swap": {
			[]string{outbox, "ALTER TABLE outbox RENAME COLUMN a TO b, RENAME COLUMN b TO a"},
			"outbox(id:int!,b:varchar(10),a:varchar(10))[id]",
		},
		"change that swaps": {
			[]string{outbox, "ALTER TABLE outbox CHANGE a b VARCHAR(10), CHANGE b a VARCHAR(10)"},
			"outbox(id:int!,b:varchar(10),a:varchar(10))[id]",
		},
		"moves in order": {
			[]string{outbox, "ALTER TABLE outbox MODIFY b VARCHAR(9) FIRST, MODIFY id INT AFTER b"},
			"outbox(b:varchar(9),id:int!,a:varchar(10))[id]",
		},
		"several defaults": {
			[]string{outbox, "ALTER TABLE outbox ALTER a SET DEFAULT 'x', ALTER COLUMN b SET DEFAULT 5"},
			"outbox(id:int!,a:varchar(10)=x,b:varchar(10)=5)[id]",
		},
		"no default": {
			[]string{
				"CREATE TABLE outbox (a INT DEFAULT 7, b DATETIME DEFAULT NOW())",
				"ALTER TABLE outbox ALTER a DROP DEFAULT",
			},
			"outbox(a:int,b:datetime=(CURRENT_TIMESTAMP))",
		},
		"key of two": {
			[]string{
				"CREATE TABLE outbox (a INT, b INT, PRIMARY KEY (b, a))",
				"ALTER TABLE outbox RENAME COLUMN b TO c",
			},
			"outbox(a:int!,c:int!)[c a]",
		},
		"key goes": {
			[]string{outbox, "ALTER TABLE outbox DROP PRIMARY KEY, ADD PRIMARY KEY (a)"},
			"outbox(id:int!,a:varchar(10)!,b:varchar(10))[a]",
		},
		"key's column": {
			[]string{"CREATE TABLE outbox (a INT, b INT, PRIMARY KEY (b, a))", "ALTER TABLE outbox DROP b"},
			"outbox(a:int!)[a]",
		},
		"index by name": {[]string{outbox, "DROP INDEX `PRIMARY` ON outbox"},
			"outbox(id:int!,a:varchar(10),b:varchar(10))"},
		"like": {
			[]string{outbox, "CREATE TABLE _outbox_gho LIKE outbox", "DROP TABLE outbox"},
			"_outbox_gho(id:int!,a:varchar(10),b:varchar(10))[id]",
		},
		"gh-ost's swap": {
			[]string{
				outbox,
				"CREATE TABLE _outbox_gho LIKE outbox",
				"ALTER TABLE _outbox_gho ADD c INT",
				"RENAME TABLE outbox TO _outbox_del, _outbox_gho TO outbox",
			},
			"_outbox_del(id:int!,a:varchar(10),b:varchar(10))[id] outbox(id:int!,a:varchar(10),b:varchar(10),c:int)[id]",
		},
		"swap of two": {
			[]string{
				"CREATE TABLE outbox (a INT)",
				"CREATE TABLE orders (b INT)",
				"RENAME TABLE outbox TO x, orders TO outbox, x TO orders",
			},
			"orders(a:int) outbox(b:int)",
		},
		"renamed by ALTER": {
			[]string{"CREATE TABLE x (a INT)", "ALTER TABLE x ADD b INT, RENAME TO outbox, ADD c INT"},
			"outbox(a:int,b:int,c:int)",
		},
		"convert": {
			[]string{
				"CREATE TABLE outbox (a TEXT, b VARCHAR(9), c ENUM('x'), d BLOB, e CHAR(3) CHARACTER SET binary) CHARSET latin1",
				"ALTER TABLE outbox CONVERT TO CHARACTER SET utf8mb4, ADD f CHAR(1)",
			},
			"outbox(a:mediumtext,b:varchar(9),c:enum('x'),d:blob,e:binary(3),f:char(1))",
		},
		"default charset": {
			[]string{
				"CREATE TABLE outbox (a CHAR(1)) COLLATE latin1_bin",
				"ALTER TABLE outbox CHARSET = ucs2",
				"ALTER TABLE outbox ADD b CHAR(1), ADD c CHAR(1) COLLATE utf8_bin",
			},
			"outbox(a:char(1) latin1,b:char(1) ucs2,c:char(1) utf8mb3)",
		},
		"database's charset": {
			[]string{"ALTER DATABASE shop CHARACTER SET latin1", "CREATE TABLE outbox (a CHAR(1))"},
			"outbox(a:char(1) latin1)",
		},
		"database goes": {[]string{outbox, "DROP DATABASE shop"}, ""},
		"words": {
			[]string{
				`CREATE TABLE outbox (a ENUM('x ', 'it''s', "q,\'") DEFAULT 'X')`,
				"ALTER TABLE outbox MODIFY a ENUM('new','x','it''s')",
			},
			"outbox(a:enum('new','x','it''s'))",
		},
		"comments": {
			[]string{
				"CREATE /*! TABLE */ /* , b INT */ outbox # c INT\n (-- d INT\n a INT /*!80000 , b INT *//*!99999 , c INT */ " +
					"/*!100000 , d INT */ /*M! , e INT */)",
			},
			"outbox(a:int,b:int)",
		},
		"unsigned": {
			[]string{"CREATE TABLE outbox (a INT UNSIGNED, b BIGINT(20) ZEROFILL, c SERIAL, d BOOL, e DECIMAL(5))"},
			"outbox(a:int unsigned,b:bigint(20) unsigned zerofill,c:bigint unsigned!,d:tinyint(1),e:decimal(5,0))",
		},
		"generated": {
			[]string{"CREATE TABLE outbox (a INT, b INT GENERATED ALWAYS AS (a + (1)) STORED NOT NULL INVISIBLE)"},
			"outbox(a:int,b:int! invisible generated)",
		},
		"exchange": {
			[]string{
				outbox,
				"CREATE TABLE p LIKE outbox",
				"ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE outbox WITHOUT VALIDATION",
				"DROP TABLE p",
			},
			"outbox(id:int!,a:varchar(10),b:varchar(10))[id]",
		},
		"keyed by a check": {
			[]string{
				"CREATE TABLE outbox (id INT, CONSTRAINT c CHECK (id > 1) ENFORCED, CONSTRAINT pk PRIMARY KEY USING BTREE (id " +
					"DESC), KEY k (id), FOREIGN KEY f (id) REFERENCES x (y) ON DELETE SET NULL) ENGINE=InnoDB, COMMENT 'x'",
			},
			"outbox(id:int!)[id]",
		},
		"no change of columns": {
			[]string{
				outbox,
				"TRUNCATE outbox",
				"CREATE UNIQUE INDEX i ON outbox (a)",
				"DROP INDEX i ON outbox",
				"CREATE VIEW v AS SELECT 1",
				"ALTER TABLE outbox ADD PARTITION (PARTITION p VALUES LESS THAN (5))",
				"DROP TEMPORARY TABLE IF EXISTS outbox",
				"CREATE TEMPORARY TABLE outbox (x INT)",
				"CREATE TABLE IF NOT EXISTS outbox (x INT)",
			},
			"outbox(id:int!,a:varchar(10),b:varchar(10))[id]",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, out := apply(t, mysql9, ddl.Statement{}, c.sql...)
			if got != c.want || out.Reason != "" {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, out)
			}
		})
	}
}

func TestMariaDBsStatements(t *testing.T) {
	cases := map[string]struct {
		sql  []string
		want string
	}{
		"comments": {
			[]string{
				"CREATE TABLE outbox (a INT /*!50700 , b INT */ /*!99999 , c INT */ /*!100100 , d INT */ /*M!101000 , e INT */ " +
					"/*M! , f INT*/ /*!110000 , g INT /* */ , h INT */)",
			},
			"outbox(a:int(11),d:int(11),e:int(11),f:int(11))",
		},
		"if": {
			[]string{
				"CREATE OR REPLACE TABLE outbox (a INT)",
				"ALTER TABLE IF EXISTS outbox ADD COLUMN IF NOT EXISTS a UUID, ADD IF NOT EXISTS b UUID, DROP COLUMN IF EXISTS " +
					"x, MODIFY IF EXISTS y INT, CHANGE IF EXISTS z q INT",
			},
			"outbox(a:int(11),b:uuid)",
		},
		"set statement": {
			[]string{"SET STATEMENT max_statement_time=10 FOR CREATE TABLE outbox (a JSON DEFAULT '{}')"},
			"outbox(a:longtext={})",
		},
		"replace": {
			[]string{"CREATE TABLE outbox (a INT)", "CREATE OR REPLACE TABLE outbox (b INT)"},
			"outbox(b:int(11))",
		},
		"partition": {
			[]string{
				"CREATE TABLE outbox (a INT)",
				"ALTER TABLE outbox CONVERT PARTITION p TO TABLE other",
				"ALTER TABLE other ADD b INT",
			},
			"other(a:int(11),b:int(11)) outbox(a:int(11))",
		},
		"wait": {
			[]string{
				"CREATE TABLE outbox (a INT)",
				"ALTER ONLINE TABLE outbox NOWAIT ADD b INT, ALGORITHM=INSTANT",
				"RENAME TABLE IF EXISTS outbox WAIT 5 TO x",
			},
			"x(a:int(11),b:int(11))",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, out := apply(t, maria10, ddl.Statement{}, c.sql...)
			if got != c.want || out.Reason != "" {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, out)
			}
		})
	}
}

// What depends on the session that wrote a statement.
func TestSessions(t *testing.T) {
	on, off := true, false
	cases := map[string]struct {
		s    ddl.Statement
		sql  string
		want string
	}{
		"texts in double quotes": {ddl.Statement{}, `CREATE TABLE t (a CHAR(9) DEFAULT "a""b")`, `t(a:char(9)=a"b)`},
		"names in double quotes": {
			ddl.Statement{Mode: ddl.AnsiQuotes},
			`CREATE TABLE "t" ("a""b" CHAR(9))`,
			`t(a"b:char(9))`,
		},
		"escapes": {
			ddl.Statement{},
			`CREATE TABLE t (a CHAR(9) DEFAULT 'a\'b\\')`,
			`t(a:char(9)=a'b\)`,
		},
		"real": {ddl.Statement{Mode: ddl.RealAsFloat}, `CREATE TABLE t (a REAL)`, `t(a:float)`},
		"latin1": {
			ddl.Statement{Charset: "latin1"},
			"CREATE TABLE t (`\xe4` ENUM('\xf6'))",
			`t(ä:enum('ö'))`,
		},
		"a quote inside of sjis": {
			ddl.Statement{Charset: "sjis"},
			"CREATE TABLE t (a CHAR(9) COMMENT '\x95\x5c', b INT)",
			`t(a:char(9),b:int)`,
		},
		"timestamps by default": {
			ddl.Statement{ExplicitTimestamps: &off},
			"CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)",
			"t(a:timestamp!=(CURRENT_TIMESTAMP),b:timestamp!=0000-00-00 00:00:00,c:timestamp)",
		},
		"timestamps as they are": {
			ddl.Statement{ExplicitTimestamps: &on},
			"CREATE TABLE t (a TIMESTAMP, b TIMESTAMP NOT NULL)",
			"t(a:timestamp,b:timestamp!)",
		},
		"timestamps that are told": {
			ddl.Statement{},
			"CREATE TABLE t (a TIMESTAMP NULL, b TIMESTAMP NOT NULL DEFAULT NOW())",
			"t(a:timestamp,b:timestamp!=(CURRENT_TIMESTAMP))",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, out := apply(t, mysql9, c.s, c.sql)
			if got != c.want || out.Reason != "" {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, out)
			}
		})
	}
}

// What can't be followed makes its tables unknown, and says why without their texts.
func TestUnknown(t *testing.T) {
	const outbox = "CREATE TABLE outbox (a INT)"
	cases := map[string]struct {
		source ddl.Source
		s      ddl.Statement
		sql    []string
		reason string
	}{
		"a clause": {
			mysql9,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox FROBNICATE COLUMN a"},
			"something in ALTER TABLE is not understood",
		},
		"an attribute": {
			mysql9,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox ADD b INT HUGE"},
			"something in ALTER TABLE is not understood",
		},
		"a type": {
			mysql9,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox ADD b SECRET(1)"},
			"a column's type is not understood",
		},
		"MariaDB's on MySQL": {
			mysql9,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox ADD b UUID"},
			"a column's type is not understood",
		},
		"a SELECT": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE outbox (a INT) AS SELECT 1 AS b"},
			"columns that come from a SELECT",
		},
		"one not known": {
			mysql9,
			ddl.Statement{},
			[]string{"ALTER TABLE outbox ADD b INT"},
			"before this statement are not known",
		},
		"like one not known": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE outbox LIKE x"},
			"the table that it is like is not known",
		},
		"renamed from one": {
			mysql9,
			ddl.Statement{},
			[]string{"RENAME TABLE x TO outbox"},
			"before this statement are not known",
		},
		"there or not": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE IF NOT EXISTS outbox (a INT)"},
			"whether the table was there",
		},
		"another sql_mode": {
			maria10,
			ddl.Statement{Mode: ddl.Oracle},
			[]string{"CREATE TABLE outbox (a INT)"},
			"sql_mode",
		},
		"a session's setting": {
			maria10,
			ddl.Statement{},
			[]string{"SET STATEMENT sql_mode='' FOR CREATE TABLE outbox (a INT)"},
			"SET STATEMENT",
		},
		"versioning": {
			maria10,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox ADD SYSTEM VERSIONING"},
			"VERSIONING",
		},
		"timestamps": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE outbox (a TIMESTAMP)"},
			"explicit_defaults_for_timestamp",
		},
		"an error": {
			mysql9,
			ddl.Statement{Failed: true},
			[]string{"DROP TABLE outbox, x"},
			"ended with an error",
		},
		"text in no charset": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE outbox (a ENUM('\xff'))"},
			"reading its text",
		},
		"an open quote":   {mysql9, ddl.Statement{}, []string{"CREATE TABLE outbox (a ENUM('x"}, "not closed"},
		"an open comment": {mysql9, ddl.Statement{}, []string{"CREATE TABLE outbox (a INT) /*! "}, "not closed"},
		"two statements": {
			mysql9,
			ddl.Statement{},
			[]string{"CREATE TABLE outbox (a INT); DROP TABLE x"},
			"the statement's end",
		},
		"no such column": {
			mysql9,
			ddl.Statement{},
			[]string{outbox, "ALTER TABLE outbox ADD c INT AFTER b"},
			"is not known",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, out := apply(t, c.source, c.s, c.sql...)
			if got != "" || !slices.Contains(out.Unknown, schema.Name{Database: "shop", Table: "outbox"}) ||
				!strings.Contains(out.Reason, c.reason) {
				t.Errorf("got %q, %+v, want the reason %q", got, out, c.reason)
			}
			if strings.Contains(out.Reason, "SECRET") || strings.Contains(out.Reason, "FROB") {
				t.Errorf("the reason has text of the statement: %s", out.Reason)
			}
		})
	}
}

// A statement that is not about columns leaves even tables that it names as they are.
func TestTableIsNotChangedInPlace(t *testing.T) {
	c := ddl.NewCatalog()
	n := schema.Name{Database: "shop", Table: "outbox"}
	c.Charsets["shop"] = "latin1"
	c.Apply(
		mysql9,
		ddl.Statement{SQL: []byte("CREATE TABLE outbox (a INT, b INT, PRIMARY KEY (a, b))"), Database: "shop"},
	)
	before := c.Tables[n]
	c.Apply(
		mysql9,
		ddl.Statement{
			SQL:      []byte("ALTER TABLE outbox RENAME COLUMN a TO c, ALTER b SET DEFAULT 5, DROP PRIMARY KEY"),
			Database: "shop",
		},
	)
	if before == c.Tables[n] || before.Columns[0].Name != "a" || before.Columns[1].Default != nil ||
		before.PrimaryKey[0] != "a" {
		t.Errorf("the columns of rows before a statement were changed by it: %+v", before)
	}
	if got := c.Tables[n].Schema(n); got.Columns[0].Name != "c" || got.PrimaryKey != nil {
		t.Errorf("got %+v", got)
	}
}

func TestNamesAreFolded(t *testing.T) {
	c := ddl.NewCatalog()
	source := ddl.Source{Version: 90000, FoldsNames: true}
	c.Apply(source, ddl.Statement{SQL: []byte("CREATE TABLE Shop.OutBox (A INT)")})
	if t1 := c.Tables[schema.Name{Database: "shop", Table: "outbox"}]; t1 == nil || t1.Columns[0].Name != "A" {
		t.Errorf("got %v", c.Tables)
	}
}

// A statement of any size is read in bounded time and memory.
func TestHugeStatements(t *testing.T) {
	for name, sql := range map[string]string{
		"parentheses": "CREATE TABLE outbox (a INT DEFAULT " + strings.Repeat("(", 1<<20),
		"renames":     "RENAME TABLE outbox TO a" + strings.Repeat(", outbox TO a", 1<<17),
		"columns":     "CREATE TABLE outbox (a INT" + strings.Repeat(", a INT", 1<<18) + ")",
		"clauses":     "ALTER TABLE outbox DROP a" + strings.Repeat(", DROP a", 1<<18),
		"added": "ALTER TABLE outbox " + strings.Repeat("ADD (a INT"+strings.Repeat(", a INT", 8000)+"),", 40) +
			"FORCE",
		"long": "ALTER TABLE outbox COMMENT '" + strings.Repeat("x", 5<<20) + "'",
	} {
		t.Run(name, func(t *testing.T) {
			_, out := apply(t, maria10, ddl.Statement{}, "CREATE TABLE outbox (a INT)", sql)
			if out.Reason == "" {
				t.Error("it was followed")
			}
		})
	}
}

func FuzzApply(f *testing.F) {
	g := newGenerator(1, false, ddl.NewCatalog())
	for range 200 {
		f.Add(g.statement(), uint64(0), false)
	}
	f.Add("CREATE TABLE t (a ENUM('\\", uint64(4), true)
	f.Add("/*!99999 /* */ ALTER /*M!", uint64(1<<20), true)
	f.Fuzz(func(t *testing.T, sql string, mode uint64, maria bool) {
		c := ddl.NewCatalog()
		c.Charsets["shop"] = "utf8mb4"
		n := schema.Name{Database: "shop", Table: "outbox"}
		c.Apply(
			mysql9,
			ddl.Statement{
				SQL:      []byte("CREATE TABLE outbox (id INT PRIMARY KEY, a TEXT, b ENUM('x'))"),
				Database: "shop",
			},
		)
		source := mysql9
		if maria {
			source = maria10
		}
		out := c.Apply(source, ddl.Statement{SQL: []byte(sql), Database: "shop", Mode: ddl.Mode(mode)})
		for _, u := range out.Unknown {
			if c.Tables[u] != nil {
				t.Errorf("%v is known and to be asked for", u)
			}
		}
		if len(out.Unknown) > 0 && out.Reason == "" {
			t.Error("there is no reason to ask")
		}
		if known := c.Tables[n]; known != nil {
			if s := known.Schema(n); slices.Contains(s.PrimaryKey, -1) {
				t.Errorf("the key %v is not of columns", known.PrimaryKey)
			}
		}
	})
}
