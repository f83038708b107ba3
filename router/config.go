package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

// What to do with an UPDATE of an outbox row (table.op.invalid.behavior).
const (
	UpdateWarn  = "warn"
	UpdateError = "error"
	UpdateFatal = "fatal"
)

// What to do when a column of an additional placement is missing
// (table.field.additional.missing), and how the expansion of JSON treats nulls and
// empty arrays.
const (
	MissingError  = "error"
	MissingIgnore = "ignore"

	ExpandIgnore         = "ignore"
	ExpandOptionalBytes  = "optional_bytes"
	ExpandOptionalString = "optional_string"

	NamesAsTheyAre   = converter.NamesAsTheyAre
	NamesAvro        = converter.NamesAvro
	NamesAvroUnicode = converter.NamesAvroUnicode
)

// Where an additional column goes.
const (
	PlaceHeader    = "header"
	PlaceEnvelope  = "envelope"
	PlacePartition = "partition"
)

// Placement is one additional column of table.fields.additional.placement.
type Placement struct {
	Column string
	Where  string // PlaceHeader, PlaceEnvelope or PlacePartition
	Alias  string // the name in the header or envelope; empty for the column's
}

func (p Placement) name() string {
	if p.Alias != "" {
		return p.Alias
	}
	return p.Column
}

// Options are the EventRouter's: which column plays which part, and how a row becomes a
// record. They are a section of the configuration file, where a table (package config)
// gives their meaning, words and Debezium's keys.
type Options struct {
	ID                string   `yaml:"id"`
	Key               string   `yaml:"key"`
	Payload           string   `yaml:"payload"`
	Timestamp         string   `yaml:"timestamp"`      // empty: the time of reading
	SchemaVersion     string   `yaml:"schema_version"` // empty: none
	RouteBy           string   `yaml:"route_by"`
	RouteRegex        string   `yaml:"route_regex"` // a Java regular expression
	RouteTopic        string   `yaml:"route_topic"` // a Java replacement string
	Additional        []string `yaml:"additional"`  // see ParsePlacements
	MissingAdditional string   `yaml:"missing_additional"`
	ExpandJSON        bool     `yaml:"expand_json"`
	JSONNull          string   `yaml:"json_null"`
	JSONEmptyArray    string   `yaml:"json_empty_array"`
	FieldNames        string   `yaml:"field_names"`
	TombstoneOnEmpty  bool     `yaml:"tombstone_on_empty"`
	OnUpdate          string   `yaml:"on_update"`
	SkipOperations    []string `yaml:"skip_operations"` // Debezium's letters; see Skips
}

// Skips reports whether row changes of this letter (c, u, d or t) are passed over.
// Skipping updates also skips those that change the key, which are otherwise routed as
// an insert of the new row.
func (o *Options) Skips(operation string) bool { return slices.Contains(o.SkipOperations, operation) }

// Config is what a Router is made of.
type Config struct {
	Options
	// Placements are added to those of Options.Additional.
	Placements []Placement
	// TopicPrefix is topic.prefix, the connector's logical name.
	TopicPrefix string
	// Context are the headers that Debezium's connector adds to every record
	// before the router's own (extended.headers.enabled); see ContextHeaders.
	Context []ContextHeader
	// Modes decide what column values become.
	Modes converter.Modes
	// What Follow decides.
	missingEnvelopeFails bool
	nullPaths            bool
	// Quirks (debezium_quirks) copies Debezium where it sends damaged data or
	// names only the first of several problems. It goes into Modes too.
	Quirks bool
}

// ContextHeader is a constant header of text.
type ContextHeader struct{ Name, Value string }

// ContextHeaders returns the four headers that Debezium 3.4 and newer adds. runID
// is a UUID that is new for every start of the connector.
func ContextHeaders(topicPrefix, runID string) []ContextHeader {
	return []ContextHeader{
		{"__debezium.context.connectorLogicalName", topicPrefix},
		{"__debezium.context.taskId", "0"},
		{"__debezium.context.connectorName", "mysql"},
		{"__debezium.context.runId", runID},
	}
}

// DefaultOptions are Debezium 3.6's.
func DefaultOptions() Options {
	return Options{
		ID: "id", Key: "aggregateid", Payload: "payload",
		RouteBy: "aggregatetype", RouteRegex: "(?<routedByValue>.*)", RouteTopic: "outbox.event.${routedByValue}",
		OnUpdate: UpdateWarn, MissingAdditional: MissingError,
		JSONNull: ExpandIgnore, JSONEmptyArray: ExpandIgnore, FieldNames: NamesAsTheyAre,
	}
}

// DefaultConfig has Debezium 3.6's defaults. TopicPrefix and Context are the
// connector's to fill in.
func DefaultConfig() Config {
	return Config{Options: DefaultOptions(), Modes: converter.DefaultModes()}
}

// ParsePlacements reads the text of table.fields.additional.placement, a comma
// list of column:placement[:alias], as Debezium does: blanks around every part are
// trimmed, the placement's case does not count, empty parts at the end vanish.
// The error joins all problems.
func ParsePlacements(text string) ([]Placement, error) {
	var out []Placement
	var errs []error
	for _, item := range javaSplit(text, ",") {
		parts := javaSplit(item, ":")
		if len(parts) != 2 && len(parts) != 3 {
			errs = append(errs, fmt.Errorf("table.fields.additional.placement: %q is not column:placement or "+
				"column:placement:alias", item))
			continue
		}
		p := Placement{Column: strings.TrimSpace(parts[0]), Where: strings.ToLower(strings.TrimSpace(parts[1]))}
		if len(parts) == 3 {
			p.Alias = strings.TrimSpace(parts[2])
		}
		out = append(out, p)
	}
	return out, errors.Join(errs...)
}

// javaSplit is Java's String.split for a plain separator: empty strings at the end
// are dropped, but the empty text is one empty part.
func javaSplit(s, sep string) []string {
	parts := strings.Split(s, sep)
	if len(parts) == 1 {
		return parts
	}
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// validate returns all problems.
func (c *Config) validate() []error {
	errs := []error{
		required("table.field.event.id", c.ID),
		required("table.field.event.key", c.Key),
		required("table.field.event.payload", c.Payload),
		required("route.by.field", c.RouteBy),
		oneOf("table.op.invalid.behavior", c.OnUpdate, UpdateWarn, UpdateError, UpdateFatal),
		oneOf("table.field.additional.missing", c.MissingAdditional, MissingError, MissingIgnore),
		oneOf("table.json.payload.null.behavior", c.JSONNull, ExpandIgnore, ExpandOptionalBytes),
		oneOf("table.json.payload.empty.array.behavior", c.JSONEmptyArray, ExpandIgnore, ExpandOptionalString),
		oneOf("field.name.adjustment.mode", c.FieldNames, NamesAsTheyAre, NamesAvro, NamesAvroUnicode),
		c.Modes.Validate(),
	}
	inEnvelope := map[string]bool{"payload": true}
	for _, p := range c.Placements {
		const key = "table.fields.additional.placement"
		if p.Column == "" {
			errs = append(errs, fmt.Errorf("%s: a column name is empty", key))
		}
		if err := oneOf(key+" of "+p.Column, p.Where, PlaceHeader, PlaceEnvelope, PlacePartition); err != nil {
			errs = append(errs, err)
		}
		if p.Where == PlaceEnvelope {
			if inEnvelope[p.name()] {
				errs = append(errs, fmt.Errorf("%s: two envelope fields are called %q", key, p.name()))
			}
			inEnvelope[p.name()] = true
		}
	}
	return errs
}

func required(key, value string) error {
	if value == "" {
		return fmt.Errorf("%s: must not be empty", key)
	}
	return nil
}

func oneOf(key, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %q", key, value, words)
}
