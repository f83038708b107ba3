// Package debezium knows what is Debezium's or Kafka Connect's: it turns
// connector JSON and worker properties into our configuration, and says of every
// key whether it is taken, harmless here, or refused and why.
package debezium
