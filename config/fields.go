package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/router"
)

// field is one row of the table that defaults, the reference, validation and the
// Debezium conversion's hints come from. Its type is that of the struct field at
// Path; a test holds the table and the structs together.
type field struct {
	path string
	// def is the default as one would write it in YAML; empty is the zero value.
	def string
	// key is the Debezium or Kafka Connect key whose value means the same, so that it
	// is taken as it is; "transforms.*." stands for the router's alias. since is the
	// first release of Debezium that has it, where not all have. verbatim says that
	// blanks around it count.
	key      string
	since    string
	verbatim bool
	// replaces names other keys that this one replaces, with values of their own.
	replaces string
	doc      string
	enum     []string
	required bool
	// login marks a name that goes with a secret: with it a reference may come over
	// the network.
	login bool
	// example stands in the reference where there is no default: in a comment,
	// unless the setting is required or shown.
	example string
	shown   bool
}

func enum[W ~string](list ...W) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// fields returns the table in the order of the structs. Lists of structs are
// written "connectors[]". A path that names a struct documents the section.
var fields = sync.OnceValue(func() []field {
	all := slices.Concat(nodeFields(), connectorFields(), outboxFields(), valueFields(), formatFields(), kafkaFields(),
		runtimeFields())
	defaults := map[string]string{}
	walk("connectors[]", reflect.ValueOf(packageDefaults()), func(path string, v reflect.Value) {
		if text, err := yaml.Marshal(v.Interface()); err == nil && !v.IsZero() {
			defaults[path] = strings.TrimSpace(string(text))
		}
	})
	for i := range all {
		all[i].def = cmp.Or(all[i].def, defaults[all[i].path])
	}
	return all
})

// packageDefaults is a connector with the defaults that the packages give their own
// settings. The table has those of all others.
func packageDefaults() Connector {
	return Connector{Outbox: router.DefaultOptions(), Values: converter.DefaultModes()}
}

func nodeFields() []field {
	return []field{
		{path: "node", doc: "This process."},
		{path: "node.id", replaces: "worker_id in /connectors/*/status",
			doc: "Name of this node: unique in the cluster, and the same after a restart. Default: the host name."},
		{path: "node.data_dir", def: "/var/lib/binlog-outbox",
			replaces: "offset.storage.topic, config.storage.topic, status.storage.topic, offset.storage.file.filename",
			doc: "Directory for what the node must remember: positions, decisions, its part of the cluster. Made when " +
				"missing. Also --data-dir and BINLOG_OUTBOX_DATA_DIR."},
		{path: "node.shutdown_timeout", def: "30s", replaces: "task.shutdown.graceful.timeout.ms",
			doc: "How long a node that was told to stop may take to finish and commit the batch in hand."},
		{path: "node.recent_events", def: "2000000",
			doc: "How many published events all connectors of a node remember together (connectors[].events.recent); the " +
				"busiest forget first."},

		{path: "cluster", doc: "The connector nodes that stand in for each other. Without peers this is a single node."},
		{path: "cluster.listen", example: "0.0.0.0:7400",
			doc: "Address on which the other nodes are heard. Needed when there are peers."},
		{path: "cluster.advertise", replaces: "rest.advertised.host.name, rest.advertised.port",
			example: "cdc-1.example.internal:7400",
			doc:     "Address at which the other nodes reach this one. Default: the address of this node in peers."},
		{path: "cluster.peers", replaces: "group.id",
			example: "[cdc-1=cdc-1.example.internal:7400, cdc-2=cdc-2.example.internal:7400, cdc-3=cdc-3.example.internal:7400]",
			doc: "All nodes of the cluster, this one too, each as id=host:port; the same list on every node. Three nodes go " +
				"on when one is lost."},
		{path: "cluster.tls", doc: "Mutual TLS between the nodes; all three files or none."},
		{path: "cluster.tls.cert", replaces: "listeners.https.ssl.*", example: "/etc/binlog-outbox/tls/node.crt",
			doc: "PEM file with the certificate that this node shows."},
		{path: "cluster.tls.key", replaces: "listeners.https.ssl.*", example: "/etc/binlog-outbox/tls/node.key",
			doc: "PEM file with its private key."},
		{path: "cluster.tls.client_ca", replaces: "listeners.https.ssl.*", example: "/etc/binlog-outbox/tls/ca.crt",
			doc: "PEM file with the authorities that sign the nodes' certificates."},
		{path: "cluster.tls.role", example: "cdc-node.example.internal",
			doc: "DNS name that the certificate of every node must have beside its own, so that a certificate for something " +
				"else on the same host is not enough."},
		{path: "cluster.insecure",
			doc: "Allow an address that is not loopback without TLS between the nodes: whoever reaches the port can then " +
				"change positions."},
		{path: "cluster.heartbeat_timeout",
			doc: "How long a follower hears nothing from the leader before it asks for an election. 0s is 250ms. A leader " +
				"whose process is gone is noticed without it. Raise it on hosts that stall or are throttled."},
		{path: "cluster.election_timeout",
			doc: "How long a candidate waits for votes; not below heartbeat_timeout, which 0s takes."},
		{path: "cluster.lease_timeout",
			doc: "How long a leader without contact to a majority goes on; not above heartbeat_timeout, which 0s takes."},
		{path: "cluster.step_down_after", def: "10s",
			doc: "A leader none of whose connectors can reach its servers for this long hands over to a node that may. 0s " +
				"never does."},
		{path: "cluster.step_down_cooldown", def: "30s",
			doc: "How long a node that handed over leaves the leadership to others, if any of them wants it."},
		{path: "cluster.promote_after", def: "10s",
			doc: "How long a new node must have kept up before it gets a vote."},
		{path: "cluster.witness",
			doc: "This node votes and keeps the state, but runs no connectors: the third of two nodes."},
		{path: "cluster.join",
			doc: "This node is not in peers, and asks them to be added. It needs advertise."},

		{path: "admin", doc: "The HTTP interface: probes, metrics, status."},
		{path: "admin.listen", def: "127.0.0.1:8083", replaces: "listeners",
			doc: "Address to listen on; empty turns the interface off. The default is reachable from this host alone."},
		{path: "admin.allow_remote",
			doc: "Allow an address that is not loopback without users or client certificates in web_config: for networks that " +
				"protect it."},
		{path: "admin.web_config", replaces: "listeners.https.ssl.*, rest.extension.classes",
			example: "/etc/binlog-outbox/web.yaml",
			doc: "Prometheus web configuration file: TLS certificates, client certificates and users of the interface. It is " +
				"read again at each connection."},
		{path: "admin.roles", example: "{prometheus: view, deploy: operate, ann: admin}",
			doc: "What each user of web_config, or each client certificate (by its common name), may do: view; operate, which " +
				"is also to pause, resume, stop and restart; admin, which is all. Who is not listed, or shows no name, may view; " +
				"without a list all may do all. It needs users or client certificates in web_config."},
		{path: "admin.connect_api", def: "true",
			doc: "Answer Kafka Connect's REST API (docs/connect-api.md) as well."},
		{path: "admin.secret_paths", replaces: "config.providers.*.param.allowed.paths",
			example: "[/etc/binlog-outbox/secrets]",
			doc: "Files, and folders with all below them, that connectors which come over the REST API may name: in " +
				"${file:...} and ${dir:...}, and as PEM files. Default: none, or whoever may put a connector could send any file " +
				"of this host as a password to a server of theirs."},
		{path: "admin.secret_variables", replaces: "config.providers.*.param.allowlist.pattern", example: "[MYSQL_PASSWORD]",
			doc: "Environment variables that such connectors may refer to, by name. Default: none."},

		{path: "log", doc: "The log goes to standard error, one event a line."},
		{path: "log.level", def: "info", replaces: "connect-log4j.properties",
			enum: []string{"debug", "info", "warn", "error"},
			doc:  "Least level that is written."},
		{path: "log.format", def: "auto", replaces: "connect-log4j.properties", enum: []string{"auto", "json", "text"},
			doc: "auto is text on a terminal, JSON otherwise."},
		{path: "log.levels", replaces: "connect-log4j.properties", example: "{raft: warn}",
			doc: "Levels of single components, by name."},
	}
}

func connectorFields() []field {
	return []field{
		{path: "connectors", doc: "The outboxes that are read."},
		{path: "connectors[].name", replaces: "name", required: true, example: "orders-outbox",
			doc: "Name of the connector: part of its transactional id and of the key under which its position is kept, so a " +
				"new name starts anew."},
		{path: "connectors[].topic_prefix", key: "topic.prefix", example: "orders",
			doc: "Debezium's logical server name: it stands in the context headers, in schema names and in heartbeat topics. " +
				"Default: the connector's name."},

		{path: "connectors[].source", doc: "The MySQL or MariaDB server."},
		{path: "connectors[].source.host", key: "database.hostname", example: "mysql.example.internal", shown: true,
			doc: "Host name or address of the server. Where a name stands for several addresses, one that takes writes is " +
				"preferred."},
		{path: "connectors[].source.port", def: "3306", key: "database.port",
			doc: "Port of the server, and of those hosts that name none."},
		{path: "connectors[].source.hosts", example: "[mysql-1.example.internal:3306, mysql-2.example.internal:3306]",
			doc: "All servers that may be the primary, each as host or host:port; beside host, which is then the first, or " +
				"alone. The one that takes writes is read from, and a change of the primary is followed by GTID, which " +
				"must be on."},
		{path: "connectors[].source.primary_only", def: "true",
			doc: "With hosts: read only from the server that takes writes (read_only and super_read_only off). false takes " +
				"the first host that answers and has what is needed."},
		{path: "connectors[].source.lost_transactions", def: string(LostTransactionsStop),
			enum: enum(LostTransactionsStop, LostTransactionsAccept),
			doc: "What is done when the new primary lacks transactions that were published, because the old one failed before " +
				"anybody else got them: stop and name them, or go on and keep them on record. Transactions that a server lost " +
				"itself always stop the connector. MySQL only."},
		{path: "connectors[].source.user", key: "database.user", required: true, login: true, example: "outbox_cdc",
			doc: "User with REPLICATION SLAVE, REPLICATION CLIENT and SELECT on the outbox tables."},
		{path: "connectors[].source.password", key: "database.password",
			example: "${file:/etc/binlog-outbox/secrets.properties:mysql.password}",
			doc:     "Its password; best a reference, which is read again at each connect."},
		{path: "connectors[].source.flavor", def: string(FlavorAuto), replaces: "connector.class",
			enum: enum(FlavorAuto, FlavorMySQL, FlavorMariaDB),
			doc:  "Kind of server; auto asks it."},
		{path: "connectors[].source.server_id", key: "database.server.id",
			doc: "Number of this node among the replicas of the server, and no other replica's. 0 derives one from node.id " +
				"and the connector's name, so that it differs from node to node. With a cluster leave it at 0."},
		{path: "connectors[].source.tls", doc: "TLS towards the server."},
		{path: "connectors[].source.tls.mode", def: string(SSLPreferred), replaces: "database.ssl.mode",
			enum: enum(SSLDisabled, SSLPreferred, SSLRequired, SSLVerifyCA, SSLVerifyIdentity),
			doc: "How far TLS goes: never, if the server offers it, always, with the server's certificate checked, with its " +
				"host name checked too. With preferred whoever sits between can have it go without TLS, and with required pass " +
				"for the server. Without TLS, a login by caching_sha2_password or sha256_password gives the password to whoever " +
				"sits between: it is encrypted with a key that comes from there."},
		{path: "connectors[].source.tls.ca", replaces: "database.ssl.truststore",
			example: "/etc/binlog-outbox/tls/mysql-ca.crt",
			doc:     "PEM file, or PEM text, with the authorities that sign the server's certificate. Default: the system's."},
		{path: "connectors[].source.tls.cert", replaces: "database.ssl.keystore",
			example: "/etc/binlog-outbox/tls/mysql-client.crt",
			doc:     "PEM file, or PEM text, with the certificate that we show."},
		{path: "connectors[].source.tls.key", replaces: "database.ssl.keystore",
			example: "/etc/binlog-outbox/tls/mysql-client.key",
			doc:     "PEM file with its private key."},
		{path: "connectors[].source.tls.key_pem", replaces: "database.ssl.keystore", example: "${env:MYSQL_CLIENT_KEY}",
			doc: "The private key itself, in place of key."},
		{path: "connectors[].source.tls.server_name", example: "mysql.example.internal",
			doc: "Host name that the server's certificate must have. Default: host."},
		{path: "connectors[].source.connect_timeout", def: "30s", key: "connect.timeout.ms",
			doc: "How long connecting to the server may take."},
		{path: "connectors[].source.heartbeat", def: "10s", key: "connect.keep.alive.interval.ms",
			doc: "How often an idle server is asked to show that it lives. The connection counts as lost after twice that " +
				"time and a little."},
		{path: "connectors[].source.positions", def: string(PositionsAuto),
			enum: enum(PositionsAuto, PositionsGTID, PositionsFile), replaces: "gtid.ignore.on.recovery",
			doc: "What places in the binlog are named by. GTIDs survive a failover of the server, file and position do not. " +
				"auto takes GTIDs where the server has them, gtid insists on them."},
		{path: "connectors[].source.table", replaces: "table.include.list, database.include.list", example: "shop.outbox",
			shown: true,
			doc:   "The outbox table, as database.table. Names are compared as Debezium does: in full, without regard to case."},
		{path: "connectors[].source.tables", replaces: "table.include.list, database.include.list",
			example: "[shop.outbox, billing.outbox]",
			doc:     "Several outbox tables, in place of table."},
		{path: "connectors[].source.table_patterns", replaces: "table.include.list, database.include.list",
			example: `["shop_\\d+\\.outbox"]`,
			doc: "Outbox tables by regular expressions of the whole database.table, without regard to case, in Debezium's " +
				"(Java's) syntax; beside table or tables, or alone. Tables that appear later count as well."},
		{path: "connectors[].source.start", def: string(StartCurrent), replaces: "snapshot.mode",
			enum: enum(StartSnapshot, StartSnapshotOnly, StartWhenNeeded, StartCurrent, StartEarliest, StartNever),
			doc: "Where a connector without a stored position begins: with the rows that stand in the tables, then with what " +
				"was committed since (snapshot; initial in Debezium), with these rows and nothing else (snapshot_only; " +
				"initial_only), at the end of the binlog (current; no_data), at the oldest binlog there is (earliest), or not at " +
				"all (never). " +
				"when_needed is snapshot, and publishes the rows that stand in the tables once more, instead of stopping, when " +
				"the source has purged a binlog that was not read yet: what was published before and still stands there comes " +
				"again, what was deleted meanwhile never comes. " +
				"Rows are read without locks, in the order of the primary key, which each table must have."},
		{path: "connectors[].source.invalid_text", def: string(InvalidTextStop),
			enum: enum(InvalidTextStop, InvalidTextReplace, InvalidTextQuestionMark),
			doc: "Text whose bytes are not valid in its column's character set, or stand for no character there: stop the " +
				"connector, put U+FFFD in their place, as Debezium does (but a question mark in snapshot rows, which the server " +
				"converts for it), or a question mark, as the server shows them. What is replaced is lost; " +
				"binlog_outbox_invalid_texts_total counts the texts."},
		{path: "connectors[].source.debezium_offsets", replaces: "offset.storage.file.filename",
			example: "/var/lib/kafka-connect/offsets.dat",
			doc: "File in which a Connect worker keeps the offsets of its connectors. While it holds one of this connector, a " +
				"start without a stored position begins where that is, whatever start says, or fails with what to do. Empty, or " +
				"--ignore-debezium-offset: it is not looked at."},
		{path: "connectors[].source.debezium_topics", replaces: "offset.storage.topic, offsets.storage.topic",
			example: "[connect-offsets]",
			doc: "Topics in which Connect's workers keep offsets, at kafka.brokers; of several, the first that has one of " +
				"this connector counts. They are looked at, and obeyed, as debezium_offsets is, once Debezium's connector is " +
				"STOPPED."},
		{path: "connectors[].source.debezium_status_topic", replaces: "status.storage.topic", example: "connect-status",
			doc: "Topic in which Connect's workers keep the states of connectors. While it says that Debezium's runs or " +
				"pauses, or when there is none, an offset of debezium_topics is waited for."},
		{path: "connectors[].source.debezium_query", def: "false", key: "include.query",
			doc: "Debezium's connector had include.query, so that in its offsets MariaDB's annotate events are counted. It " +
				"matters when such an offset is taken over, and for nothing else."},
		{path: "connectors[].source.gtid_include", key: "gtid.source.includes", example: "[]",
			doc: "Origins (server UUIDs or regular expressions of them, in Java's syntax, without regard to case) whose " +
				"transactions count. Rows of others are passed over, and whether the server lacks or has purged their " +
				"transactions does not matter. MySQL only. Default: all."},
		{path: "connectors[].source.gtid_exclude", key: "gtid.source.excludes", example: "[]",
			doc: "Origins whose transactions do not count, in place of gtid_include."},
	}
}

func outboxFields() []field {
	return []field{
		{path: "connectors[].outbox", doc: "Which column plays which part, and how a row becomes a record: EventRouter's " +
			"options."},
		{path: "connectors[].outbox.id", key: "transforms.*.table.field.event.id",
			doc: "Column of the event's id, sent as the header \"id\"."},
		{path: "connectors[].outbox.key", key: "transforms.*.table.field.event.key",
			doc: "Column of the record's key."},
		{path: "connectors[].outbox.payload", key: "transforms.*.table.field.event.payload",
			doc: "Column of the record's value."},
		{path: "connectors[].outbox.timestamp", key: "transforms.*.table.field.event.timestamp", example: "created_at",
			doc: "DATETIME column of the record's timestamp. Default: the time at which the row was read, as Debezium has it."},
		{path: "connectors[].outbox.schema_version", key: "transforms.*.table.field.event.schema.version", example: "version",
			doc: "INT column of the version of the value's schema; counts only with envelope placements."},
		{path: "connectors[].outbox.route_by", key: "transforms.*.route.by.field",
			doc: "Column from which the topic is made."},
		{path: "connectors[].outbox.route_regex", key: "transforms.*.route.topic.regex", verbatim: true,
			doc: "Regular expression, in Java's syntax, that the whole of the route column must match; where it does not, the " +
				"topic is the column as it is."},
		{path: "connectors[].outbox.route_topic", key: "transforms.*.route.topic.replacement", verbatim: true,
			doc: "Name of the topic, with ${name} and $1 for the groups of route_regex."},
		{path: "connectors[].outbox.additional", replaces: "transforms.*.table.fields.additional.placement",
			example: `["type:header:eventType"]`,
			doc: "More columns to send, each as column:placement or column:placement:alias; placement is header, envelope or " +
				"partition."},
		{path: "connectors[].outbox.missing_additional", key: "transforms.*.table.field.additional.missing", since: "3.6",
			replaces: "transforms.*.table.fields.additional.error.on.missing",
			enum:     []string{router.MissingError, router.MissingIgnore},
			doc:      "What is done when a table lacks a column of additional: stop, or leave it out."},
		{path: "connectors[].outbox.expand_json", key: "transforms.*.table.expand.json.payload",
			doc: "Parse a text payload as JSON and send it with a schema."},
		{path: "connectors[].outbox.json_null", key: "transforms.*.table.json.payload.null.behavior",
			enum: []string{router.ExpandIgnore, router.ExpandOptionalBytes},
			doc:  "JSON nulls in an expanded payload: leave the member out, or give it the type bytes."},
		{path: "connectors[].outbox.json_empty_array", key: "transforms.*.table.json.payload.empty.array.behavior",
			since: "3.7", enum: []string{router.ExpandIgnore, router.ExpandOptionalString},
			doc: "Empty JSON arrays in an expanded payload: leave the member out, or make it an array of strings."},
		{path: "connectors[].outbox.field_names", key: "transforms.*.field.name.adjustment.mode",
			enum: []string{router.NamesAsTheyAre, router.NamesAvro, router.NamesAvroUnicode},
			doc:  "How member names of an expanded payload are made fit for Avro."},
		{path: "connectors[].outbox.tombstone_on_empty", key: "transforms.*.route.tombstone.on.empty.payload",
			doc: "Send a null value (a tombstone) when the payload is NULL or blank."},
		{path: "connectors[].outbox.on_update", key: "transforms.*.table.op.invalid.behavior",
			enum: []string{router.UpdateWarn, router.UpdateError, router.UpdateFatal},
			doc: "What is done when a row of the outbox is updated: log and pass over, log an error and pass over, or stop. " +
				"Deleted rows are always passed over."},
		{path: "connectors[].outbox.skip_operations", replaces: "skipped.operations", example: "[u]",
			doc: "Row changes that are passed over before anything else looks at them, by Debezium's letters: c for inserts, " +
				"u for updates, d for deletes, t for truncates, none. With u also updates of the primary key are, which are " +
				"published as a new row otherwise."},
	}
}
