// Package router maps an outbox row to a record exactly as Debezium's
// io.debezium.transforms.outbox.EventRouter does: topic, key, value, headers,
// timestamp and partition, as Connect data. It is pure.
package router
