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

// rowDecisionData is what a decision about one row says, beside its key, who and why.
type rowDecisionData struct {
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

// rowDecisionVersion is the version of the form of rowDecisionData.
const rowDecisionVersion = 1

// maxDecisionMessage bounds what is kept of an error, in bytes.
const maxDecisionMessage = 1000

// UnpublishedRows returns the decisions about single rows of one connector. One that was
// made with a configuration that numbers rows in another way is about another row by
// now, and has no effect.
func (p *positions) RowDecisions() ([]connector.RowDecision, error) {
	state, _ := p.store.Connector(p.name)
	return rowDecisions(state, p.counts)
}

// rowDecisions returns the decisions that were made with counts; all if that is empty.
func rowDecisions(state ha.State, counts string) ([]connector.RowDecision, error) {
	var out []connector.RowDecision
	for _, d := range state.Decisions {
		if d.Kind != ha.KindRowDecision {
			continue
		}
		one, of, err := readRowDecision(d)
		if err != nil {
			return nil, err
		}
		if of == counts || of == "" || counts == "" {
			out = append(out, one)
		}
	}
	return out, nil
}

// readRowDecision returns a decision, and its rowDecisionData.Counts.
func readRowDecision(d ha.Decision) (_ connector.RowDecision, counts string, _ error) {
	out := connector.RowDecision{Reason: d.Reason, By: d.By, At: d.At}
	var data rowDecisionData
	err := json.Unmarshal(d.Data, &data)
	if err == nil && d.Version > rowDecisionVersion {
		err = fmt.Errorf("it has version %d, this release knows up to %d", d.Version, rowDecisionVersion)
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

// Unpublished stores a decision about one row.
func (p *positions) DecideRow(ctx context.Context, d connector.RowDecision) error {
	return storeRowDecision(ctx, p.store, p.name, p.counts, d)
}

func storeRowDecision(ctx context.Context, store *ha.Node, name, counts string, d connector.RowDecision) error {
	data, err := json.Marshal(rowDecisionData{d.Action, d.Cause, strings.ToValidUTF8(d.Message[:min(len(d.Message),
		maxDecisionMessage)], ""), counts})
	if err != nil {
		return err
	}
	return store.AppendDecision(ctx, name, ha.Decision{
		Kind: ha.KindRowDecision, Version: rowDecisionVersion, Key: d.Row.String(), Data: data, Reason: d.Reason, By: d.By,
		At: d.At,
	})
}

// lostTransactionsKind is the kind of decisions about transactions that are lost; the key
// is their set.
const lostTransactionsKind = "lost transaction"

// decisions are one connector's in the replicated store.
type decisions struct {
	store *ha.Node
	name  string
}

// AcceptedLostTransactions adds up all that was accepted.
func (d *decisions) AcceptedLostTransactions() (*position.Set, error) {
	state, _ := d.store.Connector(d.name)
	var all *position.Set
	for _, one := range state.Decisions {
		if one.Kind != lostTransactionsKind {
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

// AcceptLostTransactions records a loss under its set.
func (d *decisions) AcceptLostTransactions(ctx context.Context, lost *position.Set, server string) error {
	data, err := json.Marshal(struct {
		Server       string `json:"server"`
		Transactions uint64 `json:"transactions"`
	}{server, lost.Count()})
	if err != nil {
		return err
	}
	return d.store.AppendDecision(ctx, d.name, ha.Decision{
		Kind: lostTransactionsKind, Version: 1, Key: lost.String(), Data: data, By: "policy",
		Reason: "the server lacks them, they were published, and source.lost_transactions is accept",
	})
}
