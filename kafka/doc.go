// Package kafka publishes batches of records together with the position they
// bring the connector to. sarama's types stop here.
//
// There are two sinks with one contract: ExactlyOnce commits records and position
// in one Kafka transaction, fenced by its transactional id; AtLeastOnce publishes
// with an idempotent producer and reports how far the acknowledgements reach, the
// position being stored elsewhere. Both are made by a Publisher, which keeps what
// outlives a session. Neither repairs itself: after any error a sink can only be
// closed, and the next session opens another one.
package kafka
