// Package kafka publishes batches of records together with the position they
// bring the connector to. sarama's types stop here.
package kafka
