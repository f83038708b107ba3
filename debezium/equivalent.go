package debezium

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// routerPrefix begins the keys of the router in the table of settings.
const routerPrefix = "transforms.*."

// equivalents are the settings with a key of the same meaning, by that key.
var equivalents = sync.OnceValue(func() map[string]config.Equivalent {
	out := map[string]config.Equivalent{}
	for _, e := range config.Equivalents() {
		out[e.Key] = e
	}
	return out
})

// equivalentRules take the keys that begin with prefix, by what is behind it; without a
// prefix the connector's own.
func equivalentRules(prefix string) []rule {
	var out []rule
	for _, e := range config.Equivalents() {
		key, ok := strings.CutPrefix(e.Key, prefix)
		if ok && (prefix != "" || !ofAPart(key)) {
			out = append(out, equivalentRule(key, e))
		}
	}
	return out
}

// ofAPart reports a key of the router, the producer or a converter.
func ofAPart(key string) bool {
	return strings.HasPrefix(key, routerPrefix) || strings.HasPrefix(key, overridePrefix) ||
		strings.Contains(key, ".converter.")
}

func equivalentRule(key string, e config.Equivalent) rule {
	r := rule{key: key, apply: func(c *connector, l located) { c.equivalent(l, e) }}
	if e.Since != "" {
		return since(e.Since, r)
	}
	return r
}

// equivalent takes a value that means the same here.
func (c *connector) equivalent(l located, e config.Equivalent) {
	switch e.Kind {
	case config.Verbatim:
		c.take(l, e.Path, l.value, "")
		return
	case config.Text:
		c.take(l, e.Path, strings.TrimSpace(l.value), "")
		return
	}
	if !c.literal(l) {
		return
	}
	var value any
	var err error
	switch e.Kind {
	case config.Boolean:
		value, err = boolean(l)
	case config.Milliseconds:
		var d time.Duration
		d, err = milliseconds(l)
		value = d.String()
	case config.List:
		value = splitList(l.value)
	case config.Enum:
		if value = l.word(); !slices.Contains(e.EnumValues, l.word()) {
			err = &wordError{l.value, e.EnumValues}
		}
	}
	if err != nil {
		c.refuse(l, err.Error())
		return
	}
	c.take(l, e.Path, value, "")
}

// written is a value as Debezium writes it; false where it can't be, or where it would
// not be read back as the same.
func written(e config.Equivalent, value any) (string, bool) {
	text := settingText(value)
	if e.Kind != config.Text && e.Kind != config.Verbatim && config.HasReference(text) {
		return "", false
	}
	if e.Kind == config.Milliseconds {
		d, err := time.ParseDuration(text)
		if err != nil || d%time.Millisecond != 0 {
			return "", false
		}
		return strconv.FormatInt(d.Milliseconds(), 10), true
	}
	return text, e.Since == ""
}
