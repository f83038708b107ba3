package router

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
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
			t.Errorf("%q -> %q on %q: %q, %v; Java: %q (matched %v)", c.Regex, c.Replacement, c.Value, got, err, c.Text, c.Matched)
		}
	}
}

func TestRouteRegexRefusesWhatItCannotHonour(t *testing.T) {
	for _, re := range []string{`(?u)a`, `(?d)a`, `(?U)a`, `\X`, `\b{g}`, `\p{javaLowerCase}`, `(a)(?i)\1`, `\1(a)`, `\Qab\E+`, `{2}`} {
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
