package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

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
	state, _ := p.store.Connector(p.name)
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
	return setAside(ctx, p.store, p.name, p.counts, d)
}

func setAside(ctx context.Context, store *ha.Node, name, counts string, d connector.SetAside) error {
	data, err := json.Marshal(asideData{d.Action, d.Cause, strings.ToValidUTF8(d.Message[:min(len(d.Message), maxAsideMessage)], ""), counts})
	if err != nil {
		return err
	}
	return store.AppendDecision(ctx, name, ha.Decision{
		Kind: ha.KindSetAside, Version: asideVersion, Key: d.Row.String(), Data: data, Reason: d.Reason, By: d.By, At: d.At,
	})
}

// phantomKind is the kind of decisions about transactions that are lost; the key
// is their set.
const phantomKind = "phantom"

// decisions are one connector's in the replicated store.
type decisions struct {
	store *ha.Node
	name  string
}

// AcceptedPhantoms adds up all that was accepted.
func (d *decisions) AcceptedPhantoms() (*position.Set, error) {
	state, _ := d.store.Connector(d.name)
	var all *position.Set
	for _, one := range state.Decisions {
		if one.Kind != phantomKind {
			continue
		}
		set, err := position.ParseSet(position.MySQL, one.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the decision about lost transactions: %w", err)
		}
		if all == nil {
			all = position.NewSet(position.MySQL)
		}
		all.AddSet(set)
	}
	return all, nil
}

// AcceptPhantoms records a loss under its set.
func (d *decisions) AcceptPhantoms(ctx context.Context, lost *position.Set, server string) error {
	data, err := json.Marshal(struct {
		Server       string `json:"server"`
		Transactions uint64 `json:"transactions"`
	}{server, lost.Count()})
	if err != nil {
		return err
	}
	return d.store.AppendDecision(ctx, d.name, ha.Decision{
		Kind: phantomKind, Version: 1, Key: lost.String(), Data: data, By: "policy",
		Reason: "the server lacks them, they were published, and source.phantoms is accept",
	})
}
