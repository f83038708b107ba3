package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// poison are rows that can't be published: an INSERT each, with the cause that the
// connector gives, and what the dead letter has of the row.
var poison = []struct {
	insert, cause, key, value string
	bare                      bool
}{
	{
		insert: "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ('%s', 'not ok!', 'k1', 'Bad', " +
			"'topic')",
		cause: "invalid_topic", key: "k1", value: "topic",
	},
	{
		insert: "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ('%s', NULL, 'k2', 'Bad', 'null')",
		cause:  "null_route_value", key: "k2", value: "null",
	},
	{
		insert: "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ('%s', 'TOPIC', 'k3', 'Large', " +
			"REPEAT('x', 40000000))",
		cause: "record_too_large", key: "k3", bare: true,
	},
	{ // the client takes it, the topic does not
		insert: "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ('%s', 'TOPIC', 'k4', 'Large', " +
			"REPEAT('y', 700000))",
		cause: "record_too_large", key: "k4", bare: true,
	},
}

// TestDeadLetters: rows that can't be published go to the dead-letter topic, once
// each and in their order, while the connector is killed, and all others arrive as if
// there were none.
func TestDeadLettersMySQLGTID(t *testing.T) { setAside(t, play{server: mysqlGTID(t)}) }
func TestDeadLettersMariaDBFile(t *testing.T) {
	setAside(t, play{server: mariadb(t), positions: "file"})
}

func setAside(t *testing.T, p play) {
	t.Helper()
	p.delivery = "exactly_once"
	p.topicLimit = 500_000
	p.errors = "{row: dead_letter, record: dead_letter}"
	s := newStage(t, p)
	s.sql("ALTER TABLE outbox MODIFY aggregatetype VARCHAR(255) NULL", resetBinlog(p.server))
	s.start()
	rounds := scaled(t, 10)
	name := strings.TrimPrefix(s.topic, "outbox.event.")
	for round := range rounds {
		if err := s.shop.Write(t.Context(), workload.Load{Transactions: 200, Writers: 2, Batch: 5, MaxRows: 3,
			Size: 100}); err != nil {
			t.Fatal(err)
		}
		for i, bad := range poison {
			s.sql(strings.Replace(fmt.Sprintf(bad.insert, poisonID(round, i)), "TOPIC", name, 1))
		}
		if round%2 == 0 {
			s.pause(time.Millisecond, 700*time.Millisecond)
			s.kill()
			s.start()
		}
	}
	want := uint64(rounds * len(poison))
	// The letters have no rows of the history in them, so the tail does not see them.
	s.await("nothing is left to be published", 2*time.Minute, func(harness.ConnectorStatus) bool {
		deadLetters, err := s.deadLetters(t.Context())
		return err == nil && uint64(len(deadLetters)) >= want
	})
	h := s.finish(history.ExactlyOnce)
	deadLetters, err := s.deadLetters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(deadLetters)) != want {
		t.Fatalf("%d dead letters, want %d", len(deadLetters), want)
	}
	t.Logf("%d dead letters beside %d rows", len(deadLetters), h.Counts().Rows)
	s.checkDeadLetters(deadLetters)
}

func poisonID(round, i int) string { return fmt.Sprintf("poison-%d-%d", round, i) }

// deadLetters reads the dead-letter topic.
func (s *stage) deadLetters(ctx context.Context) ([]history.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return harness.ReadRecords(ctx, []string{theLab.kafka.Addr()}, strings.TrimPrefix(s.topic,
		"outbox.event.")+".dead-letter")
}

// checkDeadLetters checks what each dead letter is about, and that those of a key are in
// the order in which their rows were written.
func (s *stage) checkDeadLetters(deadLetters []history.Record) {
	s.t.Helper()
	last := map[string]string{}
	for _, l := range deadLetters {
		head := map[string]string{}
		for _, h := range l.Headers {
			head[h.Key] = string(h.Value)
		}
		const errorHeader = "__binlog_outbox.error."
		key := string(l.Key)
		for i, bad := range poison {
			if bad.key != key {
				continue
			}
			if head[errorHeader+"cause"] != bad.cause || !bad.bare && string(l.Value) != bad.value ||
				bad.bare != (l.Value == nil) || bad.bare != (head[errorHeader+"omitted"] != "") {
				s.t.Errorf("dead letter %d of key %s has %d bytes, cause %q, omitted %q", i, key, len(l.Value),
					head[errorHeader+"cause"], head[errorHeader+"omitted"])
			}
		}
		for _, name := range []string{"message", "file", "pos", "row", "table", "connector", "time"} {
			if head[errorHeader+name] == "" {
				s.t.Errorf("a dead letter of key %s has no %s: %v", key, name, head)
			}
		}
		if strings.Contains(head[errorHeader+"message"], "xxxx") {
			s.t.Error("the message has a payload in it")
		}
		n, err := strconv.ParseUint(head[errorHeader+"pos"], 10, 64)
		place := fmt.Sprintf("%s %020d", head[errorHeader+"file"], n)
		if err != nil || place <= last[key] {
			s.t.Errorf("dead letters of key %s are out of order at %s:%s", key, head[errorHeader+"file"],
				head[errorHeader+"pos"])
		}
		last[key] = place
	}
}

// TestOperatorPassesOneRow: a connector that has failed names the row. After a
// decision about that row it goes on, and fails at the next bad one.
func TestOperatorPassesOneRow(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	s.start()
	load := workload.Load{Transactions: 20, Writers: 1, Batch: 2, MaxRows: 3, Size: 100}
	for i := range 2 {
		if err := s.shop.Write(t.Context(), load); err != nil {
			t.Fatal(err)
		}
		s.sql(fmt.Sprintf(poison[0].insert, poisonID(i, 0)))
	}
	if err := s.shop.Write(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, action := range []string{"skip", "dead_letter"} {
		status := s.await("the connector has failed at a row", time.Minute, func(c harness.ConnectorStatus) bool {
			return c.State == "failed" && c.LastError != nil && c.LastError.Row == 1 && c.LastError.Transaction != first
		})
		if status.LastError.Code != "invalid_topic" || status.LastError.Transaction != status.LastError.GTID {
			t.Fatalf("%+v", status.LastError)
		}
		first = status.LastError.Transaction
		s.decide(map[string]any{"transaction": first, "row": 1, "action": action, "reason": "a bad topic", "by": "e2e"})
		if action == "skip" {
			continue
		}
		s.kill() // the decision outlives the process
		s.start()
	}
	s.finish(history.ExactlyOnce)
	deadLetters, err := s.deadLetters(t.Context())
	if err != nil || len(deadLetters) != 1 || string(deadLetters[0].Value) != "topic" {
		t.Errorf("%d dead letters, %v", len(deadLetters), err)
	}
}

// decide posts a decision about a row.
func (s *stage) decide(body map[string]any) {
	s.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.call("POST", "/v1/connectors/"+s.connector()+"/unpublished-rows", string(data), 201)
}
