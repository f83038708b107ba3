package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// command runs the program with the stage's configuration and returns what it
// printed and its exit code.
func (s *stage) subcommand(args ...string) (out string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), theLab.binary(s.t), append(args, "--config", s.config)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	s.t.Logf("%s: exit code %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), stdout.String(),
		stderr.String())
	return stdout.String(), cmd.ProcessState.ExitCode()
}

func streams(c harness.ConnectorStatus) bool { return c.Phase == "streaming" }

// TestProbe: the checklist asks MySQL and Kafka for all that the connector needs,
// and says what is missing, while a connector runs and is not disturbed.
func TestProbe(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t)})
	s.start()
	s.await("it streams", silence, streams)
	out, code := s.subcommand("validate", "--probe")
	if code != 0 {
		t.Errorf("exit code %d for servers that are in order", code)
	}
	for _, word := range []string{"binlog_format", "binlog_row_image", "gtid_mode", "right to read the binlog",
		"table shop.outbox", "retention", "Kafka"} {
		if !strings.Contains(out, word) {
			t.Errorf("the checklist does not name %s", word)
		}
	}
	if _, code := s.subcommand("validate", "--probe", "--set", "connectors[0].source.table=SHOP.Outbox"); code != 0 {
		t.Errorf("exit code %d for a table in another case, which run takes", code)
	}
	for pattern, want := range map[string]int{"shop.out.*": 0, "outbox": 1} {
		out, code := s.subcommand("validate", "--probe", "--set", "connectors[0].source.table=", "--set",
			"connectors[0].source.table_patterns="+pattern)
		if code != want || want == 0 && !strings.Contains(out, "shop.outbox") {
			t.Errorf("exit code %d for the pattern %s", code, pattern)
		}
	}
	if out, code := s.subcommand("validate", "--probe", "--set", "connectors[0].source.start=snapshot"); code != 0 ||
		!strings.Contains(out, "rows that stand in the tables: 1 tables") {
		t.Errorf("exit code %d for a start with the rows that stand there:\n%s", code, out)
	}
	if now := s.await("it still streams", silence, streams); now.Sessions != 1 {
		t.Errorf("the probe ended the connector's stream: %d sessions", now.Sessions)
	}
	s.terminate()
	s.sql("ALTER TABLE outbox DROP PRIMARY KEY")
	if out, code := s.subcommand("validate", "--probe", "--set", "connectors[0].source.start=snapshot"); code != 1 ||
		!strings.Contains(out, "has no primary key") {
		t.Errorf("exit code %d for a start with the rows of a table without a primary key:\n%s", code, out)
	}
	s.sql("ALTER TABLE outbox DROP COLUMN payload, DROP COLUMN aggregateid")
	out, code = s.subcommand("validate", "--probe")
	if code != 1 || !strings.Contains(out, "payload") || !strings.Contains(out, "aggregateid") {
		t.Errorf("exit code %d for a table without two columns, want 1 and their names", code)
	}
}

// TestPreview prints what would be published, and publishes nothing.
func TestPreview(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t)})
	if err := s.shop.Write(t.Context(), workload.Load{Transactions: 20, Writers: 1, Batch: 5, Size: 100}); err != nil {
		t.Fatal(err)
	}
	out, code := s.subcommand("preview", "--from", "earliest", "-n", "3")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 3 {
		t.Fatalf("exit code %d, %d lines, want 3 records", code, len(lines))
	}
	for _, l := range lines {
		var r struct {
			Topic, GTID string
			Key, Value  *string
			Headers     []struct{ Key string }
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatalf("%v in %s", err, l)
		}
		if !strings.HasPrefix(r.Topic, "outbox.event.") || r.GTID == "" || r.Key == nil || r.Value == nil ||
			len(r.Headers) == 0 {
			t.Errorf("a record lacks a part: %s", l)
		}
	}
	if rows, _ := s.tail.Rows(); rows != 0 {
		t.Errorf("preview published %d rows", rows)
	}
	s.start()
	s.finish(history.ExactlyOnce)
}
