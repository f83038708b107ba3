// Package parity compares what this project sends with what the real Debezium
// sends: the same statements on the same MySQL, the same connector JSON and the
// same worker properties, and then each record of every topic and the end of each
// task.
//
// The corpus is a table of cases (Cases). The recorder (Debezium) runs it through
// Debezium's MySQL connector and EventRouter on Kafka Connect; what came out stands
// in testdata, one file for a group of cases. Ours runs it through the program of
// this project, which takes the files as they are. go run ./test/parity/record
// records afresh and compares with what is stored, or stores it.
package parity
