package parity

import (
	"fmt"
	"slices"
	"strings"
)

// reason pairs what Debezium's exceptions say with the codes of our errors that mean
// the same; the empty code is a configuration that is refused at the start.
type reason struct {
	says  string
	codes []string
}

// reasons are looked at in order; the first that fits counts.
func reasons() []reason {
	return []reason{
		{"is not a valid field name", []string{"missing_column", "envelope_schema"}},
		{"Unable to find", []string{"missing_column"}},
		{"is not of type", []string{"column_type"}},
		{"Unsupported field type", []string{"column_type"}},
		{"cannot be cast to class java.lang.Long", []string{"column_type", "convert"}},
		{"cannot be cast to class", []string{"convert"}},
		{"Invalid schema type for BooleanConverter", []string{"convert"}},
		{"fieldSchema for field", []string{"envelope_schema"}},
		{`Cannot invoke "java.lang.CharSequence.length()" because "this.text" is null`, []string{"null_route_value"}},
		{"Unexpected update message received", []string{"update"}},
		{"Invalid partition", []string{"invalid_partition"}},
		{"Invalid record timestamp", []string{"invalid_timestamp"}},
		{"InvalidTimestampException", []string{"record_invalid", "invalid_timestamp"}},
		{"one more more invalid records", []string{"record_invalid", "invalid_timestamp"}}, // Kafka's spelling
		{"field name duplication", []string{""}},
		{"AdditionalFieldPlacement.ordinal()", []string{""}},
		{"org.apache.kafka.common.config.ConfigException: Invalid value", []string{""}},
		{"java.util.regex.PatternSyntaxException", []string{""}},
		{"Illegal group reference", []string{""}},
		{"No group", []string{""}},
		{"FieldNameAdjustmentMode.createAdjuster()", []string{""}},
		{"ConfigValueInfo.errors()", []string{""}}, // what the worker says of every bad option
		{"Invalid type for", []string{"convert"}},
		{"Invalid schema type for ByteArrayConverter", []string{"convert"}},
		{"ByteArrayConverter is not compatible with objects", []string{"convert"}},
		{"requires a delegate.converter.type", []string{"convert"}},
		{"Invalid Java object for schema", []string{"envelope_schema"}},
		{"Struct schemas do not match", []string{"envelope_schema"}},
		{`Cannot invoke "Object.hashCode()" because "key" is null`, []string{"envelope_schema"}},
		{"InvalidTopicException", []string{"invalid_topic"}},
		{"RecordTooLargeException", []string{"record_too_large"}},
		{"internal schema size", []string{"missing_column"}},
		{"null used for required field", []string{"bad_value"}},
		{"Error while deserializing binlog data", []string{"bad_value"}},
	}
}

// compareReasons checks that both stopped for one reason.
func compareReasons(want Result, got *Outcome) string {
	for _, r := range reasons() {
		if !strings.Contains(want.Failed+want.Refused, r.says) {
			continue
		}
		if slices.Contains(r.codes, got.Code) && (got.Code != "" || got.Refused != "") {
			return ""
		}
		return fmt.Sprintf("stops for another reason: %q %s, Debezium says:\n%s", got.Code, got.Message+got.Refused,
			lastCause(want))
	}
	return fmt.Sprintf("stops (%q %s), and no reason is known that fits Debezium's:\n%s", got.Code,
		got.Message+got.Refused, lastCause(want))
}
