package router

import (
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Code names a reason why a row cannot be routed. Codes are stable: policies,
// metrics and documentation refer to them.
type Code string

// The codes.
const (
	CodeMissingColumn    Code = "missing_column"    // the table lacks columns that the configuration names
	CodeColumnType       Code = "column_type"       // a column has a type that its role does not take
	CodeBadValue         Code = "bad_value"         // a column's value cannot be made into Connect data
	CodeNotLogged        Code = "not_logged"        // the row image lacks a column that is needed
	CodeNullRouteValue   Code = "null_route_value"  // the route column is NULL
	CodeInvalidTopic     Code = "invalid_topic"     // the topic name is not one that Kafka takes
	CodeRouteRegex       Code = "route_regex"       // the regular expression took too long on the value
	CodeColumnRules      Code = "column_rules"      // a pattern of columns took too long
	CodeNullValue        Code = "null_value"        // null where the schema does not allow it
	CodeInvalidTimestamp Code = "invalid_timestamp" // the timestamp column holds a time before 1970 or after 2262
	CodeInvalidPartition Code = "invalid_partition" // the partition column holds a negative number
	CodeUpdate           Code = "update"            // an UPDATE while table.op.invalid.behavior is fatal
	CodeEnvelopeSchema   Code = "envelope_schema"   // the envelope's cached schema does not fit the row
	CodeConvert          Code = "convert"           // a converter does not take the value
	CodeBadRow           Code = "bad_row"           // the row itself is not one
)

// Error is why one row was not routed. It does not heal by itself: the same row
// fails again until the configuration, the table or the policy for such rows
// changes. Its text holds names of tables and columns, never values.
type Error struct {
	Code   Code
	Table  schema.Name
	Column string // empty when no single column is to blame
	Reason string
	Err    error // the cause below, or nil
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("routing a row")
	if e.Table != (schema.Name{}) {
		b.WriteString(" of " + e.Table.String())
	}
	if e.Column != "" {
		b.WriteString(", column " + e.Column)
	}
	b.WriteString(": " + string(e.Code))
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// ErrCode is the code for status and metrics.
func (e *Error) ErrCode() string { return string(e.Code) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
