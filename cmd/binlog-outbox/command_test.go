package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// command runs the program in this process.
type command struct {
	environ []string
	probe   prober
}

func (c command) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs, environ: c.environ, probe: c.probe}
	code = p.run(t.Context(), args)
	return code, out.String(), errs.String()
}

// write makes a file in a directory of the test's own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodJSON = `{"name": "orders", "config": {
  "connector.class": "io.debezium.connector.mysql.MySqlConnector",
  "database.hostname": "mysql", "database.user": "u", "database.password": "hunter2",
  "topic.prefix": "orders", "table.include.list": "shop.outbox", "snapshot.mode": "no_data",
  "transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter"}}`

const goodWorker = `bootstrap.servers=kafka:9092
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=/tmp/offsets
`

func goodYAML() string {
	return strings.Replace(config.Example(), "${env:MYSQL_PASSWORD}", "hunter2", 1)
}

// TestB110ExitCodes: each kind of failure has its own code, one line that says
// what and where, and nothing on standard output.
func TestB110ExitCodes(t *testing.T) {
	good, bad := write(t, "good.yaml", goodYAML()), write(t, "bad.yaml", "node: {idd: a}\nlogs: {}\n")
	router := write(t, "router.yaml", goodYAML()+"    outbox: {route_regex: \"(\"}\n")
	badJSON := write(t, "bad.json", strings.Replace(goodJSON, "database.hostname", "database.hostnam", 1))
	worker := write(t, "worker.properties", goodWorker)
	none := filepath.Join(t.TempDir(), "none")
	for name, test := range map[string]struct {
		args   []string
		code   int
		stderr string // "" for none; %s stands for the last argument
	}{
		"help": {[]string{"--help"}, exitOK, ""},
		"good": {[]string{"validate", "-c", good}, exitOK, ""},
		"unknown command": {[]string{"rum"}, exitUsage,
			"binlog-outbox: unknown command \"rum\" for \"binlog-outbox\"; see binlog-outbox --help\n"},
		"unknown flag": {[]string{"validate", "--prob"}, exitUsage,
			"binlog-outbox: unknown flag: --prob; see binlog-outbox validate --help\n"},
		"arguments": {[]string{"version", "now"}, exitUsage,
			"binlog-outbox: unknown command \"now\" for \"binlog-outbox version\"; see binlog-outbox version --help\n"},
		"no such format": {[]string{"version", "-o", "xml"}, exitUsage,
			"binlog-outbox: the output format \"xml\" is not possible; json is; see binlog-outbox --help\n"},
		"nothing to convert": {[]string{"config", "convert"}, exitUsage,
			"binlog-outbox: requires at least 1 arg(s), only received 0; see binlog-outbox config convert --help\n"},
		"preview from where": {[]string{"preview", "-c", good, "--from", "now"}, exitUsage,
			"binlog-outbox: --from now is not possible; current and earliest are; see binlog-outbox --help\n"},
		"preview of how many": {[]string{"preview", "-c", good, "-n", "-1"}, exitUsage,
			"binlog-outbox: --limit -1 is not possible; a number of records is wanted, or 0; see binlog-outbox --help\n"},
		"not path=value": {[]string{"validate", "-c", good, "--set", "a"}, exitUsage,
			"binlog-outbox: --set a is not path=value; see binlog-outbox --help\n"},
		"bad YAML": {[]string{"validate", "-c", bad}, exitConfig,
			"%s:1:8: node.idd: unknown key; did you mean \"id\"?\n%s:2:1: logs: unknown key; did you mean \"log\"?\n"},
		"bad YAML of run": {[]string{"run", "-c", bad}, exitConfig,
			"%s:1:8: node.idd: unknown key; did you mean \"id\"?\n%s:2:1: logs: unknown key; did you mean \"log\"?\n"},
		"no file": {[]string{"run", "-c", none}, exitConfig,
			"%s: reading the configuration: no such file or directory\n"},
		"no connector file": {[]string{"run", none}, exitConfig, "%s: reading the file: no such file or directory\n"},
		"bad flag value": {[]string{"validate", "-c", good, "--set", "log.level=loud"}, exitConfig,
			"command line: --set: log.level: \"loud\" is not one of debug, info, warn, error\n"},
		"bad JSON key": {[]string{"validate", "--worker", worker, badJSON}, exitConfig,
			"%s: database.hostnam: not a key of Debezium or Kafka Connect; did you mean \"database.hostname\"?\n"},
		"the router's opinion": {[]string{"validate", "-c", router}, exitConfig, "*connectors[0].outbox: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command{}.run(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			want := strings.ReplaceAll(test.stderr, "%s", test.args[len(test.args)-1])
			if part, ok := strings.CutPrefix(want, "*"); ok {
				if !strings.Contains(stderr, part) {
					t.Errorf("%q is not in %s", part, stderr)
				}
			} else if diff := cmp.Diff(want, stderr); diff != "" {
				t.Errorf("stderr (-want +got)\n%s", diff)
			}
			if code != exitOK && stdout != "" {
				t.Errorf("standard output holds %s", stdout)
			}
		})
	}
}

func TestNoConfigurationAtAll(t *testing.T) {
	if _, err := os.Stat(defaultConfig); err == nil {
		t.Fatalf("%s is there, so this machine can't run the test", defaultConfig)
	}
	code, _, stderr := command{}.run(t, "run")
	if code != exitConfig || !strings.Contains(stderr, "there is no configuration") {
		t.Errorf("%d: %s", code, stderr)
	}
}

// TestLayers: a file gives way to connector files, to the environment and to flags.
func TestLayers(t *testing.T) {
	yaml := write(t, "node.yaml", goodYAML()+"log: {level: debug}\n")
	worker, connector := write(t, "worker.properties", goodWorker+"binlog.outbox.log.level=info\n"),
		write(t, "orders.json", goodJSON)
	show := func(environ []string, args ...string) string {
		t.Helper()
		code, stdout, stderr := command{environ: environ}.run(t, append([]string{"config", "show"}, args...)...)
		if code != exitOK {
			t.Fatalf("%d: %s", code, stderr)
		}
		return stdout
	}
	has := func(text, part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	has(show(nil, "-c", yaml), "level: debug")
	has(show([]string{"BINLOG_OUTBOX_CONFIG=" + yaml}), "level: debug")
	all := show(nil, "-c", yaml, "--worker", worker, connector)
	has(all, "level: info")
	has(all, "name: orders-outbox")
	has(all, "name: orders\n")
	environ := []string{"BINLOG_OUTBOX_LOG_LEVEL=warn", "BINLOG_OUTBOX_DATA_DIR=/env"}
	has(show(environ, "-c", yaml, "--worker", worker, connector), "level: warn")
	has(show(environ, "-c", yaml), "data_dir: /env")
	has(show(environ, "-c", yaml, "--data-dir", "/flag", "--set", "log.level=error"), "data_dir: /flag")
	has(show(environ, "-c", yaml, "--data-dir", "/flag", "--set", "log.level=error"), "level: error")
	has(show([]string{"BINLOG_OUTBOX_DEBEZIUM_QUIRKS=true"}, "--worker", worker, connector), "quirks: true")
	only := []string{"BINLOG_OUTBOX_CONNECTORS_0_NAME=a", "BINLOG_OUTBOX_SOURCE_HOST=m", "BINLOG_OUTBOX_SOURCE_USER=u",
		"BINLOG_OUTBOX_SOURCE_TABLE=a.b", "BINLOG_OUTBOX_KAFKA_BROKERS=k:1"}
	has(show(only), "name: a")
}

// TestB107NothingIsShown puts a password and runs every command that prints.
func TestB107NothingIsShown(t *testing.T) {
	yaml, connector, worker := write(t, "node.yaml", goodYAML()), write(t, "orders.json", goodJSON),
		write(t, "w.properties", goodWorker)
	for _, args := range [][]string{
		{"config", "show", "-c", yaml}, {"config", "show", "-c", yaml, "--effective"},
		{"config", "show", "-c", yaml, "-o", "json"},
		{"config", "show", "--worker", worker, connector}, {"config", "convert", "--worker", worker, connector},
		{"config", "convert", "--worker", worker, connector, "-o", "json"}, {"config", "convert", connector},
		{"validate", "-c", yaml}, {"validate", "-c", yaml, "-o", "json"}, {"validate", connector},
	} {
		code, stdout, stderr := command{}.run(t, args...)
		if strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%q shows the password (exit code %d)\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestConfigConvert(t *testing.T) {
	connector, worker := write(t, "orders.json", goodJSON), write(t, "w.properties", goodWorker)
	code, stdout, stderr := command{}.run(t, "config", "convert", "--worker", worker, connector)
	if code != exitOK {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		connector + ": database.hostname: taken: source.host\n",
		worker + ": offset.storage.file.filename: taken: source.debezium_offsets",
		connector + ": database.password: the value itself is not printed; put it into " +
			"/etc/binlog-outbox/secrets.properties as orders.source.password=...\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in\n%s", want, stderr)
		}
	}
	if !strings.Contains(stdout, "password: ${file:/etc/binlog-outbox/secrets.properties:orders.source.password}") {
		t.Errorf("no reference in place of the password:\n%s", stdout)
	}
	if _, err := (&config.Builder{KeepReferences: true}).Build(config.YAML("converted", []byte(stdout))); err != nil {
		t.Errorf("the printed configuration is not valid: %v\n%s", err, stdout)
	}

	code, stdout, stderr = command{}.run(t, "config", "convert", connector)
	if code != exitConfig || stdout != "" || !strings.Contains(stderr, connector+": key.converter: is not given;") {
		t.Errorf("without the worker's file: %d\n%s%s", code, stdout, stderr)
	}

	code, stdout, _ = command{}.run(t, "config", "convert", connector, "-o", "json")
	var answer conversionJSON
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != exitConfig || answer.Config != "" ||
		len(answer.Keys) < 10 {
		t.Errorf("as JSON: %d, %v\n%s", code, err, stdout)
	}
}

func TestTolerateUnknown(t *testing.T) {
	connector, worker := write(t, "orders.json", strings.Replace(goodJSON, `"topic.prefix"`,
		`"my.own.note": "x", "topic.prefix"`, 1)), write(t, "w.properties", goodWorker)
	if code, _, stderr := (command{}).run(t, "validate", "--worker", worker, connector); code != exitConfig ||
		!strings.Contains(stderr, "my.own.note") {
		t.Errorf("%d: %s", code, stderr)
	}
	if code, _, stderr := (command{}).run(t, "validate", "--worker", worker, connector,
		"--tolerate-unknown"); code != exitOK {
		t.Errorf("%d: %s", code, stderr)
	}
}

func TestValidateJSON(t *testing.T) {
	bad := write(t, "bad.yaml", "node: {idd: a}\n")
	code, stdout, stderr := command{}.run(t, "validate", "-c", bad, "-o", "json")
	want := `{
  "valid": false,
  "errors": [
    {
      "file": "` + bad + `",
      "line": 1,
      "column": 8,
      "path": "node.idd",
      "message": "unknown key; did you mean \"id\"?"
    }
  ],
  "connectors": []
}
`
	if diff := cmp.Diff(want, stdout); diff != "" || code != exitConfig || stderr != "" {
		t.Errorf("%d %s\n%s", code, stderr, diff)
	}
}

// probe answers with fixed checks, and sees what it is asked.
type probe struct {
	checks []node.Check
	asked  []string
}

func (p *probe) Probe(ctx context.Context, cfg *config.Config, c *config.Connector) []node.Check {
	if _, ok := ctx.Deadline(); ok && cfg != nil {
		p.asked = append(p.asked, c.Name)
	}
	return p.checks
}

func TestValidateProbe(t *testing.T) {
	yaml := write(t, "good.yaml", goodYAML())
	p := &probe{checks: []node.Check{
		{Name: "MySQL: binlog_format", Status: node.CheckOK, Detail: "ROW"},
		{Name: "MySQL: binlog_row_image", Status: node.CheckWarning, Detail: "MINIMAL", Fix: "set it to FULL"},
	}}
	code, stdout, stderr := command{probe: p.Probe}.run(t, "validate", "-c", yaml, "--probe")
	want := `The configuration is valid: 1 connector (orders-outbox).

orders-outbox
  ok       MySQL: binlog_format: ROW
  warning  MySQL: binlog_row_image: MINIMAL; set it to FULL
`
	if diff := cmp.Diff(want, stdout); diff != "" || code != exitOK || stderr != "" {
		t.Errorf("%d %s\n%s", code, stderr, diff)
	}
	if diff := cmp.Diff([]string{"orders-outbox"}, p.asked); diff != "" {
		t.Errorf("asked with a deadline: %s", diff)
	}
	p.checks[0].Status = node.CheckFailed
	if code, _, _ := (command{probe: p.Probe}).run(t, "validate", "-c", yaml, "--probe", "-o",
		"json"); code != exitFailed {
		t.Errorf("exit code %d with a failed check", code)
	}
	if code, _, _ := (command{probe: p.Probe}).run(t, "validate", "-c", yaml); code != exitOK || len(p.asked) != 2 {
		t.Errorf("without --probe: %d, asked %q", code, p.asked)
	}
}

func TestConfigReference(t *testing.T) {
	if code, stdout, _ := (command{}).run(t, "config", "reference"); code != exitOK || stdout != config.Reference() {
		t.Errorf("%d: %.200s", code, stdout)
	}
	if code, stdout, _ := (command{}).run(t, "config", "reference", "--markdown"); code != exitOK ||
		stdout != config.ReferencePage() {
		t.Errorf("%d: %.200s", code, stdout)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := command{}.run(t, "version")
	if code != exitOK || !strings.HasPrefix(stdout, "binlog-outbox ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%d: %s", code, stdout)
	}
	code, stdout, _ = command{}.run(t, "version", "-o", "json")
	var b node.Build
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitOK || b.Version == "" || b.Go == "" {
		t.Errorf("%d: %s, %v", code, stdout, err)
	}
}
