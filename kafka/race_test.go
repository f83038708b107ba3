//go:build race

package kafka_test

// raceEnabled is true under -race. sarama's transaction manager reads its last
// error without its lock while records of other partitions come back failed; the
// detector rightly says so, and there is nothing we could do about it here. Tests
// that provoke such failures use one partition then.
const raceEnabled = true
