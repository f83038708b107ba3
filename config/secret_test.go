package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestB107SecretsAreNeverShown prints a secret, and what holds it, in every way
// that code may print it by accident.
func TestB107SecretsAreNeverShown(t *testing.T) {
	const password = "hunter2"
	s := NewSecret(password)
	c := Connector{Source: Source{User: "u", Password: s}, Kafka: Kafka{SASL: SASL{Password: s, Token: s,
		ClientSecret: s}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %v"} {
		for _, value := range []any{s, &s, c, &c, []Secret{s}, map[string]Secret{"a": s}} {
			if out := fmt.Sprintf(verb, value); strings.Contains(out, password) ||
				strings.Contains(out, fmt.Sprintf("%x", password)) {
				t.Errorf("%s of %T shows it: %s", verb, value, out)
			}
		}
	}
	marshal := map[string]func(any) ([]byte, error){
		"JSON": json.Marshal,
		"YAML": func(v any) ([]byte, error) { return yaml.Marshal(v) },
		"slog": func(v any) ([]byte, error) {
			var b bytes.Buffer
			slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "secret", v)
			slog.New(slog.NewTextHandler(&b, nil)).Info("x", "secret", v)
			return b.Bytes(), nil
		},
	}
	for name, f := range marshal {
		for _, value := range []any{s, c} {
			out, err := f(value)
			if err != nil || !strings.Contains(string(out), Mask) || strings.Contains(string(out), password) {
				t.Errorf("%s of %T: %s, %v", name, value, out, err)
			}
		}
	}
	if got := NewSecret("").String(); got != "" {
		t.Errorf("an empty secret prints %q", got)
	}
}

func TestB107ReferencesAreShownValuesNot(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"hunter2":                  Mask,
		"${env:A}":                 "${env:A}",
		"${env:A}${file:/a:b}":     "${env:A}${file:/a:b}",
		"${env:A}hunter2":          Mask,
		"hunter2${env:A}":          Mask,
		"${hunter2}":               Mask,
		"a${b":                     Mask,
		"${env:A}-${env:B}hunter2": Mask,
	} {
		if got := NewSecret(text).Reference(); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	r := testResolver()
	for text, want := range map[string]string{
		"":                              "",
		"plain $1 ${routedByValue} ${x": "plain $1 ${routedByValue} ${x",
		"${env:KAFKA_PASSWORD}":         "s3cret",
		"a${env:KAFKA_PASSWORD}b${env:KAFKA_PASSWORD}":      "as3cretbs3cret",
		"${file:/run/secrets/token}":                        "t0ken",
		"${dir:/run/secrets:token}":                         "t0ken",
		"${directory:/run/secrets/:token}":                  "t0ken",
		"${file:/run/secrets/db.properties:mysql.password}": `p: #x"${y:z}`,
		"${file:/run/secrets/db.properties:escaped}":        "café é",
	} {
		got, err := r.Resolve(text)
		if err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${env:NONE}", "${file:/nope}", "${file:/run/secrets/db.properties:nope}",
		"${dir:/run/secrets}", "${dir:/run/secrets:../x}", "${vault:a}"} {
		if got, err := r.Resolve(text); err == nil {
			t.Errorf("%s gives %q", text, got)
		} else if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %s: %v", text, err)
		}
	}
}

// TestB107SecretsAreReadAnew: a password that was changed in its file is the one
// of the next connect.
func TestB107SecretsAreReadAnew(t *testing.T) {
	current := "old"
	b := Builder{Resolver: &Resolver{ReadFile: func(string) ([]byte, error) { return []byte(current + "\n"), nil }}}
	c, err := b.Build(YAML("node.yaml", []byte(strings.Replace(Example(), "${env:MYSQL_PASSWORD}",
		"${file:/run/secrets/p}", 1))))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "new"} {
		current = want
		if got, err := c.Connectors[0].Source.Password.Resolve(); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// TestB107ValuesDoNotReachMessages puts secrets where they can't be parsed.
func TestB107ValuesDoNotReachMessages(t *testing.T) {
	for _, text := range []string{
		strings.Replace(Example(), "user: outbox_cdc", "user: outbox_cdc\n      port: ${env:KAFKA_PASSWORD}", 1),
		strings.Replace(Example(), "${env:MYSQL_PASSWORD}", "\"s3cret", 1),
		strings.Replace(Example(), "${env:MYSQL_PASSWORD}", "{a: s3cret}", 1),
		strings.Replace(Example(), "${env:MYSQL_PASSWORD}", "*s3cret", 1),
		strings.Replace(Example(), "${env:MYSQL_PASSWORD}", "s3cret\n      passwort: s3cret", 1),
	} {
		b := Builder{Resolver: testResolver()}
		_, err := b.Build(YAML("node.yaml", []byte(text)))
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("for\n%s\ngot %v", text, err)
		}
	}
}

// Nor do they reach messages about other settings, or ones that quote a part of them.
func TestValuesDoNotReachMessagesOfOtherSettings(t *testing.T) {
	lookup := func(name string) (string, bool) {
		return map[string]string{"ID": "hunter2-node", "P": "hunter2-prefix", "BAD": `hunter2 "x`}[name], true
	}
	for _, text := range []string{
		"node: {id: \"${env:ID}\"}\ncluster: {listen: \"127.0.0.1:1\", peers: [\"other=127.0.0.1:1\"]}\n",
		"cluster: {listen: \"127.0.0.1:1\", peers: [\"${env:BAD}\"]}\n",
		strings.Replace(Example(), "    kafka:\n",
			"    errors: {dead_letter: {topic: \"hunter2-prefix.orders-outbox.position\"}}\n    kafka:\n      "+
				"transactional_id_prefix: ${env:P}\n", 1),
		strings.Replace(Example(), "shop.outbox", "\"${env:BAD}\"", 1),
		strings.Replace(Example(), "start: current", "start: ${env:BAD}", 1),
		strings.Replace(Example(), "host: mysql.example.internal", "host: \"${env:BAD}:1\"", 1),
		strings.Replace(Example(), "start: current", "tls: {ca: \"/${env:BAD}\"}", 1),
		strings.Replace(Example(), "start: current", "table_patterns: [\"(${env:BAD}\"]", 1),
		strings.Replace(Example(), "start: current", "gtid_include: [\"(${env:BAD}\"]", 1),
	} {
		_, err := (&Builder{Resolver: &Resolver{LookupEnv: lookup}}).Build(YAML("node.yaml", []byte(text)))
		if err == nil {
			t.Errorf("it is taken:\n%s", text)
			continue
		}
		message := strings.ReplaceAll(err.Error(), "hunter2-prefix.orders-outbox.position", "") // written in the file
		if strings.Contains(message, "hunter2") || !strings.Contains(message, "${env:") {
			t.Errorf("for\n%s\ngot %v", text, err)
		}
	}
}
