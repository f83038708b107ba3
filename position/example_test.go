package position_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// A gap in a set is a transaction that is still to come.
func ExampleSet() {
	set, err := position.ParseSet(position.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7")
	if err != nil {
		fmt.Println(err)
		return
	}
	missing, err := position.ParseGTID("3e11fa47-71ca-11e1-9e33-c80aa9429562:6")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Has(missing), set.Count())
	set.Add(missing)
	fmt.Println(set)
	// Output:
	// false 6
	// 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7
}

func ExampleCompareFiles() {
	order, err := position.CompareFiles("binlog.999999", "binlog.1000000")
	fmt.Println(order, err)
	// Output: -1 <nil>
}
