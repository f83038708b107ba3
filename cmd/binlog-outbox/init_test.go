package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// TestInitConfigIsValid: as our own validate says, with plain and with odd names.
func TestInitConfigIsValid(t *testing.T) {
	for _, args := range [][]string{
		nil, {"--flavor", "mariadb", "--database", "my-shop", "--table", "out_box$", "--brokers", "a:1,b:2,[::1]:3", "--name",
			"x-y_1"}, {"--host", "::1", "--port", "3307"}, {"--host", "10.0.0.1", "--port", "33060"},
	} {
		code, out, errs := command{}.run(t, append([]string{"init", "--only", "config"}, args...)...)
		if code != exitOK {
			t.Fatalf("%d %s", code, errs)
		}
		file := filepath.Join(t.TempDir(), "binlog-outbox.yaml")
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := (command{environ: []string{"MYSQL_PASSWORD=x"}}).run(t, "validate", "--config",
			file); code != exitOK {
			t.Errorf("%d %s\n%s", code, errs, out)
		}
	}
	for _, args := range [][]string{
		{"--flavor", "postgres"}, {"--database", "a`b"}, {"--user", "x'; DROP"}, {"--from", "'"},
		{"--principal", "User:a' b"}, {"--brokers", `a"b:1`}, {"--only", "all"}, {"--name", "a b"}, {"--host", "db:3307"},
		{"--port", "0"}, {"--port", "65536"},
	} {
		if code, out, _ := (command{}).run(t, append([]string{"init"}, args...)...); code != exitUsage || out != "" {
			t.Errorf("init %q: %d\n%s", args, code, out)
		}
	}
	if _, out, _ := (command{}).run(t, "init", "--only", "config", "--port", "3307"); !strings.Contains(out,
		"port: 3307") {
		t.Errorf("the port is not in\n%s", out)
	}
	_, out, _ := command{}.run(t, "init")
	for _, part := range []string{"CREATE TABLE", "kafka-acls.sh", "connectors:"} {
		if !strings.Contains(out, part) {
			t.Errorf("the whole lacks %s", part)
		}
	}
}

// aclsOf reads the commands as kafka-acls.sh does.
func aclsOf(t *testing.T, text string) (out []kfake.ACL) {
	t.Helper()
	operations := map[string]kmsg.ACLOperation{
		"Read": kmsg.ACLOperationRead, "Write": kmsg.ACLOperationWrite, "Create": kmsg.ACLOperationCreate,
		"Describe": kmsg.ACLOperationDescribe, "DescribeConfigs": kmsg.ACLOperationDescribeConfigs,
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "acls" {
			continue
		}
		acl := kfake.ACL{Pattern: kmsg.ACLResourcePatternTypeLiteral, Allow: true}
		var ops []kmsg.ACLOperation
		for i := 1; i+1 < len(words); i += 2 {
			value := strings.Trim(words[i+1], "'")
			switch words[i] {
			case "--operation":
				op, ok := operations[value]
				if !ok {
					t.Fatalf("an operation that is not known: %s", line)
				}
				ops = append(ops, op)
			case "--topic":
				acl.Resource, acl.Name = kmsg.ACLResourceTypeTopic, value
			case "--transactional-id":
				acl.Resource, acl.Name = kmsg.ACLResourceTypeTransactionalId, value
			case "--resource-pattern-type":
				acl.Pattern = kmsg.ACLResourcePatternTypePrefixed
			default:
				t.Fatalf("an option that is not known: %s", line)
			}
		}
		for _, op := range ops {
			acl.Operation = op
			out = append(out, acl)
		}
	}
	return out
}

// TestInitACLsSuffice: with the rights that init prints, and no others, the connector
// of its configuration publishes exactly-once, and makes its topics.
func TestInitACLsSuffice(t *testing.T) {
	_, text, _ := command{}.run(t, "init", "--only", "acls")
	acls := aclsOf(t, text)
	if len(acls) == 0 {
		t.Fatal("no ACLs in\n" + text)
	}
	k := kafkatest.Start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "a"),
		kfake.User("PLAIN", "outbox-cdc", "b", acls...))
	source := canaltest.StartOutbox(t, 5)
	_, yaml, _ := command{}.run(t, "init", "--only", "config")
	set := func(path, value string) config.Setting { return config.Setting{Path: path, Value: value} }
	cfg, err := (&config.Builder{Resolver: &config.Resolver{LookupEnv: func(string) (string, bool) {
		return "secret",
			true
	}}}).Build(
		config.YAML("init", []byte(strings.Replace(yaml, "kafka-1.example.internal:9092", k.Brokers()[0], 1))),
		config.Settings(
			set("node.id", "n1"), set("node.data_dir", t.TempDir()), set("admin.listen", "127.0.0.1:0"),
			set("connectors[0].source.host", "127.0.0.1"), set("connectors[0].source.port", strconv.Itoa(source.Port())),
			set("connectors[0].source.user", "repl"),
			set("connectors[0].source.table", ""), set("connectors[0].source.table_patterns", "shop.outbox"),
			set("connectors[0].source.start", "earliest"),
			set("connectors[0].kafka.sasl.mechanism", "PLAIN"), set("connectors[0].kafka.sasl.user", "outbox-cdc"),
			set("connectors[0].kafka.sasl.password", "b"),
			set("connectors[0].kafka.create_topics.replication_factor", "1"),
			set("connectors[0].kafka.position_replication_factor", "1"),
		))
	if err != nil {
		t.Fatal(err)
	}
	checks := node.Probe(t.Context(), cfg, &cfg.Connectors[0])
	if i := slices.IndexFunc(checks, func(c node.Check) bool {
		return c.Status == node.CheckFailed &&
			strings.HasPrefix(c.Name, "Kafka")
	}); i >= 0 {
		t.Errorf("the checklist: %+v", checks[i])
	}
	url := started(t, cfg)
	eventually(t, "all rows", func() bool {
		_, out, _ := command{}.run(t, "status", "-o", "json", "--server", url)
		var s admin.Status
		if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Connectors) != 1 {
			t.Fatalf("%v\n%s", err, out)
		}
		if e := s.Connectors[0].LastError; e != nil && e.RetryAt.IsZero() {
			t.Fatalf("%+v", e)
		}
		return s.Connectors[0].Published == 5
	})
}
