package canal_test

import (
	"fmt"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Bytes that stand for nothing in their character set stop the stream, or are replaced
// where that is asked for, streamed and selected alike.
func TestRealInvalidText(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", "CREATE TABLE outbox (id BIGINT PRIMARY KEY, t VARCHAR(9) CHARACTER SET cp1251)")
		from := db.now()
		db.exec("INSERT INTO outbox VALUES (1, _cp1251 x'419842')")
		if e := db.open(from).fails(); e.Kind != canal.Undecodable {
			t.Errorf("got %v", e)
		}
		for want, p := range map[string]*schema.InvalidText{"[1 A\uFFFDB]": {AsJava: true}, "[1 A?B]": {}} {
			db.cfg.InvalidText = p
			r := db.open(from)
			r.until(1)
			if got := fmt.Sprint(r.all[len(r.all)-1].Rows[0].After); got != want || p.Replaced() == 0 {
				t.Errorf("read %q, %d replaced, want %q", got, p.Replaced(), want)
			}
		}
	})
}

// The defaults of bytes are whole: information_schema cuts them at a zero byte.
func TestRealDefaultsOfBytes(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.exec("DROP TABLE outbox", `CREATE TABLE outbox (id BIGINT PRIMARY KEY, a VARBINARY(9) DEFAULT 'a\0b''\\' COMMENT ' DEFAULT ''x''',
			b BINARY(4) DEFAULT '\0c', c VARBINARY(9) DEFAULT x'ff00c3', d VARBINARY(9), e VARCHAR(9) DEFAULT 'e', f BLOB)`)
		columns, err := canal.Columns(t.Context(), db.cfg, schema.Name{Database: db.name, Table: "outbox"})
		if err != nil {
			t.Fatal(err)
		}
		table, err := schema.FromInformationSchema(schema.Name{Database: db.name, Table: "outbox"}, columns)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"0x610062275c", "0x00630000", "0xff00c3"} {
			if got := table.Columns[i+1].Default; got == nil || *got != want {
				t.Errorf("column %s: %v, want %s", table.Columns[i+1].Name, got, want)
			}
		}
		if e := table.Columns[5].Default; e == nil || *e != "e" || table.Columns[4].Default != nil {
			t.Error("other defaults are changed")
		}
	})
}
