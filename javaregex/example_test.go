package javaregex_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

func ExamplePattern_Match() {
	p, err := javaregex.Compile(`shop\.[a-z&&[^b]]+`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, table := range []string{"shop.cat", "shop.bus"} {
		ok, err := p.Match(table) // the whole text must match
		fmt.Println(table, ok, err)
	}
	// Output:
	// shop.cat true <nil>
	// shop.bus false <nil>
}

func ExampleReplacement_Replace() {
	p, err := javaregex.Compile(`(?<routedByValue>.*)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	topic, err := p.Replacement("outbox.event.${routedByValue}")
	if err != nil {
		fmt.Println(err)
		return
	}
	name, matched, err := topic.Replace("Order")
	fmt.Println(name, matched, err)
	// Output: outbox.event.Order true <nil>
}
