// Command record asks a real Kafka Connect worker with Debezium every question of
// the Connect REST API's comparison, and stores its answers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/parity/restapi"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

func main() {
	out := flag.String("out", filepath.Join("test", "parity", "restapi", "testdata", "connect.json"),
		"where the answers are stored")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		stop()
		os.Exit(1)
	}
}

func record(ctx context.Context, out string) (err error) {
	mysql, err := servers.StartMySQL(ctx, servers.Options{Args: []string{"--binlog-row-metadata=FULL"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mysql.Close()) }()
	kafka, err := servers.StartKafka(ctx, servers.KafkaOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kafka.Close()) }()
	if err := prepare(ctx, mysql); err != nil {
		return err
	}
	const storage = "org.apache.kafka.connect.storage.StringConverter"
	worker, err := servers.StartConnect(ctx, servers.ConnectOptions{
		Kafka: kafka.Addr(), Distributed: true, Log: os.Stderr,
		Properties: []string{"key.converter=" + storage, "value.converter=" + storage, "offset.flush.interval.ms=500"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	dir, err := os.MkdirTemp("", "restapi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rows := 0
	r := restapi.Runner{
		URL: worker.URL(), Client: http.DefaultClient, Patience: 2 * time.Minute,
		Fill: strings.NewReplacer("{host}", mysql.Host(), "{port}", strconv.Itoa(mysql.Port()), "{user}", servers.CDCUser,
			"{password}", servers.CDCPassword, "{dir}", dir),
		Publish: func(ctx context.Context) error {
			rows++
			return mysql.Exec(ctx, fmt.Sprintf("INSERT INTO restapi.outbox VALUES ('%d', 'order', '7', 'created', '{}')", rows))
		},
	}
	rec := restapi.Recording{Connect: servers.KafkaVersion, Debezium: servers.DebeziumVersion,
		Answers: map[string]restapi.Answer{}}
	for _, s := range restapi.Steps() {
		a, err := r.Do(ctx, &s)
		if err != nil {
			log, _ := os.ReadFile(worker.LogPath())
			_ = os.WriteFile(filepath.Join(os.TempDir(), "restapi-connect.log"), log, 0o644)
			return err
		}
		fmt.Fprintln(os.Stderr, a.Status, s.Name)
		rec.Answers[s.Name] = a
	}
	restapi.Normalise(&rec, r.URL, mysql.Port(), dir)
	return rec.Save(out)
}

func prepare(ctx context.Context, mysql *servers.MySQL) error {
	if err := mysql.CreateCDCUser(ctx); err != nil {
		return err
	}
	return mysql.Exec(ctx, "GRANT RELOAD, SHOW DATABASES, LOCK TABLES ON *.* TO "+servers.CDCUser+"@'%'",
		"CREATE DATABASE restapi",
		"CREATE TABLE restapi.outbox (id VARCHAR(36) PRIMARY KEY, aggregatetype VARCHAR(255), aggregateid VARCHAR(255), "+
			"type VARCHAR(255), payload JSON)")
}
