package ha

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// RunState is what an operator wants of a connector. It says nothing about
// whether the connector manages to.
type RunState string

// The run states. An unset RunState means Running.
const (
	// Running is a connector that reads and publishes.
	Running RunState = "running"
	// Paused is a connector that keeps its connections and publishes nothing.
	Paused RunState = "paused"
	// Stopped is a connector without tasks; its position may be set.
	Stopped RunState = "stopped"
)

func (s RunState) valid() bool { return s == Running || s == Paused || s == Stopped }

// RunStatus is a run state with who set it, when and why.
type RunStatus struct {
	State  RunState  `json:"state"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Run is one stretch of work of a connector: the Raft term of the leadership
// that it works under (the term that Lead hands out) and an id of its own, for
// there may be several runs in one term. Ids must never be used twice.
type Session struct {
	Term uint64 `json:"term"`
	ID   string `json:"id"`
	// Epoch is State.Epoch of when the run read the position that it goes on from.
	// An operator who sets the position begins a new epoch, so that a run which
	// does not know of it can't take it back.
	Epoch uint64 `json:"epoch,omitempty"`
}

// KindRowDecision is the kind of decisions about a single row, whose Key is the text of
// a position.Row. It is the one kind that the store looks into: a decision about a
// row that the stored position covers is over, and may be dropped.
const KindRowDecision = "row_decision"

// Decision is what an operator or a policy has decided about a connector's data:
// a row that is skipped or dead-lettered, an accepted lost transaction. The store keeps it as it is and,
// but for KindRowDecision, knows nothing of its meaning.
type Decision struct {
	// Kind names what Data is, Version the version of its form.
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	// Key makes the decision unique within its kind: a later decision with the
	// same kind and key takes the place of the earlier one. Without a key the
	// decision is always added.
	Key    string          `json:"key,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Reason string          `json:"reason,omitempty"`
	By     string          `json:"by,omitempty"`
	// At is set by the store when it is zero.
	At time.Time `json:"at,omitzero"`
}

// State is what the store holds about one connector. Values that the store
// hands out are the caller's own.
type State struct {
	// Position is the last saved position; zero when there is none.
	Position position.Position `json:"position"`
	// Run is the run that saved it last. Its ID is empty after an operator has
	// set the position.
	Session Session `json:"session,omitzero"`
	// Epoch counts how often an operator has set the position or deleted the
	// connector; for Run.Epoch.
	Epoch uint64 `json:"epoch,omitempty"`
	// Restarts counts how often an operator has asked for a fresh term.
	Restarts uint64 `json:"restarts,omitempty"`
	// Retired are ids of runs of Run.Term that have been superseded.
	Retired []string `json:"retired,omitempty"`
	// RunState has an empty State until someone sets it.
	RunState RunStatus `json:"run_state,omitzero"`
	// Decisions are in the order in which they were made.
	Decisions []Decision `json:"decisions,omitempty"`
	// Config is the connector's configuration if it came over the REST API, and
	// nil otherwise.
	Config json.RawMessage `json:"config,omitempty"`
	// Revision counts the accepted changes to this connector.
	Revision uint64 `json:"revision"`
}

// Clone returns a copy of which nothing that s shares is changed.
func (s State) Clone() State {
	s.Retired = slices.Clone(s.Retired)
	s.Config = slices.Clone(s.Config)
	s.Decisions = slices.Clone(s.Decisions)
	for i := range s.Decisions {
		s.Decisions[i].Data = slices.Clone(s.Decisions[i].Data)
	}
	return s
}

// SeqAfterOverride is the number with which rows go on when an operator sets a position
// now: above those that a run may have given since it saved.
func (s State) SeqAfterOverride() uint64 {
	if s.Session.Term == 0 {
		return s.Position.Seq
	}
	return s.Position.Seq + position.SeqGap
}

// AuditEntry is one operator command that was carried out.
type AuditEntry struct {
	// Index is the Raft index of the command.
	Index     uint64    `json:"index"`
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	Action    string    `json:"action"`
	Connector string    `json:"connector,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Detail says what was changed, from what to what; never a configuration.
	Detail string `json:"detail,omitempty"`
}

// Bounds of what the store keeps.
const (
	// maxAudit is how many audit entries are kept; the oldest go first.
	maxAudit = 1000
	// maxDecisions is how many decisions a connector may have. More are refused,
	// since a decision must not be forgotten silently.
	maxDecisions = 10_000
	// maxRowDecisions is how many decisions about single rows a connector may have before
	// those that are over are dropped.
	maxRowDecisions = 1000
	// maxRetired is how many superseded runs of one term are remembered.
	maxRetired = 64
	// maxCommand is the largest encoded command, in bytes.
	maxCommand = 4 << 20
)
