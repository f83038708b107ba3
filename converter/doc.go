// Package converter holds Kafka Connect's data model (schema and value), makes
// Connect data from column values as Debezium does, and turns Connect data into
// the bytes that Connect's converters write. It is pure and safe for concurrent
// use once built.
package converter
