// Package kafkatest is Kafka for tests: an in-process cluster with settable
// faults, and a reader that judges what consumers would see.
package kafkatest
