package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// traced is what the command events find says of one event in the only connector.
type traced struct {
	Where   string
	Written struct {
		GTID, File string
		Pos        uint64
	}
	Published []struct {
		Topic     string
		Partition int32
		Offset    *int64
	}
	Search *struct{ State string }
}

func (s *stage) trace(id string, code int, args ...string) traced {
	s.t.Helper()
	url, err := s.proc.Admin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	out, got := s.subcommand(append([]string{"events", "find", id, "-o", "json", "--server", url}, args...)...)
	var e struct{ Connectors []traced }
	if err := json.Unmarshal([]byte(out), &e); err != nil || got != code || len(e.Connectors) != 1 {
		s.t.Fatalf("trace %s: exit code %d, want %d; %v", id, got, code, err)
	}
	return e.Connectors[0]
}

// TestTrace: a live event is where a consumer finds it; one that is no longer
// remembered is found in the binlog, and one that never was is not.
func TestTrace(t *testing.T) {
	for name, server := range map[string]func(*testing.T) *servers.MySQL{"mysql": mysqlGTID, "mariadb": mariadb} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, play{server: server(t), delivery: "exactly_once"})
			text, err := os.ReadFile(s.config)
			if err != nil {
				t.Fatal(err)
			}
			small := strings.Replace(string(text), "    errors:", "    events: {recent: 1}\n    errors:", 1)
			if err := os.WriteFile(s.config, []byte(small), 0o600); err != nil {
				t.Fatal(err)
			}
			s.start()
			if err := s.shop.Write(t.Context(), workload.Load{Transactions: 12_000, Writers: 4, Batch: 20,
				Size: 50}); err != nil {
				t.Fatal(err)
			}
			rows, err := s.play.server.Value(t.Context(), "SELECT COUNT(*) FROM "+database1+".outbox")
			if err != nil {
				t.Fatal(err)
			}
			s.await("all is published", silence, func(c harness.ConnectorStatus) bool { return fmt.Sprint(c.Published) == rows })
			recs, err := kafkatest.Reader{Brokers: []string{theLab.broker(t).Addr()}}.Read(t.Context(), s.topic, true)
			if err != nil {
				t.Fatal(err)
			}
			id := func(r kafkatest.Record) string {
				for _, h := range r.Headers {
					if h.Key == "id" {
						return string(h.Value)
					}
				}
				return ""
			}
			first, last := map[int32]kafkatest.Record{}, kafkatest.Record(nil)
			for _, r := range recs {
				if first[r.Partition] == nil {
					first[r.Partition] = r
				}
				last = r
			}
			e := s.trace(id(last), 0)
			if e.Where != "published" || len(e.Published) != 1 || e.Written.GTID == "" || e.Written.Pos == 0 ||
				e.Published[0].Topic != s.topic ||
				e.Published[0].Partition != last.Partition || e.Published[0].Offset == nil ||
				*e.Published[0].Offset != last.Offset {
				t.Errorf("%s is at partition %d, offset %d; trace says %+v", id(last), last.Partition, last.Offset, e)
			}
			old := id(first[0])
			if e := s.trace(old, 3); e.Where != "not_seen" {
				t.Fatalf("an event that fell out of the memory: %+v", e)
			}
			if e := s.trace(old, 0, "--search"); e.Where != "passed" || e.Written.GTID == "" || e.Written.File == "" ||
				e.Search.State != "found" {
				t.Errorf("the search for it: %+v", e)
			}
			if e := s.trace("no-such-event", 3, "--search"); e.Where != "not_seen" || e.Search.State != "not_found" {
				t.Errorf("the search for what is not there: %+v", e)
			}
			if now := s.await("it still streams", silence, streams); now.Sessions != 1 {
				t.Errorf("a search ended the connector's stream: %d sessions", now.Sessions)
			}
			s.terminate()
		})
	}
}

// TestInitOnRealServers: the SQL that init prints makes table and user, and with its
// configuration the checklist fails nothing.
func TestInitOnRealServers(t *testing.T) {
	for flavor, server := range map[string]func(*testing.T) *servers.MySQL{"mysql": mysqlGTID, "mariadb": mariadb} {
		t.Run(flavor, func(t *testing.T) {
			db := server(t)
			run := func(args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), theLab.binary(t), args...)
				cmd.Env = append(os.Environ(), "MYSQL_PASSWORD=change-this-Password-1")
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			args := []string{"init", "--flavor", flavor, "--host", db.Host(), "--database", "init-shop", "--user", "init-cdc",
				"--brokers", theLab.broker(t).Addr(), "--only"}
			sql, err := run(append(args, "sql")...)
			if err != nil {
				t.Fatal(sql, err)
			}
			conn, err := db.Conn(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for range 2 { // it may be run again
				executeScript(t, conn, sql)
			}
			text, err := run(append(args, "config")...)
			if err != nil {
				t.Fatal(text, err)
			}
			file := filepath.Join(t.TempDir(), "node.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := run("validate", "--probe", "--config", file, "--data-dir", t.TempDir(), "--set",
				fmt.Sprintf("connectors[0].source.port=%d", db.Port()))
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			executeScript(t, conn, "DROP DATABASE `init-shop`; DROP USER 'init-cdc'@'%'; SET GLOBAL binlog_row_metadata = "+
				"'MINIMAL';")
		})
	}
}

func executeScript(t *testing.T, conn *client.Conn, script string) {
	t.Helper()
	var plain strings.Builder
	for line := range strings.Lines(script) {
		code, _, _ := strings.Cut(line, "-- ")
		plain.WriteString(code + "\n")
	}
	for _, statement := range strings.Split(plain.String(), ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := conn.Execute(statement); err != nil {
			t.Fatalf("%v in %s", err, statement)
		}
	}
}
