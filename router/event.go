package router

import (
	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Datum is a Connect value with its schema. A nil schema goes with values that
// have none: the null of a tombstone.
type Datum struct {
	Schema *converter.Schema
	Value  any
}

// Header is one record header before conversion.
type Header struct {
	Name string
	Datum
}

// What Event.Timestamp and Event.Partition hold when the row does not say.
const (
	NoTimestamp int64 = -1 // the producer's clock
	NoPartition int32 = -1 // the partitioner, by key
)

// Event is a routed row. It may refer to the row's strings and bytes, and is valid
// as long as they are. An Event is used again for the next row: Route overwrites
// it and keeps its Headers' memory.
type Event struct {
	Table     schema.Name // where the row is from
	ID        Datum       // the event's id; also of a row that is refused once it was read
	Topic     string
	Key       Datum
	Value     Datum
	Headers   []Header
	Timestamp int64 // milliseconds since the epoch, or NoTimestamp
	Partition int32 // or NoPartition
	// NotExpanded reports that table.expand.json.payload is on and the payload was
	// left as it is, where Debezium logs a warning.
	NotExpanded bool
}

func (e *Event) reset() {
	clear(e.Headers)
	*e = Event{Headers: e.Headers[:0], Timestamp: NoTimestamp, Partition: NoPartition}
}

// Outcome is what became of a row. Together with the error it accounts for every
// row: exactly one of an event, a reason for dropping, or an error.
type Outcome uint8

// The outcomes. The zero value goes with an error.
const (
	Failed Outcome = iota
	// Routed: the event is to be sent.
	Routed
	// DroppedDelete: deletes are how an outbox is cleaned, EventRouter ignores them.
	DroppedDelete
	// DroppedUpdate: an UPDATE that table.op.invalid.behavior lets pass with a
	// warning ("warn") or as an error to be logged ("error").
	DroppedUpdate
	// DroppedSkipped: skipped.operations names the row's operation.
	DroppedSkipped
)

// String returns the outcome as a metric label.
func (o Outcome) String() string {
	switch o {
	case Routed:
		return "routed"
	case DroppedDelete:
		return "dropped_delete"
	case DroppedUpdate:
		return "dropped_update"
	case DroppedSkipped:
		return "dropped_skipped"
	default:
		return "failed"
	}
}
