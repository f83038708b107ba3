// Package kafkatest is Kafka for tests: an in-process cluster with settable
// faults, a reader that judges what consumers would see, and a sink double for
// tests that need no Kafka at all.
package kafkatest
