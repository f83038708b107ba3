package schema_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

func ExampleScan() {
	s := schema.Scan([]byte("ALTER TABLE outbox RENAME COLUMN payload TO body"), "shop")
	fmt.Println(s.Tables, s.AltersColumns)
	// Output: [shop.outbox] true
}
