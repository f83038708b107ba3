package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// asideData is what a decision about one row says, beside its key, who and why.
type asideData struct {
	Action  connector.Action `json:"action"`
	Cause   string           `json:"cause,omitempty"`
	Message string           `json:"message,omitempty"`
}

// asideVersion is the version of the form of asideData.
const asideVersion = 1

// maxAsideMessage bounds what is kept of an error, in bytes.
const maxAsideMessage = 1000

// SetAsides returns the decisions about single rows of one connector.
func (p *positions) SetAsides() ([]connector.SetAside, error) {
	state, _ := p.node.Connector(p.name)
	var out []connector.SetAside
	for _, d := range state.Decisions {
		if d.Kind != ha.KindSetAside {
			continue
		}
		one, err := readSetAside(d)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func readSetAside(d ha.Decision) (connector.SetAside, error) {
	out := connector.SetAside{Reason: d.Reason, By: d.By, At: d.At}
	var data asideData
	err := json.Unmarshal(d.Data, &data)
	if err == nil && d.Version > asideVersion {
		err = fmt.Errorf("it has version %d, this release knows up to %d", d.Version, asideVersion)
	}
	if err == nil {
		out.Row, err = position.ParseRow(d.Key)
	}
	if err == nil && data.Action != connector.DeadLetter && data.Action != connector.Skip {
		err = fmt.Errorf("unknown action %q", data.Action)
	}
	if err != nil {
		return out, fmt.Errorf("reading the decision about row %s: %w", d.Key, err)
	}
	out.Action, out.Cause, out.Message = data.Action, data.Cause, data.Message
	return out, nil
}

// SetAside stores a decision about one row.
func (p *positions) SetAside(ctx context.Context, d connector.SetAside) error {
	return setAside(ctx, p.node, p.name, d)
}

func setAside(ctx context.Context, node *ha.Node, name string, d connector.SetAside) error {
	data, err := json.Marshal(asideData{d.Action, d.Cause, strings.ToValidUTF8(d.Message[:min(len(d.Message), maxAsideMessage)], "")})
	if err != nil {
		return err
	}
	return node.AppendDecision(ctx, name, ha.Decision{
		Kind: ha.KindSetAside, Version: asideVersion, Key: d.Row.String(), Data: data, Reason: d.Reason, By: d.By, At: d.At,
	})
}
