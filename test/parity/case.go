package parity

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

// Case is one connector with its database: what is there before it starts, what is
// done while it streams, and how it is configured. In all texts {id} stands for the
// case's ID and {dir} for a folder that both sides can read.
type Case struct {
	// Group is the file of testdata that the case's records are in.
	Group string
	// Name says the option and the case; it is unique.
	Name string
	// Worker is the key of Workers; empty for the default one.
	Worker string
	// Setup runs before the connector starts, in the case's database.
	Setup []string
	// Do runs while the connector streams, on one connection.
	Do []string
	// Config is laid over DefaultConfig; a value of Unset takes a key away.
	Config map[string]string
	// Tables are the outbox tables; nil for one called outbox.
	Tables []string
	// Database is the name of the database; {id} must be in it. Empty for p_{id}.
	Database string

	// Differs names the difference of docs/eventrouter.md that the case shows when
	// quirks are off; the records are then those of testdata/plain.
	Differs string
	// Always says that the difference stays with quirks on.
	Always bool
	// Refused says that our program refuses the configuration, which Debezium takes.
	Refused string
	// Taken says why our program takes a configuration that Debezium refuses.
	Taken string
	// Alone says that the case's statements stop every Debezium connector of the server.
	Alone bool
	// FullMetadata says that the case needs binlog_row_metadata=FULL on our side: rows
	// are read after their table has changed.
	FullMetadata bool
}

// Unset as a value of Case.Config leaves a default key out.
const Unset = "\x00unset"

// ID is the case's short name in databases, topics and prefixes.
func (c *Case) ID() string {
	h := fnv.New32a()
	h.Write([]byte(c.Name))
	return fmt.Sprintf("x%08x", h.Sum32())
}

func (c *Case) fill(text, dir string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "{id}", c.ID()), "{dir}", dir)
}

// DatabaseName is the database of the case.
func (c *Case) DatabaseName() string {
	if c.Database != "" {
		return c.fill(c.Database, "")
	}
	return "p_" + c.ID()
}

// Server is where a run's MySQL is.
type Server struct {
	Host     string
	Port     int
	User     string
	Password string
}

// routerAlias is the name of the router in transforms.
const routerAlias = "transforms.outbox."

// ConnectorConfig is the connector's configuration, as the "config" of a file for
// Kafka Connect. number tells connectors of one server apart.
func (c *Case) ConnectorConfig(s Server, number int, dir string) map[string]string {
	tables := c.Tables
	if tables == nil {
		tables = []string{"outbox"}
	}
	var include []string
	for _, t := range tables {
		include = append(include, pattern(c.DatabaseName()+"."+t))
	}
	config := map[string]string{
		"connector.class":                       "io.debezium.connector.mysql.MySqlConnector",
		"tasks.max":                             "1",
		"database.hostname":                     s.Host,
		"database.port":                         fmt.Sprint(s.Port),
		"database.user":                         s.User,
		"database.password":                     s.Password,
		"database.server.id":                    fmt.Sprint(7_000_000 + number),
		"topic.prefix":                          "{id}",
		"database.include.list":                 pattern(c.DatabaseName()),
		"table.include.list":                    strings.Join(include, ","),
		"snapshot.mode":                         "no_data",
		"snapshot.locking.mode":                 "none",
		"schema.history.internal":               "io.debezium.relational.history.MemorySchemaHistory",
		"include.schema.changes":                "false",
		"poll.interval.ms":                      "50",
		"transforms":                            "outbox",
		routerAlias + "type":                    "io.debezium.transforms.outbox.EventRouter",
		routerAlias + "route.topic.replacement": "{id}.${routedByValue}",
	}
	maps.Copy(config, c.Config)
	for key, value := range config {
		if value == Unset {
			delete(config, key)
			continue
		}
		config[key] = c.fill(value, dir)
	}
	return config
}

// pattern escapes a name for Debezium's lists, which are regular expressions.
func pattern(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && !strings.ContainsRune("_-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') &&
			(r < 'A' || r > 'Z') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// File is the connector as a file for connect-standalone.
func (c *Case) File(s Server, number int, dir string) []byte {
	text, err := json.MarshalIndent(map[string]any{"name": c.ID(), "config": c.ConnectorConfig(s, number, dir)}, "", "  ")
	if err != nil {
		panic(err) // maps of strings
	}
	return text
}

// Workers are the properties of Connect workers beside brokers, offsets and
// listeners, by name.
func Workers() map[string][]string {
	const storage, js = "org.apache.kafka.connect.storage.", "org.apache.kafka.connect.json.JsonConverter"
	return map[string][]string{
		"":     {"key.converter=" + storage + "StringConverter", "value.converter=" + storage + "StringConverter"},
		"json": {"key.converter=" + js, "value.converter=" + js},
		"json-plain": {
			"key.converter=" + js, "key.converter.schemas.enable=false",
			"value.converter=" + js, "value.converter.schemas.enable=false",
		},
		"mixed": {
			"key.converter=" + storage + "StringConverter",
			"value.converter=io.debezium.converters.BinaryDataConverter",
			"value.converter.delegate.converter.type=" + js,
			"value.converter.delegate.converter.type.schemas.enable=false",
			"header.converter=" + js, "header.converter.schemas.enable=false",
			"config.providers=secrets",
			"config.providers.secrets.class=org.apache.kafka.common.config.provider.FileConfigProvider",
			"producer.compression.type=gzip",
		},
	}
}

// WorkerNames are the keys of Workers in a fixed order.
func WorkerNames() []string { return slices.Sorted(maps.Keys(Workers())) }
