package config_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// All problems of a file come out at once, each with its place.
func ExampleBuilder_Build() {
	_, err := (&config.Builder{KeepReferences: true}).Build(config.YAML("node.yaml", []byte(`
node: {data_dir: /var/lib/binlog-outbox}
connectors:
  - name: orders
    source: {hots: mysql, user: cdc, table: shop.outbox, start: currant}
    kafka: {brokers: ["kafka:9092"]}
`)))
	fmt.Println(err)
	// Output:
	// node.yaml:5:14: connectors[0].source.hots: unknown key; did you mean "host"?
	// node.yaml:5:65: connectors[0].source.start: "currant" is not one of snapshot, snapshot_only, when_needed, current, earliest, never; did you mean current?
}
