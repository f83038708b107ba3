package debezium

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// rules is the table of the connector's keys that stand for themselves: those of
// Debezium's MySQL and MariaDB connectors 2.7 to 3.6, and of Kafka Connect's
// source connectors. Exact keys come before prefixes.
var rules = sync.OnceValue(func() []rule {
	return slices.Concat(equivalentRules(""), sourceRules(), snapshotRules(), dataRules(), connectRules(), runtimeRules(),
		legacyRules(), prefixRules())
})

func sourceRules() []rule {
	return slices.Concat([]rule{
		only("gtid.source.filter.dml.events", "other origins' rows are not published without being counted; leave it out",
			"true"),
		{key: "gtid.ignore.on.recovery", apply: ignoreGTID},
	}, ignored("the connection is watched by the server's heartbeats (source.heartbeat)", "connect.keep.alive"),
		ignored("server_id is derived from the node and the connector when it is not given", "database.server.id.offset"),
		ignored("there is no JDBC driver here", "database.jdbc.driver", "database.protocol", "database.query.timeout.ms",
			"database.initial.statements", "driver.*"),
		ignored("the binlog is read in another way", "binlog.buffer.size", "binlog.net.write.timeout",
			"binlog.net.read.timeout", "use.nongraceful.disconnect",
			"min.row.count.to.stream.results", "query.fetch.size", "connection.validation.timeout.ms",
			"executor.shutdown.timeout.ms", "read.only", "log.position.check.enable"),
	)
}

func ignoreGTID(c *connector, l located) {
	switch on, err := boolean(l); {
	case !c.literal(l):
	case err != nil:
		c.refuse(l, err.Error())
	case on:
		c.take(l, "source.positions", string(config.PositionsFile), "positions are files and offsets")
	default:
		c.same(l, "so it is here")
	}
}

func snapshotRules() []rule {
	return slices.Concat([]rule{
		{key: "snapshot.mode", apply: snapshotMode},
		only("snapshot.query.mode", "the rows of the outbox are read as they are; leave it out", "select_all"),
		{key: "snapshot.include.collection.list", apply: snapshotSelection},
		{key: "snapshot.select.statement.overrides", apply: snapshotSelection},
	}, ignored("the rows of the outbox are read in chunks, without locks and without a long transaction",
		"snapshot.locking.mode", "snapshot.locking.mode.custom.name", "snapshot.lock.timeout.ms", "snapshot.fetch.size",
		"snapshot.max.threads",
		"snapshot.max.threads.multiplier", "legacy.snapshot.max.threads", "snapshot.tables.order.by.row.count",
		"snapshot.delay.ms", "streaming.delay.ms",
		"snapshot.scan.all.columns.force", "snapshot.new.tables", "snapshot.mode.custom.name",
		"snapshot.query.mode.custom.name", "snapshot.mode.configuration.based.*"),
		ignored("there are no incremental snapshots without signals", "incremental.snapshot.*", "signal.poll.interval.ms"),
	)
}

func snapshotMode(c *connector, l located) {
	if !c.literal(l) {
		return
	}
	start, note := config.StartSnapshot, ""
	switch l.word() {
	case "initial":
	case "initial_only":
		start = config.StartSnapshotOnly
	case "when_needed":
		start = config.StartWhenNeeded
	case "configuration_based":
		configurationBased(c, l)
		return
	case "no_data", "schema_only":
		start = config.StartCurrent
	case "never":
		start = config.StartEarliest
	case "recovery", "schema_only_recovery":
		start, note = config.StartNever, "there is no schema history to recover; the position must be there"
	case "always":
		c.refuse(l, "always would publish all rows of the table again at each start of a node and each change of the "+
			"leader; initial publishes them once")
		return
	case "custom":
		c.refuse(l, "custom is a Java class; initial, initial_only, when_needed, no_data and configuration_based are "+
			"possible here")
		return
	default:
		c.refuse(l, (&wordError{l.value, []string{"initial", "initial_only", "when_needed", "no_data", "recovery", "never",
			"configuration_based"}}).Error())
		return
	}
	c.start = start
	c.take(l, "source.start", string(start), note)
}

// configurationBased takes the mode that is put together from switches.
func configurationBased(c *connector, l located) {
	const prefix = "snapshot.mode.configuration.based."
	on := map[string]bool{}
	for _, name := range []string{"snapshot.data", "start.stream", "snapshot.on.data.error"} {
		v, ok := c.get(prefix + name)
		if !ok {
			continue
		}
		b, err := boolean(v)
		if err != nil {
			c.refuse(v, err.Error())
			return
		}
		on[name] = b
	}
	start := config.StartCurrent
	switch data, stream := on["snapshot.data"], on["start.stream"]; {
	case data && on["snapshot.on.data.error"] && stream:
		start = config.StartWhenNeeded
	case data && stream:
		start = config.StartSnapshot
	case data:
		start = config.StartSnapshotOnly
	case !stream:
		c.refuse(l, "neither "+prefix+"snapshot.data nor "+prefix+"start.stream is true, so there is nothing to do")
		return
	}
	c.start = start
	c.take(l, "source.start", string(start), "as "+prefix+"* says")
}

func snapshotSelection(c *connector, l located) {
	mode, ok := c.get("snapshot.mode")
	if ok && slices.Contains([]string{"no_data", "schema_only", "never", "recovery", "schema_only_recovery"},
		mode.word()) || l.value == "" {
		c.harmless(l, "no rows are read from the table at the start")
		return
	}
	c.refuse(l,
		"at the start all rows of the outbox tables are published, or with snapshot.mode=no_data none; leave it out")
}

func dataRules() []rule {
	return slices.Concat([]rule{
		{key: "field.name.adjustment.mode", apply: fieldNames},
		only("event.processing.failure.handling.mode",
			"it would lose rows in silence; an event that can't be read stops the connector here", "fail"),
		only("event.deserialization.failure.handling.mode",
			"it would lose rows in silence; an event that can't be read stops the connector here", "fail"),
		only("inconsistent.schema.handling.mode", "it would lose rows in silence; a row that does not fit its table stops "+
			"the connector here", "fail"),
		only("provide.transaction.metadata", "the topic with transaction boundaries is not written", "false"),
		only("table.ignore.builtin", "tables of the server itself are no outboxes", "true"),
		only("topic.delimiter", "topics are named by the router, and schemas with a dot", "."),
		only("topic.naming.strategy", "topics are named by the router; the heartbeat topic and schema names follow "+
			"Debezium's default strategy",
			"io.debezium.schema.schematopicnamingstrategy", "io.debezium.schema.defaulttopicnamingstrategy"),
		{key: "skipped.operations", apply: skippedOperations},
	}, schemaOnly("it adds to schemas what is not known here; leave it out", []string{"false"}, "include.schema.comments",
		"column.propagate.source.type", "datatype.propagate.source.type"),
		[]rule{plugins("converters", "custom converters"), plugins("post.processors", "post processors")},
		ignored("a value that can't be read stops the connector, with the transaction named",
			"event.converting.failure.handling.mode"),
		ignored("the router drops deletes and their tombstones", "tombstones.on.delete"),
		ignored("the router has its own key", "message.key.columns"),
		ignored("updates of the outbox are passed over", "skip.messages.without.change"),
		ignored("there is no topic of schema changes", "include.schema.changes"),
		ignored("there is no schema history; table shapes come from the binlog and from the server",
			"schema.history.internal", "schema.history.internal.*", "database.history.*", "ddl.parser.type"),
		ignored("the router drops what it is in", "sourceinfo.struct.maker", "transaction.metadata.factory",
			"unavailable.value.placeholder", "topic.transaction", "topic.cache.size"),
	)
}

// plugins refuses a list of aliases of Java classes, and passes over their options.
func plugins(key, what string) rule {
	return rule{key: key, apply: func(c *connector, l located) {
		if strings.TrimSpace(l.value) == "" {
			c.same(l, "so it is here")
			return
		}
		c.refuse(l, what+" are Java classes and change values; leave them out")
		for _, alias := range splitList(l.value) {
			c.consume(alias+".", l.key, "of "+key)
		}
	}}
}

// skippedOperations takes Debezium's letters.
func skippedOperations(c *connector, l located) {
	if !c.literal(l) {
		return
	}
	letters := []string{"c", "u", "d", "t", "none"}
	ops := splitList(l.word())
	for _, op := range ops {
		if !slices.Contains(letters, op) {
			c.refuse(l, (&wordError{op, letters}).Error())
			return
		}
	}
	if len(ops) == 0 {
		c.same(l, "nothing is asked for")
		return
	}
	note := ""
	if slices.Contains(ops, "c") {
		note = "which passes over the inserts, that is all that an outbox is about"
	}
	c.take(l, "outbox.skip_operations", ops, note)
}

// avroName is what field.name.adjustment.mode leaves as it is.
var avroName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*$`)

// fieldNames passes over a mode that renames columns when it renames none of those
// that the router is told.
func fieldNames(c *connector, l located) {
	modes := []string{"none", "avro", "avro_unicode"}
	switch {
	case !c.literal(l):
		return
	case !slices.Contains(modes, l.word()):
		c.refuse(l, (&wordError{l.value, modes}).Error())
		return
	case l.word() == "none":
		c.same(l, "so it is here")
		return
	}
	for _, name := range c.columns() {
		if !avroName.MatchString(name) || l.word() == "avro_unicode" && strings.Contains(name, "_") {
			c.refuse(l, fmt.Sprintf("it would rename the column %s before the router looks for it; leave it out", name))
			return
		}
	}
	c.harmless(l, "renames none of the columns that the router is told")
}

func connectRules() []rule {
	return slices.Concat([]rule{
		{key: "exactly.once.support", apply: func(c *connector, l located) {
			if c.own["kafka.delivery"] {
				c.harmless(l, ownPrefix+"kafka.delivery is given")
				return
			}
			c.take(l, "kafka.delivery", string(config.ExactlyOnce), "")
		}},
		{key: "errors.tolerance", apply: tolerance},
		{key: "errors.max.retries", apply: func(c *connector, l located) {
			if !number.MatchString(strings.TrimSpace(l.value)) && c.literal(l) {
				c.refuse(l, fmt.Sprintf("%q is not a number", l.value))
				return
			}
			c.take(l, "retry.max_attempts", strings.TrimSpace(l.value), "")
		}},
		{key: "retriable.restart.connector.wait.ms", apply: retryWait},
		{key: "signal.data.collection", apply: func(c *connector, l located) {
			if l.value == "" {
				c.same(l, "so it is here")
				return
			}
			c.refuse(l, "signals are not carried out; take it out")
		}},
		{key: "signal.enabled.channels", apply: func(c *connector, l located) {
			if strings.Contains(l.word(), "kafka") {
				c.refuse(l, "signals from a Kafka topic are not available; leave kafka out")
				return
			}
			c.harmless(l, "signals are not carried out, and signal.data.collection is refused")
		}},
		{key: "notification.enabled.channels", apply: func(c *connector, l located) {
			if strings.Contains(l.word(), "sink") {
				c.refuse(l, "the topic of notifications is not written; leave sink out")
				return
			}
			c.harmless(l, "what they tell stands in the log and in the metrics")
		}},
		only("openlineage.integration.enabled", "OpenLineage is not available; leave it out", "false"),
	}, refused("the heartbeat topic is named by topic.heartbeat.prefix and topic.prefix; leave it out",
		"topic.heartbeat.name"),
		ignored("a name from before Debezium 2.0, which passes over it too: it is topic.heartbeat.prefix",
			"heartbeat.topics.prefix"),
		refused("nothing is written to the database, and the position moves on without it; leave it out, and have another "+
			"job do what else it does", "heartbeat.action.query"),
		ignored("one connector is one task", "tasks.max", "tasks.max.enforce", "multi.partition.mode", "task.id"),
		ignored("batches hold what has arrived while the one before was committed, within limits.*", "max.batch.size",
			"max.queue.size", "poll.interval.ms", "queue.provider.type"),
		ignored("a batch of whole transactions is committed as soon as there is one", "transaction.boundary",
			"transaction.boundary.interval.ms"),
		ignored("positions have a place of their own", "offset.flush.interval.ms", "offset.flush.timeout.ms"),
		ignored("errors are logged with their reason, and retried as retry.* says", "errors.retry.timeout",
			"errors.retry.delay.max.ms", "errors.retry.delay.initial.ms"),
		ignored("every row that is skipped or dead-lettered is logged, up to a limit, and counted", "errors.log.enable"),
		ignored("payloads are never logged; a dead letter (errors.row, errors.record) has them",
			"errors.log.include.messages"),
		ignored("metrics have their own labels", "custom.metric.tags", "statistics.metrics.enabled",
			"advanced.metrics.enable"),
		ignored("there is nothing of it here", "config.action.reload", "custom.sanitize.pattern",
			"custom.retriable.exception"),
	)
}

// tolerance is what Connect does with records of a source that fail. With all it
// drops what a transform or a converter refuses; and what the producer can't send,
// whatever the reason, unless that fails the transaction of exactly-once support.
func tolerance(c *connector, l located) {
	switch {
	case l.value == "" || l.word() == "none":
		c.same(l, "so it is here")
		return
	case !c.literal(l):
		return
	case l.word() != "all":
		c.refuse(l, (&wordError{l.value, []string{"none", "all"}}).Error())
		return
	}
	support, _ := c.worker.get("exactly.once.source.support")
	required, _ := c.get("exactly.once.support")
	text := "and errors.record, for what Kafka refuses for good; what may pass is waited for, where Connect drops it. " +
		"dead_letter in their place keeps the rows"
	if support.word() == "enabled" || required.word() == "required" {
		text = "errors.record stays stop, since with exactly-once support a failed send fails Connect's task. dead_letter " +
			"in its place keeps the rows"
	} else if !c.own["errors.record"] {
		c.set(l, "errors.record", string(config.OnErrorSkip))
	}
	if c.own["errors.row"] {
		c.harmless(l, ownPrefix+"errors.row is given")
		return
	}
	c.take(l, "errors.row", string(config.OnErrorSkip), text)
}

// retryWait is one fixed wait in Debezium; ours grows up to it.
func retryWait(c *connector, l located) {
	if !c.literal(l) {
		return
	}
	d, err := milliseconds(l)
	if err != nil {
		c.refuse(l, err.Error())
		return
	}
	if d = max(d, time.Millisecond); d < config.NewConnector().Retry.Initial {
		c.set(l, "retry.initial", d.String())
	}
	c.take(l, "retry.max", d.String(), "")
}

func runtimeRules() []rule {
	return []rule{{key: "max.queue.size.in.bytes", apply: func(c *connector, l located) {
		if strings.TrimSpace(l.value) == "0" {
			c.harmless(l, "memory is always bounded; see limits.queue_bytes")
			return
		}
		c.take(l, "limits.queue_bytes", strings.TrimSpace(l.value), "")
	}}}
}

// legacyRules are keys of Debezium 1.x, which 2.x and 3.x pass over in silence.
func legacyRules() []rule {
	var out []rule
	for _, names := range [][2]string{
		{"database.server.name", "topic.prefix"},
		{"table.whitelist", "table.include.list"}, {"table.blacklist", "table.exclude.list"},
		{"database.whitelist", "database.include.list"}, {"database.blacklist", "database.exclude.list"},
		{"column.whitelist", "column.include.list"}, {"column.blacklist", "column.exclude.list"},
	} {
		out = append(out, refused("is a key of Debezium 1.x, which later versions pass over; it is "+names[1]+" since",
			names[0])...)
	}
	return out
}

func prefixRules() []rule {
	return slices.Concat(
		ignored("is for sink connectors only, in Connect too; a source's dead letters are errors.row, errors.record and "+
			"errors.dead_letter.topic", "errors.deadletterqueue.*"),
		ignored("is for a sink connector or another client", "consumer.override.*", "admin.override.*", "schema.include.list",
			"schema.exclude.list"),
		ignored("signals are not carried out, and signal.data.collection is refused", "signal.*"),
		ignored("what they tell stands in the log and in the metrics", "notification.*"),
		ignored("OpenLineage is not available", "openlineage.*"),
		ignored("only the outbox tables are read", "guardrail.*", "memory.management.*"),
		ignored("is for Debezium's own tests", "internal.*", "test.*"),
		[]rule{{key: "database.", prefix: true, near: true, apply: func(c *connector, l located) {
			c.harmless(l, "is a property of the JDBC driver, and there is none here")
		}}},
	)
}
