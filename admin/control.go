package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Control is what operators may ask of the cluster, at any of its nodes: what the
// leader must do is forwarded to it. All of it is kept with who asked for it and
// why. Errors that a client can do something about are of type *Problem. Its
// methods may be called by many goroutines.
type Control interface {
	// Connector returns one connector as this node knows it.
	Connector(name string) (Connector, error)
	// SetRunState stores what is wanted of a connector and does not wait for it.
	SetRunState(ctx context.Context, name string, want ha.RunState, by Actor) error
	// Restart begins a fresh session of a connector, which ends the state failed.
	Restart(ctx context.Context, name string, by Actor) error
	// Offset returns the replicated position, which on a follower may be old.
	Offset(name string) (Offset, error)
	// SetOffset says where a stopped connector is to go on. With choice.DryRun it
	// only tells what that would do.
	SetOffset(ctx context.Context, name string, request OffsetRequest, by Actor) (OffsetChange, error)

	// UnpublishedRows returns what is decided about single rows of a connector, and what was
	// skipped or dead-lettered on this node.
	UnpublishedRows(name string) (UnpublishedRows, error)
	// Unpublished decides about one row, in place of an earlier decision about it.
	DecideRow(ctx context.Context, name string, request RowRequest, by Actor) (RowDecision, error)

	Leader
	Finder
	Operations
}

// Actor is who wants something and why. By is what the server knows of the asker,
// or what the asker claims to be, marked as such.
type Actor struct {
	By, Reason string
}

// Offset is the answer of GET /v1/connectors/{name}/offset: the position that is
// kept in the cluster. With exactly-once delivery Kafka may be up to a second ahead.
type Offset struct {
	Connector string `json:"connector"`
	// Found is false for a connector that begins as source.start says.
	Found    bool     `json:"found"`
	Position Position `json:"position"`
	// OffsetOverride is when an operator has last set the position, if ever.
	OffsetOverride *time.Time `json:"set_at,omitempty"`
}

// OffsetRequest is where a connector is to go on: exactly one of GTIDSet, File with
// Pos, At, Debezium and Reset.
type OffsetRequest struct {
	// GTIDSet is everything that counts as published; an empty set is not possible
	// here (At earliest is).
	GTIDSet string `json:"gtid_set,omitempty"`
	// File and Pos are the binlog and the offset after the last transaction that
	// counts as published, for connectors that go by file and offset.
	File string `json:"file,omitempty"`
	Pos  uint64 `json:"pos,omitempty"`
	// At is now, earliest, or a time (RFC 3339): before the first transaction that
	// was committed at or after it.
	At string `json:"at,omitempty"`
	// Debezium is where a connector of Debezium's has stopped.
	Debezium *DebeziumOffset `json:"debezium,omitempty"`
	// Reset begins as a new connector does, by source.start.
	Reset bool `json:"-"`
	// DryRun only tells what would be done.
	DryRun bool `json:"dry_run,omitempty"`
}

// DebeziumOffset is what Debezium has stored of how far it has come.
type DebeziumOffset struct {
	// Offset is the JSON object as it is stored: file, pos, gtids, event, row and so on.
	Offset json.RawMessage `json:"offset,omitempty"`
	// Topic is where Connect keeps it, at the connector's own brokers, in place of Offset,
	// and Name the name of Debezium's connector there, if it is another one.
	Topic string `json:"topic,omitempty"`
	Name  string `json:"name,omitempty"`
	// Config has those keys of Debezium's connector by which it is known what an offset
	// counts: its lists of tables and databases, and include.query. When it is absent, what
	// the connector here says of them counts.
	Config map[string]string `json:"config,omitempty"`
}

// OffsetChange is what setting a position does, or would do.
type OffsetChange struct {
	Connector string `json:"connector"`
	DryRun    bool   `json:"dry_run"`
	// Before and After are the positions; Reset says that After is decided at the
	// next start, by source.start.
	Before Position `json:"before"`
	After  Position `json:"after"`
	Reset  bool     `json:"reset,omitempty"`
	// Repeated and Skipped count transactions of all tables, not events: those that
	// were published and come again, and those that are passed over. They are absent
	// where that can't be known.
	Repeated *uint64 `json:"repeated_transactions,omitempty"`
	Skipped  *uint64 `json:"skipped_transactions,omitempty"`
	// Notes say what else there is to know, for people.
	Notes []string `json:"notes,omitempty"`
}
