package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// asideData is what a decision about one row says, beside its key, who and why.
type asideData struct {
	Action  connector.Action `json:"action"`
	Cause   string           `json:"cause,omitempty"`
	Message string           `json:"message,omitempty"`
	// Counts is what countsOf says of the configuration that numbers the row; empty
	// when the node that stored the decision could not tell.
	Counts string `json:"counts,omitempty"`
}

// countsOf tells apart the configurations with which the rows of a transaction have
// other numbers, or those that stood in the tables at the start: those of other
// tables, or with and without updates.
func countsOf(c *config.Connector) string {
	if c == nil {
		return ""
	}
	s := &c.Source
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t", s.Table, s.TableList, s.TablePatterns, c.Outbox.Skips("u")))
	return hex.EncodeToString(sum[:8])
}

// asideVersion is the version of the form of asideData.
const asideVersion = 1

// maxAsideMessage bounds what is kept of an error, in bytes.
const maxAsideMessage = 1000

// SetAsides returns the decisions about single rows of one connector. One that was
// made with a configuration that numbers rows in another way is about another row by
// now, and has no effect.
func (p *positions) SetAsides() ([]connector.SetAside, error) {
	state, _ := p.node.Connector(p.name)
	return setAsides(state, p.counts)
}

// setAsides returns the decisions that were made with counts; all if that is empty.
func setAsides(state ha.State, counts string) ([]connector.SetAside, error) {
	var out []connector.SetAside
	for _, d := range state.Decisions {
		if d.Kind != ha.KindSetAside {
			continue
		}
		one, of, err := readSetAside(d)
		if err != nil {
			return nil, err
		}
		if of == counts || of == "" || counts == "" {
			out = append(out, one)
		}
	}
	return out, nil
}

// readSetAside returns a decision, and its asideData.Counts.
func readSetAside(d ha.Decision) (_ connector.SetAside, counts string, _ error) {
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
		return out, "", fmt.Errorf("reading the decision about row %s: %w", d.Key, err)
	}
	out.Action, out.Cause, out.Message = data.Action, data.Cause, data.Message
	return out, data.Counts, nil
}

// SetAside stores a decision about one row.
func (p *positions) SetAside(ctx context.Context, d connector.SetAside) error {
	return setAside(ctx, p.node, p.name, p.counts, d)
}

func setAside(ctx context.Context, node *ha.Node, name, counts string, d connector.SetAside) error {
	data, err := json.Marshal(asideData{d.Action, d.Cause, strings.ToValidUTF8(d.Message[:min(len(d.Message), maxAsideMessage)], ""), counts})
	if err != nil {
		return err
	}
	return node.AppendDecision(ctx, name, ha.Decision{
		Kind: ha.KindSetAside, Version: asideVersion, Key: d.Row.String(), Data: data, Reason: d.Reason, By: d.By, At: d.At,
	})
}

// SetAsides implements admin.Control.
func (c *control) SetAsides(name string) (admin.SetAsides, error) {
	r, err := c.runner(name)
	if err != nil {
		return admin.SetAsides{}, err
	}
	out := admin.SetAsides{Connector: name, Decisions: []admin.AsideDecision{}, SetAside: shownAsides(r.worker.Status())}
	state, _ := c.d.node.Connector(name)
	decided, err := setAsides(state, "")
	if err != nil {
		return out, err
	}
	for _, d := range decided {
		out.Decisions = append(out.Decisions, shownAside(d, state.Position))
	}
	return out, nil
}

func shownAside(d connector.SetAside, at position.Position) admin.AsideDecision {
	return admin.AsideDecision{
		AsideChoice: admin.AsideChoice{Transaction: d.Place(), Row: d.N + 1, Action: string(d.Action)},
		Cause:       d.Cause, Message: d.Message, Reason: d.Reason, By: d.By, At: d.At, Passed: at.CoversRow(d.Row),
	}
}

// causeOperator is the cause of a row that an operator sets aside where this node
// does not know what is wrong with it.
const causeOperator = "operator"

// SetAside implements admin.Control.
func (c *control) SetAside(ctx context.Context, name string, choice admin.AsideChoice, by admin.Order) (admin.AsideDecision, error) {
	var none admin.AsideDecision
	r, err := c.runner(name)
	if err != nil {
		return none, err
	}
	d := connector.SetAside{
		Action: connector.Action(choice.Action), Cause: causeOperator, Message: by.Reason, Reason: by.Reason, By: by.By,
		At: time.Now().UTC().Truncate(time.Microsecond),
	}
	if d.Action != connector.Skip && d.Action != connector.DeadLetter {
		return none, badOffset("action %q is not skip or dead_letter", choice.Action)
	}
	if choice.Row == 0 {
		return none, badOffset("rows of a transaction are numbered from 1")
	}
	if d.Row, err = position.RowOf(choice.Transaction, choice.Row-1); err != nil {
		return none, badOffset("%v", err)
	}
	state, _ := c.d.node.Connector(name)
	if state.Position.CoversRow(d.Row) {
		return none, &admin.Problem{
			Status: http.StatusConflict, Code: admin.CodeRowPassed,
			Detail: fmt.Sprintf("connector %s: the position has row %s behind it, so that nothing can be decided about it", name, d.Row),
		}
	}
	if e := r.worker.Status().LastError; e != nil && e.Place == d.Place() && e.Row == d.N+1 {
		d.Cause, d.Message = e.Code, e.Message
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := setAside(ctx, c.d.node, name, countsOf(r.config), d); err != nil {
		return none, problem(err)
	}
	return shownAside(d, state.Position), nil
}

func shownAsides(s connector.Status) admin.SetAside {
	out := admin.SetAside{Rows: s.SetAside}
	for _, r := range s.LastSetAside {
		out.Last = append(out.Last, admin.SetAsideRow{
			Transaction: r.Place(), Row: r.N + 1, Table: r.Table, Action: string(r.Action), Cause: r.Cause, Message: r.Message, At: r.At,
		})
	}
	return out
}
