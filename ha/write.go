package ha

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// All writes return nil only when the change is committed and applied on the
// leader. Otherwise: RejectedError, ErrInvalid, ErrNotLeader, ErrNoLeader,
// ErrBusy, ErrShuttingDown and a context that had ended before the call mean that
// nothing was changed, UnknownOutcomeError that it may have been. All are safe for concurrent use.

// NewSession begins a run of connector under the leadership of term, which goes on
// from the position in the returned state. Call it inside a Lead function each
// time a run reads the position, and save with that run only: SavePosition then
// refuses what an operator's SetPosition has overtaken, whenever it came.
func (n *Node) NewSession(connector string, term uint64) (Session, State) {
	st, _ := n.fsm.connector(connector)
	return Session{Term: term, ID: uuid.NewString(), Epoch: st.Epoch}, st
}

// SavePosition stores how far a run of connector has published. pos must cover
// the stored position, and run must not be older than the one that saved it. It
// works on the leader only (ErrNotLeader): another node's run is over.
func (n *Node) SavePosition(ctx context.Context, connector string, run Session, pos position.Position) error {
	if connector == "" || run.ID == "" || run.Term == 0 {
		return fmt.Errorf("%w: a position needs a connector and a run with id and term", ErrInvalid)
	}
	data, err := n.encode(&command{Op: opSavePosition, Connector: connector, Session: &run, Position: &pos})
	if err != nil {
		return err
	}
	_, err = n.applyLocal(ctx, opSavePosition, data)
	return err
}

// SetPosition is an operator's word about where connector is to go on, forward or
// back. It is refused unless the connector is Stopped. What has read the position
// before may not save any more after it (Run.Epoch). The zero position means "as if
// never started". The position gets a new OffsetOverride, later than that of any earlier one, and once there
// was a run a Seq above all that it may have given.
func (n *Node) SetPosition(ctx context.Context, connector string, pos position.Position, reason, by string) error {
	return n.operate(ctx, &command{Op: opSetPosition, Connector: connector, Position: &pos, Reason: reason, By: by})
}

// SetRunState stores what an operator wants of connector.
func (n *Node) SetRunState(ctx context.Context, connector string, state RunState, reason, by string) error {
	if !state.valid() {
		return fmt.Errorf("%w: unknown run state %q", ErrInvalid, state)
	}
	return n.operate(ctx, &command{Op: opSetRunState, Connector: connector, RunState: state, Reason: reason, By: by})
}

// RestartConnector asks the leader to begin a fresh term of connector, whatever it
// is at; State.Restarts tells it.
func (n *Node) RestartConnector(ctx context.Context, connector, reason, by string) error {
	return n.operate(ctx, &command{Op: opRestart, Connector: connector, Reason: reason, By: by})
}

// PutConfig stores the configuration of a connector that came over the REST API.
// The store keeps it as it is: secrets should be in it as references only.
func (n *Node) PutConfig(ctx context.Context, connector string, config json.RawMessage, reason, by string) error {
	if !json.Valid(config) {
		return fmt.Errorf("%w: the configuration of connector %q is not JSON", ErrInvalid, connector)
	}
	return n.operate(ctx, &command{Op: opPutConfig, Connector: connector, Config: config, Reason: reason, By: by})
}

// DeleteConnector removes all but the position of a connector: as in Kafka
// Connect, one of the same name goes on where this one stopped.
func (n *Node) DeleteConnector(ctx context.Context, connector string, reason, by string) error {
	return n.operate(ctx, &command{Op: opDelete, Connector: connector, Reason: reason, By: by})
}

// AppendDecision stores a decision; see Decision.Key for what it replaces.
func (n *Node) AppendDecision(ctx context.Context, connector string, d Decision) error {
	if d.Kind == "" || len(d.Data) > 0 && !json.Valid(d.Data) {
		return fmt.Errorf("%w: a decision needs a kind, and JSON as data", ErrInvalid)
	}
	return n.operate(ctx, &command{Op: opDecision, Connector: connector, Decision: &d, Reason: d.Reason, By: d.By})
}

func (n *Node) operate(ctx context.Context, c *command) error {
	if c.Connector == "" || c.By == "" {
		return fmt.Errorf("%w: %s needs a connector and who asks for it", ErrInvalid, c.Op)
	}
	data, err := n.encode(c)
	if err != nil {
		return err
	}
	return n.propose(ctx, c.Op, data)
}

func (n *Node) encode(c *command) ([]byte, error) {
	c.Node = n.cfg.NodeID
	c.At = time.Now().UTC().Truncate(time.Microsecond)
	return c.encode()
}

// propose brings a command to the leader.
func (n *Node) propose(ctx context.Context, o op, data []byte) error {
	here := func(ctx context.Context) error {
		_, err := n.applyLocal(ctx, o, data)
		return err
	}
	return n.atLeader(ctx, o, here, pathApply, data)
}

// atLeader does something here if this node leads, or has the leader do it, and
// waits for a leader while there is none.
func (n *Node) atLeader(ctx context.Context, o op, here func(context.Context) error, path string, in any) error {
	const pause = 25 * time.Millisecond
	patience, cancel := context.WithTimeoutCause(ctx, n.cfg.EnqueueTimeout, errors.New("no election has ended in time"))
	defer cancel()
	for {
		var err error
		if n.raft.State() == raft.Leader {
			err = here(ctx)
		} else {
			err = n.forward(ctx, o, path, in)
		}
		if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrNoLeader) {
			return err
		}
		if !sleep(patience, pause) {
			return fmt.Errorf("%s: %w: %w", o, err, context.Cause(patience))
		}
	}
}

// applyLocal proposes a command as the leader and waits for its result.
func (n *Node) applyLocal(ctx context.Context, o op, data []byte) (applied, error) {
	if ctx.Err() != nil { // not tried, so the outcome is known
		return applied{}, fmt.Errorf("%s: %w", o, context.Cause(ctx))
	}
	if err := n.beginWrite(); err != nil {
		return applied{}, err
	}
	ctx, cancel := n.inTime(ctx)
	defer cancel()
	start := time.Now()
	type outcome struct {
		res applied
		err error
	}
	out, err := within(ctx, func() (out outcome) {
		defer n.writes.Done() // Shutdown waits for it
		future := n.raft.Apply(data, n.cfg.EnqueueTimeout)
		if out.err = future.Error(); out.err == nil {
			out.res, _ = future.Response().(applied)
		}
		return out
	})
	switch {
	case err != nil:
		return applied{}, &UnknownOutcomeError{string(o), err}
	case out.err != nil:
		return applied{}, n.applyError(o, out.err)
	}
	n.metrics.applySeconds.Observe(time.Since(start).Seconds())
	return out.res, out.res.err
}

// inTime bounds a write that raft was asked for, after which its outcome is unknown.
func (n *Node) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := n.cfg.EnqueueTimeout + n.cfg.ApplyTimeout
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// applyError sorts raft's errors by what they say about the write.
func (n *Node) applyError(o op, err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%s: %w", o, ErrNotLeader)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%s: %w (%s)", o, ErrBusy, n.cfg.EnqueueTimeout)
	default:
		// Lost leadership, shutdown, a failed disk: the entry may be on some disk,
		// and may be committed from there.
		if failure := n.Err(); failure != nil {
			err = failure // says more
		}
		return &UnknownOutcomeError{string(o), err}
	}
}

// usable reports why the node can't do anything any more, if so.
func (n *Node) usable() error {
	if err := n.Err(); err != nil {
		return err
	}
	select {
	case <-n.stopping:
		return ErrShuttingDown
	default:
		return nil
	}
}

func (n *Node) beginWrite() error {
	n.writeMu.Lock()
	defer n.writeMu.Unlock()
	if err := n.Err(); err != nil {
		return err
	}
	if n.writesClosed {
		return ErrShuttingDown
	}
	n.writes.Add(1)
	return nil
}
