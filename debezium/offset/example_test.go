package offset_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
)

func ExampleParse() {
	o, err := offset.Parse([]byte(`{"ts_sec": 1767225600, "file": "binlog.000007", "pos": 4327,` +
		`"gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-13", "row": 10, "event": 2}`))
	fmt.Println(o.File, o.Pos, o.GTIDs, o.Event, o.Row, err)
	// Output: binlog.000007 4327 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-13 2 10 <nil>
}
