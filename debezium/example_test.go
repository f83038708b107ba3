package debezium_test

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// Each key of a connector's file is taken, passed over with a reason, or refused.
func ExampleConvert() {
	c, err := debezium.Convert(debezium.Options{Connectors: []debezium.File{{Name: "outbox.json", Data: []byte(`{
		"name": "orders", "connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "shop",
		"database.hostname": "mysql", "database.user": "cdc", "table.include.list": "shop.outbox", "snapshot.mode": "no_data",
		"key.converter": "org.apache.kafka.connect.storage.StringConverter",
		"value.converter": "org.apache.kafka.connect.storage.StringConverter",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"binlog.outbox.kafka.brokers": "kafka:9092", "tasks.max": "1"}`)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range c.Lines {
		if line.Key == "snapshot.mode" || line.Key == "tasks.max" {
			fmt.Println(line)
		}
	}
	// Output:
	// outbox.json: snapshot.mode: taken: source.start
	// outbox.json: tasks.max: ignored: one connector is one task
}
