package canal

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Kind says what went wrong, in terms of what an operator can do about it.
type Kind uint8

// The kinds of errors. Those marked (retry) pass by themselves, so that opening
// again makes sense; all others stay until somebody acts.
const (
	// Disconnected is returned when the connection broke, timed out, or was
	// ended by the server (retry).
	Disconnected Kind = iota + 1
	// Unreachable is returned when no connection could be made (retry).
	Unreachable
	// AccessDenied is returned for a wrong password or a missing grant (retry:
	// grants and passwords get corrected while we wait).
	AccessDenied
	// DuplicateServerID is returned when another replica with our server id came
	// and the server ended our dump (retry, after a pause: the other one may be
	// a paused predecessor).
	DuplicateServerID
	// ServerChanged is returned when the address led to another server between
	// the checks and the dump (retry).
	ServerChanged
	// Purged is returned when binlogs that are needed are no longer on the server.
	Purged
	// Behind is returned when the server lacks transactions of the position: a
	// lossy failover, a restored backup or a reset.
	Behind
	// WrongHistory is returned when the position is of another server or of
	// binlogs with another base name.
	WrongHistory
	// WrongMode is returned when the position and the server's GTID mode do not
	// fit, or when the server does not write a binlog at all.
	WrongMode
	// AnonymousTransaction is returned when a transaction without GTID comes in a
	// stream whose position is a GTID set.
	AnonymousTransaction
	// StatementFormat is returned when a statement, not rows, changed an outbox table.
	StatementFormat
	// MissingColumn is returned when a row image lacks a column that is needed.
	MissingColumn
	// UnknownTable is returned when the shape of an outbox table cannot be had:
	// it is not in the binlog and the table is gone (retry: tables are renamed and
	// dropped to come back, and grants get corrected while we wait).
	UnknownTable
	// SchemaMismatch is returned when the row in the binlog does not fit the
	// table's columns.
	SchemaMismatch
	// PreparedXA is returned at an XA PREPARE that holds outbox rows.
	PreparedXA
	// Incident is returned when the server says that its binlog lost events.
	Incident
	// Undecodable is returned for events that do not follow the format.
	Undecodable
	// TooLarge is returned when something exceeds a limit: the server's
	// max_allowed_packet or Config.MaxUncompressed.
	TooLarge
	// SpoolFailed is returned when a large transaction cannot be kept on disk (retry).
	SpoolFailed
	// BadConfig is returned by Open for a configuration or position that cannot work.
	BadConfig
	// ServerFailed is returned for errors of the server that have no kind of
	// their own (retry).
	ServerFailed
	// Diverged is returned when the server has another transaction under a number
	// that was already published: it lost transactions and gave their numbers to
	// others.
	Diverged
	// LostTransactions is returned when the server lacks published transactions of other
	// servers: a failed primary's last ones, which no other server got.
	LostTransactions
	// Lagging is returned when a replica has not yet applied what was published (retry).
	Lagging
	// NoPrimary is returned when none of several hosts takes writes (retry).
	NoPrimary
	// PartialUpdate is returned for a partial update (binlog_row_value_options) when
	// Config.RefusePartialUpdates is set.
	PartialUpdate
	// Demoted is returned when the server no longer takes writes and another one of
	// the hosts does (retry).
	Demoted
)

var kinds = [...]struct {
	name  string
	retry bool
}{
	Disconnected:         {"disconnected", true},
	Unreachable:          {"unreachable", true},
	AccessDenied:         {"access_denied", true},
	DuplicateServerID:    {"duplicate_server_id", true},
	ServerChanged:        {"server_changed", true},
	Purged:               {"purged", false},
	Behind:               {"behind", false},
	WrongHistory:         {"wrong_history", false},
	WrongMode:            {"wrong_mode", false},
	AnonymousTransaction: {"anonymous_transaction", false},
	StatementFormat:      {"statement_format", false},
	MissingColumn:        {"missing_column", false},
	UnknownTable:         {"unknown_table", true},
	SchemaMismatch:       {"schema_mismatch", false},
	PreparedXA:           {"prepared_xa", false},
	Incident:             {"incident", false},
	Undecodable:          {"undecodable", false},
	TooLarge:             {"too_large", false},
	SpoolFailed:          {"spool_failed", true},
	BadConfig:            {"bad_config", false},
	ServerFailed:         {"server_failed", true},
	Diverged:             {"source_diverged", false},
	LostTransactions:     {"lost_transactions", false},
	Lagging:              {"lagging", true},
	NoPrimary:            {"no_primary", true},
	PartialUpdate:        {"partial_update", false},
	Demoted:              {"demoted", true},
}

// String returns a stable lower-case word, fit for metrics and APIs.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k].name != "" {
		return kinds[k].name
	}
	return "unknown"
}

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the binlog stream is closed")

// Error is what Open and Next return, apart from context errors and ErrClosed.
// Its text never holds statements, row values or secrets.
type Error struct {
	Kind Kind
	// GTID is the transaction at which it happened; zero when there is none.
	GTID position.GTID
	// File and Pos say how far the binlog was read: the end of the last event.
	File string
	Pos  uint64
	// Table names the outbox table concerned ("database.table"), if one is.
	Table string
	// Difference is the exact GTID set (or file) that is missing, for Purged,
	// Behind, LostTransactions and Lagging, or that is another one, for Diverged.
	Difference string

	msg string
	err error
}

// Error returns the reason, then GTID and place.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(e.msg, e.Kind.String())) // tests make errors without a text
	switch {
	case !e.GTID.IsZero() && e.File != "":
		fmt.Fprintf(&b, " (transaction %s, %s:%d)", e.GTID, e.File, e.Pos)
	case !e.GTID.IsZero():
		fmt.Fprintf(&b, " (transaction %s)", e.GTID)
	case e.File != "":
		fmt.Fprintf(&b, " (%s:%d)", e.File, e.Pos)
	}
	if e.err != nil {
		b.WriteString(": ")
		b.WriteString(e.err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Retryable reports whether opening again from the same position may succeed
// without anybody doing something.
func (e *Error) Retryable() bool { return int(e.Kind) < len(kinds) && kinds[e.Kind].retry }

// ErrCode is the code for status and metrics.
func (e *Error) ErrCode() string { return e.Kind.String() }

func newError(k Kind, err error, msg string, args ...any) *Error {
	return &Error{Kind: k, msg: fmt.Sprintf(msg, args...), err: err}
}
