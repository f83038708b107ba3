// Package offset reads what Debezium's connectors for MySQL and MariaDB have stored of how
// far they have come, wherever Kafka Connect or Debezium Server keep it. It does no I/O.
package offset
