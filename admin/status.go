package admin

import (
	"time"

	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Status is the answer of GET /v1/status.
type Status struct {
	Node    string `json:"node"`
	Version string `json:"version"`
	// Role is leader, follower, candidate or starting.
	Role       string      `json:"role"`
	Leader     string      `json:"leader"`
	Term       uint64      `json:"term"`
	Connectors []Connector `json:"connectors"`
}

// Connector is one connector in Status.
type Connector struct {
	Name string `json:"name"`
	// State is running, paused, stopped, failed, or unassigned on a node that does
	// not run it.
	State string `json:"state"`
	// Phase is what a running connector is at; "streaming" when all is well, or
	// "snapshot rows" while those that stood in the tables at the start are published.
	Phase string `json:"phase,omitempty"`
	// Wanted is what operators want of the connector, on every node.
	Wanted    ha.RunStatus `json:"wanted"`
	Since     time.Time    `json:"since"`
	Delivery  string       `json:"delivery"`
	Source    *Source      `json:"source,omitempty"`
	Position  Position     `json:"position"`
	Published uint64       `json:"published_records"`
	Sessions  uint64       `json:"sessions"`
	Queue     Queue        `json:"queue"`
	// LagSeconds is the age of the oldest transaction that the source has committed and
	// that is not published, 0 when there is none; absent while that is not known.
	LagSeconds *float64           `json:"lag_seconds,omitempty"`
	Backlog    *connector.Backlog `json:"backlog,omitempty"`
	// Takeover are the seconds of each phase of the session that streams.
	Takeover    map[string]float64   `json:"takeover_seconds,omitempty"`
	Unpublished Unpublished          `json:"unpublished"`
	LastError   *connector.LastError `json:"last_error"`
	// UnseenTopics are those of which the connector can't see what a transaction left
	// open in a partition without a leader; "*" stands for all.
	UnseenTopics []string `json:"unseen_topics,omitempty"`
}

// Unpublished are the rows that could not be published and were passed, by the policy or
// an operator's decision.
type Unpublished struct {
	// Rows counts since the process started; Last are the last of them.
	Rows uint64           `json:"rows"`
	Last []UnpublishedRow `json:"last,omitempty"`
}

// UnpublishedRow is one of them, without anything of what is in it.
type UnpublishedRow struct {
	// Transaction is a GTID, or file:pos of its end; Row the number of the row among
	// its outbox rows, from 1.
	Transaction string    `json:"transaction"`
	Row         uint64    `json:"row"`
	Table       string    `json:"table,omitempty"`
	Action      string    `json:"action"` // dead_letter or skip
	Cause       string    `json:"cause"`
	Message     string    `json:"message"`
	At          time.Time `json:"at"`
}

// Source is the open binlog stream of a connector.
type Source struct {
	Connected      bool   `json:"connected"`
	Flavor         string `json:"flavor"`
	ServerUUID     string `json:"server_uuid,omitempty"`
	ServerVersion  string `json:"server_version"`
	BinlogFile     string `json:"binlog_file"`
	BinlogPosition uint64 `json:"binlog_position"`
	// LagSeconds is how far behind its source the reading is: the age of the oldest
	// transaction that was received and waits, or of the last one when it came.
	LagSeconds   float64 `json:"lag_seconds"`
	LastEventAge float64 `json:"last_event_or_heartbeat_age_seconds"`
	// Counts since the stream was opened: inserted rows, and update and delete
	// events, of outbox tables; and transactions of all tables.
	Inserts      uint64 `json:"inserts"`
	Updates      uint64 `json:"updates"`
	Deletes      uint64 `json:"deletes"`
	Transactions uint64 `json:"transactions"`
	// EventTime is the commit time of the last transaction read.
	EventTime *time.Time `json:"event_time,omitempty"`
	// Snapshot says how far the reading of snapshot rows is; absent when there are none
	// to come.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Snapshot is the reading of the rows that stood in the outbox tables at the start.
type Snapshot struct {
	// Table is the one being read.
	Table      string `json:"table,omitempty"`
	Tables     int    `json:"tables"`
	DoneTables int    `json:"done_tables"`
	// Rows were read; EstimatedRows is what the server believes to be in all tables.
	Rows          uint64 `json:"rows"`
	EstimatedRows uint64 `json:"estimated_rows"`
	// Finished is set when all are read and nothing else is to be published.
	Finished bool `json:"finished,omitempty"`
}

// Position is what has been made durable.
type Position struct {
	GTIDSet   string     `json:"gtid_set,omitempty"`
	File      string     `json:"file,omitempty"`
	Pos       uint64     `json:"pos,omitempty"`
	LastGTID  string     `json:"last_gtid,omitempty"`
	EventTime *time.Time `json:"event_time,omitempty"`
	// Sequence is the number of the last published outbox row in the connector's life;
	// where an operator sets the position it goes on 1,000,000,000 further.
	Sequence uint64 `json:"sequence"`
	// Snapshot says how far the snapshot rows are published; absent when there are none
	// to come. The place in the binlog stands still until then.
	Snapshot *SnapshotPosition `json:"snapshot,omitempty"`
}

// SnapshotPosition names the last snapshot row that is published.
type SnapshotPosition struct {
	Database string   `json:"database,omitempty"`
	Table    string   `json:"table,omitempty"`
	Key      []string `json:"key,omitempty"`
	Rows     uint64   `json:"rows"`
}

// Queue is what waits for the sink.
type Queue struct {
	Records int `json:"records"`
	Bytes   int `json:"bytes"`
}
