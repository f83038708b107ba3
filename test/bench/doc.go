// Command bench measures this program beside the real Debezium on Kafka Connect: the
// same MySQL server, the same broker, the same binlog, one after the other in turn.
//
//	go run ./test/bench                         everything, about 25 minutes
//	go run ./test/bench -quick                  less of everything, about 5 minutes
//	go run ./test/bench -only latency,foreign   some scenarios
//	go run ./test/bench -out docs/benchmarks.md the page that it writes
//
// Figures are taken by a read_committed consumer that sees every record. A run in
// which a record is missing, or comes twice, gives no figure but an error.
package main
