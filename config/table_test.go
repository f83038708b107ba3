package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// paths returns the general paths of all sections and settings, in the order of
// the structs.
func paths(path string, t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("yaml")
		if key == "" {
			continue
		}
		p := join(path, key)
		out = append(out, p)
		switch f := t.Field(i).Type; {
		case isSection(f):
			out = append(out, paths(p, f)...)
		case f.Kind() == reflect.Slice && isSection(f.Elem()):
			out = append(out, paths(p+"[]", f.Elem())...)
		}
	}
	return out
}

func TestTableIsTheStructs(t *testing.T) {
	var table []string
	for _, f := range fields() {
		table = append(table, f.path)
		if f.doc == "" {
			t.Errorf("%s has no doc", f.path)
		}
	}
	if diff := cmp.Diff(paths("", reflect.TypeFor[Config]()), table); diff != "" {
		t.Errorf("the table differs from the structs (-structs +table):\n%s", diff)
	}
}

func TestDefaultsAreOfTheirTypes(t *testing.T) {
	for _, f := range fields() {
		if f.def == "" {
			continue
		}
		v := reflect.New(typeOf(f.path)).Elem()
		if err := setScalar(v, strings.Trim(f.def, `"`), nil); err != nil {
			t.Errorf("%s: default %s: %v", f.path, f.def, err)
		}
		if len(f.enum) > 0 && !contains(f.enum, strings.Trim(f.def, `"`)) {
			t.Errorf("%s: default %s is none of its words", f.path, f.def)
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// TestReferenceIsTheDefaults reads the reference back: it must be valid, and say
// what is in force without it.
func TestReferenceIsTheDefaults(t *testing.T) {
	got, err := Build(YAML("reference.yaml", []byte(Reference())))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Build(Settings(
		Setting{Path: "connectors[0].name", Value: "orders-outbox"},
		Setting{Path: "connectors[0].source.host", Value: "mysql.example.internal"},
		Setting{Path: "connectors[0].source.user", Value: "outbox_cdc"},
		Setting{Path: "connectors[0].source.table", Value: "shop.outbox"},
		Setting{Path: "connectors[0].kafka.brokers", Value: "kafka-1.example.internal:9092"},
	))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(effective(t, want), effective(t, got)); diff != "" {
		t.Errorf("the reference differs from the defaults (-defaults +reference):\n%s", diff)
	}
	for _, f := range fields() {
		if !strings.Contains(Reference(), f.name()+":") {
			t.Errorf("%s is not in the reference", f.path)
		}
	}
}

// TestReferenceExamplesAreValid takes the "#" off every example.
func TestReferenceExamplesAreValid(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(Reference()) {
		trimmed := strings.TrimLeft(line, " ")
		if rest, ok := strings.CutPrefix(trimmed, "#"); ok && !strings.HasPrefix(rest, " ") {
			line = strings.Replace(line, "#", "", 1)
		} else if ok && strings.HasPrefix(line, "#  ") {
			line = line[1:]
		}
		b.WriteString(line)
	}
	_, err := (&Builder{KeepReferences: true}).Build(YAML("examples.yaml", []byte(b.String())))
	for line := range strings.SplitSeq(err.Error(), "\n") {
		// Some exclude each other, and some are not built yet.
		switch {
		case strings.Contains(line, "can't go together"), strings.Contains(line, "not available yet"),
			strings.Contains(line, "does not list this node"), strings.Contains(line, "is required with the other keys"):
		default:
			t.Error(line)
		}
	}
}

func effective(t *testing.T, c *Config) string {
	t.Helper()
	out, err := c.Show(true)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestReferencePageIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "config.md")
	if *write {
		if err := os.WriteFile(path, []byte(ReferencePage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != ReferencePage() {
		t.Error("docs/config.md is stale; run: go generate ./config")
	}
}

// TestSampleFile reads the complete sample, which must name every key.
func TestSampleFile(t *testing.T) {
	path := filepath.Join("..", "deploy", "binlog-outbox.yaml")
	if _, err := (&Builder{KeepReferences: true}).Build(File(path)); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields() {
		if !strings.Contains(string(data), f.name()+":") {
			t.Errorf("the sample lacks %s", f.path)
		}
	}
}

func TestExample(t *testing.T) {
	b := Builder{Resolver: &Resolver{LookupEnv: func(string) (string, bool) { return "x", true }}}
	c, err := b.Build(YAML("example.yaml", []byte(Example())))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Connectors[0].TopicPrefix; got != "orders-outbox" {
		t.Errorf("topic_prefix is %q by default", got)
	}
}

func TestShowCanBeReadAgain(t *testing.T) {
	file := filepath.Join("..", "deploy", "binlog-outbox.yaml")
	b := &Builder{KeepReferences: true}
	first, err := b.Build(File(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} {
		out, err := first.Show(all)
		if err != nil {
			t.Fatal(err)
		}
		second, err := b.Build(YAML("shown.yaml", out))
		if err != nil {
			t.Fatalf("effective=%v:\n%v\n%s", all, err, out)
		}
		if diff := cmp.Diff(effective(t, first), effective(t, second)); diff != "" {
			t.Errorf("effective=%v: read again it differs:\n%s", all, diff)
		}
	}
	if out, _ := first.Show(false); !strings.Contains(string(out),
		"${file:/etc/binlog-outbox/secrets.properties:mysql.password}") {
		t.Errorf("the reference of the password is not shown:\n%s", out)
	}
}

func TestShowKeepsReferencesOfAllTypes(t *testing.T) {
	text := strings.Replace(Example(), "user: outbox_cdc",
		"user: ${env:KAFKA_PASSWORD}\n      tls: {server_name: '${env:KAFKA_PASSWORD}'}", 1)
	text = strings.Replace(text, "${env:MYSQL_PASSWORD}", "${env:KAFKA_PASSWORD}", 1)
	text = strings.Replace(text, "[kafka-1.example.internal:9092]", `["${env:KAFKA_PASSWORD}:9092"]`, 1)
	b := Builder{Resolver: testResolver()}
	c, err := b.Build(YAML("node.yaml", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Connectors[0].Source.User != "s3cret" || c.Connectors[0].Kafka.Brokers[0] != "s3cret:9092" {
		t.Errorf("references were not resolved: %+v", c.Connectors[0])
	}
	for _, all := range []bool{false, true} {
		out, err := c.Show(all)
		if err != nil || strings.Contains(string(out), "s3cret") || strings.Count(string(out), "${env:KAFKA_PASSWORD}") != 4 {
			t.Errorf("effective=%v shows\n%s %v", all, out, err)
		}
	}
}
