package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// settleConfig is the configuration of a connector for the command settle, which asks its
// Kafka alone.
func settleConfig(t *testing.T, broker, delivery string) string {
	t.Helper()
	return write(t, "config.yaml", fmt.Sprintf(`
node: {id: standby, data_dir: %q}
connectors:
  - name: orders
    source: {host: 127.0.0.1, user: u, password: p, table_patterns: ["shop.outbox"], start: earliest}
    outbox: {route_by: aggregatetype}
    kafka: {brokers: [%q], delivery: %s, position_replication_factor: 1}
`, t.TempDir(), broker, delivery))
}

func TestSettleArguments(t *testing.T) {
	broker := kafkatest.Start(t).Brokers()[0]
	once, atLeast := settleConfig(t, broker, "exactly_once"), settleConfig(t, broker, "at_least_once")
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{}, exitUsage, "at least 4 arg"},
		{[]string{"orders", "events", "0"}, exitUsage, "at least 4 arg"},
		{[]string{"orders", "events", "0", "forget"}, exitUsage, "neither commit nor abort"},
		{[]string{"orders", "events", "-1", "commit"}, exitUsage, ""},
		{[]string{"orders", "events", "4294967296", "commit"}, exitUsage, "not a number"},
		{[]string{"others", "events", "0", "commit", "-c", once}, exitUsage, "others"},
		{[]string{"orders", "events", "0", "commit", "-c", atLeast}, exitFailed, "has no transactions"},
		{[]string{"orders", "events", "0", "commit", "-c", once}, exitOK,
			"nothing of this connector waits for a decision in topic events, partition 0"},
		{[]string{"orders", "events", "0", "abort", "-c", once}, exitOK, "nothing of this connector waits for a decision"},
	} {
		code, stdout, stderr := command{}.run(t, append([]string{"settle"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.text) {
			t.Errorf("settle %q: exit code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}

// A standby's operator settles while the leader is at work: that one loses its
// transaction, and goes on without losing or repeating a row.
func TestSettleBesideALeaderAtWork(t *testing.T) {
	const each, topic = 100, "outbox.event.order"
	k := kafkatest.Start(t)
	source := canaltest.StartOutbox(t, each)
	url := served(t, source, k.Brokers()[0])
	cfg := settleConfig(t, k.Brokers()[0], "exactly_once")
	for _, choice := range []string{"commit", "abort"} {
		if code, stdout, stderr := (command{}).run(t, "settle", "orders", topic, "0", choice, "-c", cfg); code != exitOK {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		source.Commit(each)
	}
	eventually(t, "all rows", func() bool {
		_, out, _ := command{}.run(t, "status", "-o", "json", "--server", url)
		var s admin.Status
		if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Connectors) != 1 {
			t.Fatalf("%v\n%s", err, out)
		}
		return s.Connectors[0].Position.Sequence == 3*each
	})
	if n := len(k.Records(topic)); n != 3*each {
		t.Errorf("%d rows, want %d", n, 3*each)
	}
}
