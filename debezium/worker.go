package debezium

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// worker is the properties file of a Connect worker. The zero value stands for
// none.
type worker struct {
	conversion

	file  string
	pairs pairs
	// own are the connector settings given with ownPrefix, for every connector.
	own []located
	// aliases turn the names of configuration providers into ours.
	aliases map[string]string
}

// providerClasses are Kafka's configuration providers, by class.
var providerClasses = map[string]string{
	"org.apache.kafka.common.config.provider.FileConfigProvider":      "file",
	"org.apache.kafka.common.config.provider.DirectoryConfigProvider": "dir",
	"org.apache.kafka.common.config.provider.EnvVarConfigProvider":    "env",
}

func newWorker(file string, values *pairs) *worker {
	w := &worker{conversion: conversion{handled: map[string]bool{}}, file: file, pairs: *values,
		aliases: map[string]string{}}
	w.configProviders()
	w.listeners()
	w.extensions()
	for _, key := range w.pairs.order {
		l, _ := w.get(key)
		if !w.handled[key] {
			w.key(l)
		}
	}
	w.sortLines(w.pairs.order)
	return w
}

func (w *worker) get(key string) (located, bool) {
	value, ok := w.pairs.values[key]
	return located{w.file, key, w.providers(value)}, ok
}

func (w *worker) withPrefix(prefix string) []string {
	var out []string
	for _, key := range w.pairs.order {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// providers turns ${secrets:path:key} into ${file:path:key}, when the worker
// names its FileConfigProvider "secrets".
func (w *worker) providers(value string) string {
	for name, ours := range w.aliases {
		value = strings.ReplaceAll(value, "${"+name+":", "${"+ours+":")
	}
	return value
}

func (w *worker) configProviders() {
	names, ok := w.get("config.providers")
	if !ok {
		return
	}
	for _, name := range splitList(names.value) {
		class, _ := w.get("config.providers." + name + ".class")
		ours, known := providerClasses[strings.TrimSpace(class.value)]
		if !known {
			w.refuse(located{w.file, "config.providers." + name + ".class", ""},
				"only FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider are possible")
			continue
		}
		if name != ours {
			w.aliases[name] = ours
		}
		w.same(class, "references are read again at each connect")
	}
	w.same(names, "references are read again at each connect")
	for _, key := range w.withPrefix("config.providers.") {
		if !w.handled[key] {
			l, _ := w.get(key)
			w.harmless(l, "any file that this process may read can be referred to")
		}
	}
}

// listeners is where the REST interface listens.
func (w *worker) listeners() {
	l, ok := w.get("listeners")
	if !ok {
		// Kafka Connect listens on all addresses when nothing is said; here an
		// interface without passwords stays on this host.
		return
	}
	list := splitList(l.value)
	if len(list) == 0 {
		w.same(l, "nothing is asked for")
		return
	}
	u, err := url.Parse(list[0])
	switch {
	case err != nil || u.Port() == "":
		w.refuse(l, "is not http://host:port")
	case u.Scheme != "http":
		w.refuse(l, "only http:// is possible yet; put a proxy before it")
	default:
		w.settings = append(w.settings, config.Setting{Path: "admin.listen", Value: net.JoinHostPort(u.Hostname(), u.Port()),
			Origin: l.origin()})
		text := ""
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			// Written down in the worker's file, so it is meant.
			w.settings = append(w.settings, config.Setting{Path: "admin.allow_remote", Value: true, Origin: l.origin()})
			text = "and admin.allow_remote, since the file asks for an address that other hosts can reach"
		}
		if len(list) > 1 {
			text = strings.TrimPrefix(text+"; the first address alone is listened on", "; ")
		}
		w.line(l, Taken, "admin.listen", text)
	}
}

// extensions are how a worker asks for passwords. Without them the interface would be
// open to whoever reaches it.
func (w *worker) extensions() {
	l, ok := w.get("rest.extension.classes")
	switch {
	case !ok:
	case len(splitList(l.value)) == 0:
		w.same(l, "nothing is asked for")
	case w.pairs.values[ownPrefix+"admin.web_config"] != "":
		w.harmless(l, ownPrefix+"admin.web_config says who may ask")
	default:
		w.refuse(l, "is a Java class that asks for passwords (BasicAuthSecurityRestExtension) or the like, without which "+
			"the REST interface would be open: "+
			"name a file with users in "+ownPrefix+"admin.web_config beside it, or take it out")
	}
}

// workerKeys are the worker's keys without meaning here.
var workerKeys = map[string][]string{
	"there are no plugins":              {"plugin.path", "plugin.discovery"},
	"only where the offsets are counts": {"offset.storage."},
	"positions, decisions and configurations are kept in node.data_dir": {"config.storage.", "status.storage.",
		"offset.flush.interval.ms", "offset.flush.timeout.ms"},
	"the nodes of a cluster are named by cluster.peers": {"group.id", "group.instance.id", "session.timeout.ms",
		"heartbeat.interval.ms", "rebalance.timeout.ms", "worker.",
		"connect.protocol", "scheduled.rebalance.max.delay.ms", "inter.worker.", "max.poll.interval.ms"},
	"every setting may be overridden":           {"connector.client.config.override.policy"},
	"the topics of a connector are always told": {"topic.tracking."},
	"is for the worker's own clients; the producer has producer.*": {"security.", "ssl.", "sasl.", "client.",
		"request.timeout.ms", "retries", "retry.", "metadata.", "connections.max.idle.ms",
		"send.buffer.bytes", "receive.buffer.bytes", "reconnect.", "socket.", "default.api.timeout.ms", "metrics.", "metric.",
		"auto.include.jmx.reporter"},
	"is for another client": {"consumer.", "admin."},
	"is for Kafka Connect's REST interface": {"rest.", "access.control.", "response.http.headers.config",
		"listeners.", "admin.listeners", "connect."},
	"is for the converters of Connect's own topics": {"internal."},
	"a worker that stops finishes its batch":        {"task.shutdown.graceful.timeout.ms"},
}

func (w *worker) key(l located) {
	switch {
	case strings.HasPrefix(l.key, ownPrefix):
		w.ownKey(l)
		return
	case l.key == "bootstrap.servers", l.key == "key.converter", l.key == "value.converter", l.key == "header.converter",
		strings.HasPrefix(l.key, "producer."), strings.HasPrefix(l.key, "key.converter."),
		strings.HasPrefix(l.key, "value.converter."), strings.HasPrefix(l.key, "header.converter."):
		return // told with each connector
	case l.key == "topic.creation.enable":
		w.same(l, "topics are created when the connector says how")
		return
	case l.key == "offset.storage.file.filename" && l.value != "":
		w.line(l, Taken, "source.debezium_offsets",
			"a connector that has an offset there, and no position here, begins where that is")
		return
	case l.key == "offset.storage.topic" && l.value != "":
		w.line(l, Taken, "source.debezium_topics",
			"a connector that has an offset there, and no position here, begins where that is")
		return
	case l.key == "status.storage.topic" && l.value != "":
		w.line(l, Taken, "source.debezium_status_topic", "it tells whether Debezium's connector is stopped")
		return
	case l.key == "exactly.once.source.support":
		w.exactlyOnce(l)
		return
	}
	var reasons []string
	for why, keys := range workerKeys {
		for _, key := range keys {
			if l.key == key || strings.HasSuffix(key, ".") && strings.HasPrefix(l.key, key) || key == "admin.listeners" &&
				strings.HasPrefix(l.key, key) {
				reasons = append(reasons, why)
			}
		}
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		w.harmless(l, reasons[0])
		return
	}
	w.unknown(l, knownWorkerKeys)
}

var knownWorkerKeys = []string{
	"bootstrap.servers", "key.converter", "value.converter", "header.converter", "listeners", "config.providers",
	"plugin.path", "group.id", "offset.storage.topic", "offset.storage.file.filename", "config.storage.topic",
	"status.storage.topic",
	"exactly.once.source.support", "topic.creation.enable", "offset.flush.interval.ms",
}

func (w *worker) exactlyOnce(l located) {
	switch l.word() {
	case "enabled":
		w.same(l, "delivery is exactly once")
	case "disabled", "preparing":
		w.harmless(l, "delivery is exactly once all the same, unless kafka.delivery says at_least_once")
	default:
		w.refuse(l, "\""+l.value+"\" is not one of disabled, preparing, enabled")
	}
}

func (w *worker) ownKey(l located) {
	path, node := ownPath(l.key)
	if node {
		w.settings = append(w.settings, config.Setting{Path: path, Value: l.value, Origin: l.origin()})
	} else {
		w.own = append(w.own, l)
	}
	w.line(l, Taken, path, "")
}
