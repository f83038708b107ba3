package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// SetAsides implements admin.Control.
func (a *api) SetAsides(name string) (admin.SetAsides, error) {
	r, err := a.instance(name)
	if err != nil {
		return admin.SetAsides{}, err
	}
	out := admin.SetAsides{Connector: name, Decisions: []admin.AsideDecision{}, SetAside: shownAsides(r.connector.Status())}
	state, _ := a.store.Connector(name)
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
func (a *api) SetAside(ctx context.Context, name string, choice admin.AsideChoice, by admin.Order) (admin.AsideDecision, error) {
	var none admin.AsideDecision
	r, err := a.instance(name)
	if err != nil {
		return none, err
	}
	d := connector.SetAside{
		Action: connector.Action(choice.Action), Cause: causeOperator, Message: by.Reason, Reason: by.Reason, By: by.By,
		At: a.now().UTC().Truncate(time.Microsecond),
	}
	if d.Action != connector.Skip && d.Action != connector.DeadLetter {
		return none, invalid("action %q is not skip or dead_letter", choice.Action)
	}
	if choice.Row == 0 {
		return none, invalid("rows of a transaction are numbered from 1")
	}
	if d.Row, err = position.RowOf(choice.Transaction, choice.Row-1); err != nil {
		return none, invalid("%v", err)
	}
	state, _ := a.store.Connector(name)
	if state.Position.CoversRow(d.Row) {
		return none, &admin.Problem{
			Status: http.StatusConflict, Code: admin.CodeRowPassed,
			Detail: fmt.Sprintf("connector %s: the position has row %s behind it, so that nothing can be decided about it", name, d.Row),
		}
	}
	if e := r.connector.Status().LastError; e != nil && e.Place == d.Place() && e.Row == d.N+1 {
		d.Cause, d.Message = e.Code, e.Message
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := setAside(ctx, a.store, name, countsOf(r.config), d); err != nil {
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
