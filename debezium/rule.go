package debezium

import (
	"slices"
	"strings"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// rule says what becomes of a key, or of all keys that begin alike.
type rule struct {
	key    string
	prefix bool
	// near lets a prefix not cover a key that looks like a misspelling of another.
	near  bool
	apply func(*connector, located)
}

func (r rule) matches(key string) bool {
	if r.prefix {
		return strings.HasPrefix(key, r.key)
	}
	return key == r.key
}

// knownKeys are the full names of all keys that have a meaning, for suggestions.
var knownKeys = sync.OnceValue(func() []string {
	out := slices.Clone(handledElsewhere)
	for _, r := range rules() {
		if !r.prefix {
			out = append(out, r.key)
		}
	}
	slices.Sort(out)
	return out
})

// handledElsewhere are keys with a function of their own.
var handledElsewhere = []string{
	"name", "connector.class", "transforms", "predicates",
	"key.converter", "value.converter", "header.converter",
	"key.converter.schemas.enable", "value.converter.schemas.enable",
	"table.include.list", "database.include.list", "table.exclude.list", "database.exclude.list",
	"column.include.list", "column.exclude.list", "database.ssl.mode", "database.ssl.truststore", "database.ssl.keystore",
	"database.ssl.truststore.password", "database.ssl.keystore.password",
	"topic.creation.default.partitions", "topic.creation.default.replication.factor", "topic.creation.groups",
}

// parsed takes a value that is turned into another by f.
func parsed(key, path string, f func(located) (any, error)) rule {
	return rule{key: key, apply: func(c *connector, l located) {
		if !c.literal(l) {
			return
		}
		value, err := f(l)
		if err != nil {
			c.refuse(l, err.Error())
			return
		}
		c.take(l, path, value, "")
	}}
}

// literal refuses a value with a reference where the value must be known.
func (c *connector) literal(l located) bool {
	if !l.hasReference() {
		return true
	}
	c.refuse(l,
		"a reference can't stand here, since what it stands for decides how the file is read; write the value itself")
	return false
}

type wordError struct {
	value string
	enum  []string
}

func (e *wordError) Error() string {
	text := "\"" + e.value + "\" is not one of " + strings.Join(e.enum, ", ")
	if near := config.Nearest(e.value, e.enum); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// ignored passes over a key that has no meaning here.
func ignored(why string, keys ...string) []rule {
	out := make([]rule, len(keys))
	for i, key := range keys {
		out[i] = rule{key: strings.TrimSuffix(key, "*"), prefix: strings.HasSuffix(key, "*"),
			apply: func(c *connector, l located) {
				c.harmless(l, why)
			}}
	}
	return out
}

// only takes one of the values, which are what happens here anyway, and refuses
// all others with a reason. An empty value counts as not given.
func only(key, reason string, values ...string) rule {
	return rule{key: key, apply: func(c *connector, l located) {
		switch {
		case l.value == "" || slices.Contains(values, l.word()):
			c.same(l, "so it is here")
		case c.literal(l):
			c.refuse(l, reason)
		}
	}}
}

// refused takes no value but an empty one.
func refused(reason string, keys ...string) []rule {
	out := make([]rule, len(keys))
	for i, key := range keys {
		out[i] = rule{key: strings.TrimSuffix(key, "*"), prefix: strings.HasSuffix(key, "*"),
			apply: func(c *connector, l located) {
				if l.value == "" {
					c.same(l, "so it is here")
					return
				}
				c.refuse(l, reason)
			}}
	}
	return out
}

// schemaOnly refuses a value where consumers see schemas, and passes over it
// where they don't.
func schemaOnly(reason string, off []string, keys ...string) []rule {
	out := make([]rule, len(keys))
	for i, key := range keys {
		out[i] = rule{key: key, apply: func(c *connector, l located) {
			switch {
			case l.value == "" || slices.Contains(off, l.word()):
				c.same(l, "so it is here")
			case c.schemas:
				c.refuse(l, reason)
			default:
				c.harmless(l, "shows in schemas only, and no converter writes them")
			}
		}}
	}
	return out
}
