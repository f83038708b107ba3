// Package harness runs the connector as a process, as an operator or an
// orchestrator would, and reads its topics with a client that shares no code
// with the connector's own.
package harness
