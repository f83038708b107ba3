package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/javaregex"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

func TestEnvironment(t *testing.T) {
	two := `
node: {id: file, data_dir: /file}
connectors:
  - name: a
    source: {host: file, user: cdc, table: s.o, connect_timeout: 1s}
    kafka: {brokers: [file:1], delivery: at_least_once}
  - name: b
    source: {host: file, user: cdc, table: s.o}
    kafka: {brokers: [file:1]}
`
	for name, test := range map[string]struct {
		environ []string
		get     func(*Config) any
		want    any
	}{
		"a text": {[]string{"BINLOG_OUTBOX_NODE_ID=env"}, func(c *Config) any { return c.Node.ID },
			"env"},
		"the short form": {[]string{"BINLOG_OUTBOX_DATA_DIR=/env"},
			func(c *Config) any { return c.Node.DataDir }, "/env"},
		"the long form before short": {[]string{"BINLOG_OUTBOX_NODE_DATA_DIR=/long", "BINLOG_OUTBOX_DATA_DIR=/short"},
			func(c *Config) any { return c.Node.DataDir }, "/long"},
		"one connector": {[]string{"BINLOG_OUTBOX_CONNECTORS_1_SOURCE_HOST=env"},
			func(c *Config) any { return c.Connectors[0].Source.Host + c.Connectors[1].Source.Host }, "fileenv"},
		"all connectors": {[]string{"BINLOG_OUTBOX_SOURCE_HOST=env"},
			func(c *Config) any { return c.Connectors[0].Source.Host + c.Connectors[1].Source.Host }, "envenv"},
		"one before all": {[]string{"BINLOG_OUTBOX_CONNECTORS_0_SOURCE_HOST=one",
			"BINLOG_OUTBOX_SOURCE_HOST=all"}, func(c *Config) any {
			return c.Connectors[0].Source.Host +
				c.Connectors[1].Source.Host
		}, "oneall"},
		"the short form for all": {[]string{"BINLOG_OUTBOX_DELIVERY=exactly_once"},
			func(c *Config) any { return c.Connectors[0].Kafka.Delivery }, ExactlyOnce},
		"quirks for all": {[]string{"BINLOG_OUTBOX_DEBEZIUM_QUIRKS=true"},
			func(c *Config) any { return c.Connectors[1].Debezium.Quirks }, true},
		"a list": {[]string{"BINLOG_OUTBOX_KAFKA_BROKERS=a:1, b:2"},
			func(c *Config) any { return c.Connectors[1].Kafka.Brokers }, []string{"a:1", "b:2"}},
		"pairs": {[]string{"BINLOG_OUTBOX_LOG_LEVELS=raft=warn, kafka=debug"},
			func(c *Config) any { return c.Log.Levels }, map[string]string{"raft": "warn", "kafka": "debug"}},
		"a duration": {[]string{"BINLOG_OUTBOX_SOURCE_CONNECT_TIMEOUT=5s"},
			func(c *Config) any { return c.Connectors[0].Source.ConnectTimeout }, 5 * time.Second},
		"a size": {[]string{"BINLOG_OUTBOX_LIMITS_BATCH_BYTES=2MiB"},
			func(c *Config) any { return c.Connectors[0].Limits.BatchBytes }, Size(2 << 20)},
		"a converter": {[]string{"BINLOG_OUTBOX_FORMAT_VALUE_TYPE=bytes"},
			func(c *Config) any { return c.Connectors[0].Format.Value.Type }, converter.TypeBytes},
		"a reference": {[]string{"BINLOG_OUTBOX_SOURCE_USER=${env:KAFKA_PASSWORD}"},
			func(c *Config) any { return c.Connectors[0].Source.User }, "s3cret"},
		"an empty one counts not": {[]string{"BINLOG_OUTBOX_NODE_ID="}, func(c *Config) any { return c.Node.ID },
			"file"},
		"names are not given to all": {[]string{"BINLOG_OUTBOX_NAME=x"},
			func(c *Config) any { return c.Connectors[0].Name }, "a"},
		"Kubernetes' own, left alone": {[]string{"BINLOG_OUTBOX_PORT=tcp://10.0.0.1:8083",
			"BINLOG_OUTBOX_SERVICE_HOST=10.0.0.1"}, func(c *Config) any { return c.Connectors[0].Source.Port }, 3306},
		"the file where nothing is": {nil, func(c *Config) any { return c.Connectors[0].Source.ConnectTimeout },
			time.Second},
		"the default where no file is": {nil, func(c *Config) any { return c.Connectors[1].Source.ConnectTimeout },
			30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := Builder{Resolver: testResolver()}
			c, err := b.Build(YAML("node.yaml", []byte(two)), Environ(test.environ))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.get(c)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEnvironmentAlone(t *testing.T) {
	c, err := Build(Environ([]string{
		"BINLOG_OUTBOX_CONNECTORS_0_NAME=a", "BINLOG_OUTBOX_CONNECTORS_1_NAME=b",
		"BINLOG_OUTBOX_SOURCE_HOST=mysql", "BINLOG_OUTBOX_SOURCE_USER=cdc", "BINLOG_OUTBOX_SOURCE_TABLE=shop.outbox",
		"BINLOG_OUTBOX_KAFKA_BROKERS=kafka:9092",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Connectors) != 2 || c.Connectors[1].Name != "b" || c.Connectors[1].Kafka.Delivery != ExactlyOnce {
		t.Errorf("got %+v", c.Connectors)
	}
}

func TestEnvironmentProblemsNameTheVariable(t *testing.T) {
	_, err := Build(YAML("node.yaml", []byte("connectors: [{name: a, source: {host: m, user: u, table: s.o}, kafka: "+
		"{brokers: [\"k:1\"]}}]")),
		Environ([]string{"BINLOG_OUTBOX_CONNECTORS_0_SOURCE_PORT=high", "BINLOG_OUTBOX_LOG_LEVEL=loud"}))
	want := `environment: BINLOG_OUTBOX_CONNECTORS_0_SOURCE_PORT: connectors[0].source.port: "high" is not a whole number
environment: BINLOG_OUTBOX_LOG_LEVEL: log.level: "loud" is not one of debug, info, warn, error`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSettings(t *testing.T) {
	at := Origin{File: "orders.json", Key: "table.include.list"}
	c, err := Build(YAML("x", []byte(minimalSource)), Settings(
		Setting{Path: "connectors[0].source.tables", Value: []string{"a.b", "c.d"}, Origin: at},
		Setting{Path: "connectors[0].kafka.create_topics.configs", Value: map[string]string{"retention.ms": "1"}, Origin: at},
		Setting{Path: "connectors[0].kafka.create_topics.groups[0].name", Value: "g", Origin: at},
		Setting{Path: "connectors[0].kafka.create_topics.groups[0].include", Value: []string{"x.*"}, Origin: at},
		Setting{Path: "connectors[0].outbox.additional", Value: "a:header,b:envelope", Origin: at},
	))
	if err != nil {
		t.Fatal(err)
	}
	k := c.Connectors[0].Kafka.CreateTopics
	if diff := cmp.Diff(CreateTopics{Configs: map[string]string{"retention.ms": "1"},
		Groups: []TopicGroup{{Name: "g", Include: []string{"x.*"}}}}, k); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a:header", "b:envelope"}, c.Connectors[0].Outbox.Additional); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{
		"connectors[2].name":         "orders.json: table.include.list: connectors[2].name: there is no connectors[2]",
		"connectors[0].source.hosst": `orders.json: table.include.list: connectors[0].source.hosst: unknown setting; did you mean "host"?`,
		"connectors[0].source.port.x": "orders.json: table.include.list: connectors[0].source.port.x: unknown setting; " +
			"connectors[0].source.port has no parts",
		"connectors[0].source": "orders.json: table.include.list: connectors[0].source: a section is wanted here, " +
			"not a single value",
		"connectors[0].retry.max_tries": "",
	} {
		_, err := Build(YAML("x", []byte(strings.Replace(minimalSource, "user: u", "user: u, table: a.b", 1))),
			Settings(Setting{Path: path, Value: "v", Origin: at}))
		if err == nil || want != "" && err.Error() != want {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

const minimalSource = `connectors: [{name: a, source: {host: m, user: u}, kafka: {brokers: ["k:1"]}}]`

func TestAppend(t *testing.T) {
	more := func(name string) []Setting {
		return []Setting{
			{Path: "connectors[0].name", Value: name}, {Path: "connectors[0].source.host", Value: "m"},
			{Path: "connectors[0].source.user", Value: "u"},
			{Path: "connectors[0].source.table", Value: "a.b"}, {Path: "connectors[0].kafka.brokers", Value: "k:1"},
			{Path: "log.level", Value: "warn"},
		}
	}
	c, err := Build(YAML("x", []byte(strings.Replace(minimalSource, "user: u", "user: u, table: a.b", 1))),
		Append(more("b")...), Append(more("c")...))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Connectors) != 3 || c.Connectors[0].Name+c.Connectors[1].Name+c.Connectors[2].Name != "abc" ||
		c.Log.Level != "warn" {
		t.Errorf("got %+v", c)
	}
	if !IsSecret("connectors[7].source.password") || IsSecret("connectors[7].source.user") || IsSecret("nothing") {
		t.Error("IsSecret is wrong")
	}
}

func TestChecks(t *testing.T) {
	bad := errors.New("group 7 is not in route_regex")
	b := Builder{Resolver: testResolver(), Checks: []Check{func(c *Connector) error {
		return errors.Join(fmt.Errorf("making the router: %w", &FieldError{"outbox.route_topic", bad}),
			errors.New("all of it"))
	}}}
	text := strings.Replace(Example(), "${env:MYSQL_PASSWORD}", "x", 1) + "    outbox:\n      route_topic: a$7\n"
	_, err := b.Build(YAML("node.yaml", []byte(text)))
	want := "node.yaml:4:5: connectors[0]: all of it\n" +
		"node.yaml:14:20: connectors[0].outbox.route_topic: group 7 is not in route_regex"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestFileProblems(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Build(File(path))
	if want := path + ": reading the configuration: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := os.WriteFile(path, []byte(minimalSource+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(File(path)); err == nil || !strings.HasPrefix(err.Error(), path+":1:") {
		t.Errorf("got %v", err)
	}
}

// TestB022ServerIDsDiffer: a server_id is never shared by two nodes or by two
// connectors of a node, stays over restarts, and is far from other replicas'.
func TestB022ServerIDsDiffer(t *testing.T) {
	seen := map[uint32]string{}
	for node := range 50 {
		for connector := range 20 {
			n, c := fmt.Sprintf("cdc-%d", node), fmt.Sprintf("orders-%d", connector)
			id := DerivedServerID(n, c)
			if id < 1<<31 || id == 1<<32-1 {
				t.Errorf("%d is out of range", id)
			}
			if other, ok := seen[id]; ok {
				t.Errorf("%s and %s/%s have %d", other, n, c, id)
			}
			if seen[id] = n + "/" + c; DerivedServerID(n, c) != id {
				t.Error("not the same twice")
			}
		}
	}
	if DerivedServerID("a", "bc") == DerivedServerID("ab", "c") {
		t.Error("the border between the names does not count")
	}
	if got, want := DerivedServerID("cdc-1", "orders-outbox"), uint32(4223592534); got != want {
		t.Errorf("got %d, want %d as in every release before", got, want)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "1024": 1024, "1KiB": 1024, "64MiB": 64 << 20, "2GiB": 2 << 30,
		"1kB": 1000, "3 MB": 3e6, "1GB": 1e9, "5B": 5} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %s", text, got)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "MiB", "1TiB", "9223372036854775807GiB", "0x10"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestTables(t *testing.T) {
	s := Source{Table: "shop.outbox", TableList: []string{"`odd.db`.`out``box`"},
		TablePatterns: []string{`tenant_\d+\.(outbox|events)`, `a|ab\.c`, `(?=q)q\.x`}}
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[[2]string]bool{
		{"shop", "outbox"}: true, {"Shop", "OUTBOX"}: true, {"shop", "outbox2"}: false, {"xshop", "outbox"}: false,
		{"odd.db", "out`box"}: true, {"tenant_7", "Events"}: true, {"tenant_x", "events"}: false,
		{"my_tenant_7", "events"}: false,
		{"ab", "c"}:               true, {"a", "b"}: false, {"q", "x"}: true,
	} {
		if got, err := tables.Match(name[0], name[1]); got != want || err != nil {
			t.Errorf("%v: %v", name, got)
		}
	}
	if diff := cmp.Diff([]TableName{{"shop", "outbox"}, {"odd.db", "out`box"}}, tables.Names()); diff != "" ||
		!tables.HasPatterns() {
		t.Error(diff)
	}
	for _, bad := range []string{"", "outbox", "a.", ".b", "a.b.c", "`a.b", "`a`b.c", "``.b"} {
		if got, err := ParseTableName(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
	if _, err := (Source{TableList: []string{"x"}, TablePatterns: []string{"("}}).Tables(); err == nil ||
		strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not both problems: %v", err)
	}
}

func TestNearest(t *testing.T) {
	list := []string{"host", "port", "password", "table_patterns", ""}
	for enumValue, want := range map[string]string{"hsot": "host", "hostname": "host", "prot": "port",
		"passwd": "password", "Table-Patterns": "table_patterns", "zzz": "", "x": "", "": ""} {
		if got := Nearest(enumValue, list); got != want {
			t.Errorf("%s: %q, want %q", enumValue, got, want)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add(Example())
	f.Add(Reference())
	f.Add("a: &x [*x]\n<<: 1\n? {a: b}\n: |\n  c")
	f.Add("connectors: [{source: {password: !!binary aGk=}}]\n---\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = (&Builder{KeepReferences: true}).Build(YAML("fuzz.yaml", []byte(text)))
	})
}

func TestTopicGroupsMatchWholeNames(t *testing.T) {
	match, err := TopicGroup{Name: "g", Include: []string{`outbox\.event\.a.*`, "b"}, Exclude: []string{".*x"}}.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]bool{"outbox.event.a1": true, "outbox.event.ax": false, "b": true, "bb": false,
		"my.outbox.event.a": false} {
		if got, err := match(topic); got != want || err != nil {
			t.Errorf("%s: %v, want %v", topic, !want, want)
		}
	}
}

// The patterns that name tables, topics and origins are Java's.
func TestPatternsAreJavas(t *testing.T) {
	for _, c := range []struct {
		pattern, table string
		want           bool
	}{
		{`shop\.[a-z&&[^b]]+`, "cat", true}, {`shop\.[a-z&&[^b]]+`, "bat", false},
		{`shop\.\w+`, "größe", false}, {`shop\.\w+`, "out_1", true}, {`(?U)shop\.\w+`, "größe", true},
		{`shop\.x\d++`, "x12", true}, {`shop\.x\d++`, "x١", false}, {`shop\.\p{Alnum}+`, "Out1", true},
		{`\Qshop.out\E`, "out", true}, {`\Qshop.out\E`, "OUT", true}, {`shop\.ärger`, "Ärger", false},
		{`(?u)shop\.ärger`, "Ärger", true},
		{`shop\.[^.]+`, "a-b", true},
	} {
		tables, err := Source{TablePatterns: []string{c.pattern}}.Tables()
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got, err := tables.Match("shop", c.table); got != c.want || err != nil {
			t.Errorf("%s on shop.%s: %v, %v", c.pattern, c.table, got, err)
		}
		match, err := TopicGroup{Name: "g", Include: []string{"(?i)" + c.pattern}}.Matcher()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := match("shop." + c.table); got != c.want || err != nil {
			t.Errorf("%s on topic shop.%s: %v, %v", c.pattern, c.table, got, err)
		}
	}
	const origin = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	counts, err := Source{GTIDInclude: []string{`\p{XDigit}{8}-[\w&&[^x]]++-.*`}}.Origins()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := counts(origin); !got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A pattern that goes back over a name without end is an error, not a no.
func TestPatternsThatTakeTooLong(t *testing.T) {
	const bad = `(a|aa)*\1b`
	long := strings.Repeat("a", 64)
	tables, err := Source{TablePatterns: []string{`shop\.` + bad}}.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tables.Match("shop", long); !errors.Is(err, javaregex.ErrTooLong) ||
		!strings.Contains(err.Error(), "source.table_patterns") {
		t.Error(err)
	}
	match, err := TopicGroup{Name: "g", Include: []string{".*"}, Exclude: []string{bad}}.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	if in, err := match(long); in || !errors.Is(err, javaregex.ErrTooLong) || !strings.Contains(err.Error(), "group g") {
		t.Error(in, err)
	}
	counts, err := Source{GTIDExclude: []string{bad}}.Origins()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := counts(long); !errors.Is(err, javaregex.ErrTooLong) ||
		!strings.Contains(err.Error(), "source.gtid_exclude") {
		t.Error(err)
	}
}
