package debezium

import (
	"fmt"
	"slices"
	"strings"
)

const overridePrefix = "producer.override."

// producer turns the producer's settings over: those of the worker
// ("producer.*"), and those of the connector ("producer.override.*"), which win.
func (c *connector) producer() {
	settings := map[string]located{}
	var order []string
	add := func(name string, l located) {
		if old, ok := settings[name]; ok && old.file != l.file {
			c.lines = append(c.lines, Line{File: old.file, Key: old.key, Outcome: Harmless,
				Text: overridePrefix + name + " wins in " + c.file})
		} else if !ok {
			order = append(order, name)
		}
		settings[name] = l
	}
	for _, key := range c.worker.withPrefix("producer.") {
		l, _ := c.worker.get(key)
		add(strings.TrimPrefix(key, "producer."), l)
	}
	for _, key := range c.withPrefix(overridePrefix) {
		l, _ := c.get(key)
		add(strings.TrimPrefix(key, overridePrefix), l)
	}
	p := &producer{c: c, settings: settings}
	p.brokers()
	p.security()
	for _, name := range order {
		if !c.handled[settings[name].key] {
			p.simple(name, settings[name])
		}
	}
}

// producer is one connector's producer settings, by Kafka's names.
type producer struct {
	c        *connector
	settings map[string]located
}

// brokers come from the connector, the worker, or, where there is no worker's
// file, from the schema history, which is on the same cluster.
func (p *producer) brokers() {
	c := p.c
	from, ok := p.settings["bootstrap.servers"]
	worker, hasWorker := c.worker.get("bootstrap.servers")
	if !ok && hasWorker {
		from, ok = worker, true
	}
	history, hasHistory := c.get("schema.history.internal.kafka.bootstrap.servers")
	note := ""
	if !ok && hasHistory {
		from, ok, note = history, true, "for want of the worker's bootstrap.servers"
	}
	switch {
	case c.own["kafka.brokers"]:
		if ok {
			c.harmless(from, ownPrefix+"kafka.brokers is given")
		}
	case ok:
		c.take(from, "kafka.brokers", splitBrokers(from.value), note)
	default:
		c.refuse(c.absent("bootstrap.servers"), "is not given; it stands in the file of the worker, so give that too with "+
			"--worker, or "+ownPrefix+"kafka.brokers")
	}
}

// splitBrokers drops the names of protocols, which Kafka allows.
func splitBrokers(text string) []string {
	list := splitList(text)
	for i, b := range list {
		if _, address, ok := strings.Cut(b, "://"); ok {
			list[i] = address
		}
	}
	return list
}

// producerRules are the producer's settings that stand for themselves.
func producerRules() []rule {
	return slices.Concat(equivalentRules(overridePrefix), []rule{
		only("acks", "anything but all would lose rows when a broker is lost", "all", "-1"),
		only("enable.idempotence", "is always on: without it a retry may repeat or reorder records", "true", "false"),
		only("partitioner.class", "only the default partitioner is possible, so that keys stay on their partitions",
			"org.apache.kafka.clients.producer.internals.defaultpartitioner"),
		only("partitioner.ignore.keys", "records with one key would come out of order", "false"),
		only("metadata.recovery.strategy", "only none and rebootstrap are known", "none", "rebootstrap"),
		{key: "interceptor.classes", apply: func(c *connector, l located) {
			if strings.TrimSpace(l.value) == "io.debezium.tracing.DebeziumTracingProducerInterceptor" {
				c.harmless(l, "there is no tracing yet")
				return
			}
			if l.value == "" {
				c.same(l, "so it is here")
				return
			}
			c.refuse(l, "interceptors are Java classes and may change records; leave them out")
		}},
	}, ignored("a batch holds what has arrived while the one before was committed, and is sent at once",
		"linger.ms", "batch.size", "buffer.memory", "partitioner.adaptive.partitioning.enable",
		"partitioner.availability.timeout.ms"),
		ignored("an error ends the batch, and everything since the last committed one is sent again",
			"retries", "retry.backoff.ms", "retry.backoff.max.ms", "delivery.timeout.ms", "max.block.ms",
			"max.in.flight.requests.per.connection"),
		ignored("the transactional id is kafka.transactional_id_prefix and the connector's name", "transactional.id"),
		ignored("keys and values are bytes already", "key.serializer", "value.serializer"),
		ignored("the client has a way of its own to keep connections", "metadata.max.age.ms", "metadata.max.idle.ms",
			"connections.max.idle.ms", "reconnect.backoff.ms",
			"reconnect.backoff.max.ms", "send.buffer.bytes", "receive.buffer.bytes", "socket.connection.setup.timeout.ms",
			"socket.connection.setup.timeout.max.ms",
			"client.dns.lookup", "client.rack", "metadata.recovery.rebootstrap.trigger.ms", "compression.gzip.level",
			"compression.lz4.level", "compression.zstd.level",
			"bootstrap.controllers", "default.api.timeout.ms"),
		ignored("metrics are served under /metrics", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
			"metrics.sample.window.ms", "enable.metrics.push", "metrics.context.*", "auto.include.jmx.reporter"),
		ignored("protocol versions and ciphers are those of the TLS library", "ssl.protocol", "ssl.enabled.protocols",
			"ssl.cipher.suites", "ssl.provider",
			"ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation"),
		ignored("tokens are fetched again when they run out", "sasl.login.refresh.*", "sasl.login.connect.timeout.ms",
			"sasl.login.read.timeout.ms", "sasl.login.retry.*"),
		ignored("is for brokers", "sasl.oauthbearer.jwks.*", "sasl.oauthbearer.expected.*",
			"sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
			"sasl.server.*"),
		ignored("Kerberos is not in use", "sasl.kerberos.*"),
	)
}

func (p *producer) simple(name string, l located) {
	known := producerRules()
	var names []string
	for _, r := range known {
		if r.matches(name) {
			r.apply(p.c, l)
			return
		}
		if !r.prefix {
			names = append(names, strings.TrimSuffix(l.key, name)+r.key)
		}
	}
	for _, n := range []string{"bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config",
		"ssl.truststore.location"} {
		names = append(names, strings.TrimSuffix(l.key, name)+n)
	}
	p.c.unknown(l, names)
}

// topicCreation turns topic.creation.* over.
func (c *connector) topicCreation() {
	const prefix = "topic.creation."
	if enable, ok := c.worker.get("topic.creation.enable"); ok && enable.word() == "false" {
		for _, key := range c.withPrefix(prefix) {
			l, _ := c.get(key)
			c.harmless(l, "topic.creation.enable=false in the worker's file")
		}
		return
	}
	groups, _ := c.get(prefix + "groups")
	if groups.value != "" {
		c.same(groups, "the names of the groups")
	}
	paths := map[string]string{"default": "kafka.create_topics"}
	for i, name := range splitList(groups.value) {
		paths[name] = fmt.Sprintf("kafka.create_topics.groups[%d]", i)
		c.set(groups, paths[name]+".name", name)
	}
	configs := map[string]map[string]string{}
	last := map[string]located{}
	for _, key := range c.withPrefix(prefix) {
		group, option, ok := strings.Cut(strings.TrimPrefix(key, prefix), ".")
		path, known := paths[group]
		l, _ := c.get(key)
		switch {
		case !ok || c.handled[key]:
		case !known:
			c.refuse(l, fmt.Sprintf("the group %q is not in topic.creation.groups", group))
		case option == "partitions":
			c.take(l, path+".partitions", strings.TrimSpace(l.value), "")
		case option == "replication.factor":
			c.take(l, path+".replication_factor", strings.TrimSpace(l.value), "")
		case (option == "include" || option == "exclude") && group != "default":
			c.take(l, path+"."+option, splitList(l.value), "")
		default:
			if configs[path] == nil {
				configs[path] = map[string]string{}
			}
			configs[path][option] = l.value
			last[path] = l
			c.line(l, Taken, path+".configs", "")
		}
	}
	for path, values := range configs {
		c.set(last[path], path+".configs", values)
	}
}
