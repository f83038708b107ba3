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

// UnpublishedRows implements admin.Control.
func (a *api) UnpublishedRows(name string) (admin.UnpublishedRows, error) {
	r, err := a.instance(name)
	if err != nil {
		return admin.UnpublishedRows{}, err
	}
	out := admin.UnpublishedRows{Connector: name, Decisions: []admin.RowDecision{},
		Unpublished: shownUnpublished(r.connector.Status())}
	state, _ := a.store.Connector(name)
	decided, err := rowDecisions(state, "")
	if err != nil {
		return out, err
	}
	for _, d := range decided {
		out.Decisions = append(out.Decisions, shownDecision(d, state.Position))
	}
	return out, nil
}

func shownDecision(d connector.RowDecision, at position.Position) admin.RowDecision {
	return admin.RowDecision{
		RowRequest: admin.RowRequest{Transaction: d.TransactionID(), Row: d.N + 1, Action: string(d.Action)},
		Cause:      d.Cause, Message: d.Message, Reason: d.Reason, By: d.By, At: d.At, Passed: at.CoversRow(d.Row),
	}
}

// causeOperator is the cause of a row that an operator skips or dead-letters where this node
// does not know what is wrong with it.
const causeOperator = "operator"

// Unpublished implements admin.Control.
func (a *api) DecideRow(ctx context.Context, name string, request admin.RowRequest,
	by admin.Actor) (admin.RowDecision, error) {
	var none admin.RowDecision
	r, err := a.instance(name)
	if err != nil {
		return none, err
	}
	d := connector.RowDecision{
		Action: connector.Action(request.Action), Cause: causeOperator, Message: by.Reason, Reason: by.Reason, By: by.By,
		At: a.now().UTC().Truncate(time.Microsecond),
	}
	if d.Action != connector.Skip && d.Action != connector.DeadLetter {
		return none, invalid("action %q is not skip or dead_letter", request.Action)
	}
	if request.Row == 0 {
		return none, invalid("rows of a transaction are numbered from 1")
	}
	if d.Row, err = position.RowOf(request.Transaction, request.Row-1); err != nil {
		return none, invalid("%v", err)
	}
	state, _ := a.store.Connector(name)
	if state.Position.CoversRow(d.Row) {
		return none, &admin.Problem{
			Status: http.StatusConflict, Code: admin.CodeRowPassed,
			Detail: fmt.Sprintf("connector %s: the position has row %s behind it, so that nothing can be decided about it", name,
				d.Row),
		}
	}
	if e := r.connector.Status().LastError; e != nil && e.Transaction == d.TransactionID() && e.Row == d.N+1 {
		d.Cause, d.Message = e.Code, e.Message
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := storeRowDecision(ctx, a.store, name, countsOf(r.config), d); err != nil {
		return none, problem(err)
	}
	return shownDecision(d, state.Position), nil
}

func shownUnpublished(s connector.Status) admin.Unpublished {
	out := admin.Unpublished{Rows: s.Unpublished}
	for _, r := range s.LastUnpublished {
		out.Last = append(out.Last, admin.UnpublishedRow{
			Transaction: r.TransactionID(), Row: r.N + 1, Table: r.Table, Action: string(r.Action), Cause: r.Cause,
			Message: r.Message, At: r.At,
		})
	}
	return out
}
