package ddl_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Random DDL: what is carried through a statement is what information_schema says
// afterwards, on real servers.
func TestRealRandomStatements(t *testing.T) {
	for name, c := range map[string]struct {
		start func(testing.TB, ...servers.Options) *servers.MySQL
		most  float64 // of the statements that may stay unparsed
	}{
		"MySQL":   {servers.MySQLForTest, 0.02},
		"MariaDB": {servers.MariaDBForTest, 0.10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRealRun(t, c.start(t, servers.Options{Own: true}), name == "MariaDB")
			r.run(statements(t))
			if share := float64(r.unparsed) / float64(r.ran); share > c.most {
				t.Errorf(
					"%.1f %% of the statements were not followed, at most %.0f %% are allowed",
					100*share,
					100*c.most,
				)
			}
			t.Logf(
				"%d statements ran, %d more were refused by the server, %d (%.1f %%) were not followed: %v",
				r.ran,
				r.refused,
				r.unparsed,
				100*float64(r.unparsed)/float64(r.ran),
				r.reasons,
			)
		})
	}
}

// statements is how many are to run; DDL_STATEMENTS says another number.
func statements(t *testing.T) int {
	text := os.Getenv("DDL_STATEMENTS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type realRun struct {
	*testing.T
	session, reader *client.Conn
	source          ddl.Source
	catalog         *ddl.Catalog
	gen             *generator

	ran, refused, unparsed int
	reasons                map[string]int
	differences            int
}

func newRealRun(t *testing.T, s *servers.MySQL, maria bool) *realRun {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("DDL_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DDL_SEED=%d", seed)
	if err := s.Exec(t.Context(), "CREATE DATABASE shop CHARACTER SET utf8mb4"); err != nil {
		t.Fatal(err)
	}
	conn := func() *client.Conn {
		c, err := s.Conn(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	r := &realRun{T: t, session: conn(), reader: conn(), catalog: ddl.NewCatalog(), reasons: map[string]int{}}
	r.must(r.session, "SET NAMES utf8mb4")
	r.must(r.reader, "SET NAMES utf8mb4")
	r.catalog.Charsets["shop"] = "utf8mb4"
	for _, n := range append([]string{"seen", "swap", "from"}, tableNames...) {
		r.catalog.Tables[schema.Name{Database: "shop", Table: strings.Trim(n, "`")}] = nil
	}
	var v [3]int
	version, err := s.Value(t.Context(), "SELECT VERSION()")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		t.Fatal(err)
	}
	r.source = ddl.Source{MariaDB: maria, Version: v[0]*10000 + v[1]*100 + v[2]}
	r.gen = newGenerator(seed, maria, r.catalog)
	return r
}

func (r *realRun) must(c *client.Conn, sql string, args ...any) *mysql.Result {
	r.Helper()
	out, err := c.Execute(sql, args...)
	if err != nil {
		r.Fatalf("%s: %v", sql, err)
	}
	return out
}

// modes are sql_modes under which statements are written.
var modes = []string{
	"STRICT_TRANS_TABLES",
	"STRICT_TRANS_TABLES",
	"",
	"ANSI_QUOTES,STRICT_TRANS_TABLES",
	"NO_BACKSLASH_ESCAPES",
	"REAL_AS_FLOAT,STRICT_ALL_TABLES",
}

func bitsOf(mode string) (m ddl.Mode) {
	for name, bit := range map[string]ddl.Mode{"ANSI_QUOTES": ddl.AnsiQuotes,
		"NO_BACKSLASH_ESCAPES": ddl.NoBackslashEscapes,
		"REAL_AS_FLOAT":        ddl.RealAsFloat, "STRICT_TRANS_TABLES": ddl.StrictTransTables,
		"STRICT_ALL_TABLES": ddl.StrictAllTables} {
		if strings.Contains(mode, name) {
			m |= bit
		}
	}
	return m
}

func (r *realRun) run(n int) {
	mode := ""
	r.must(r.session, "SET sql_mode = ''")
	for tries := 0; r.ran < n; tries++ {
		if tries > 6*n {
			r.Fatalf("only %d of %d statements were taken", r.ran, tries)
		}
		if tries%40 == 0 {
			mode = modes[r.gen.IntN(len(modes))]
			r.must(r.session, "SET sql_mode = '"+mode+"'")
		}
		sql := r.gen.statement()
		place := r.place()
		_, err := r.session.Execute(sql)
		if err != nil {
			r.refused++ // and may have done something all the same
		}
		for _, sql := range r.logged(place) {
			r.ran++
			r.apply(sql, bitsOf(mode), err != nil && strings.HasPrefix(sql, "CREATE"))
		}
		if r.differences > 20 {
			r.Fatal("too many differences")
		}
	}
}

func (r *realRun) apply(sql string, mode ddl.Mode, failed bool) {
	before := maps.Clone(r.catalog.Tables)
	on := true
	out := r.catalog.Apply(
		r.source,
		ddl.Statement{SQL: []byte(sql), Database: "shop", Mode: mode, Failed: failed, ExplicitTimestamps: &on},
	)
	if len(out.Unknown) > 0 || out.Everything {
		r.unparsed++
		r.reasons[out.Reason]++
		if os.Getenv("DDL_SHOW") != "" {
			r.Logf("%s: %s", out.Reason, sql)
		}
		if out.Everything {
			clear(r.catalog.Tables)
		}
	}
	r.compare(sql, before, out)
}

func (r *realRun) compare(sql string, before map[schema.Name]*ddl.Table, out ddl.Outcome) {
	there := map[string]string{}
	list := r.must(
		r.reader,
		"SELECT TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_TYPE = "+
			"'BASE TABLE'",
	)
	for i := range list.RowNumber() {
		name, _ := list.GetString(i, 0)
		collation, _ := list.GetString(i, 1)
		there[name], _, _ = strings.Cut(collation, "_")
	}
	for n, t := range r.catalog.Tables {
		if t != nil && there[n.Table] == "" {
			r.Errorf("%s is there no more after %s", n, sql)
			r.differences++
			r.catalog.Tables[n] = nil
		}
	}
	for name, charset := range there {
		n := schema.Name{Database: "shop", Table: name}
		known := r.catalog.Tables[n]
		if _, ok := r.catalog.Tables[n]; ok && known == nil {
			r.Errorf("%s is there after %s", n, sql)
			r.differences++
		}
		if known != nil && known == before[n] && r.ran%20 > 0 && os.Getenv("DDL_SHOW") == "" {
			continue
		}
		now := r.table(n, charset)
		if now == nil {
			r.must(r.session, "DROP TABLE `"+n.Table+"`")
			r.catalog.Tables[n] = nil
			continue
		}
		if known == nil {
			r.catalog.Tables[n] = now
			continue
		}
		if d := difference(n, known, now); d != "" {
			r.differences++
			r.Errorf("after %s\n%s %s", sql, n, d)
			r.catalog.Tables[n] = now
		}
	}
}

func (r *realRun) table(n schema.Name, charset string) *ddl.Table {
	rows := r.must(r.reader, schema.ColumnsQuery, n.Database, n.Table)
	infos := make([]schema.ColumnInfo, rows.RowNumber())
	for i := range infos {
		integer := func(column int) int { v, _ := rows.GetInt(i, column); return int(v) }
		str := func(column int) string { v, _ := rows.GetString(i, column); return strings.Clone(v) }
		infos[i] = schema.ColumnInfo{
			Name: str(
				0,
			), Position: integer(1), Nullable: integer(3) != 0, DataType: str(4), ColumnType: str(5),
			CharLength: uint64(integer(6)),
			Precision: integer(
				7,
			), Scale: integer(8), FSP: integer(9), Charset: str(10), Extra: str(11), Primary: integer(12) != 0,
			KeyPosition: integer(13), ServerVersion: str(14),
		}
		if null, _ := rows.IsNull(i, 2); !null {
			d := str(2)
			infos[i].Default = &d
		} else if strings.Contains(infos[i].Extra, "DEFAULT_GENERATED") {
			d := notShown
			infos[i].Default = &d
		}
	}
	if schema.NeedsShownDefaults(infos) {
		shown := r.must(r.reader, "SHOW CREATE TABLE `"+n.Database+"`.`"+strings.ReplaceAll(n.Table, "`", "``")+"`")
		text, _ := shown.GetString(0, 1)
		schema.SetShownDefaults(infos, text)
	}
	t, err := schema.FromInformationSchema(n, infos)
	if err != nil { // MySQL can't convert all words, and shows x'0e4' for one that has no characters any more
		return nil
	}
	if charset == "utf8" {
		charset = "utf8mb3"
	}
	return ddl.FromServer(t, infos, charset)
}

// logged are the statements that stand in the binlog behind a place.
func (r *realRun) logged(place [2]string) (out []string) {
	events := r.must(r.reader, "SHOW BINLOG EVENTS IN '"+place[0]+"' FROM "+place[1])
	for i := range events.RowNumber() {
		kind, _ := events.GetString(i, 2)
		info, _ := events.GetString(i, 5)
		if kind != "Query" || info == "BEGIN" || info == "COMMIT" {
			continue
		}
		out = append(out, strings.Clone(strings.TrimPrefix(info, "use `shop`; ")))
	}
	return out
}

func (r *realRun) place() [2]string {
	status := "SHOW BINARY LOG STATUS"
	if r.source.MariaDB {
		status = "SHOW MASTER STATUS"
	}
	row := r.must(r.reader, status)
	file, _ := row.GetString(0, 0)
	pos, _ := row.GetString(0, 1)
	return [2]string{file, pos}
}

// difference says where two tables differ. Expressions are compared by whether there is one.
func difference(n schema.Name, got, want *ddl.Table) string {
	if got.Charset != want.Charset {
		return fmt.Sprintf("has character set %s, want %s", got.Charset, want.Charset)
	}
	if !slices.Equal(got.PrimaryKey, want.PrimaryKey) {
		return fmt.Sprintf("has primary key %v, want %v", got.PrimaryKey, want.PrimaryKey)
	}
	if len(got.Columns) != len(want.Columns) {
		return fmt.Sprintf("has %d columns, want %d", len(got.Columns), len(want.Columns))
	}
	for i := range got.Columns {
		if want.Columns[i].Type == schema.Unknown && want.Columns[i].Elements != nil {
			got.Columns[i].Type = schema.Unknown // information_schema hides its words
		}
		if d := want.Columns[i].DefaultExpr; d == notShown ||
			want.Columns[i].Default != nil && *want.Columns[i].Default == notShown {
			want.Columns[i].Default, want.Columns[i].DefaultExpr = got.Columns[i].Default, got.Columns[i].DefaultExpr
		}
		g, w := shownColumn(got.Columns[i]), shownColumn(want.Columns[i])
		if g != w {
			return fmt.Sprintf("column %d is\n\t%s, want\n\t%s", i+1, g, w)
		}
	}
	return ""
}

// notShown is the default that MySQL says is there and does not show: that of SET DEFAULT
// (expression) until the next change of the table.
const notShown = "(not shown)"

func shownColumn(c ddl.Column) string {
	if c.Type == schema.Unknown {
		return c.Name + " unknown"
	}
	def := "none"
	if c.Default != nil {
		def = fmt.Sprintf("%q", *c.Default)
	}
	if c.DefaultExpr != "" && !strings.HasPrefix(strings.ToLower(c.DefaultExpr), "current_timestamp") {
		c.DefaultExpr = "expression"
	}
	return fmt.Sprintf(
		"%s %s %q unsigned=%t nullable=%t (%d,%d,%d) %s %q default %s %s invisible=%t generated=%t",
		c.Name,
		c.Type,
		c.ColumnType,
		c.Unsigned,
		c.Nullable,
		c.Length,
		c.Scale,
		c.FSP,
		c.Charset,
		c.Elements,
		def,
		c.DefaultExpr,
		c.Invisible,
		c.Generated,
	)
}
