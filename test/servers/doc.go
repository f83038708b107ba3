// Package servers starts real MySQL, MariaDB and Kafka servers for tests, the demo
// and benchmarks.
//
// The programs come from the machine's own package sources and need neither root
// nor a container engine: MySQL and MariaDB are Debian packages unpacked below the
// user's cache folder and run through the loader that comes with them, Kafka is a
// set of Maven jars run by the machine's Java. What is missing is fetched at first
// use; go run ./test/servers/cmd fetch does it ahead of time.
//
// Each server listens on a loopback port of its own and keeps its data in a folder
// of its own, so any number run side by side. On Linux a server ends with the
// process that started it, however that process ends.
//
// The environment names servers that already run, which are then used instead:
//
//	BINLOG_OUTBOX_TEST_MYSQL    user:password@host:port
//	BINLOG_OUTBOX_TEST_MARIADB  user:password@host:port
//	BINLOG_OUTBOX_TEST_KAFKA    host:port
//
// and where programs come from, where the machine's settings do not say:
//
//	BINLOG_OUTBOX_DEBIAN_MIRROR  a Debian archive
//	BINLOG_OUTBOX_MAVEN_MIRROR   a Maven repository
package servers
