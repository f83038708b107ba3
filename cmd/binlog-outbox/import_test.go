package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/debezium/offset/offsettest"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// connectWorker plays a Connect worker with one connector.
func connectWorker(t *testing.T, state, tasks, offsets string) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc("GET /connectors/shop"+pattern, func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = fmt.Fprint(w, body)
		})
	}
	answer("/status", `{"name":"shop","connector":{"state":"`+state+`"},"tasks":`+tasks+`}`)
	answer("/config", `{"name":"shop","database.password":"geheim","table.include.list":"shop.outbox"}`)
	if offsets != "" {
		answer("/offsets", offsets)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// TestOffsetImport: an offset is taken over from a worker and from its file, and nothing
// changes where it may not be.
func TestOffsetImport(t *testing.T) {
	k := kafkatest.Start(t)
	k.Topic("connect-offsets", 5, nil)
	url := served(t, canaltest.StartOutbox(t, 10), k.Brokers()[0])
	published(t, url, sid+":1-10")
	put := func(key, value string) {
		t.Helper()
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers()...), kgo.DefaultProduceTopic("connect-offsets"))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	put(`["shop",{"server":"shop"}]`,
		`{"file":"binlog.000001","pos":4,"gtids":"`+sid+`:1-7","event":2,"row":1,"ts_sec":1700000000}`)
	const inside = `{"file":"binlog.000001","pos":4,"gtids":"` + sid +
		`:1-3","event":2,"row":1,"ts_sec":1700000000,"server_id":1}`
	stored := func(offset string) string {
		return `{"offsets":[{"partition":{"server":"shop"},"offset":` + offset + `}]}`
	}
	worker := func(state string) string { return connectWorker(t, state, "[]", stored(inside)) }
	file := string(offsettest.File(`["shop",{"server":"shop"}]`, inside, `["kafka",{"server":"tutorial"}]`,
		strings.Replace(inside, ":1-3", ":1-6", 1)))
	why := []string{"--reason", "test", "--server", url}
	for _, test := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"while ours runs", []string{"--from-connect", worker("STOPPED")}, exitConflict, "connector_not_stopped"},
		{"", nil, 0, ""}, // ours is stopped
		{"from nowhere", nil, exitUsage, "wants one of"},
		{"while Debezium runs", []string{"--from-connect", worker("RUNNING")}, exitFailed,
			"is RUNNING with 0 tasks at Connect, and must be STOPPED"},
		{"while Debezium pauses", []string{"--from-connect", worker("PAUSED")}, exitFailed, "is PAUSED"},
		{"while its task ends", []string{"--from-connect", connectWorker(t, "STOPPED", `[{"state":"RUNNING"}]`,
			stored(inside))}, exitFailed, "with 1 tasks"},
		{"that has published nothing", []string{"--from-connect", connectWorker(t, "STOPPED", "[]", `{"offsets":[]}`)},
			exitFailed, "has no offset"},
		{"from an old worker", []string{"--from-connect", connectWorker(t, "STOPPED", "[]", "")}, exitFailed, "since 3.5"},
		{"cut in a snapshot", []string{"--from-connect", connectWorker(t, "STOPPED", "[]",
			stored(`{"file":"b.1","pos":4,"snapshot":"INITIAL"}`))}, exitFailed, "inside of a snapshot"},
		{"of another server", []string{"--from-connect", connectWorker(t, "STOPPED", "[]",
			stored(`{"file":"b.1","pos":4,"gtids":"`+sid[:35]+`0:1-3"}`))}, exitFailed, "already published"},
		{"of nobody", []string{"--from-file", write(t, "offsets", file), "--debezium-name", "other"}, exitFailed,
			"there are some of shop (topic.prefix shop), kafka (topic.prefix tutorial)"},
		{"from half a file", []string{"--from-file", write(t, "half", file[:len(file)-20])}, exitFailed,
			"not written as a whole"},
		{"", nil, 0, sid + ":1-10"}, // nothing was changed
		{"tried", []string{"--from-connect", worker("STOPPED"), "--dry-run"}, exitOK,
			"all of its 1 outbox rows are published"},
		{"", nil, 0, sid + ":1-10"},
		{"taken over", []string{"--from-connect", worker("STOPPED")}, exitOK, "come again: 6, that are passed over: 0"},
		{"", nil, 0, sid + ":1-4"},
		{"from a topic", []string{"--from-topic", "connect-offsets"}, exitOK, "done; resume the connector"},
		{"", nil, 0, sid + ":1-8"},
		{"from a topic of named brokers", []string{"--from-topic", "connect-offsets", "--brokers", k.Brokers()[0],
			"--dry-run"}, exitOK, sid + ":1-8"},
		{"of nobody in the topic", []string{"--from-topic", "connect-offsets", "--debezium-name", "other"}, exitFailed,
			"there are some of shop (topic.prefix shop)"},
		{"from no topic", []string{"--from-topic", "nobodys"}, exitFailed, "topic_missing"},
		{"from brokers", []string{"--brokers", k.Brokers()[0]}, exitUsage, "wants one of"},
		{"from Debezium Server's file", []string{"--from-file", write(t, "whole", file), "--debezium-name", "kafka"}, exitOK,
			"done; resume the connector"},
		{"", nil, 0, sid + ":1-7"},
	} {
		if test.name == "" {
			subcommand := append([]string{"connector", "stop", "orders"}, why...)
			if test.want != "" {
				subcommand = []string{"offset", "get", "orders", "--server", url}
			}
			if code, out, err := (command{}).run(t, subcommand...); code != exitOK || !strings.Contains(out, test.want) {
				t.Errorf("%v: %d %s %s", subcommand, code, out, err)
			}
			continue
		}
		args := append([]string{"offset", "import", "orders", "--debezium-name", "shop"}, append(test.args, why...)...)
		code, out, err := command{}.run(t, args...)
		if code != test.code || !strings.Contains(out+err, test.want) || strings.Contains(out+err, "geheim") {
			t.Errorf("%s: exit code %d, want %d; %s %s; want %q", test.name, code, test.code, out, err, test.want)
		}
	}
}
