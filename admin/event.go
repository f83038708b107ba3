package admin

import (
	"net/http"
	"time"
)

// Finder finds events by their ids. What is said of Control is true of it. Only the
// leader is asked.
type Finder interface {
	// Event says what is known of an event in the connector with that name, or in all
	// connectors for "".
	Event(id, connector string) (Event, error)
	// Search begins to read the binlogs of a connector's source for an event. There is
	// one search at a time; the name may be empty when there is one connector.
	Search(id, connector string, by Actor) (Event, error)
	// EndSearch ends the search for an event.
	EndSearch(id string, by Actor) (Event, error)
}

// Event is the answer of GET /v1/events/{id}.
type Event struct {
	ID string `json:"id"`
	// Node is the node that knows: the leader.
	Node       string           `json:"node"`
	Connectors []ConnectorEvent `json:"connectors"`
}

// What may have become of an event.
const (
	EventPublished   = "published"
	EventWaiting     = "waiting"
	EventUnpublished = "unpublished"
	// EventPassed is an event of the binlog that the position has behind it, and of
	// which no more is known: it was published, or stood before the connector's start.
	EventPassed  = "passed"
	EventNotSeen = "not_seen"
)

// ConnectorEvent is an event in one connector.
type ConnectorEvent struct {
	Connector string `json:"connector"`
	// Where is published, waiting, unpublished, passed or not_seen.
	Where   string   `json:"where"`
	Written *Written `json:"written,omitempty"`
	// Published are its places, the last first: of an event that was written or
	// published more than once there are several.
	Published []PartitionOffset `json:"published,omitempty"`
	// Behind is how many transactions are to be published before it, as far as they
	// are known: of outbox tables, or after a search of all tables.
	Behind *uint64 `json:"behind_transactions,omitempty"`
	// Unpublished is why it was skipped or dead-lettered, and its dead letter.
	Unpublished *UnpublishedEvent `json:"unpublished,omitempty"`
	// State is the connector's, Error why it does not stream: code and message.
	State  string      `json:"state"`
	Error  string      `json:"error,omitempty"`
	Known  EventsKnown `json:"known"`
	Search *Search     `json:"search,omitempty"`
}

// Written is the transaction that wrote an event.
type Written struct {
	GTID string `json:"gtid,omitempty"`
	// File and Pos are where the transaction ends in the binlog of the server that was
	// read.
	File string `json:"file,omitempty"`
	Pos  uint64 `json:"pos,omitempty"`
	// CommittedAt is absent where the source does not say it.
	CommittedAt *time.Time `json:"committed_at,omitempty"`
	// SnapshotRow is its number among the rows that stood in the tables at the start; it
	// has no place in the binlog then.
	SnapshotRow uint64 `json:"snapshot_row,omitempty"`
}

// PartitionOffset is where a record is in Kafka. Offset is absent when the broker did not
// say it.
type PartitionOffset struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    *int64    `json:"offset,omitempty"`
	At        time.Time `json:"at"`
}

// UnpublishedEvent is why an event was skipped or dead-lettered.
type UnpublishedEvent struct {
	// Row is its number among the outbox rows of its transaction, from 1.
	Row        uint64           `json:"row"`
	Action     string           `json:"action"` // dead_letter or skip
	Cause      string           `json:"cause"`
	Message    string           `json:"message,omitempty"`
	At         time.Time        `json:"at"`
	DeadLetter *PartitionOffset `json:"dead_letter,omitempty"`
}

// EventsKnown is what is remembered of published events: all since a time, which is
// absent on an idle node, or nothing when events.recent is 0.
type EventsKnown struct {
	Since  *time.Time `json:"since,omitempty"`
	Events int        `json:"events"`
	Off    bool       `json:"off,omitempty"`
}

// The states of a search.
const (
	SearchRunning   = "running"
	SearchFound     = "found"
	SearchNotFound  = "not_found"
	SearchCancelled = "cancelled"
	SearchFailed    = "failed"
)

// Search is a search for an event in the source's binlogs.
type Search struct {
	// State is one of the constants that begin with Search.
	State  string     `json:"state"`
	Begun  time.Time  `json:"begun_at"`
	Ended  *time.Time `json:"ended_at,omitempty"`
	Detail string     `json:"detail,omitempty"`
	// Bytes were read, of about so many that the binlogs had at the beginning.
	Bytes        uint64 `json:"bytes"`
	OfBytes      uint64 `json:"of_bytes"`
	Transactions uint64 `json:"transactions"`
	// At is the commit time up to which the binlogs are read.
	At *time.Time `json:"at,omitempty"`
}

// maxEventID bounds an event's id in bytes.
const maxEventID = 1000

// eventRoutes are those that the leader answers.
func eventRoutes(control Control, handle handle) {
	handle(View, "GET /v1/events/{id}", func(w http.ResponseWriter, r *http.Request) {
		answerEvent(w, r, http.StatusOK, func(id string) (Event, error) {
			return control.Event(id, r.URL.Query().Get("connector"))
		})
	})
	handle(Operate, "POST /v1/events/{id}/search", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			actorFields
			Connector string `json:"connector,omitempty"`
		}
		answerEvent(w, r, http.StatusAccepted, func(id string) (Event, error) {
			by, err := readActor(w, r, &body, &body.actorFields)
			if err != nil {
				return Event{}, err
			}
			return control.Search(id, body.Connector, by)
		})
	})
	handle(Operate, "DELETE /v1/events/{id}/search", func(w http.ResponseWriter, r *http.Request) {
		var body actorFields
		answerEvent(w, r, http.StatusOK, func(id string) (Event, error) {
			by, err := readActor(w, r, &body, &body)
			if err != nil {
				return Event{}, err
			}
			return control.EndSearch(id, by)
		})
	})
}

func answerEvent(w http.ResponseWriter, r *http.Request, code int, ask func(id string) (Event, error)) {
	id := r.PathValue("id")
	err := error(nil)
	var e Event
	if len(id) > maxEventID {
		err = invalid("the event's id is too long")
	} else {
		e, err = ask(id)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, code, e)
}
