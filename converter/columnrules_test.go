package converter

import (
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// TestColumnRules: what Debezium does with the values is recorded in test/parity; here are
// the corners that a table can't show there.
func TestColumnRules(t *testing.T) {
	all := func(string) (bool, error) { return true, nil }
	text := schema.Column{Name: "c", Type: schema.LongText, ColumnType: "longtext", Charset: "utf8mb4", Nullable: true}
	value := func(col schema.Column, raw any, change ColumnChange) any {
		t.Helper()
		m := DefaultModes()
		m.Columns = &ColumnRules{Changes: []ColumnChange{change}}
		rs := ForTable("p", &schema.Table{Name: schema.Name{Database: "d", Table: "t"}, Columns: []schema.Column{col},
			PrimaryKey: []int{0}}, m)
		v, err := rs.Columns[0].Value(raw, schema.Insert)
		if err != nil {
			t.Fatal(err)
		}
		if key, err := rs.KeyColumns[0].Value(raw, schema.Insert); err != nil || key != raw {
			t.Errorf("the key is changed to %v, %v", key, err)
		}
		return v
	}
	for _, c := range []struct {
		n          int
		text, want string
	}{{0, "a", ""}, {1, "é漢", "é"}, {2, "a😀", "a\xed\xa0\xbd"}, {3, "a😀b", "a😀"}, {9, "a😀b", "a😀b"}} {
		if got := value(text, c.text, TruncateColumns(all, c.n)); got != c.want {
			t.Errorf("%q cut to %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
	// Values of Java: MessageDigest over ObjectOutputStream, and over String.getBytes.
	for _, c := range []struct {
		version    int
		text, want string
	}{
		{1, "a\x00é😀", hashV1Short}, {1, strings.Repeat("ab", 40000), hashV1Long}, {2, "a\x00é😀", hashV2},
	} {
		change, ok := HashColumns(all, "SHA-256", "salt", c.version)
		if got := value(text, c.text, change); !ok || got != c.want {
			t.Errorf("version %d of %.10q: %v, want %s", c.version, c.text, got, c.want)
		}
	}
	if _, ok := HashColumns(all, "SHA-9", "", 1); ok {
		t.Error("SHA-9 is taken")
	}
}

const (
	hashV1Short = "b6f17323e87c0e51b8d5f66400401698e379479e62282bb9bf02418f969b0d1b"
	hashV1Long  = "4e734b202baef0161358c6941b921bf76b2f9f906590a8a8119501823bfc18f9"
	hashV2      = "5bfbf6b313dc6b843580f567f6110e089289b312494a33e0f52e966aeb7616ab"
)
