package canal

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

func onlyOutbox(_, table string) (bool, error) { return table == "outbox", nil }

func statement(format string, args ...any) ddl.Statement {
	return ddl.Statement{SQL: fmt.Appendf(nil, format, args...), Database: "shop"}
}

// What goes with a position comes back from it, and is told once.
func TestColumnsAreKept(t *testing.T) {
	c := newColumns(ddl.Source{Version: 90704}, onlyOutbox, "")
	c.catalog.Charsets["shop"] = "latin1"
	c.apply(statement("CREATE TABLE outbox (id SERIAL, a ENUM('x','ü') DEFAULT 'x', b TEXT INVISIBLE, c DATETIME(3) " +
		"DEFAULT NOW(3), d FLOAT(7,3), e BINARY(16), PRIMARY KEY (id))"))
	c.apply(statement("CREATE TABLE _outbox_gho LIKE outbox"))
	text := c.changed()
	if text == "" || len(text) > 1000 || c.changed() != "" {
		t.Fatalf("%d bytes are kept: %s", len(text), text)
	}
	again := newColumns(c.source, onlyOutbox, text)
	for _, name := range []string{"outbox", "_outbox_gho"} {
		n := schema.Name{Database: "shop", Table: name}
		if got, want := again.table(n), c.table(n); len(got.Columns) != 6 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v", n, got, want)
		}
	}
	again.apply(statement("ALTER TABLE outbox ADD f CHAR(1)"))
	if f := again.table(schema.Name{Database: "shop", Table: "outbox"}).Columns[6]; f.Charset != "latin1" {
		t.Errorf("a column that is added has %+v", f)
	}
	again.apply(statement("ALTER TABLE outbox ADD INDEX (f), ENGINE=InnoDB"))
	again.apply(statement("DROP TABLE _outbox_gho"))
	if again.changed() == "" || again.changed() != "" {
		t.Error("a change is to be told once")
	}
	if broken := newColumns(c.source, onlyOutbox, "AAAA"); len(broken.catalog.Tables) != 0 {
		t.Error("what can't be read is known")
	}
}

// What is kept of tables that are no outbox tables, and of all, is bounded.
func TestColumnsAreBounded(t *testing.T) {
	c := newColumns(ddl.Source{Version: 90704}, onlyOutbox, "")
	c.catalog.Charsets["shop"] = "utf8mb4"
	wide := strings.Repeat("x", 60)
	for i := range 500 {
		var columns []string
		for j := range 100 {
			columns = append(columns, fmt.Sprintf("c%d_%d_%s INT DEFAULT %d", i, j*7919, wide[:20+j%40], i*j))
		}
		c.apply(statement("CREATE TABLE t%d (%s)", i, strings.Join(columns, ", ")))
		if i == 0 {
			c.apply(statement("CREATE TABLE outbox (id INT)"))
		}
	}
	if n := len(c.catalog.Tables); n > maxOtherTables+1 {
		t.Errorf("%d tables are known", n)
	}
	text := c.changed()
	if len(text) > maxColumnsText {
		t.Errorf("%d bytes are kept", len(text))
	}
	if newColumns(c.source, onlyOutbox, text).table(schema.Name{Database: "shop", Table: "outbox"}) == nil {
		t.Error("the outbox table is not among what is kept")
	}
}

// A query event tells what its session was.
func TestQueryEventsSession(t *testing.T) {
	status := []byte{
		statusFlags2, 0, 0, 0, 0, statusSQLMode, 4, 0, 0x10, 0, 0, 0, 0, 0, statusCatalogName, 3, 's', 't', 'd',
		statusCharset, 8, 0, 45, 0, 33, 0, statusTimeZone, 6, 'S', 'Y', 'S', 'T', 'E', 'M',
		statusUpdatedDBs, 2, 'a', 0, 'b', 'c', 0, statusExplicitTS, 1, statusDDLXID, 1, 2, 3, 4, 5, 6, 7, 8,
	}
	body := append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, byte(len(status)), 0}, status...)
	body = append(body, "shop\x00DROP TABLE x"...)
	q, err := parseQuery(2, body)
	if err != nil {
		t.Fatal(err)
	}
	s := q.statement(ddl.Source{})
	if string(s.SQL) != "DROP TABLE x" || s.Database != "shop" || s.Mode != ddl.AnsiQuotes|ddl.NoBackslashEscapes ||
		!s.Failed ||
		s.Charset != "latin1" || s.Connection != "utf8mb4" || s.ServerCharset != "utf8mb3" || s.ExplicitTimestamps == nil ||
		!*s.ExplicitTimestamps {
		t.Errorf("got %+v", s)
	}
	for n := range status { // cut anywhere it is read in peace
		q.status = status[:n]
		q.statement(ddl.Source{})
	}
	q.status = append([]byte{99, statusExplicitTS}, status...)
	if s := q.statement(ddl.Source{}); s.ExplicitTimestamps != nil || s.Charset != "" {
		t.Errorf("behind what is not known: %+v", s)
	}
}
