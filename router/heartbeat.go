package router

import (
	"github.com/binlog-outbox/binlog-outbox/converter"
)

// Heartbeat makes the records by which Debezium shows that a connector lives
// (io.debezium.heartbeat). EventRouter passes them on as they are: without the
// context headers, to partition 0, with the producer's clock.
type Heartbeat struct {
	topic  string
	key    Datum
	schema *converter.Schema
}

// NewHeartbeat is for the topic prefix.server (topic.heartbeat.prefix and
// topic.prefix).
func NewHeartbeat(prefix, server string) *Heartbeat {
	one := 1
	record := func(name, field string, kind converter.Kind) *converter.Schema {
		return &converter.Schema{Kind: converter.Record, Name: "io.debezium.connector.common." + name, Version: &one,
			Fields: []converter.Field{{Name: field, Schema: &converter.Schema{Kind: kind}}}}
	}
	key := record("ServerNameKey", "serverName", converter.String)
	return &Heartbeat{
		topic:  prefix + "." + server,
		key:    Datum{key, &converter.Struct{Schema: key, Values: []any{server}}},
		schema: record("Heartbeat", "ts_ms", converter.Int64),
	}
}

// Event is the record of one moment, in milliseconds since the epoch. It may be
// called from any goroutine.
func (h *Heartbeat) Event(ms int64) *Event {
	return &Event{
		Topic: h.topic, Key: h.key, Value: Datum{h.schema, &converter.Struct{Schema: h.schema, Values: []any{ms}}},
		Timestamp: NoTimestamp, Partition: 0,
	}
}
