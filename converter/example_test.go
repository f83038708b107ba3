package converter_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

func ExampleNew() {
	c, err := converter.New(converter.Options{Type: converter.TypeJSON, Schemas: true}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, isNull, err := c.Append(nil, &converter.Schema{Kind: converter.Int64}, int64(7))
	fmt.Printf("%s %v %v\n", out, isNull, err)
	// Output: {"schema":{"type":"int64","optional":false},"payload":7} false <nil>
}
