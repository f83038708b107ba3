package debezium

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/converter"
)

var write = flag.Bool("write", false, "write the expected results anew")

// TestConvert turns each testdata/*.json over, with the worker's file of the same
// name if there is one, and compares every line and the configuration.
func TestConvert(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			o := Options{Connectors: []File{readFile(t, path)}}
			worker := strings.TrimSuffix(path, ".json") + ".worker.properties"
			if _, err := os.Stat(worker); err == nil {
				f := readFile(t, worker)
				o.Worker = &f
			}
			got := result(o)
			want := strings.TrimSuffix(path, ".json") + ".want"
			if *write {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(readFile(t, want).Data), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("the result shows a password")
			}
			// Each key has exactly one line.
			seen := map[string]int{}
			c, _ := Convert(o)
			for _, l := range c.Lines {
				seen[l.File+": "+l.Key]++
			}
			for key, n := range seen {
				if n != 1 {
					t.Errorf("%s has %d lines", key, n)
				}
			}
		})
	}
}

func readFile(t *testing.T, path string) File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return File{filepath.Base(path), data}
}

func result(o Options) string {
	var b strings.Builder
	c, err := Convert(o)
	for _, l := range c.Lines {
		b.WriteString(l.String() + "\n")
	}
	if err != nil {
		return b.String() + "---\n" + err.Error() + "\n"
	}
	built, err := (&config.Builder{KeepReferences: true}).Build(c.Layer())
	if err != nil {
		return b.String() + "--- not built\n" + err.Error() + "\n"
	}
	out, err := built.Show(false)
	if err != nil {
		return b.String() + err.Error()
	}
	return b.String() + "---\n" + string(out)
}

// base is a connector that converts without a problem.
func base() map[string]string {
	return map[string]string{
		"name": "orders", "connector.class": "io.debezium.connector.mysql.MySqlConnector",
		"database.hostname": "mysql", "database.user": "u", "topic.prefix": "orders", "table.include.list": "shop.outbox",
		"transforms": "outbox", "transforms.outbox.type": routerClass,
		"key.converter": "StringConverter", "value.converter": "StringConverter",
		"producer.override.bootstrap.servers": "kafka:9092",
	}
}

// convertWith converts base with changes; a value of "-" takes a key out.
func convertWith(changes map[string]string) (*Conversion, error) {
	values := base()
	for k, v := range changes {
		if values[k] = v; v == "-" {
			delete(values, k)
		}
	}
	var b strings.Builder
	for k, v := range values {
		b.WriteString(k + "=" + strings.ReplaceAll(v, `\`, `\\`) + "\n")
	}
	return Convert(Options{Connectors: []File{{"c.properties", []byte(b.String())}}})
}

func setting(c *Conversion, path string) any {
	var value any
	for _, s := range c.Settings {
		if s.Path == "connectors[0]."+path {
			value = s.Value
		}
	}
	return value
}

func outcome(c *Conversion, key string) Outcome {
	for _, l := range c.Lines {
		if l.Key == key {
			return l.Outcome
		}
	}
	return -1
}

// TestB110EveryKeyIsKnown: no key that the connectors of 2.7 to 3.6, the router
// or Kafka Connect know may be called unknown.
func TestB110EveryKeyIsKnown(t *testing.T) {
	for key := range strings.FieldsSeq(string(readFile(t, "testdata/keys.txt").Data)) {
		for _, value := range []string{"", "1", "true", "x"} {
			c, _ := convertWith(map[string]string{key: value})
			if got := outcome(c, key); got == Unknown || got == -1 {
				t.Errorf("%s=%s: outcome %d", key, value, got)
			}
			if key == "transforms" || key == "name" || key == "connector.class" {
				break
			}
		}
	}
}

// TestB110EveryRuleIsTested: a key in the table that is no key of Debezium's
// would never be told to be a misspelling.
func TestB110EveryRuleIsTested(t *testing.T) {
	known := strings.Fields(string(readFile(t, "testdata/keys.txt").Data))
	listed := map[string]bool{}
	for _, k := range known {
		listed[k] = true
	}
	for _, r := range rules() {
		// Keys of other versions, of the embedded engine and of Connect's worker.
		other := map[string]bool{"offset.flush.interval.ms": true, "offset.flush.timeout.ms": true,
			"errors.retry.delay.initial.ms": true, "custom.retriable.exception": true, "snapshot.new.tables": true}
		legacy := strings.Contains(r.key, "whitelist") || strings.Contains(r.key, "blacklist") ||
			r.key == "database.server.name"
		if !r.prefix && !listed[r.key] && !other[r.key] && !legacy {
			t.Errorf("%s is not in testdata/keys.txt", r.key)
		}
	}
}

func TestB110Misspellings(t *testing.T) {
	for key, near := range map[string]string{
		"table.inculde.list":                      "table.include.list",
		"database.hostnam":                        "database.hostname",
		"database.pasword":                        "database.password",
		"snapshot.mod":                            "snapshot.mode",
		"transforms.outbox.route.by.filed":        "transforms.outbox.route.by.field",
		"producer.override.compression.typ":       "producer.override.compression.type",
		"value.converter.schema.enable":           "value.converter.schemas.enable",
		"hearbeat.interval.ms":                    "heartbeat.interval.ms",
		"transforms.outbox.table.field.event.kye": "transforms.outbox.table.field.event.key",
	} {
		c, err := convertWith(map[string]string{key: "x", "value.converter": "JsonConverter"})
		if err == nil || outcome(c, key) != Unknown || !strings.Contains(err.Error(),
			`c.properties: `+key+`: not a key of Debezium or Kafka Connect; did you mean "`+near+`"?`) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := Convert(Options{TolerateUnknown: true, Connectors: []File{{"c",
		[]byte("name=x\nfoo.bar=1")}}}); err == nil || strings.Contains(err.Error(), "foo.bar") {
		t.Errorf("tolerated, but: %v", err)
	}
}

func TestValues(t *testing.T) {
	for name, test := range map[string]struct {
		key, value string
		path       string
		want       any // nil: refused
	}{
		"initial":                  {"snapshot.mode", "initial", "source.start", "snapshot"},
		"upper case":               {"snapshot.mode", " INITIAL ", "source.start", "snapshot"},
		"when_needed":              {"snapshot.mode", "when_needed", "source.start", "when_needed"},
		"schema_only, as before":   {"snapshot.mode", "schema_only", "source.start", "current"},
		"never is from the oldest": {"snapshot.mode", "never", "source.start", "earliest"},
		"recovery":                 {"snapshot.mode", "recovery", "source.start", "never"},
		"initial_only":             {"snapshot.mode", "initial_only", "source.start", "snapshot_only"},
		"always":                   {"snapshot.mode", "always", "source.start", nil},
		"custom":                   {"snapshot.mode", "custom", "source.start", nil},
		"configuration_based":      {"snapshot.mode", "configuration_based", "source.start", nil}, // nothing is switched on
		"a mode by reference":      {"snapshot.mode", "${env:MODE}", "source.start", nil},
		"milliseconds":             {"connect.timeout.ms", "30000", "source.connect_timeout", "30s"},
		"no milliseconds":          {"connect.timeout.ms", "30s", "source.connect_timeout", nil},
		"a port by reference":      {"database.port", "${env:PORT}", "source.port", "${env:PORT}"},
		"blanks of a password":     {"database.password", "\\ x ", "source.password", "\\ x "},
		"no headers":               {"extended.headers.enabled", "False", "headers.context", false},
		"missing ignored, new": {"transforms.outbox.table.field.additional.missing", "IGNORE",
			"outbox.missing_additional", "ignore"},
		"missing ignored, old": {"transforms.outbox.table.fields.additional.error.on.missing", "false", "", Harmless},
		// the properties format drops the first
		"a regex with blanks": {"transforms.outbox.route.topic.regex", " (.*) ", "outbox.route_regex", "(.*) "},
		"acks":                {"producer.override.acks", "-1", "kafka.acks", Default},
		"brokers with protocols": {"producer.override.bootstrap.servers", "PLAINTEXT://a:1, b:2", "kafka.brokers",
			[]string{"a:1", "b:2"}},
		"a table list": {"table.include.list", `shop\.outbox , billing.out_box`, "source.tables",
			[]string{"shop.outbox", "billing.out_box"}},
		"a table pattern": {"table.include.list", `shop\.(outbox|events)`, "source.table_patterns",
			[]string{`shop\.(outbox|events)`}},
		"a bad pattern": {"table.include.list", `shop\.(outbox`, "source.table_patterns", nil},
		"several placements": {"transforms.outbox.table.fields.additional.placement", "a:header,b:envelope:c:,",
			"outbox.additional", []string{"a:header", "b:envelope:c"}},
		"too many parts": {"transforms.outbox.table.fields.additional.placement", "a:b:c:d", "outbox.additional",
			nil},
		"json is with schemas": {"value.converter", "org.apache.kafka.connect.json.JsonConverter", "format.value.schemas",
			true},
		"debezium's bytes": {"value.converter", "io.debezium.converters.ByteArrayConverter", "format.value.type",
			"binary"},
		"a header converter alone": {"value.converter", "SimpleHeaderConverter", "format.value.type", nil},
		"deletes skipped":          {"skipped.operations", "d, T", "outbox.skip_operations", []string{"d", "t"}},
		"nothing skipped":          {"skipped.operations", "", "", Default},
		"an unknown operation":     {"skipped.operations", "u,x", "", nil},
		"binary mode":              {"binary.handling.mode", "Base64-URL-Safe", "values.binary", "base64-url-safe"},
		"decimal mode":             {"decimal.handling.mode", "string", "values.decimal", "string"},
		"time mode":                {"time.precision.mode", "isostring", "values.time", "isostring"},
		"time mode of 1.x":         {"time.precision.mode", "adaptive", "", nil},
		"bigint mode":              {"bigint.unsigned.handling.mode", "precise", "values.bigint_unsigned", "precise"},
		"no year adjuster":         {"enable.time.adjuster", "false", "values.adjust_years", false},
		"renames no column":        {"field.name.adjustment.mode", "avro", "", Harmless},
		"no mode of names":         {"field.name.adjustment.mode", "x", "", nil},
		"arrays of a later one": {"transforms.outbox.table.json.payload.empty.array.behavior", "optional_string", "",
			Harmless},
		"queue bytes":              {"max.queue.size.in.bytes", "1048576", "limits.queue_bytes", "1048576"},
		"no bound of the queue":    {"max.queue.size.in.bytes", "0", "", Harmless},
		"schemas that nobody sees": {"include.schema.comments", "true", "", Harmless},
		"a jks store, unused":      {"database.ssl.truststore", "/t.jks", "", Harmless},
		"notifications to a topic": {"notification.enabled.channels", "log,sink", "", nil},
		"notifications to the log": {"notification.enabled.channels", "log", "", Harmless},
		"openlineage off":          {"openlineage.integration.enabled", "false", "", Default},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := convertWith(map[string]string{test.key: test.value})
			switch want := test.want.(type) {
			case nil:
				if err == nil || outcome(c, test.key) != Unsupported {
					t.Errorf("not refused: outcome %v, %v", outcome(c, test.key), err)
				}
				return
			case Outcome:
				if got := outcome(c, test.key); got != want || err != nil {
					t.Errorf("outcome %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, setting(c, test.path)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if _, err := (&config.Builder{KeepReferences: true}).Build(c.Layer()); err != nil &&
				!strings.Contains(err.Error(), "not available yet") {
				t.Error(err)
			}
		})
	}
}

// TestOptionsOfReleases: an option that a release does not know counts for nothing
// when that release is followed.
func TestOptionsOfReleases(t *testing.T) {
	const router = "transforms.outbox."
	for _, test := range []struct {
		release, key, value, path string
		want                      any // nil: passed over
	}{
		{"3.5", router + "table.fields.additional.error.on.missing", "false", "outbox.missing_additional", "ignore"},
		{"2.7", router + "table.fields.additional.error.on.missing", "true", "outbox.missing_additional", "error"},
		{"3.6", router + "table.fields.additional.error.on.missing", "false", "outbox.missing_additional", nil},
		{"3.5", router + "table.field.additional.missing", "ignore", "outbox.missing_additional", nil},
		{"3.7", router + "table.field.additional.missing", "ignore", "outbox.missing_additional", "ignore"},
		{"3.6", router + "table.json.payload.empty.array.behavior", "optional_string", "outbox.json_empty_array", nil},
		{"3.7", router + "table.json.payload.empty.array.behavior", "optional_string", "outbox.json_empty_array",
			"optional_string"},
	} {
		c, err := convertWith(map[string]string{test.key: test.value, ownPrefix + "debezium.compat": test.release})
		if err != nil {
			t.Fatal(err)
		}
		if got := setting(c, test.path); got != test.want {
			t.Errorf("%s with %s=%s: %s is %v, want %v", test.release, test.key, test.value, test.path, got, test.want)
		}
	}
	values := "name=x\n" + router + "table.field.additional.missing=ignore\ntransforms=outbox\n" + router + "type=" +
		routerClass
	c, _ := Convert(Options{Release: "3.4", Connectors: []File{{"c", []byte(values)}}})
	if got := outcome(c, router+"table.field.additional.missing"); got != Harmless {
		t.Errorf("the release of the options is not followed: %v", got)
	}
}

func TestFieldNamesThatWouldChange(t *testing.T) {
	for mode, column := range map[string]string{"avro": "order-id", "avro_unicode": "order_id"} {
		c, err := convertWith(map[string]string{"field.name.adjustment.mode": mode,
			"transforms.outbox.table.fields.additional.placement": column + ":header"})
		if err == nil || outcome(c, "field.name.adjustment.mode") != Unsupported {
			t.Errorf("%s renames %s, but: %v", mode, column, err)
		}
	}
}

// TestOwnKeysWin: a file that must stay good for Debezium may say it otherwise
// for us.
func TestOwnKeysWin(t *testing.T) {
	c, err := convertWith(map[string]string{
		"producer.override.compression.type": "gzip", "binlog.outbox.kafka.compression": "zstd",
		"exactly.once.support": "required", "binlog.outbox.delivery": "at_least_once",
		"binlog.outbox.source.table": "shop.events", "binlog.outbox.node.data_dir": "/data",
		"binlog.outbox.format.value.type": "bytes", "snapshot.mode": "no_data",
	})
	if err != nil {
		t.Fatal(err)
	}
	built, err := config.Build(c.Layer())
	if err != nil {
		t.Fatal(err)
	}
	k := built.Connectors[0]
	if k.Kafka.Compression != "zstd" || k.Kafka.Delivery != config.AtLeastOnce || k.Source.Table != "shop.events" ||
		built.Node.DataDir != "/data" || k.Format.Value.Type != converter.TypeBytes {
		t.Errorf("got %+v in %s", k, built.Node.DataDir)
	}
	c, err = convertWith(map[string]string{"snapshot.mode": "no_data", "binlog.outbox.kafka.compresion": "zstd"})
	if err != nil {
		t.Fatal(err)
	}
	want := `c.properties: binlog.outbox.kafka.compresion: connectors[0].kafka.compresion: unknown setting; did you mean "compression"?`
	if _, err := config.Build(c.Layer()); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestListeners(t *testing.T) {
	for listeners, want := range map[string]string{
		"http://:8083": ":8083 remote", "http://0.0.0.0:8083,https://x:1": "0.0.0.0:8083 remote",
		"HTTP://localhost:80": "localhost:80", "http://[::1]:80": "[::1]:80",
		"https://:8443": "", "8083": "", "": "127.0.0.1:8083", ",": "127.0.0.1:8083",
	} {
		c, err := Convert(Options{Worker: &File{"w", []byte("listeners=" + listeners)}})
		if want == "" {
			if err == nil {
				t.Errorf("%s was taken", listeners)
			}
			continue
		}
		built, buildErr := config.Build(c.Layer())
		if err != nil || buildErr != nil {
			t.Errorf("%s: %v, %v", listeners, err, buildErr)
			continue
		}
		got := built.Admin.Listen
		if built.Admin.AllowRemote {
			got += " remote"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", listeners, got, want)
		}
		if told := strings.Contains(c.Lines[0].Text, "the first address alone"); told != strings.Contains(listeners,
			",http") {
			t.Errorf("%s: %s", listeners, c.Lines[0].Text)
		}
	}
}

func TestPredicates(t *testing.T) {
	const matches = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
	guard := func(class, pattern, negate, tables string) map[string]string {
		return map[string]string{
			"transforms.outbox.predicate": "p", "transforms.outbox.negate": negate, "predicates": "p",
			"predicates.p.type": class, "predicates.p.pattern": pattern, "table.include.list": tables,
		}
	}
	for name, test := range map[string]struct {
		changes map[string]string
		ok      bool
		tables  any
	}{
		"the outbox alone":          {guard(matches, `orders\.shop\.outbox`, "false", "shop.outbox"), true, "shop.outbox"},
		"an alias, part of a topic": {guard("TopicNameMatches", `.*outbox`, "false", "shop.outbox"), true, "shop.outbox"},
		"all but heartbeats":        {guard(matches, `__debezium-heartbeat.*`, "true", "shop.outbox"), true, "shop.outbox"},
		"another table beside it":   {guard(matches, `orders\.shop\.outbox`, "false", "shop.outbox,shop.orders"), false, nil},
		"the signal table beside": {merge(guard(matches, `orders\.shop\.outbox`, "false", "shop.outbox,shop.signals"),
			"signal.data.collection", "shop.signals"), false, nil},
		"none of the tables": {guard(matches, `other\.shop\.outbox`, "false", "shop.outbox"), false, nil},
		"patterns of tables": {guard(matches, `orders\.shop\.outbox`, "false", `shop\..*`), false, nil},
		"not a topic": {guard("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone", "", "true",
			"shop.outbox"), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := convertWith(test.changes)
			if (err == nil) != test.ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.tables, setting(c, "source.table")); test.ok && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func merge(m map[string]string, key, value string) map[string]string {
	m[key] = value
	return m
}

func TestDatabaseLists(t *testing.T) {
	c, err := convertWith(map[string]string{"database.include.list": "shop|billing", "table.include.list": `.*\.outbox`})
	if err != nil {
		t.Fatal(err)
	}
	patterns, _ := setting(c, "source.table_patterns").([]string)
	tables, err := config.Source{TablePatterns: patterns}.Tables()
	if err != nil {
		t.Fatal(err)
	}
	for db, want := range map[string]bool{"shop": true, "Billing": true, "shops": false, "other": false} {
		if got, err := tables.Match(db, "outbox"); got != want || err != nil {
			t.Errorf("%s: %v, %v", db, got, err)
		}
	}
	if got, err := tables.Match("shop", "orders"); got || err != nil {
		t.Error("shop.orders is no outbox")
	}
}

func TestPlainTable(t *testing.T) {
	for pattern, want := range map[string]string{
		"shop.outbox": "shop.outbox", `shop\.outbox`: "shop.outbox", `my-db\.out_box2`: "my-db.out_box2", `a\.b\$c`: "a.b$c",
		`订单\.发件箱`:     "订单.发件箱",
		`shop\.out.*`: "", `shop\.outbox|x`: "", "outbox": "", `a\.b\.c`: "", `a.b.c`: "", `\.b`: "", `a\.`: "",
		`shop\.outbox\d`: "", `a\.b$`: "", "": "",
	} {
		name, ok := plainTable(pattern)
		if got := name[0] + "." + name[1]; ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v", pattern, got, ok)
		}
	}
	if diff := cmp.Diff([]string{`a\.b`, `c\.d{1,3}`, "e"}, splitPatterns(`a\.b, c\.d{1\,3} ,,e`)); diff != "" {
		t.Error(diff)
	}
}

func TestJAAS(t *testing.T) {
	got, err := parseJAAS("org.M  required\n username=\"a b\" password='it''s' x=1;")
	if err == nil {
		t.Error("an adjoining quotation was taken", got)
	}
	got, err = parseJAAS(`org.M required username="a;=\"b" password="" x=y ;`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]jaasOption{{"username", `a;="b`}, {"password", ""}, {"x", "y"}}, got,
		cmp.AllowUnexported(jaasOption{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "org.M", "org.M required", `org.M required password="hunter2"`,
		`org.M required password="hunter2;`, `org.M required password "hunter2";`, `org.M required password=;`} {
		if _, err := parseJAAS(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"cut off":      {"{\n \"name\": \"a\",\n", "c.json:2:13: not valid JSON: it ends too early"},
		"a wrong sign": {"{\n \"name\" = 1}", "c.json:2:8: not valid JSON: invalid character '=' after object key"},
		"twice":        {`{"name": "a", "x": "1", "x": "2"}`, `c.json: "x" is given twice`},
		"two of them": {`{"name": "a"} {"name": "b"}`,
			"c.json: more text behind the JSON object; a file holds one connector"},
		"a list": {`{"name": "a", "config": {"x": [1, {"a": 2}]}}`,
			`c.json: "x" is not a text; in a connector's configuration all values are`},
		"an object": {`{"name": "a", "x": {}}`,
			`c.json: "x" is not a text; in a connector's configuration all values are`},
		"names differ": {`{"name": "a", "config": {"name": "b"}}`,
			`c.json: the name is "a" outside and "b" inside of "config"; Connect refuses that too`},
		"beside config": {`{"nane": "a", "config": {}}`, `c.json: "nane" stands beside "config" and means nothing there`},
		"stopped": {`{"name": "a", "initial_state": "STOPPED", "config": {}}`,
			"c.json: initial_state STOPPED is not possible; take it out and pause the connector once it runs"},
		"bad properties": {"name=\\u00zz", "c.json: not a Java properties file; check its \\u escapes"},
		"deep":           {strings.Repeat(`{"a":`, 30), "c.json: nested too deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Convert(Options{Connectors: []File{{"c.json", []byte(test.text)}}})
			problems, ok := errors.AsType[config.Problems](err)
			if !ok || problems[0].String() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestSeveralFilesAtOnce(t *testing.T) {
	c, err := Convert(Options{Connectors: []File{
		{"a.json", []byte(`{"name": "a", "foo": "1"}`)}, {"b.json", []byte(`{`)},
		{"c.json", []byte(`{"name": "c", "bar": "1"}`)},
	}})
	if err == nil {
		t.Fatal("no problems")
	}
	for _, want := range []string{"a.json: foo: not a key", "b.json:1:1: not valid JSON", "c.json: bar: not a key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if c == nil || len(c.Lines) == 0 {
		t.Error("no lines beside the problems")
	}
}

func FuzzConvert(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.json")
	for _, p := range paths {
		data, _ := os.ReadFile(p)
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		w := File{"w", data}
		c, _ := Convert(Options{Worker: &w, Connectors: []File{{"c", data}}})
		_, _ = (&config.Builder{KeepReferences: true}).Build(c.Layer())
	})
}

// Debezium's mode of switches is the mode that does the same.
func TestSnapshotModeOfSwitches(t *testing.T) {
	const prefix = "snapshot.mode.configuration.based."
	for _, c := range []struct {
		data, stream, anew string
		want               config.Start
	}{
		{"true", "true", "false", config.StartSnapshot},
		{"true", "true", "true", config.StartWhenNeeded},
		{"true", "false", "false", config.StartSnapshotOnly},
		{"false", "true", "false", config.StartCurrent},
	} {
		conv, err := convertWith(map[string]string{"snapshot.mode": "configuration_based", prefix + "snapshot.data": c.data,
			prefix + "start.stream": c.stream, prefix + "snapshot.on.data.error": c.anew})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Build(conv.Layer())
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Connectors[0].Source.Start; got != c.want {
			t.Errorf("%+v became %s", c, got)
		}
	}
}

// TestDefaultSnapshotModeIsNotReplaced: a file without snapshot.mode asks for the
// rows that stand in the table, as Debezium does by default.
func TestDefaultSnapshotModeIsNotReplaced(t *testing.T) {
	c, err := convertWith(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Build(c.Layer())
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Connectors[0].Source.Start; got != config.StartSnapshot {
		t.Errorf("source.start is %s", got)
	}
}

func TestListsAreJavasPatterns(t *testing.T) {
	for _, c := range []struct {
		databases, tables, want string
		bat                     bool
	}{
		{"", `shop\.[a-z&&[^b]]++`, "", false},
		{`\Qshop\E`, `.*\.\p{Alnum}+`, "", true},
		{"(shop)", `(.*)\.\1x`, "refers back", false},
		{"shop", `.*\.(?x)out#`, "unclosed group", false},
		{"", `shop\.\X`, "is not supported", false},
		{"", `shop\.[a`, "unclosed character class", false},
	} {
		settings := map[string]string{"table.include.list": c.tables}
		if c.databases != "" {
			settings["database.include.list"] = c.databases
		}
		converted, err := convertWith(settings)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %q: %v", c.databases, c.tables, err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		patterns, _ := setting(converted, "source.table_patterns").([]string)
		tables, err := config.Source{TablePatterns: patterns}.Tables()
		if err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]bool{"cat": true, "bat": c.bat, "größe": false} {
			if got, err := tables.Match("shop", table); got != want || err != nil {
				t.Errorf("%q, %q: shop.%s %v, %v", c.databases, c.tables, table, got, err)
			}
		}
	}
}

// What has no effect is not reported as taken.
func TestTracingIsNotTakenOver(t *testing.T) {
	const prefix = "transforms.outbox.tracing."
	c, err := convertWith(map[string]string{prefix + "span.context.field": "trace", prefix + "operation.name": "x",
		prefix + "with.context.field.only": "false"})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, l := range c.Lines {
		if strings.HasPrefix(l.Key, prefix) {
			if told++; l.Outcome != Harmless || l.Setting != "" || !strings.Contains(l.Text, "no tracing") {
				t.Errorf("%s", l)
			}
		}
	}
	if told != 3 {
		t.Errorf("%d lines, want 3", told)
	}
	if _, err := convertWith(map[string]string{"signal.data.collection": "shop.signals"}); err == nil {
		t.Error("a table of signals that nobody reads is taken")
	}
}

// Options that came with a release count since then, by its number.
func TestReleasesOfOptions(t *testing.T) {
	for release, want := range map[string]any{"3.6": nil, "3.7": "optional_string", "3.10": "optional_string",
		"4.0": "optional_string"} {
		c, err := convertWith(map[string]string{"transforms.outbox.table.json.payload.empty.array.behavior": "optional_string", "binlog.outbox.debezium.compat": release})
		if err != nil {
			t.Fatal(err)
		}
		if got := setting(c, "outbox.json_empty_array"); got != want {
			t.Errorf("%s: %v", release, got)
		}
	}
	c, err := convertWith(map[string]string{"binlog.outbox.debezium.compat": "3.7"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := config.Build(c.Layer()); err != nil || cfg.Connectors[0].Debezium.Compat != "3.7" {
		t.Errorf("release 3.7 can't be set: %v", err)
	}
}
