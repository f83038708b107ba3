package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// TestConnectorOverREST has a node without connectors, and one put over Kafka
// Connect's REST API: it is changed, deleted and put again, paused and resumed, and
// its node killed, while the shop writes. Nothing is lost, and nothing comes twice.
func TestConnectorOverREST(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	node, _, ok := strings.Cut(string(text), "connectors:")
	if !ok {
		t.Fatal("the configuration has no connectors to take out")
	}
	if err := os.WriteFile(s.config, []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(s.topic, "outbox.event.")
	const converter = "org.apache.kafka.connect.storage.StringConverter"
	config := map[string]string{
		"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": name,
		"database.hostname": s.play.server.Host(), "database.port": fmt.Sprint(s.play.server.Port()),
		"database.user": servers.CDCUser, "database.password": servers.CDCPassword,
		"table.include.list": database1 + ".outbox", "binlog.outbox.source.start": "earliest",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"transforms.outbox.table.fields.additional.placement": "type:header:eventType",
		"extended.headers.enabled":                            "false",
		"key.converter":                                       converter, "value.converter": converter,
		"producer.override.bootstrap.servers": theLab.kafka.Addr(), "binlog.outbox.kafka.delivery": "exactly_once",
		"topic.creation.default.partitions": fmt.Sprint(partitions), "topic.creation.default.replication.factor": "1",
	}
	s.start()
	s.ask(http.StatusCreated, http.MethodPost, "/connectors", map[string]any{"name": name, "config": config})
	streaming := func(after string) {
		t.Helper()
		s.await("it streams "+after, time.Minute, func(c harness.ConnectorStatus) bool { return c.Phase == "streaming" })
	}
	path := "/connectors/" + name
	s.disturb(load(s.play), func() {
		streaming("once put")
		s.pause(time.Second, 2*time.Second)
		config["connect.timeout.ms"] = "7000"
		s.ask(http.StatusOK, http.MethodPut, path+"/config", config)
		s.pause(time.Second, 2*time.Second)
		streaming("after a change")
		s.ask(http.StatusAccepted, http.MethodPut, path+"/pause", nil)
		s.pause(200*time.Millisecond, time.Second)
		s.ask(http.StatusAccepted, http.MethodPut, path+"/resume", nil)
		s.pause(time.Second, 2*time.Second)
		s.kill()
		s.start()
		streaming("after kill -9")
		s.await("it has published", time.Minute, func(c harness.ConnectorStatus) bool { return c.Published > 0 })
		config["connect.timeout.ms"] = "8000"
		s.ask(http.StatusOK, http.MethodPut, path+"/config", config)
		if topics := s.ask(http.StatusOK, http.MethodGet, path+"/topics", nil); !strings.Contains(topics, s.topic) {
			t.Errorf("topics are %s", topics)
		}
		s.ask(http.StatusNoContent, http.MethodDelete, path, nil)
		s.pause(200*time.Millisecond, time.Second)
		s.ask(http.StatusCreated, http.MethodPut, path+"/config", config)
		streaming("after it was deleted and put again")
	})
	s.finish(history.ExactlyOnce)
}

// ask makes a request of Connect's REST API that answers with status.
func (s *stage) ask(status int, method, path string, body any) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	address, err := s.proc.Admin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	for {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, bytes.NewReader(text))
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err := resp.Body.Close(); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case err != nil:
			s.t.Fatal(err)
		case resp.StatusCode == status:
			return string(got)
		case resp.StatusCode != http.StatusConflict || !strings.Contains(string(got), "momentarily"): // else there is no leader yet
			s.t.Fatalf("%s %s: %s %s, want %d", method, path, resp.Status, got, status)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
