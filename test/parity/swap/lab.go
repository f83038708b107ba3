package swap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Kind is what Debezium reads, and how.
type Kind struct {
	Name  string
	Start func(ctx context.Context, o servers.Options) (*servers.MySQL, error)
	Args  []string
	Class string
	// Libs is a folder with more jars that Connect needs.
	Libs string
	// ExactlyOnce is Connect's for source connectors.
	ExactlyOnce bool
	// Config is laid over the connector's.
	Config map[string]string
}

// Kinds are MySQL by GTID and by file and position, and MariaDB where the folder with its
// connector's jars is named: they are not among what servers fetches.
func Kinds(mariadb string) []Kind {
	const mysql = "io.debezium.connector.mysql.MySqlConnector"
	kinds := []Kind{
		{Name: "MySQL by GTID", Start: servers.StartMySQL, Class: mysql, ExactlyOnce: true},
		{Name: "MySQL by file", Start: servers.StartMySQL, Class: mysql, Args: []string{"--gtid-mode=OFF",
			"--enforce-gtid-consistency=OFF"}},
	}
	if mariadb == "" {
		return kinds
	}
	const class = "io.debezium.connector.mariadb.MariaDbConnector"
	return append(kinds,
		Kind{Name: "MariaDB", Start: servers.StartMariaDB, Class: class, Libs: mariadb},
		Kind{Name: "MariaDB with queries", Start: servers.StartMariaDB, Class: class, Libs: mariadb,
			Config: map[string]string{"include.query": "true"}},
	)
}

// connector is the file of one, for both sides. Each has topics of its own.
func (k *Kind) connector(db *servers.MySQL, kafka *servers.Kafka, round int) (name string, config map[string]string) {
	name = "swap-" + strconv.Itoa(round)
	config = map[string]string{
		"name": name, "connector.class": k.Class, "tasks.max": "1",
		"database.hostname": db.Host(), "database.port": strconv.Itoa(db.Port()), "database.user": servers.CDCUser,
		"database.password":  servers.CDCPassword,
		"database.server.id": strconv.Itoa(7_000_000 + round), "topic.prefix": name,
		"table.include.list": "shop.outbox", "snapshot.mode": "no_data",
		"schema.history.internal.kafka.bootstrap.servers": kafka.Addr(),
		"schema.history.internal.kafka.topic":             name + "-history",
		"transforms":                                      "outbox",
		"transforms.outbox.type":                          "io.debezium.transforms.outbox.EventRouter",
		"transforms.outbox.route.topic.replacement":       name + ".${routedByValue}",
		"key.converter":                                   "org.apache.kafka.connect.json.JsonConverter",
		"value.converter":                                 "org.apache.kafka.connect.json.JsonConverter",
		"poll.interval.ms":                                "50",
	}
	if round%3 == 0 {
		config["heartbeat.interval.ms"] = "5" // whose offsets are others
	}
	for key, value := range k.Config {
		config[key] = value
	}
	return name, config
}

// rest asks a Connect REST interface. An answer that is none of want is an error.
func rest(ctx context.Context, method, url string, body, answer any, want ...int) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	told, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	for _, code := range want {
		if resp.StatusCode != code {
			continue
		}
		if answer == nil {
			return nil
		}
		return json.Unmarshal(told, answer)
	}
	return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, told)
}

// until polls until f says so or ctx ends, which is then the error.
func until(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		done, err := f()
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

// streams reports whether the connector with a server id reads the binlog.
func streams(worker *servers.Connect, round int) (bool, error) {
	log, err := os.ReadFile(worker.LogPath())
	return bytes.Contains(log, fmt.Appendf(nil, "(sid:%d,", 7_000_000+round)), err
}
