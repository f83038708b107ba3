package ha

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// fsm is the replicated state machine. Raft's own goroutine changes it; any
// goroutine may read it. Stored States are never changed in place, so that a
// snapshot is a shallow copy.
type fsm struct {
	// onFailure is called once, with the lock held, when a command or snapshot
	// can't be understood. From then on nothing is applied any more.
	onFailure func(error)
	watchers  watchers

	mu         sync.RWMutex
	img        image
	wantOrigin string // cluster id that snapshots must carry; empty: any
	index      uint64 // Raft index of the last applied command
	failed     error
}

// applied is the answer of Apply to whoever proposed the command.
type applied struct {
	term uint64
	err  error
}

func newFSM(onFailure func(error)) *fsm {
	return &fsm{onFailure: onFailure, img: image{Connectors: map[string]State{}}}
}

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return applied{err: f.failed}
	}
	cmd, err := decodeCommand(l.Data)
	if err != nil {
		return applied{err: f.fail(fmt.Errorf("applying log entry %d: %w", l.Index, err))}
	}
	err = f.apply(l, cmd)
	f.index = l.Index
	if err == nil {
		f.watchers.notify()
	}
	return applied{term: l.Term, err: err}
}

// fail stops the state machine. A command that is passed over would make this
// node's state differ from the others' for ever.
func (f *fsm) fail(err error) error {
	if f.failed == nil {
		f.failed = err
		f.onFailure(err)
	}
	return f.failed
}

func (f *fsm) apply(l *raft.Log, c *command) error {
	if c.Op == opLead {
		f.img.Lead = leadRecord{Term: l.Term, Node: c.Node, At: c.At}
		if f.img.Cluster == "" {
			f.img.Cluster = c.Cluster
		}
		return nil
	}
	if c.Op == opNote {
		f.audit(l.Index, c, c.Detail)
		return nil
	}
	old, known := f.img.Connectors[c.Connector]
	st := old // slices are shared and only ever replaced
	var detail string
	switch c.Op {
	case opSavePosition:
		if err := f.savePosition(&st, c); err != nil {
			return err
		}
	case opSetPosition:
		if err := setPosition(&st, c); err != nil {
			return err
		}
		detail = fmt.Sprintf("from %s to %s", brief(old.Position), brief(st.Position))
	case opSetRunState:
		st.RunState = RunStatus{State: c.RunState, Reason: c.Reason, By: c.By, At: c.At}
		detail = fmt.Sprintf("from %s to %s", cmp.Or(old.RunState.State, Running), c.RunState)
	case opRestart:
		st.Restarts++
	case opPutConfig:
		st.Config = c.Config
		detail = fmt.Sprintf("%d bytes", len(c.Config))
	case opDelete:
		if !known {
			return reject(c, old, ReasonUnknownConnector, "nothing is stored under this name")
		}
		if old.Position.IsZero() && old.Session.Term == 0 && old.Epoch == 0 {
			delete(f.img.Connectors, c.Connector)
			f.audit(l.Index, c, "")
			return nil
		}
		// As in Kafka Connect the position outlives the connector: one of the same
		// name goes on there, unless it is set.
		st = State{Position: old.Position, Session: old.Session, Retired: old.Retired, Epoch: old.Epoch,
			Restarts: old.Restarts, Revision: old.Revision}
		st.nextEpoch()
	case opDecision:
		if err := appendDecision(&st, c); err != nil {
			return err
		}
		detail = strings.TrimSpace(c.Decision.Kind + " " + c.Decision.Key)
		if c.Decision.Kind == KindRowDecision {
			detail += " " + string(c.Decision.Data)
		}
	}
	st.Revision++
	f.img.Connectors[c.Connector] = st
	if c.Op != opSavePosition {
		f.audit(l.Index, c, detail)
	}
	return nil
}

// savePosition lets a position only grow, and only by the newest run of the
// newest term.
func (f *fsm) savePosition(st *State, c *command) error {
	newest := max(f.img.Lead.Term, st.Session.Term)
	switch {
	case c.Session.Term < newest:
		return reject(c, *st, ReasonOlderTerm, fmt.Sprintf("the run is of term %d, term %d has begun", c.Session.Term,
			newest))
	case c.Session.Epoch != st.Epoch:
		return reject(c, *st, ReasonOlderSession, fmt.Sprintf("run %s has read its position in epoch %d, an operator has "+
			"begun epoch %d", c.Session.ID, c.Session.Epoch, st.Epoch))
	case c.Session.Term == st.Session.Term && slices.Contains(st.Retired, c.Session.ID):
		return reject(c, *st, ReasonOlderSession, fmt.Sprintf("run %s has been superseded", c.Session.ID))
	case !c.Position.Covers(st.Position):
		return reject(c, *st, ReasonBehind, fmt.Sprintf("%s does not cover the stored %s", brief(*c.Position),
			brief(st.Position)))
	}
	if c.Session.Term != st.Session.Term {
		st.Retired = nil
	} else if c.Session.ID != st.Session.ID {
		retire(st)
	}
	st.Session = *c.Session
	override := max(st.Position.OffsetOverride, c.Position.OffsetOverride) // of this epoch, or of a store that knows more
	st.Position = *c.Position
	st.Position.OffsetOverride = override
	return nil
}

// setPosition is an operator's word: whoever has read the position before may not
// save any more.
func setPosition(st *State, c *command) error {
	if st.RunState.State != Stopped {
		return reject(c, *st, ReasonNotStopped, "its position may be set while it is stopped; stop it first")
	}
	st.nextEpoch()
	before := st.Position
	st.Position = *c.Position
	// By time, so that it is later than those of a state that was lost.
	st.Position.OffsetOverride = max(before.OffsetOverride+1, uint64(max(0, c.At.UnixMicro())))
	st.Position.Seq = max(before.Seq, c.Position.Seq)
	st.Position.Seq = st.SeqAfterOverride()
	return nil
}

// nextEpoch makes whatever was read of the connector before void.
func (s *State) nextEpoch() {
	s.Epoch++
	s.Session.ID = ""
}

// retire makes the current run one that may not save any more.
func retire(st *State) {
	if st.Session.ID == "" {
		return
	}
	kept := st.Retired
	if len(kept) >= maxRetired {
		kept = kept[len(kept)-maxRetired+1:]
	}
	st.Retired = append(slices.Clone(kept), st.Session.ID)
	st.Session.ID = ""
}

func appendDecision(st *State, c *command) error {
	d := *c.Decision
	if d.At.IsZero() {
		d.At = c.At
	}
	kept := slices.Clone(st.Decisions)
	if d.Key != "" {
		kept = slices.DeleteFunc(kept, func(o Decision) bool { return o.Kind == d.Kind && o.Key == d.Key })
	}
	if c.Decision.Kind == KindRowDecision {
		kept = dropOver(kept, st.Position)
	}
	if len(kept) >= maxDecisions {
		return reject(c, *st, ReasonFull, fmt.Sprintf("there are %d decisions already", len(kept)))
	}
	st.Decisions = append(kept, d)
	return nil
}

// dropOver drops the decisions about rows that pos covers, when there are many about
// rows. They have no effect any more, unless the position is set back by hand; the
// audit list tells of them.
func dropOver(ds []Decision, pos position.Position) []Decision {
	n := 0
	for _, d := range ds {
		if d.Kind == KindRowDecision {
			n++
		}
	}
	if n < maxRowDecisions {
		return ds
	}
	return slices.DeleteFunc(ds, func(d Decision) bool {
		if d.Kind != KindRowDecision {
			return false
		}
		row, err := position.ParseRow(d.Key)
		return err == nil && pos.CoversRow(row)
	})
}

func (f *fsm) audit(index uint64, c *command, detail string) {
	kept := f.img.Audit
	if len(kept) >= maxAudit {
		kept = kept[len(kept)-maxAudit+1:]
	}
	f.img.Audit = append(slices.Clone(kept), AuditEntry{
		Index: index, At: c.At, By: c.By, Action: cmp.Or(c.Action, string(c.Op)),
		Connector: c.Connector, Reason: c.Reason, Detail: detail,
	})
}

func reject(c *command, have State, reason Reason, message string) error {
	return &RejectedError{Connector: c.Connector, Reason: reason, Message: message, Have: have}
}

// brief is a position for people. A GTID set may have any size; the full one is
// in the state.
func brief(p position.Position) string {
	const most = 400
	s := p.String()
	if len(s) > most && p.Set != nil {
		return fmt.Sprintf("%s... (%d transactions, last %s)", s[:most], p.Set.Count(), p.Last)
	}
	return s
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.failed != nil {
		// What this node did not understand must stay in the log.
		return nil, f.failed
	}
	img := f.img
	img.Connectors = maps.Clone(f.img.Connectors)
	return fsmSnapshot{&img}, nil
}

// Restore implements raft.FSM. The old state stays when it fails.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	img, err := readImage(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.wantOrigin != "" && img.Cluster != f.wantOrigin {
		err = fmt.Errorf("%w: the snapshot is of cluster %q, this node belongs to cluster %q", ErrForeignState, img.Cluster,
			f.wantOrigin)
	}
	if err != nil {
		return f.fail(fmt.Errorf("restoring snapshot: %w", err))
	}
	f.img = *img
	f.watchers.notify()
	return nil
}

type fsmSnapshot struct{ img *image }

// Persist implements raft.FSMSnapshot.
func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := writeImage(sink, s.img); err != nil {
		_ = sink.Cancel() // the error that led here says more
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (fsmSnapshot) Release() {}

func (f *fsm) connector(name string) (State, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	st, ok := f.img.Connectors[name]
	return st.Clone(), ok
}

func (f *fsm) connectors() map[string]State {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make(map[string]State, len(f.img.Connectors))
	for name, st := range f.img.Connectors {
		out[name] = st.Clone()
	}
	return out
}

func (f *fsm) configs() map[string]json.RawMessage {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := map[string]json.RawMessage{}
	for name, st := range f.img.Connectors {
		if st.Config != nil {
			out[name] = st.Config
		}
	}
	return out
}

func (f *fsm) auditLog() []AuditEntry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return append([]AuditEntry{}, f.img.Audit...)
}

// setOrigin pins the cluster that snapshots must come from.
func (f *fsm) setOrigin(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wantOrigin = cluster
}

func (f *fsm) cluster() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.img.Cluster
}
