// Package restapi holds what a real Kafka Connect worker with Debezium answered,
// request by request, and compares other answers with it.
package restapi
