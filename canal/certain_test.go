package canal

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// MariaDB's binlog does not tell a UUID from a BINARY(16) (B052): without
// information_schema's word it must not be published as one of the two.
func TestB052AmbiguousBinaryIsRefused(t *testing.T) {
	wire := schema.TableMap{
		Name: schema.Name{Database: "shop", Table: "outbox"}, MariaDB: true,
		Types: []byte{mysql.MYSQL_TYPE_STRING}, Metas: []uint16{uint16(mysql.MYSQL_TYPE_STRING)<<8 | 16},
		NullBitmap: []byte{0},
		Names:      []string{"id"},
	}
	column := schema.Column{Name: "id", Type: schema.Binary, Length: 16}
	known := column
	known.ColumnType = "binary(16)"
	onMySQL := wire
	onMySQL.MariaDB = false
	for name, tt := range map[string]struct {
		column schema.Column
		wire   schema.TableMap
		ok     bool
	}{
		"nobody knows":                    {column, wire, false},
		"information_schema says so":      {known, wire, true},
		"MySQL has no types of this kind": {column, onMySQL, true},
	} {
		_, err := certain(&schema.Table{Name: tt.wire.Name, Columns: []schema.Column{tt.column}}, tt.wire)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
