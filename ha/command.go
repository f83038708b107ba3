package ha

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// commandVersion is the newest version of commands that this release writes and
// understands. A new field or operation needs a new version: a node that does not
// know it must stop, not pass over it. A command is written with the oldest
// version that has all of it, so that nodes can be upgraded one after the other.
//
// Version 2 has restarts, positions that know whether Kafka has them, which choice of
// an operator they come from and how far initial rows are published, and decisions
// about single rows, of which those that are over are dropped.
const commandVersion = 2

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
	opAsk          op = "ask"  // no command: a request to the leader
)

// command is one entry of the replicated log. What it does depends on nothing
// but itself and the state: times come in the command.
type command struct {
	Version   int                `json:"v"`
	Op        op                 `json:"op"`
	At        time.Time          `json:"at"`
	Node      string             `json:"node,omitempty"`
	Cluster   string             `json:"cluster,omitempty"`
	Connector string             `json:"connector,omitempty"`
	Run       *Run               `json:"run,omitempty"`
	Position  *position.Position `json:"position,omitempty"`
	Force     bool               `json:"force,omitempty"` // version 1 only
	RunState  RunState           `json:"run_state,omitempty"`
	Config    json.RawMessage    `json:"config,omitempty"`
	Decision  *Decision          `json:"decision,omitempty"`
	Action    string             `json:"action,omitempty"`
	Detail    string             `json:"detail,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	By        string             `json:"by,omitempty"`
}

// newer reports a position that version 1 has not.
func newer(p *position.Position) bool {
	return p.Choice != 0 || p.InKafka || p.Initial != nil || p.Created != 0
}

// needs is the oldest version that has all of the command.
func (c *command) needs() int {
	if c.Decision != nil && c.Decision.Kind == KindSetAside || c.Op == opRestart || c.Op == opSetPosition || c.Position != nil && newer(c.Position) {
		return 2
	}
	return 1
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(body []byte) uint32 { return crc32.Checksum(body, castagnoli) }

// encode writes "crc32c json". The checksum is there because the log's file has
// none over its data pages.
func (c *command) encode() ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding command %s: %w", c.Op, err)
	}
	if len(body) > maxCommand {
		return nil, fmt.Errorf("%w: command %s of %d bytes is above the limit of %d", ErrInvalid, c.Op, len(body), maxCommand)
	}
	return append(fmt.Appendf(nil, "%08x ", checksum(body)), body...), nil
}

func decodeCommand(data []byte) (*command, error) {
	if len(data) < 10 || data[8] != ' ' {
		return nil, fmt.Errorf("%w: command of %d bytes has no checksum", ErrCorrupt, len(data))
	}
	body := data[9:]
	if want, err := strconv.ParseUint(string(data[:8]), 16, 32); err != nil || uint32(want) != checksum(body) {
		return nil, fmt.Errorf("%w: checksum of a command of %d bytes does not match", ErrCorrupt, len(data))
	}
	// The version is read alone first: whatever else a newer release writes must
	// end in "newer", not in a complaint about a field.
	var head struct {
		Version int `json:"v"`
		Op      op  `json:"op"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("%w: decoding command: %w", ErrCorrupt, err)
	}
	if head.Version > commandVersion {
		return nil, fmt.Errorf("%w: command %q has version %d, this release knows up to %d", ErrNewerFormat, head.Op, head.Version, commandVersion)
	}
	c := new(command)
	if err := decodeStrict(body, c); err != nil {
		return nil, fmt.Errorf("%w: decoding command %q: %w", ErrCorrupt, head.Op, err)
	}
	return c, c.check()
}

// check refuses commands that Apply could not carry out.
func (c *command) check() error {
	bad := c.Version < 1
	switch c.Op {
	case opLead:
		bad = bad || c.Node == ""
	case opSavePosition:
		bad = bad || c.Run == nil || c.Position == nil
	case opSetPosition:
		bad = bad || c.Position == nil
	case opSetRunState:
		bad = bad || !c.RunState.valid()
	case opPutConfig:
		bad = bad || !json.Valid(c.Config)
	case opDecision:
		bad = bad || c.Decision == nil
	case opNote:
		bad = bad || c.Action == ""
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

// decodeStrict decodes JSON and refuses fields that it does not know: dropping
// them would lose what a newer release meant.
func decodeStrict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("trailing data at offset %d", dec.InputOffset())
	}
	return nil
}
