package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// What ends the stop of a connector whose position Kafka has lost: an operator's
// choice, over the API or by the commands, and nothing else.

// TestPositionTopicDeleted: the choice is the replicated position.
func TestPositionTopicDeleted(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	s.published(300)
	s.dropPositions()
	stored := s.restartToStop()
	s.chooseByCommand("--gtid-set", stored)
	s.more(200)
	s.finish(history.ExactlyOnce)
}

// TestPositionTopicRecreated: the choice goes ten transactions back, and only they
// come again.
func TestPositionTopicRecreated(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	s.published(300)
	s.dropPositions()
	s.makePositions()
	stored := s.restartToStop()
	s.chooseByAPI(back(t, stored, 10), 10)
	s.more(200)
	h := s.finish(history.AtLeastOnce(history.Bound{Rewinds: 1, Rows: 10 * batchRows}))
	if c := h.Counts(); c.Repeated < 10 || c.Repeated > 10*batchRows {
		t.Errorf("%d rows came twice, want those of ten transactions", c.Repeated)
	}
}

// TestPositionTopicBehind: Kafka holds an older position than it had committed.
func TestPositionTopicBehind(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	s.published(100)
	old := s.lastPositions()
	s.start()
	s.more(200)
	s.settled()
	s.dropPositions()
	s.makePositions()
	s.writePositions(old)
	stored := s.restartToStop()
	s.chooseByCommand("--gtid-set", stored)
	s.kill() // the choice must be taken up once, whenever a crash comes
	s.start()
	s.await("it streams", silence, streams)
	s.kill()
	s.start()
	s.more(200)
	s.finish(history.ExactlyOnce)
}

const batchRows = 3

// published starts the connector, has it publish rows of n transactions, and kills
// it when it stands still.
func (s *stage) published(n int) {
	s.t.Helper()
	s.start()
	s.more(n)
	s.settled()
}

func (s *stage) more(n int) {
	s.t.Helper()
	if err := s.shop.Write(s.t.Context(), workload.Load{Transactions: n, Writers: 1, Batch: 1, MaxRows: batchRows,
		Size: 100}); err != nil {
		s.t.Fatal(err)
	}
}

// settled waits until all is published and saved, and kills the connector.
func (s *stage) settled() {
	s.t.Helper()
	want := s.executed()
	s.await("all is published and saved", silence,
		func(c harness.ConnectorStatus) bool { return c.Position.GTIDSet == want })
	s.awaitOffset(want)
	s.kill()
}

// executed is what the server has.
func (s *stage) executed() string {
	s.t.Helper()
	set, err := s.play.server.Value(s.t.Context(), "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(set, "\n", "")
}

// restartToStop starts the connector, which must stop by itself and name what it
// knows, and returns the replicated position.
func (s *stage) restartToStop() (stored string) {
	s.t.Helper()
	s.start()
	status := s.await("it has stopped", silence, func(c harness.ConnectorStatus) bool { return c.State == "failed" })
	stored = s.offset()
	if e := status.LastError; e.Code != "position_regression" || !strings.Contains(e.Message, stored) ||
		!strings.Contains(e.Message, "offset set") {
		s.t.Fatalf("it stopped with %+v; the replicated position is %s", e, stored)
	}
	return stored
}

// call sends a request to the connector's admin server and returns the answer.
func (s *stage) call(method, path, body string, want int) []byte {
	s.t.Helper()
	address, err := s.proc.Admin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		s.t.Fatalf("%s %s: %d, %v, want %d\n%s", method, path, resp.StatusCode, err, want, answer)
	}
	return answer
}

func (s *stage) connector() string { return strings.TrimPrefix(s.topic, "outbox.event.") }

func (s *stage) offset() string {
	s.t.Helper()
	var o struct {
		Position struct {
			GTIDSet string `json:"gtid_set"`
		}
	}
	if err := json.Unmarshal(s.call("GET", "/v1/connectors/"+s.connector()+"/offset", "", 200), &o); err != nil {
		s.t.Fatal(err)
	}
	return o.Position.GTIDSet
}

func (s *stage) awaitOffset(want string) {
	s.t.Helper()
	for deadline := time.Now().Add(silence); s.offset() != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the replicated position is %s, want %s", s.offset(), want)
		}
	}
}

// chooseByAPI sets the position, which repeats so many transactions.
func (s *stage) chooseByAPI(set string, repeated int) {
	s.t.Helper()
	path := "/v1/connectors/" + s.connector()
	body := func(dry bool) string { return fmt.Sprintf(`{"reason":"test","gtid_set":%q,"dry_run":%t}`, set, dry) }
	s.call("PUT", path+"/offset", body(false), 409)
	s.call("PUT", path+"/stop", `{"reason":"test"}`, 202)
	for _, dry := range []bool{true, false} {
		if answer := string(s.call("PUT", path+"/offset", body(dry), 200)); !strings.Contains(answer,
			fmt.Sprintf(`"repeated_transactions": %d`, repeated)) {
			s.t.Errorf("dry %v: %s", dry, answer)
		}
	}
	s.call("PUT", path+"/resume", `{"reason":"test"}`, 202)
	s.await("it streams", silence, streams)
}

// chooseByCommand does so by the program's commands.
func (s *stage) chooseByCommand(how ...string) {
	s.t.Helper()
	address, err := s.proc.Admin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	ask := func(want int, args ...string) {
		s.t.Helper()
		if _, code := s.subcommand(append(args, "--server", "http://"+address, "--reason", "test")...); code != want {
			s.t.Fatalf("%q: exit code %d, want %d", args, code, want)
		}
	}
	set := append([]string{"offset", "set", s.connector()}, how...)
	if now := s.await("its state is known", silence,
		func(harness.ConnectorStatus) bool { return true }); now.State != "stopped" {
		ask(4, set...)
		ask(0, "connector", "stop", s.connector())
	}
	ask(0, append(set, "--dry-run")...)
	ask(0, set...)
	ask(0, "connector", "resume", s.connector())
	s.await("it streams", silence, streams)
}

// back is a set of one server, "uuid:1-n", without its last transactions.
func back(t *testing.T, set string, n int) string {
	t.Helper()
	i := strings.LastIndex(set, "-")
	if i < 0 {
		t.Fatalf("%s is no set of more than one transaction", set)
	}
	end, err := strconv.Atoi(set[i+1:])
	if err != nil || end <= n {
		t.Fatalf("%s is not one server's set with more than %d transactions", set, n)
	}
	return fmt.Sprintf("%s-%d", set[:i], end-n)
}

func (s *stage) positionTopic() string { return "binlog-outbox." + s.connector() + ".position" }

func (s *stage) dropPositions() {
	s.t.Helper()
	admin, err := theLab.kafka.Admin()
	if err != nil {
		s.t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.DeleteTopic(s.positionTopic()); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(silence); ; time.Sleep(50 * time.Millisecond) {
		topics, err := admin.ListTopics()
		if _, there := topics[s.positionTopic()]; err == nil && !there {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the topic is still there: %v", err)
		}
	}
}

func (s *stage) makePositions() {
	s.t.Helper()
	if err := theLab.kafka.CreateTopic(s.positionTopic(), 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		s.t.Fatal(err)
	}
}

// lastPositions are the records of the position topic so far.
func (s *stage) lastPositions() []*kgo.Record {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(theLab.kafka.Addr()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.positionTopic(): {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), silence)
	defer cancel()
	var out []*kgo.Record
	for len(out) == 0 || string(out[len(out)-1].Key) == "open" {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, fetches.Records()...)
	}
	return out
}

func (s *stage) writePositions(records []*kgo.Record) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(theLab.kafka.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for _, r := range records {
		if err := client.ProduceSync(s.t.Context(), &kgo.Record{Topic: r.Topic, Partition: 0, Key: r.Key,
			Value: r.Value}).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}
