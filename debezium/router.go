package debezium

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

const routerClass = "io.debezium.transforms.outbox.EventRouter"

// transforms understands the chain of single message transforms, which here can
// only be the router, and the predicates that guard it.
func (c *connector) transforms() {
	chain, _ := c.get("transforms")
	router := ""
	for _, alias := range splitList(chain.value) {
		prefix := "transforms." + alias + "."
		class, ok := c.get(prefix + "type")
		switch name := strings.TrimSpace(class.value); {
		case !ok:
			c.refuse(c.absent(prefix+"type"), "is missing for the transform "+alias)
		case name != routerClass && name != "EventRouter":
			c.refuse(class, name+" is not possible: the only transform is the outbox router")
			c.consume(prefix, class.key, "of the transform "+alias)
		case router != "":
			c.refuse(class, "the router stands in the chain twice")
			c.consume(prefix, class.key, "of the transform "+alias)
		default:
			router = alias
			c.same(class, "the outbox router")
		}
	}
	if router == "" {
		c.refuse(located{c.file, "transforms", chain.value},
			"without "+routerClass+" this connector publishes change events, which is not possible here")
	} else {
		c.same(chain, "the outbox router")
		c.router("transforms." + router + ".")
	}
	for _, key := range c.withPrefix("transforms.") {
		if !c.handled[key] {
			l, _ := c.get(key)
			c.harmless(l, "belongs to a transform that is not in transforms")
		}
	}
	c.leftPredicates()
}

// consume passes over the keys below prefix that belong to something refused.
func (c *connector) consume(prefix, except, why string) {
	for _, key := range c.withPrefix(prefix) {
		if key != except && !c.handled[key] {
			l, _ := c.get(key)
			c.harmless(l, why)
		}
	}
}

func splitList(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// routerRules are the options of the router, by their names behind the alias.
func routerRules() []rule {
	rules := append(equivalentRules(routerPrefix),
		rule{key: "table.fields.additional.placement", apply: additional},
		until("3.5", parsed("table.fields.additional.error.on.missing", "outbox.missing_additional",
			func(l located) (any, error) {
				fail, err := boolean(l)
				if fail {
					return "error", err
				}
				return "ignore", err
			})))
	rules = append(rules, ignored("there is no tracing here: no span is sent, and no trace context becomes a header; "+
		"send its column with table.fields.additional.placement",
		"tracing.span.context.field", "tracing.operation.name", "tracing.with.context.field.only")...)
	return append(rules, ignored("the router never reads it; send the column with table.fields.additional.placement",
		"table.field.event.type")...)
}

// releaseLess compares releases such as "3.6" by their numbers.
func releaseLess(a, b string) bool {
	parse := func(text string) (major, minor int) {
		first, second, _ := strings.Cut(text, ".")
		major, _ = strconv.Atoi(first)
		minor, _ = strconv.Atoi(second)
		return major, minor // a release that is none is refused when the configuration is built
	}
	am, an := parse(a)
	bm, bn := parse(b)
	return am < bm || am == bm && an < bn
}

// since is a rule for an option that releases before do not know and pass over.
func since(release string, r rule) rule {
	return rule{key: r.key, apply: func(c *connector, l located) {
		if releaseLess(c.compat(), release) {
			c.harmless(l, fmt.Sprintf("Debezium %s passes over it; it counts with %sdebezium.compat=%s", c.compat(), ownPrefix,
				release))
			return
		}
		r.apply(c, l)
	}}
}

// until is a rule for an option that releases after pass over.
func until(release string, r rule) rule {
	return rule{key: r.key, apply: func(c *connector, l located) {
		if releaseLess(release, c.compat()) {
			c.harmless(l, fmt.Sprintf("Debezium %s passes over it; it counts with %sdebezium.compat=%s", c.compat(), ownPrefix,
				release))
			return
		}
		r.apply(c, l)
	}}
}

// compat is the release to follow.
func (c *connector) compat() string {
	release := config.NewConnector().Debezium.Compat
	if c.release != "" {
		release = c.release
	}
	for _, s := range c.ownSettings {
		if strings.HasSuffix(s.Path, "].debezium.compat") {
			release = strings.TrimSpace(fmt.Sprint(s.Value))
		}
	}
	return release
}

// columns are the columns that the router is told, by name.
func (c *connector) columns() []string {
	defaults := config.NewConnector().Outbox
	names := []string{defaults.ID, defaults.Key, defaults.Payload, defaults.RouteBy}
	for _, s := range c.settings {
		switch strings.TrimPrefix(s.Path, c.prefix) {
		case "outbox.id", "outbox.key", "outbox.payload", "outbox.route_by", "outbox.timestamp", "outbox.schema_version":
			names = append(names, fmt.Sprint(s.Value))
		case "outbox.additional":
			for _, item := range s.Value.([]string) {
				column, _, _ := strings.Cut(item, ":")
				names = append(names, strings.TrimSpace(column))
			}
		}
	}
	return names
}

func (c *connector) router(prefix string) {
	known := routerRules()
	names := []string{prefix + "type", prefix + "predicate", prefix + "negate"}
	for _, r := range known {
		names = append(names, prefix+r.key)
	}
	for _, key := range c.withPrefix(prefix) {
		l, _ := c.get(key)
		option := strings.TrimPrefix(key, prefix)
		switch i := slices.IndexFunc(known, func(r rule) bool { return r.key == option }); {
		case c.handled[key]:
		case option == "predicate" || option == "negate":
			// Looked at with the tables, which they choose among.
		case i >= 0:
			known[i].apply(c, l)
		default:
			c.unknown(l, names)
		}
	}
	c.guard(prefix)
}

// additional hands the items on as Java's split makes them: empty ones at the end
// vanish, of the list and of each item.
func additional(c *connector, l located) {
	items := strings.Split(strings.TrimRight(l.value, ", "), ",")
	for i, item := range items {
		items[i] = strings.TrimRight(strings.TrimSpace(item), ":")
		if parts := strings.Count(items[i], ":"); (parts < 1 || parts > 2) && !l.hasReference() {
			c.refuse(l, fmt.Sprintf("%q is not column:placement or column:placement:alias", strings.TrimSpace(item)))
			return
		}
	}
	c.take(l, "outbox.additional", items, "")
}

// guard is a predicate that lets the router see only some topics.
type guard struct {
	at      located
	pattern *javaregex.Pattern
	negate  bool
}

// lets reports whether the router sees the records of a table, whose change
// events have this topic.
func (g *guard) lets(topic string) (bool, error) {
	ok, err := g.pattern.Match(topic)
	return ok != g.negate, err
}

const topicPredicate = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"

// guard understands the router's predicate; it is looked at in tables.
func (c *connector) guard(prefix string) {
	predicate, ok := c.get(prefix + "predicate")
	negate, negated := c.get(prefix + "negate")
	if !ok || predicate.value == "" {
		if negated {
			c.harmless(negate, "there is no predicate")
		}
		return
	}
	alias := "predicates." + strings.TrimSpace(predicate.value) + "."
	class, _ := c.get(alias + "type")
	pattern, _ := c.get(alias + "pattern")
	g := &guard{at: predicate}
	if negated {
		var err error
		if g.negate, err = boolean(negate); err != nil {
			c.refuse(negate, err.Error())
			return
		}
		c.same(negate, "of the router's predicate")
	}
	if name := strings.TrimSpace(class.value); name != topicPredicate && name != "TopicNameMatches" {
		c.refuse(predicate, fmt.Sprintf("%s is not understood; the router's predicate can only be TopicNameMatches", name))
		return
	}
	var err error
	if g.pattern, err = javaregex.Compile(pattern.value); err != nil || pattern.hasReference() {
		c.refuse(pattern, "is not a regular expression that can be held against topics here")
		return
	}
	c.same(class, "of the router's predicate")
	c.same(pattern, "of the router's predicate")
	c.routerGuard = g
	c.handled[predicate.key] = true // its line comes with the tables
}

// leftPredicates passes over predicates that guard nothing.
func (c *connector) leftPredicates() {
	if l, ok := c.get("predicates"); ok {
		c.same(l, "the predicate of the router, if any")
	}
	for _, key := range c.withPrefix("predicates.") {
		if !c.handled[key] {
			l, _ := c.get(key)
			c.harmless(l, "guards no transform that is here")
		}
	}
}
