package ha

import (
	"errors"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/envelope"
)

var (
	// ErrNotLeader is returned when a call must be made on the leader and this
	// node is not it. Nothing has been changed.
	ErrNotLeader = errors.New("this node is not the leader")
	// ErrNoLeader is returned when a write found no leader in time. Nothing has
	// been changed; the write may be tried again.
	ErrNoLeader = errors.New("the cluster has no leader")
	// ErrBusy is returned when a write was not taken up in time. Nothing has been
	// changed; the write may be tried again.
	ErrBusy = errors.New("the write was not taken up in time")
	// ErrLeadershipLost is the cause of a Lead context that ended because
	// another node may lead from now on.
	ErrLeadershipLost = errors.New("leadership lost")
	// ErrShuttingDown is the cause of a Lead context that ended because this
	// node stops, and is returned by calls that come too late.
	ErrShuttingDown = errors.New("the node is shutting down")
	// ErrStepDown may be wrapped by the error of a Lead function that can't work
	// on this node (Kafka or MySQL out of reach) while another node might: the
	// node then hands its leadership to another voter.
	ErrStepDown = errors.New("handing leadership to another node")
	// ErrNoOtherVoter is returned when leadership was to be transferred and
	// there is nobody to take it.
	ErrNoOtherVoter = errors.New("there is no other voter to take the leadership")
	// ErrNotMember is returned when the node that a change is about is no member.
	ErrNotMember = errors.New("no such member")
	// ErrQuorum is returned when a removal would leave too few voters in contact
	// for a majority. Nothing has been changed.
	ErrQuorum = errors.New("the cluster would be left without a majority")
	// ErrInvalid is returned for a write that makes no sense; it was not tried.
	ErrInvalid = errors.New("invalid request")
)

// Reason is a machine-readable reason of a refusal.
type Reason string

// The reasons of a RejectedError.
const (
	// ReasonOlderTerm: a node of a later term leads; the writer must stop.
	ReasonOlderTerm Reason = "older_term"
	// ReasonOlderSession: a later run of the same term has saved, or an operator has
	// set the position; the writer must stop, and may begin again from what it
	// reads then.
	ReasonOlderSession Reason = "older_session"
	// ReasonBehind: the position does not cover the stored one.
	ReasonBehind Reason = "position_behind"
	// ReasonNotStopped: the connector must be paused or stopped for this.
	ReasonNotStopped Reason = "not_stopped"
	// ReasonUnknownConnector: there is no such connector in the store.
	ReasonUnknownConnector Reason = "unknown_connector"
	// ReasonFull: the store holds as much of this as it may.
	ReasonFull Reason = "full"
)

// RejectedError is returned when the replicated state forbids a write. Nothing
// has been changed, and the same write will be refused again.
type RejectedError struct {
	Connector string `json:"connector"`
	Reason    Reason `json:"reason"`
	// Message says what was asked for and what stands against it.
	Message string `json:"message"`
	// Have is the connector's state that stands against it.
	Have State `json:"have"`
}

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("connector %q: write refused (%s): %s", e.Connector, e.Reason, e.Message)
}

// UnknownOutcomeError is returned when a write may or may not become part of the
// state: it was proposed, and the answer did not come. Read the state before
// deciding anything.
type UnknownOutcomeError struct {
	Op  string
	Err error
}

// Error implements error.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("%s: outcome unknown: %v", e.Op, e.Err)
}

// Unwrap returns why the outcome is unknown.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// StoreError is returned when the data directory can't be read or written. The
// node does not go on after it.
type StoreError struct {
	Path   string
	Err    error
	Remedy string
}

// Error implements error.
func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: %v; %s", e.Path, e.Err, e.Remedy)
}

// Unwrap returns what went wrong.
func (e *StoreError) Unwrap() error { return e.Err }

// Kinds of a StoreError that callers tell apart with errors.Is.
var (
	// ErrDataDirInUse: another process has the data directory open.
	ErrDataDirInUse = errors.New("the data directory is in use by another process")
	// ErrForeignState: the directory or a snapshot belongs to another node or cluster.
	ErrForeignState = errors.New("the state belongs to someone else")
	// ErrNewerFormat: the state was written by a newer release.
	ErrNewerFormat = envelope.ErrNewer
	// ErrIncomplete: a part of the state is missing, so that starting would go
	// back in time or begin anew.
	ErrIncomplete = errors.New("a part of the state is missing")
	// ErrCorrupt: the state can't be read as what it should be.
	ErrCorrupt = envelope.ErrDamaged
)
