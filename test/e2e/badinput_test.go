package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// TestBadConfiguration: the program does not start, says in one line what is
// wrong and where, and ends with code 78.
func TestBadConfiguration(t *testing.T) {
	good := `node: {id: e2e, data_dir: DIR}
admin: {listen: "127.0.0.1:0"}
connectors:
  - name: orders
    source: {host: 127.0.0.1, port: 1, user: cdc, table: shop.outbox, start: earliest}
    kafka: {brokers: ["127.0.0.1:1"], delivery: at_least_once}
`
	tests := []struct {
		name, old, new string
		want           []string // all in one line
	}{
		{"unknown key", "port: 1", "prot: 1", []string{"node.yaml:5:", "prot", "port"}},
		{"wrong type", "port: 1", "port: many", []string{"node.yaml:5:", "port", "many"}},
		{"unknown word", "at_least_once", "sometimes", []string{"node.yaml:6:", "sometimes", "at_least_once",
			"exactly_once"}},
		{"required key missing", "user: cdc, ", "", []string{"user"}},
		{"not YAML", "connectors:", "connectors: [", []string{"node.yaml"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "node.yaml")
			text := strings.Replace(strings.Replace(good, tt.old, tt.new, 1), "DIR", filepath.Join(dir, "data"), 1)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			binary := theLab.binary(t) // built by the first that asks
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			p, err := harness.Start(binary, []string{"run", "--config", path}, filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			code, err := p.Wait(ctx)
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.Log()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", out)
			if code != 78 {
				t.Errorf("exit code %d, want 78", code)
			}
			if !oneLineHas(out, tt.want) {
				t.Errorf("no line has all of %q", tt.want)
			}
			if n := bytes.Count(out, []byte("\n")); n > 2 {
				t.Errorf("%d lines for one problem", n)
			}
		})
	}
}

func oneLineHas(text []byte, words []string) bool {
	for line := range strings.Lines(string(text)) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

// TestBadSource: what the configuration can't know. The process stays, and says
// in one sentence what is wrong.
func TestBadSource(t *testing.T) {
	tests := []struct {
		name  string
		play  func(*testing.T) play
		setUp []string // on the shop
		want  []string // in the message
	}{
		{
			name: "missing table", setUp: []string{"DROP TABLE outbox"},
			want: []string{"shop.outbox"},
		},
		{
			name: "missing columns", setUp: []string{"ALTER TABLE outbox DROP COLUMN aggregateid, DROP COLUMN payload, DROP " +
				"COLUMN type"},
			want: []string{"aggregateid", "payload", "type", "shop.outbox"},
		},
		{
			name: "no grant",
			setUp: []string{
				"CREATE USER IF NOT EXISTS nobody@'%' IDENTIFIED BY 'nobody-password'", "GRANT SELECT ON *.* TO nobody@'%'",
			},
			play: func(t *testing.T) play {
				t.Helper()
				return play{server: mysqlGTID(t), user: "nobody", password: "nobody-password"}
			},
			want: []string{"REPLICATION CLIENT"},
		},
		{
			name: "half of the grants",
			setUp: []string{
				"CREATE USER IF NOT EXISTS half@'%' IDENTIFIED BY 'half-password'",
				"GRANT SELECT, REPLICATION CLIENT ON *.* TO half@'%'",
			},
			play: func(t *testing.T) play {
				t.Helper()
				return play{server: mysqlGTID(t), user: "half", password: "half-password"}
			},
			want: []string{"REPLICATION SLAVE"},
		},
		{
			name: "wrong password",
			play: func(t *testing.T) play {
				t.Helper()
				return play{server: mysqlGTID(t), user: servers.CDCUser, password: "not-it"}
			},
			want: []string{"Access denied"},
		},
		{
			name: "GTID off where asked for",
			play: func(t *testing.T) play {
				t.Helper()
				return play{server: mysqlFile(t), positions: "gtid"}
			},
			want: []string{"gtid_mode=OFF"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := play{}
			if tt.play != nil {
				p = tt.play(t)
			} else {
				p.server = mysqlGTID(t)
			}
			s := newStage(t, p)
			if tt.setUp != nil {
				s.sql(tt.setUp...)
			}
			s.start()
			status := s.await("there is an error", 30*time.Second,
				func(c harness.ConnectorStatus) bool { return c.LastError != nil })
			t.Logf("%s: %s: %s", status.State, status.LastError.Code, status.LastError.Message)
			for _, word := range tt.want {
				if !strings.Contains(status.LastError.Message, word) {
					t.Errorf("the reason does not say %s", word)
				}
			}
			if strings.Contains(status.LastError.Message, "\n") {
				t.Error("the reason has more than one line")
			}
			s.terminate()
			if log, err := s.proc.Log(); err != nil || bytes.Contains(log, []byte(or(p.password, servers.CDCPassword))) {
				t.Errorf("the password is in the log (%v)", err)
			}
		})
	}
}

// TestBadSourceHeals: what was missing is put right while the process waits.
func TestBadSourceHeals(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t)})
	s.sql("RENAME TABLE outbox TO elsewhere")
	s.start()
	s.await("the table is missed", 30*time.Second, func(c harness.ConnectorStatus) bool { return c.LastError != nil })
	s.sql("RENAME TABLE elsewhere TO outbox")
	s.kill() // a table that is not there needs somebody; a restart is one way to decide
	s.start()
	if err := s.shop.Write(t.Context(), workload.Load{Transactions: 20, Writers: 1, Batch: 5, Size: 100}); err != nil {
		t.Fatal(err)
	}
	s.finish(history.ExactlyOnce)
}

// TestPurgedPosition: the binlog that holds what comes next is gone. The
// connector names the transactions that nobody can read any more, and stays.
func TestPurgedPosition(t *testing.T) {
	for name, server := range map[string]func(*testing.T) *servers.MySQL{"MySQL": mysqlGTID, "MariaDB": mariadb} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, play{server: server(t), positions: "gtid"})
			s.start()
			load := workload.Load{Transactions: 20, Writers: 1, Batch: 5, Size: 100}
			write := func() {
				t.Helper()
				if err := s.shop.Write(t.Context(), load); err != nil {
					t.Fatal(err)
				}
			}
			write()
			if err := s.tail.Wait(t.Context(), 20, silence); err != nil {
				t.Fatal(err)
			}
			s.terminate()
			write()
			s.sql("FLUSH BINARY LOGS")
			write()
			s.purge()
			s.start()
			status := s.await("it has failed", 30*time.Second,
				func(c harness.ConnectorStatus) bool { return c.State == "failed" })
			t.Logf("%s: %s", status.LastError.Code, status.LastError.Message)
			if !strings.Contains(strings.ToLower(status.LastError.Message), "purged") {
				t.Error("the reason does not say that the binlog was purged")
			}
			if status.LastError.RetryAt != nil {
				t.Error("the connector tries again what can't succeed")
			}
			if rows, _ := s.tail.Rows(); rows != 20 {
				t.Errorf("%d rows were published, those before the gap are 20", rows)
			}
			s.terminate()
		})
	}
}

// purge removes all binlogs but the last. A server keeps those which a replica
// reads, and notices late that one is gone.
func (s *stage) purge() {
	s.t.Helper()
	ctx := s.t.Context()
	dumps, err := s.play.server.Query(ctx,
		"SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, row := range dumps.Values {
		s.sql(fmt.Sprintf("KILL %d", row[0].AsInt64()))
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		logs, err := s.play.server.Query(ctx, "SHOW BINARY LOGS")
		if err != nil {
			s.t.Fatal(err)
		}
		if logs.RowNumber() == 1 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server keeps %d binlogs", logs.RowNumber())
		}
		s.sql(fmt.Sprintf("PURGE BINARY LOGS TO '%s'", logs.Values[logs.RowNumber()-1][0].AsString()))
	}
}

// TestKafkaUnreachable: the process stays and waits, however long it takes.
func TestKafkaUnreachable(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t)})
	if err := theLab.kafka.Stop(); err != nil {
		t.Fatal(err)
	}
	s.start()
	status := s.await("Kafka is missed", 30*time.Second,
		func(c harness.ConnectorStatus) bool { return c.LastError != nil })
	t.Logf("%s: %s: %s", status.State, status.LastError.Code, status.LastError.Message)
	if !strings.Contains(status.LastError.Message, theLab.kafka.Addr()) {
		t.Errorf("the reason does not name the broker %s", theLab.kafka.Addr())
	}
	if status.LastError.RetryAt == nil || status.State == "failed" {
		t.Error("the connector has given up")
	}
	if err := theLab.kafka.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.shop.Write(t.Context(), workload.Load{Transactions: 20, Writers: 1, Batch: 5, Size: 100}); err != nil {
		t.Fatal(err)
	}
	s.finish(history.ExactlyOnce)
}
