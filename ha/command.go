package ha

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/binlog-outbox/binlog-outbox/envelope"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// commandVersion is the version of commands that this release writes, and the newest
// that it understands. A new field or operation needs a new version: a node that does
// not know it must stop, not pass over it. Nodes can only be upgraded one after the
// other while commands are written with the oldest version that has all of them.
const commandVersion = 1

type op string

const (
	opLead         op = "lead"
	opSavePosition op = "save_position"
	opSetPosition  op = "set_position"
	opSetRunState  op = "set_run_state"
	opPutConfig    op = "put_config"
	opDelete       op = "delete_connector"
	opRestart      op = "restart_connector"
	opDecision     op = "append_decision"
	opNote         op = "note" // for the audit list alone
)

// command is one entry of the replicated log. What it does depends on nothing
// but itself and the state: times come in the command.
type command struct {
	Op        op                 `json:"op"`
	At        time.Time          `json:"at"`
	Node      string             `json:"node,omitempty"`
	Cluster   string             `json:"cluster,omitempty"`
	Connector string             `json:"connector,omitempty"`
	Session   *Session           `json:"session,omitempty"`
	Position  *position.Position `json:"position,omitempty"`
	RunState  RunState           `json:"run_state,omitempty"`
	Config    json.RawMessage    `json:"config,omitempty"`
	Decision  *Decision          `json:"decision,omitempty"`
	Action    string             `json:"action,omitempty"`
	Detail    string             `json:"detail,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	By        string             `json:"by,omitempty"`
}

// encode writes an envelope, since the log's file has no checksum over its data pages.
func (c *command) encode() ([]byte, error) {
	data, err := envelope.Seal(commandVersion, c)
	if err != nil {
		return nil, fmt.Errorf("encoding command %s: %w", c.Op, err)
	}
	if len(data) > maxCommand {
		return nil, fmt.Errorf("%w: command %s of %d bytes is above the limit of %d", ErrInvalid, c.Op, len(data), maxCommand)
	}
	return data, nil
}

func decodeCommand(data []byte) (*command, error) {
	c := new(command)
	if err := envelope.Open(data, commandVersion, c); err != nil {
		return nil, fmt.Errorf("decoding command: %w", err)
	}
	return c, c.check()
}

// check refuses commands that Apply could not carry out.
func (c *command) check() error {
	bad := false
	switch c.Op {
	case opLead:
		bad = c.Node == ""
	case opSavePosition:
		bad = c.Session == nil || c.Position == nil
	case opSetPosition:
		bad = c.Position == nil
	case opSetRunState:
		bad = !c.RunState.valid()
	case opPutConfig:
		bad = !json.Valid(c.Config)
	case opDecision:
		bad = c.Decision == nil
	case opNote:
		bad = c.Action == ""
	case opDelete, opRestart:
	default:
		return fmt.Errorf("%w: unknown command %q", ErrNewerFormat, c.Op)
	}
	if c.Op != opLead && c.Op != opNote {
		bad = bad || c.Connector == ""
	}
	if bad {
		return fmt.Errorf("%w: command %q lacks a part", ErrCorrupt, c.Op)
	}
	return nil
}
