package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/binlog-outbox/binlog-outbox/envelope"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// The position topic holds three kinds of records, each under its own key so that
// compaction keeps the last of each: who opened, the last full position, and what
// came since it.
// Their values are envelopes.
const (
	openKey  = "open"
	fullKey  = "position"
	deltaKey = "since"

	// positionVersion is the version of all three that this release writes, and the
	// newest that it reads. A new field needs a new version.
	positionVersion = 1
)

// openRecord says who writes from here on.
type openRecord struct {
	Session string    `json:"session"` // unique to this opening
	Node    string    `json:"node,omitempty"`
	Term    uint64    `json:"term"`
	Time    time.Time `json:"time"`
}

// fullRecord is a whole position. Deltas refer to it by ID.
type fullRecord struct {
	ID       string            `json:"id"`
	Position position.Position `json:"position"`
	Trace    json.RawMessage   `json:"trace,omitempty"`
}

// deltaRecord is the position that has come over the transactions Since the full
// position Base. Its Position has no set of its own.
type deltaRecord struct {
	Base     string            `json:"base"`
	Since    *position.Set     `json:"since"`
	Position position.Position `json:"position"`
	Trace    json.RawMessage   `json:"trace,omitempty"`
}

// encodePosition writes the value of a record of the position topic.
func encodePosition(v any) ([]byte, error) {
	data, err := envelope.Seal(positionVersion, v)
	if err != nil {
		return nil, fmt.Errorf("encoding position: %w", err)
	}
	return data, nil
}

// decodePosition is the inverse.
func decodePosition(value []byte, v any) error { return envelope.Open(value, positionVersion, v) }

// history is what a reader of the position topic knows so far.
type history struct {
	full  *fullRecord
	delta *deltaRecord
}

// take reads one record of the topic. Keys that it doesn't know are passed over.
func (h *history) take(key, value []byte) error {
	switch string(key) {
	case fullKey:
		var f fullRecord
		if err := decodePosition(value, &f); err != nil {
			return err
		}
		h.full, h.delta = &f, nil
	case deltaKey:
		var d deltaRecord
		if err := decodePosition(value, &d); err != nil {
			return err
		}
		h.delta = &d
	}
	return nil
}

// trace returns what the last record says beside the position, nil if it says nothing.
func (h *history) trace() (*trace, error) {
	var raw json.RawMessage
	switch {
	case h.delta != nil:
		raw = h.delta.Trace
	case h.full != nil:
		raw = h.full.Trace
	}
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // there need not be one
	}
	var t trace
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("decoding what it says of partitions: %w", err)
	}
	return &t, nil
}

// complete reports whether nothing before what was read can matter.
func (h *history) complete() bool {
	return h.full != nil && (h.delta == nil || h.delta.Base == h.full.ID)
}

// position returns what the records say; found is false if they say nothing.
func (h *history) position() (pos position.Position, found bool, err error) {
	switch {
	case h.full == nil && h.delta == nil:
		return pos, false, nil
	case !h.complete():
		return pos, false, errors.New("the last position refers to a full position that is not there: the topic was " +
			"truncated or written by somebody else")
	case h.delta == nil:
		return h.full.Position, true, nil
	}
	pos = h.delta.Position
	if h.full.Position.Set == nil || h.delta.Since == nil {
		return pos, false, errors.New("what follows a full position does not fit it: one of them has no GTIDs")
	}
	pos.Set = h.full.Position.Set.Clone()
	pos.Set.AddSet(h.delta.Since)
	return pos, true, nil
}
