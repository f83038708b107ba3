package config

import "github.com/binlog-outbox/binlog-outbox/converter"

func formatFields() []field {
	all := []field{
		{path: "connectors[].format", doc: "How keys, values and headers become bytes: Kafka Connect's converters."},
	}
	all = append(all, converterFields("key", converter.TypeString, "key.converter", "the record's key")...)
	all = append(all, converterFields("value", converter.TypeString, "value.converter", "the record's value")...)
	all = append(all, converterFields("header", converter.TypeSimple, "header.converter", "header values")...)
	return all
}

func converterFields(part, def, key, what string) []field {
	path := "connectors[].format." + part
	numbers := enum(converter.TypeShort, converter.TypeInteger, converter.TypeLong, converter.TypeFloat,
		converter.TypeDouble, converter.TypeBoolean)
	types := append(enum(converter.TypeString, converter.TypeJSON, converter.TypeBytes, converter.TypeBinary), numbers...)
	hint := "string is StringConverter, json JsonConverter, bytes ByteArrayConverter, binary Debezium's " +
		"BinaryDataConverter; short, integer, long, float, double and boolean are Connect's converters of that name, which " +
		"take nothing else"
	if part == "header" {
		types = append(types, converter.TypeSimple)
		hint += ", simple SimpleHeaderConverter"
	}
	return []field{
		{path: path, doc: "Converter of " + what + ". The type alone may be written in place of the section: \"" + part +
			": string\"."},
		{path: path + ".type", def: def, replaces: key, enum: types,
			doc: "Kind of converter: " + hint + "."},
		{path: path + ".schemas", key: key + ".schemas.enable",
			doc: "json: wrap the value as {\"schema\", \"payload\"}. Connect's own default is true."},
		{path: path + ".decimal", def: "base64", key: key + ".decimal.format", enum: []string{"base64", "numeric"},
			doc: "json: DECIMAL as base64 of its unscaled value, or as a number."},
		{path: path + ".replace_null_with_default", def: "true", key: key + ".replace.null.with.default",
			doc: "json: write the column's default in place of null."},
		{path: path + ".delegate", replaces: key + ".delegate.converter.type",
			enum: append(append([]string{""}, enum(converter.TypeString, converter.TypeJSON, converter.TypeBytes)...),
				numbers...),
			doc: "binary: the converter of everything that is not bytes. Without one such values stop the connector."},
		{path: path + ".delegate_schemas", key: key + ".delegate.converter.type.schemas.enable",
			doc: "schemas of the delegate."},
		{path: path + ".delegate_decimal", def: "base64", key: key + ".delegate.converter.type.decimal.format",
			enum: []string{"base64", "numeric"},
			doc:  "decimal of the delegate."},
		{path: path + ".delegate_replace_null_with_default", def: "true",
			key: key + ".delegate.converter.type.replace.null.with.default",
			doc: "replace_null_with_default of the delegate."},
	}
}

func kafkaFields() []field {
	return []field{
		{path: "connectors[].headers", doc: "Record headers beside the router's own."},
		{path: "connectors[].headers.context", def: "true", key: "extended.headers.enabled",
			doc: "Send Debezium's __debezium.context.* headers."},
		{path: "connectors[].headers.sequence",
			doc: "Send the headers __binlog_outbox.gtid, .ordinal (number of the row in its transaction, from 1), .seq " +
				"(counts the connector's rows from 1; a row that is skipped leaves a gap, and where an operator sets the " +
				"position it goes on 1,000,000,000 further) and .term, so that a consumer can drop a repetition: per partition, " +
				"what is not above the highest seq it has seen."},

		{path: "connectors[].kafka", doc: "The cluster written to."},
		{path: "connectors[].kafka.brokers", replaces: "bootstrap.servers, producer.override.bootstrap.servers",
			required: true, example: "[kafka-1.example.internal:9092]",
			doc: "Brokers to ask first, as host:port."},
		{path: "connectors[].kafka.client_id", def: "binlog-outbox", key: "producer.override.client.id",
			doc: "Name of this client in the brokers' logs, metrics and quotas."},
		{path: "connectors[].kafka.tls", doc: "TLS towards the brokers. It is on when enabled, or when any other key of " +
			"the section is set."},
		{path: "connectors[].kafka.tls.enabled", replaces: "producer.override.security.protocol",
			doc: "Speak TLS; the brokers' certificates are checked against ca, or else against the system's authorities."},
		{path: "connectors[].kafka.tls.ca", replaces: "producer.override.ssl.truststore.*",
			example: "/etc/binlog-outbox/tls/kafka-ca.crt",
			doc:     "PEM file, or PEM text, with the authorities that sign the brokers' certificates."},
		{path: "connectors[].kafka.tls.cert", replaces: "producer.override.ssl.keystore.*",
			example: "/etc/binlog-outbox/tls/kafka-client.crt",
			doc:     "PEM file, or PEM text, with the certificate that we show."},
		{path: "connectors[].kafka.tls.key", replaces: "producer.override.ssl.keystore.*",
			example: "/etc/binlog-outbox/tls/kafka-client.key",
			doc:     "PEM file with its private key."},
		{path: "connectors[].kafka.tls.key_pem", replaces: "producer.override.ssl.keystore.key",
			example: "${env:KAFKA_CLIENT_KEY}",
			doc:     "The private key itself, in place of key."},
		{path: "connectors[].kafka.tls.server_name", example: "kafka.example.internal",
			doc: "Host name that all brokers' certificates must have. Default: each broker's own."},
		{path: "connectors[].kafka.tls.insecure_skip_verify",
			replaces: "producer.override.ssl.endpoint.identification.algorithm",
			doc: "Do not check the brokers' certificates at all. Anyone between us and them can then read and change " +
				"records."},
		{path: "connectors[].kafka.sasl", doc: "How this client shows who it is."},
		{path: "connectors[].kafka.sasl.mechanism", replaces: "producer.override.sasl.mechanism",
			enum: []string{"", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"},
			doc:  "SASL mechanism; empty is none."},
		{path: "connectors[].kafka.sasl.user", login: true, replaces: "producer.override.sasl.jaas.config",
			example: "binlog-outbox",
			doc:     "User of PLAIN and SCRAM."},
		{path: "connectors[].kafka.sasl.password", replaces: "producer.override.sasl.jaas.config",
			example: "${file:/etc/binlog-outbox/secrets.properties:kafka.password}",
			doc:     "Password of PLAIN and SCRAM; best a reference, which is read again at each connect."},
		{path: "connectors[].kafka.sasl.token", replaces: "producer.override.sasl.jaas.config",
			example: "${file:/run/secrets/kafka-token}",
			doc:     "Token of OAUTHBEARER, read again whenever one is needed."},
		{path: "connectors[].kafka.sasl.token_url", replaces: "producer.override.sasl.oauthbearer.token.endpoint.url",
			example: "https://idp.example.internal/oauth2/token",
			doc:     "Where OAUTHBEARER fetches tokens with client credentials, in place of token."},
		{path: "connectors[].kafka.sasl.client_id", login: true, replaces: "producer.override.sasl.jaas.config",
			example: "binlog-outbox",
			doc:     "Client id at token_url."},
		{path: "connectors[].kafka.sasl.client_secret", replaces: "producer.override.sasl.jaas.config",
			example: "${env:KAFKA_CLIENT_SECRET}",
			doc:     "Client secret at token_url."},
		{path: "connectors[].kafka.sasl.scope", replaces: "producer.override.sasl.jaas.config",
			doc: "Scope asked for at token_url."},
		{path: "connectors[].kafka.sasl.extensions", replaces: "producer.override.sasl.jaas.config",
			example: "{logicalCluster: lkc-1}",
			doc:     "Extensions sent beside an OAUTHBEARER token."},
		{path: "connectors[].kafka.delivery", def: string(ExactlyOnce),
			replaces: "exactly.once.source.support, exactly.once.support", enum: enum(ExactlyOnce, AtLeastOnce),
			doc: "exactly_once writes rows and position in one Kafka transaction: a read_committed consumer sees each row " +
				"once. at_least_once may repeat rows after a crash and is a little faster."},
		{path: "connectors[].kafka.transactional_id_prefix", def: "binlog-outbox", replaces: "transactional.id",
			doc: "The transactional id is this, a dot and the connector's name; the position topic is that and \".position\". " +
				"The same on every node."},
		{path: "connectors[].kafka.transaction_timeout", def: "60s", key: "producer.override.transaction.timeout.ms",
			doc: "How long a batch may stay open before the brokers give it up; not above the brokers' " +
				"transaction.max.timeout.ms. A batch that they acknowledge slowly but steadily, as beyond a quota, gets more at " +
				"the next attempt."},
		{path: "connectors[].kafka.compression", def: "none", key: "producer.override.compression.type",
			enum: []string{"none", "gzip", "snappy", "lz4", "zstd"},
			doc:  "Compression of record batches."},
		{path: "connectors[].kafka.max_message_bytes", def: "1MiB", key: "producer.override.max.request.size",
			doc: "Largest record that is sent: key, value and headers, before compression. A larger one stops the connector. " +
				"The topics' max.message.bytes counts too."},
		{path: "connectors[].kafka.request_timeout", def: "30s", key: "producer.override.request.timeout.ms",
			doc: "How long a broker may take to answer."},
		{path: "connectors[].kafka.create_topics",
			doc: "How topics that do not exist are made. With nothing set they are left to the brokers."},
		{path: "connectors[].kafka.create_topics.partitions", replaces: "topic.creation.default.partitions", example: "6",
			doc: "Partitions of a new topic; -1 is the brokers' default."},
		{path: "connectors[].kafka.create_topics.replication_factor", replaces: "topic.creation.default.replication.factor",
			example: "3",
			doc:     "Replicas of a new topic; -1 is the brokers' default."},
		{path: "connectors[].kafka.create_topics.configs", replaces: "topic.creation.default.*",
			example: "{cleanup.policy: delete}",
			doc:     "Settings of a new topic, by Kafka's names."},
		{path: "connectors[].kafka.create_topics.groups", replaces: "topic.creation.groups",
			doc: "Other settings for some topics; the first group that matches counts."},
		{path: "connectors[].kafka.create_topics.groups[].name", replaces: "topic.creation.groups", required: true,
			example: "compacted",
			doc:     "Name of the group, for messages."},
		{path: "connectors[].kafka.create_topics.groups[].include", replaces: "topic.creation.*.include", required: true,
			example: `["outbox\\.event\\.state.*"]`,
			doc:     "Regular expressions, in Java's syntax, of the whole topic name, one of which must match."},
		{path: "connectors[].kafka.create_topics.groups[].exclude", replaces: "topic.creation.*.exclude",
			doc: "Regular expressions, in Java's syntax, none of which may match."},
		{path: "connectors[].kafka.create_topics.groups[].partitions", replaces: "topic.creation.*.partitions",
			doc: "Partitions; 0 takes those of create_topics."},
		{path: "connectors[].kafka.create_topics.groups[].replication_factor",
			replaces: "topic.creation.*.replication.factor",
			doc:      "Replicas; 0 takes those of create_topics."},
		{path: "connectors[].kafka.create_topics.groups[].configs", replaces: "topic.creation.*.*",
			doc: "Settings by Kafka's names."},
		{path: "connectors[].kafka.position_replication_factor", def: "-1", replaces: "offset.storage.replication.factor",
			doc: "Replicas of the position topic when the connector makes it; -1 is three, or as many as there are brokers."},
	}
}

func runtimeFields() []field {
	return []field{
		{path: "connectors[].limits", doc: "Bounds of memory, and of what is committed in one go."},
		{path: "connectors[].limits.queue_bytes", def: "2MiB", replaces: "max.queue.size.in.bytes",
			doc: "Bytes read ahead."},
		{path: "connectors[].limits.batch_records", def: "10000", replaces: "max.batch.size",
			doc: "Most rows of a batch. A batch is closed earlier when the source is idle."},
		{path: "connectors[].limits.batch_bytes", def: "8MiB",
			doc: "Most bytes of a batch."},
		{path: "connectors[].limits.transaction_bytes", def: "16MiB",
			doc: "A database transaction above this size is spooled to node.data_dir and published in parts."},
		{path: "connectors[].limits.transaction_rows", def: "50000",
			doc: "Likewise for a transaction with more outbox rows than this."},

		{path: "connectors[].events", doc: "What the command events find and GET /v1/events/{id} know."},
		{path: "connectors[].events.recent", def: "1000000",
			doc: "How many of the last published events the leader remembers, with about 32 bytes each as they come; 0 " +
				"remembers none."},
		{path: "connectors[].events.scan_rate", def: "32MiB",
			doc: "Most bytes in a second that a search for an older event reads of the binlog; 0 is no bound."},

		{path: "connectors[].heartbeat", doc: "Records that show that an idle connector is alive."},
		{path: "connectors[].heartbeat.interval", def: "0s", key: "heartbeat.interval.ms",
			doc: "How often; 0s is never. The position moves on without heartbeats, also when only other tables are written, " +
				"and nothing is written to the database for them."},
		{path: "connectors[].heartbeat.topic_prefix", def: "__debezium-heartbeat", key: "topic.heartbeat.prefix",
			doc: "The heartbeat topic is this, a dot and topic_prefix."},

		{path: "connectors[].errors", doc: "What becomes of rows that can't be published. Whatever is chosen is logged, " +
			"counted (binlog_outbox_rows_unpublished_total) and listed in the status."},
		{path: "connectors[].errors.row", def: string(OnErrorStop), replaces: "errors.tolerance",
			enum: enum(OnErrorStop, OnErrorDeadLetter, OnErrorSkip),
			doc: "A row that can't be routed or serialised: stop fails the connector until somebody decides about that row " +
				"(binlog-outbox rows), or changes the configuration; dead_letter sends it to errors.dead_letter.topic and goes " +
				"on; skip goes on without it."},
		{path: "connectors[].errors.record", def: string(OnErrorStop), replaces: "errors.tolerance",
			enum: enum(OnErrorStop, OnErrorDeadLetter, OnErrorSkip),
			doc: "Likewise for a record that Kafka refuses for good: too large, an invalid topic name, a partition that isn't " +
				"there. What may pass, such as a missing right or topic, is waited for."},
		{path: "connectors[].errors.dead_letter", doc: "Where dead letters go: key, value and headers as routed, or else " +
			"the row's key and payload columns as they are, with __binlog_outbox.error.* headers that say what was wrong with " +
			"which row. They are in order with the other records, and in the same Kafka transaction."},
		{path: "connectors[].errors.dead_letter.topic", example: "orders-outbox.dead-letter",
			doc: "Topic of the dead letters, made as kafka.create_topics says. Default: the connector's name and " +
				"\".dead-letter\". A dead letter that is too large goes there without value and headers."},

		{path: "connectors[].retry", doc: "Waiting between attempts after an error."},
		{path: "connectors[].retry.max_attempts", def: "-1", replaces: "errors.max.retries",
			doc: "Attempts in a row that may fail before the connector does; -1 is without end."},
		{path: "connectors[].retry.initial", def: "300ms", replaces: "errors.retry.delay.initial.ms",
			doc: "First wait; it doubles from attempt to attempt."},
		{path: "connectors[].retry.max", def: "10s",
			replaces: "errors.retry.delay.max.ms, retriable.restart.connector.wait.ms",
			doc:      "Longest wait."},

		{path: "connectors[].debezium", doc: "How closely Debezium is followed where it can be told apart."},
		{path: "connectors[].debezium.quirks",
			doc: "Send damaged values exactly as Debezium does, for comparing both byte by byte during a migration."},
		{path: "connectors[].debezium.compat", def: `"3.6"`, enum: []string{"2.7", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5",
			"3.6", "3.7"},
			doc: "Version of Debezium to follow, where versions differ: no context headers up to 3.1, three in 3.2 and 3.3, " +
				"four since 3.4."},
	}
}
