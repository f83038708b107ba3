package envelope_test

import (
	"errors"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/envelope"
)

// A value that a newer release wrote is refused, not half understood.
func ExampleOpen() {
	type settings struct {
		Topic string `json:"topic"`
	}
	data, err := envelope.Seal(2, settings{Topic: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", data)

	var s settings
	fmt.Println(envelope.Open(data, 2, &s), s.Topic)
	fmt.Println(errors.Is(envelope.Open(data, 1, &s), envelope.ErrNewer))
	// Output:
	// 2 4f55c0a6 {"topic":"orders"}
	// <nil> orders
	// true
}
