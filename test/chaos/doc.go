// Package chaos runs a cluster of three connector nodes over real MySQL and Kafka
// while faults come as a seed has planned them, and checks every promise afterwards:
// the rows with test/e2e/history, transactions and positions with test/chaos/judge.
// The command in cmd runs it for as long as wanted, measures failovers, and lets
// paused leaders wake up; the tests here are a slice of it.
package chaos
