package debezium

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// ownPrefix begins keys that are ours, in files that are otherwise Debezium's.
const ownPrefix = "binlog.outbox."

// connector turns one connector's file over.
type connector struct {
	conversion

	file   string
	pairs  *pairs
	worker *worker
	// own are the settings given with ownPrefix, by their path in the connector;
	// where one is given, the Debezium key that it stands in for is ignored.
	own map[string]bool
	// ownSettings come last, so that they win.
	ownSettings []config.Setting
	// mariadb is set when the connector's class says so.
	mariadb bool
	// schemas is set when a converter writes schemas, so that consumers see them.
	schemas bool
	// routerGuard is the predicate of the router; nil for none.
	routerGuard *guard
	// release is Options.Release.
	release string
	// start is the word of source.start.
	start config.Start
}

func newConnector(file string, index int, values *pairs, w *worker) *connector {
	return &connector{
		conversion: conversion{prefix: "connectors[" + strconv.Itoa(index) + "].", handled: map[string]bool{}},
		file:       file, pairs: values, worker: w, own: map[string]bool{}, start: config.StartSnapshot,
	}
}

// get returns the value of a key, with the names of the worker's configuration
// providers turned into ours.
func (c *connector) get(key string) (located, bool) {
	value, ok := c.pairs.values[key]
	return located{c.file, key, c.worker.providers(value)}, ok
}

// absent stands for a key that is not there, for settings and lines about it.
func (c *connector) absent(key string) located { return located{file: c.file, key: key} }

// withPrefix returns the keys that begin with prefix, in the order of the file.
func (c *connector) withPrefix(prefix string) []string {
	var out []string
	for _, key := range c.pairs.order {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

func (c *connector) convert() {
	c.ownKeys()
	c.identity()
	c.converters()
	c.transforms()
	c.tables()
	c.columnRules()
	c.sourceTLS()
	c.producer()
	c.topicCreation()
	c.offsets()
	if _, ok := c.get("snapshot.mode"); !ok && !c.own["source.start"] {
		c.set(c.absent("snapshot.mode"), "source.start", string(config.StartSnapshot)) // Debezium's default
	}
	for _, key := range c.pairs.order {
		if !c.handled[key] {
			l, _ := c.get(key)
			c.simple(l)
		}
	}
	c.unknownProviders()
	c.settings = append(c.settings, c.ownSettings...)
	c.sortLines(c.pairs.order)
}

func (c *connector) identity() {
	name, ok := c.get("name")
	if !ok || name.value == "" {
		c.refuse(c.absent("name"), "is missing; a connector needs a name")
	} else {
		c.take(name, "name", name.value, "")
	}
	if prefix, _ := c.get("topic.prefix"); prefix.value == "" && !c.own["topic_prefix"] {
		c.refuse(c.absent("topic.prefix"), "is missing; Debezium asks for it too")
	}
	class, _ := c.get("connector.class")
	switch strings.TrimSpace(class.value) {
	case "io.debezium.connector.mysql.MySqlConnector", "MySqlConnector", "MySql":
		c.take(class, "source.flavor", string(config.FlavorMySQL), "")
	case "io.debezium.connector.mariadb.MariaDbConnector", "MariaDbConnector", "MariaDb":
		c.mariadb = true
		c.take(class, "source.flavor", string(config.FlavorMariaDB), "")
	case "":
		c.refuse(c.absent("connector.class"), "is missing; it says that this is a Debezium MySQL or MariaDB connector")
	default:
		c.refuse(class, fmt.Sprintf("%s is another connector; only Debezium's MySqlConnector and MariaDbConnector are "+
			"replaced here", class.value))
	}
}

// nodeSections are the parts of the configuration outside of a connector.
var nodeSections = []string{"node", "cluster", "admin", "log"}

// ownPath returns the setting that a key with ownPrefix names; node is set when
// it is one of the node and not of a connector.
func ownPath(key string) (path string, node bool) {
	path = strings.TrimPrefix(key, ownPrefix)
	switch path {
	case "delivery":
		return "kafka.delivery", false
	case "data_dir", "data.dir":
		return "node.data_dir", true
	}
	section, _, _ := strings.Cut(path, ".")
	return path, slices.Contains(nodeSections, section)
}

// ownKeys takes keys such as binlog.outbox.kafka.delivery. That they exist, and
// their types, is found out when the configuration is built.
func (c *connector) ownKeys() {
	add := func(l located) {
		path, node := ownPath(l.key)
		full := c.prefix + path
		if node {
			full = path
		}
		c.own[path] = true
		c.ownSettings = append(c.ownSettings, config.Setting{Path: full, Value: l.value, Origin: l.origin()})
		if l.file == c.file {
			c.line(l, Taken, path, "")
		}
	}
	for _, l := range c.worker.own {
		add(l)
	}
	for _, key := range c.withPrefix(ownPrefix) {
		l, _ := c.get(key)
		add(l)
	}
}

// simple converts a key that stands for itself.
func (c *connector) simple(l located) {
	if slices.Contains(handledElsewhere, l.key) {
		// Their functions leave out what is empty or has no use.
		c.same(l, "nothing is asked for")
		return
	}
	for _, r := range rules() {
		if !r.matches(l.key) {
			continue
		}
		if r.near && misspelled(l.key) {
			break
		}
		r.apply(c, l)
		return
	}
	c.unknown(l, knownKeys())
}

// misspelled reports whether a key is so near to a known one that it must be
// meant, though a prefix would let anything pass.
func misspelled(key string) bool {
	for _, known := range knownKeys() {
		if abs(len(key)-len(known)) <= 2 && config.EditDistance(key, known) <= 2 {
			return true
		}
	}
	return false
}

func abs(n int) int { return max(n, -n) }

// milliseconds reads a number of milliseconds.
func milliseconds(l located) (time.Duration, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(l.value), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number of milliseconds", l.value)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// boolean reads true or false as Kafka does.
func boolean(l located) (bool, error) {
	switch l.word() {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", l.value)
}

var number = regexp.MustCompile(`^-?\d+$`)
