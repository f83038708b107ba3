package router

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// testdata/java-regex.json holds what java.util.regex (Java 17) does: text is the
// result of "if it matches as a whole, replace the first match", error what compile or
// replacement throws.
func TestRouteRegexAsJava(t *testing.T) {
	raw, err := os.ReadFile("testdata/java-regex.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Regex, Replacement, Value, Text, Error string
		Matched                                bool
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		tp, err := newTopics(c.Regex, c.Replacement)
		if c.Error != "" {
			if err == nil {
				t.Errorf("%q -> %q: accepted, Java says %s", c.Regex, c.Replacement, c.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q -> %q: %v", c.Regex, c.Replacement, err)
			continue
		}
		got, err := tp.rewrite(c.Value)
		if err != nil || got != c.Text {
			t.Errorf("%q -> %q on %q: %q, %v; Java: %q (matched %v)", c.Regex, c.Replacement, c.Value, got, err, c.Text,
				c.Matched)
		}
	}
}

func TestRouteRegexRefusesWhatItCannotHonour(t *testing.T) {
	for _, re := range []string{`(?c)a`, `\X`, `\b{g}`, `\p{InGreek}`, `\N{DIGIT ONE}`, `a**`, `[a`, `(a`, `\ud83d`} {
		if _, err := newTopics(re, "x"); err == nil || !strings.HasPrefix(err.Error(), "route.topic.regex: ") {
			t.Errorf("%q: %v", re, err)
		}
	}
}

// The ends of a class's ranges are the neighbours of what it shuts out: for these
// characters they are others that a class writes with care.
func TestRouteRegexNegatedClasses(t *testing.T) {
	for _, c := range []struct{ regex, value, want string }{
		{`([^.]+)\.(.*)`, "sales.Order", "sales.events.Order"},
		{`([^.]+)\.(.*)`, "a-b.c", "a-b.events.c"},
		{`([^,]+),(.*)`, "a-b,c", "a-b.events.c"},
		{`([^\]]+)\](.*)`, `a[b]c`, "a[b.events.c"},
		{`([^\\]+)\\(.*)`, `a]b\c`, "a]b.events.c"},
		{`([^\^]+)\^(.*)`, "a]b^c", "a]b.events.c"},
		{`([^\[]+)\[(.*)`, `a\b[c`, `a\b.events.c`},
		{`([^_]+)_(.*)`, "a^b_c", "a^b.events.c"},
		{`([^\-]+)-(.*)`, "a.b-c", "a.b.events.c"},
		{`([!-\-]+)\.(.*)`, "!-.c", "!-.events.c"},
	} {
		tp, err := newTopics(c.regex, "$1.events.$2")
		if err != nil {
			t.Errorf("%s: %v", c.regex, err)
			continue
		}
		if got, err := tp.rewrite(c.value); got != c.want || err != nil {
			t.Errorf("%s on %q: %q, %v; want %q", c.regex, c.value, got, err, c.want)
		}
	}
}

// What looks like the plain form and is not one matches only some values.
func TestRouteRegexNearlyPlain(t *testing.T) {
	for _, c := range []struct{ regex, replacement, value, want string }{
		{`(?<n>a.*)`, "x.${n}", "b", "b"},
		{`(?<n>a.*)`, "x.${n}", "ab", "x.ab"},
		{`(?<n>x)(.*)`, "t.$1", "xyz", "t.x"},
		{`(?<n>.*)`, "x.${n}", "b", "x.b"},
	} {
		tp, err := newTopics(c.regex, c.replacement)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tp.rewrite(c.value); got != c.want || err != nil {
			t.Errorf("%s on %q: %q, %v; want %q", c.regex, c.value, got, err, c.want)
		}
	}
}

// An expression that goes back over a value without end stops at that row.
func TestRouteRegexTooLong(t *testing.T) {
	tp, err := newTopics(`(a|aa)*\1b(.*)`, "$2")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := tp.name(strings.Repeat("a", 60)); !errors.Is(err, javaregex.ErrTooLong) ||
		!strings.HasPrefix(err.Error(), "route.topic.regex: ") {
		t.Errorf("%q, %v", name, err)
	}
}
