package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// lab is what all runs share. One goroutine uses it.
type lab struct {
	options
	dir     string
	binary  string // this program
	mysql   *servers.MySQL
	kafka   *servers.Kafka
	offsets string // Debezium's file of where each span begins
	spans   map[string]*span
	results results
	runs    int
	began   time.Time
	load    string // of the machine at the start
	closers []func() error
}

// mysqlArgs make room for large transactions, and take nothing from the speed of
// reading: what is measured is not the server's writing.
var mysqlArgs = []string{
	"--max-binlog-size=1G", "--innodb-redo-log-capacity=1G", "--innodb-buffer-pool-size=512M", "--skip-innodb-doublewrite",
	"--max-allowed-packet=64M", "--binlog-expire-logs-seconds=0",
}

// kafkaJVM is a broker's usual JVM, in place of the one that starts quickly.
var kafkaJVM = []string{"-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC"}

func newLab(ctx context.Context, o options) (*lab, error) {
	l := &lab{options: o, spans: map[string]*span{}, results: results{}, began: time.Now(), load: loadAverage()}
	var err error
	if l.dir, err = os.MkdirTemp("", "binlog-outbox-bench-"); err != nil {
		return l, err
	}
	l.say("building the program and starting the servers")
	if l.binary, err = harness.Build(ctx, l.dir); err != nil {
		return l, err
	}
	if l.mysql, err = l.startMySQL(ctx, "mysql"); err != nil {
		return l, err
	}
	l.kafka, err = servers.StartKafka(ctx, servers.KafkaOptions{
		Dir: filepath.Join(l.dir, "kafka"), Heap: "1g", JVMArgs: kafkaJVM, Log: os.Stderr,
		Properties: []string{"log.segment.delete.delay.ms=1000", "log.segment.bytes=134217728",
			"auto.create.topics.enable=true"},
	})
	if err != nil {
		return l, err
	}
	l.closers = append(l.closers, l.kafka.Close)
	return l, nil
}

func (l *lab) startMySQL(ctx context.Context, name string) (*servers.MySQL, error) {
	s, err := servers.StartMySQL(ctx, servers.Options{Name: name, Dir: filepath.Join(l.dir, name), Args: mysqlArgs,
		Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	l.closers = append(l.closers, s.Close)
	if err := s.CreateCDCUser(ctx); err != nil {
		return nil, err
	}
	// What Debezium asks for at its start, beyond what we need.
	return s, s.Exec(ctx, "GRANT RELOAD, SHOW DATABASES, LOCK TABLES ON *.* TO "+servers.CDCUser+"@'%'")
}

// close stops the servers and removes everything unless it is to be looked at.
func (l *lab) close(clean bool) error {
	var errs []error
	for _, c := range l.closers {
		errs = append(errs, c())
	}
	if clean {
		return errors.Join(append(errs, os.RemoveAll(l.dir))...)
	}
	fmt.Fprintln(os.Stderr, "logs and data are kept in", l.dir)
	return errors.Join(errs...)
}

func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs "+format+"\n", append([]any{time.Since(l.began).Seconds()}, args...)...)
}

// size is the number for a full run or for a quick one.
func (l *lab) size(full, quick int) int {
	if l.quick {
		return quick
	}
	return full
}

// topic makes a topic for one run.
func (l *lab) topic(partitions int32) (string, error) {
	l.runs++
	name := fmt.Sprintf("bench-%03d", l.runs)
	return name, l.kafka.CreateTopic(name, partitions, nil)
}

func (l *lab) dropTopic(name string) error {
	admin, err := l.kafka.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	return admin.DeleteTopic(name)
}
