// Package e2e runs the connector as a process against real MySQL, MariaDB and
// Kafka, injects one fault at a time, and checks each promise of the README on
// what a consumer then reads. README.md beside it says how to run a part of it.
package e2e
