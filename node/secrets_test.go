package node

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

const validatePath = "/connector-plugins/io.debezium.connector.mysql.MySqlConnector/config/validate"

// Who may only view reads no files and variables of the node: validation answers
// alike whether they are there or not, and never with what they hold.
func TestValidationTellsNothingOfTheNode(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "db.properties")
	if err := os.WriteFile(secret, []byte("mysql.password=hunter2-of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOME_TOKEN", "hunter2-of-the-environment")
	n := startNode(t, "n1", t.TempDir(), "", fmt.Sprintf("secret_paths: [%q]", dir), "secret_variables: [SOME_TOKEN]")
	eventually(t, "the node leads", n.leads)
	pairs := map[string][3]string{ // key, a value that could be read, one that could not
		"a word": {"binlog.outbox.source.start", "${file:" + secret + "}", "${file:/nope}"},
		"one key of a file": {"binlog.outbox.source.start", "${file:" + secret + ":mysql.password}",
			"${file:" + secret + ":nope}"},
		"a word of a variable": {"binlog.outbox.source.start", "${env:SOME_TOKEN}", "${env:NONE}"},
		"a host":               {"binlog.outbox.source.host", "${env:SOME_TOKEN}:1", "${env:NONE}:1"},
		"a topic":              {"binlog.outbox.topic_prefix", "${env:SOME_TOKEN} ", "${env:NONE} "},
		"an address":           {"binlog.outbox.kafka.brokers", "${env:SOME_TOKEN}", "${env:NONE}"},
		"a path":               {"binlog.outbox.kafka.tls.ca", "/${env:SOME_TOKEN}", "/${env:NONE}"},
		"a pattern":            {"transforms.outbox.route.topic.regex", "(${env:SOME_TOKEN}", "(${env:NONE}"},
		"the process itself":   {"binlog.outbox.source.start", "${file:/proc/self/environ}", "${file:/proc/none/environ}"},
		"a password":           {"database.password", "${file:" + secret + "}", "${file:" + dir + "/nope}"},
		"a password's key":     {"database.password", "${file:" + secret + ":mysql.password}", "${file:" + secret + ":nope}"},
		"a user":               {"database.user", "${env:SOME_TOKEN}", "${env:NONE}"},
		"a plain path":         {"binlog.outbox.kafka.tls.ca", secret, dir + "/nope"},
		"a folder":             {"binlog.outbox.kafka.tls.ca", dir, "/nope"},
	}
	for name, p := range pairs {
		there := n.must(t, 200, "PUT", validatePath, string(keys("a", p[0], p[1])))
		if i := strings.Index(there, "hunter2"); i >= 0 {
			t.Errorf("%s: the validation tells it: ...%s...", name, there[max(0, i-60):min(len(there), i+60)])
		}
		missing := n.must(t, 200, "PUT", validatePath, string(keys("a", p[0], p[2])))
		quoted := func(s string) string { b, _ := json.Marshal(s); return strings.Trim(string(b), `"`) }
		if a, b := strings.ReplaceAll(there, quoted(p[1]), "X"), strings.ReplaceAll(missing, quoted(p[2]), "X"); a != b {
			t.Errorf("%s: the validation tells what is there:\n%s\n%s", name, there, missing)
		}
	}
}

// What is put over the REST API refers to what the node permits, in secrets and users.
func TestReferencesOverRESTAreBounded(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write := func(path, text string) string {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	in, out := write(filepath.Join(dir, "in"), "hunter2\n"), write(filepath.Join(other, "out"), "hunter2\n")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(out, link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := write(filepath.Join(dir, "large"), strings.Repeat("x", 1<<20+1))
	t.Setenv("PERMITTED", "hunter2")
	t.Setenv("FORBIDDEN", "hunter2")
	n := startNode(t, "n1", t.TempDir(), "", fmt.Sprintf("secret_paths: [%q, /dev]", dir), "secret_variables: [PERMITTED]")
	eventually(t, "the node leads", n.leads)
	for i, c := range []struct{ key, value, refused string }{
		{"database.password", "${file:" + in + "}", ""},
		{"database.password", "${dir:" + dir + ":in}", ""},
		{"database.user", "${env:PERMITTED}", ""},
		{"database.password", "${env:FORBIDDEN}", "admin.secret_variables"},
		{"database.password", "${file:" + out + "}", "admin.secret_paths"},
		{"database.password", "${file:" + link + "}", "admin.secret_paths"},
		{"database.password", "${file:" + dir + "/../" + filepath.Base(other) + "/out}", "admin.secret_paths"},
		{"database.password", "${file:" + dir + "x/in}", "admin.secret_paths"},
		{"database.password", "${file:in}", "admin.secret_paths"},
		{"database.password", "${file:" + pipe + "}", "not a regular file"},
		{"database.password", "${file:/dev/zero}", "not a regular file"},
		{"database.password", "${file:" + dir + "}", "not a regular file"},
		{"database.password", "${file:" + large + "}", "larger than 1MiB"},
		{"binlog.outbox.kafka.tls.ca", out, "admin.secret_paths"},
		{"binlog.outbox.kafka.tls.ca", pipe, "not a regular file"},
		{"binlog.outbox.source.tls.ca", "/dev/zero", "not a regular file"},
		{"database.hostname", "${env:PERMITTED}", "write the value itself"},
		{"topic.creation.default.retention.ms", "${env:PERMITTED}", "write the value itself"},
		{"binlog.outbox.kafka.brokers", "a:1,${env:PERMITTED}:1", "write the value itself"},
	} {
		begun := time.Now()
		name := fmt.Sprintf("c%d", i)
		status, text := n.call(t, "POST", "/connectors", fmt.Sprintf(`{"name": %q, "config": %s}`, name,
			keys(name, c.key, c.value)), nil)
		if (status == 201) != (c.refused == "") || !strings.Contains(text, c.refused) || strings.Contains(text, "hunter2") {
			t.Errorf("%s=%s: %d %s, want %q", c.key, c.value, status, text, c.refused)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s=%s took %s", c.key, c.value, took)
		}
		if status == 201 {
			n.must(t, 204, "DELETE", "/connectors/"+name, "")
		}
	}
}

// What the node's own file and variables refer to is told neither by state, log nor
// errors of servers, nor to who validates another connector.
func TestValuesOfReferencesAreNotToldAtWork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a server that says nothing sensible
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"HOST": "127.0.0.7", "BROKER": "127.0.0.7:" + port, "USER": "hunter2-user",
			"BAD": "hunter2 \"x\""}[name]
		return v, ok
	}
	resolver := &config.Resolver{LookupEnv: lookup}
	yaml := fmt.Sprintf(`
node: {id: n1, data_dir: %q}
admin: {listen: "127.0.0.1:0"}
connectors:
  - name: a
    source: {host: "${env:HOST}", hosts: ["${env:HOST}:1"], port: %s, user: "${env:USER}", table: shop.outbox, start: current}
    kafka: {brokers: ["${env:BROKER}"]}
`, t.TempDir(), port)
	cfg, err := (&config.Builder{Resolver: resolver}).Build(config.YAML("test", []byte(yaml)))
	if err != nil {
		t.Fatal(err)
	}
	logged := &lockedText{}
	n := runNode(t, cfg, Options{Logger: slog.New(slog.NewJSONHandler(logged,
		&slog.HandlerOptions{Level: slog.LevelDebug})), Compiler: &Compiler{}})
	eventually(t, "an error of a server", func() bool { c := n.of("a"); return c.LastError != nil })
	for _, path := range []string{"/v1/status", "/v1/connectors/a", "/connectors/a", "/connectors/a/config",
		"/connectors/a/status", "/readyz", "/readyz?verbose"} {
		if _, text := n.call(t, "GET", path, "", nil); strings.Contains(text, "127.0.0.7") ||
			strings.Contains(text, "hunter2") {
			t.Errorf("GET %s: %s", path, text)
		}
	}
	if message := n.of("a").LastError.Message; !strings.Contains(message, "${env:") {
		t.Errorf("the error does not say which reference it is about: %s", message)
	}
	n.stop()
	if text := logged.text(); strings.Contains(text, "127.0.0.7") || strings.Contains(text, "hunter2") {
		i := max(strings.Index(text, "127.0.0.7"), strings.Index(text, "hunter2"))
		t.Errorf("the log tells: ...%s...", text[max(0, i-300):min(len(text), i+100)])
	}
}

// lockedText takes a log.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Nor does a validation that fails for what the environment gives every connector.
func TestValidationTellsNothingOfTheEnvironment(t *testing.T) {
	c := &Compiler{
		Environ: []string{"BINLOG_OUTBOX_KAFKA_BROKERS=${env:BAD}", "BINLOG_OUTBOX_KAFKA_COMPRESSION=${env:BAD}",
			"BINLOG_OUTBOX_OUTBOX_ROUTE_REGEX=(${env:BAD}"},
		Resolver: &config.Resolver{LookupEnv: func(string) (string, bool) { return "hunter2 \"x\"", true }},
	}
	_, err := c.Compile("a", keys("a", "binlog.outbox.kafka.brokers", "k:1"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "${env:BAD}") {
		t.Errorf("got %v", err)
	}
}

// A configuration of the largest size that is taken is answered about in time: keys are
// compared with all that are known.
func TestLargeConfigurationsAreAnsweredInTime(t *testing.T) {
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprintf("transforms.outbox.route.topic."+strings.Repeat("x", 900)+"%d", i)] = ""
	}
	for name, given := range map[string]map[string]string{
		"a long key": {"x" + strings.Repeat("ab", 400_000): "1"},
		"many keys":  many,
		"a long word": {"binlog.outbox.source.start": strings.Repeat("snapshot", 100_000),
			"snapshot.mode": strings.Repeat("snapshot", 10_000)},
	} {
		begun := time.Now()
		given["name"] = "a"
		text, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&Compiler{}).Compile("a", text); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}
