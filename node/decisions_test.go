package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// A decision about a row comes back from the replicated store as it was made, in the
// place of the one before it, and one that can't be understood stops the connector.
func TestRowDecisionsAreKept(t *testing.T) {
	c, r := leading(t)
	p := &positions{store: c.store, changes: c.manager.changes, name: r.name}
	row, err := position.ParseRow("3e11fa47-71ca-11e1-9e33-c80aa9429562:23#2")
	if err != nil {
		t.Fatal(err)
	}
	want := connector.RowDecision{Row: row, Action: connector.DeadLetter, Cause: "record_too_large", Message: "too large",
		Reason: "the policy", By: "policy"}
	for _, action := range []connector.Action{connector.Skip, connector.DeadLetter} {
		want.Action = action
		if err := p.DecideRow(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.RowDecisions()
	if err != nil || len(got) != 1 || got[0].At.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	want.At = got[0].At
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	long := want
	long.Row.N, long.Message = 7, strings.Repeat("é", maxDecisionMessage)
	if err := p.DecideRow(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got, err := p.RowDecisions(); err != nil || len(got) != 2 || len(got[1].Message) > maxDecisionMessage {
		t.Errorf("%d decisions, %v", len(got), err)
	}
	// What a newer release may write.
	for _, d := range []ha.Decision{
		{Kind: ha.KindRowDecision, Version: rowDecisionVersion + 1, Key: row.String(),
			Data: json.RawMessage(`{"action":"skip"}`)},
		{Kind: ha.KindRowDecision, Version: 1, Key: row.String(), Data: json.RawMessage(`{"action":"mend"}`)},
		{Kind: ha.KindRowDecision, Version: 1, Key: "nonsense", Data: json.RawMessage(`{"action":"skip"}`)},
	} {
		if _, _, err := readRowDecision(d); err == nil || !strings.Contains(err.Error(), d.Key) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// The number of a row in its transaction is another one with other tables, or with
// updates: a decision from before such a change would be about an innocent row.
func TestRowDecisionsAreOfTheirConfiguration(t *testing.T) {
	c, r := leading(t)
	row, err := position.ParseRow("3e11fa47-71ca-11e1-9e33-c80aa9429562:23#2")
	if err != nil {
		t.Fatal(err)
	}
	of := func(change func(*config.Connector)) *positions {
		changed := *r.config
		change(&changed)
		return &positions{store: c.store, changes: c.manager.changes, name: r.name, counts: countsOf(&changed)}
	}
	same := of(func(*config.Connector) {})
	if err := same.DecideRow(t.Context(), connector.RowDecision{Row: row, Action: connector.Skip,
		By: "policy"}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		p    *positions
		want int
	}{
		"none":         {same, 1},
		"another port": {of(func(c *config.Connector) { c.Source.Port++ }), 1},
		"a table more": {of(func(c *config.Connector) { c.Source.TableList = append(c.Source.TableList, "shop.more") }), 0},
		"other tables": {of(func(c *config.Connector) { c.Source.Table = "shop.other" }), 0},
		"patterns":     {of(func(c *config.Connector) { c.Source.TablePatterns = []string{"shop.*"} }), 0},
		"other updates": {of(func(c *config.Connector) {
			skip := []string{"u"}
			if c.Outbox.Skips("u") {
				skip = nil
			}
			c.Outbox.SkipOperations = skip
		}), 0},
	} {
		if got, err := change.p.RowDecisions(); err != nil || len(got) != change.want {
			t.Errorf("%s: %d decisions are in effect, want %d; %v", name, len(got), change.want, err)
		}
	}
	if list, err := c.UnpublishedRows(r.name); err != nil || len(list.Decisions) != 1 {
		t.Errorf("told are %+v, %v", list, err)
	}
	// The operator's way, at any node.
	request := admin.RowRequest{Transaction: row.TransactionID(), Row: 5, Action: "skip"}
	if err := second(c.DecideRow(t.Context(), r.name, request, ann)); err != nil {
		t.Fatal(err)
	}
	if got, err := same.RowDecisions(); err != nil || len(got) != 2 {
		t.Errorf("%d decisions are in effect, want 2; %v", len(got), err)
	}
}

// An operator's decision is kept, told and audited; one that would have no effect, or
// names no row, is refused.
func TestOperatorSkipsARow(t *testing.T) {
	c, r := leading(t)
	const sid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	set, err := position.ParseSet(position.MySQL, sid+":1-20")
	if err != nil {
		t.Fatal(err)
	}
	run, _ := c.store.NewSession(r.name, c.store.Status().Term)
	if err := c.store.SavePosition(t.Context(), r.name, run, position.Position{Flavor: position.MySQL,
		Set: set}); err != nil {
		t.Fatal(err)
	}
	request := admin.RowRequest{Transaction: sid + ":23", Row: 2, Action: "dead_letter"}
	d, err := c.DecideRow(t.Context(), r.name, request, ann)
	if err != nil || d.RowRequest != request || d.By != "ann" || d.Reason != "test" || d.Passed {
		t.Fatalf("%+v, %v", d, err)
	}
	list, err := c.UnpublishedRows(r.name)
	if err != nil || len(list.Decisions) != 1 || !cmp.Equal(list.Decisions[0], d) {
		t.Errorf("%+v, %v", list, err)
	}
	audit := c.store.Audit()
	if last := audit[len(audit)-1]; last.By != "ann" || !strings.Contains(last.Detail, sid+":23#2") ||
		!strings.Contains(last.Detail, "dead_letter") {
		t.Errorf("%+v", last)
	}
	for _, bad := range []struct {
		request admin.RowRequest
		code    string
	}{
		{admin.RowRequest{Transaction: sid + ":20", Row: 1, Action: "skip"}, admin.CodeRowPassed},
		{admin.RowRequest{Transaction: sid + ":23", Row: 2, Action: "stop"}, admin.CodeInvalid},
		{admin.RowRequest{Transaction: sid + ":23", Row: 0, Action: "skip"}, admin.CodeInvalid},
		{admin.RowRequest{Transaction: "nonsense", Row: 2, Action: "skip"}, admin.CodeInvalid},
	} {
		if _, err := c.DecideRow(t.Context(), r.name, bad.request, ann); codeOf(err) != bad.code {
			t.Errorf("%+v: %v", bad.request, err)
		}
	}
	if err := second(c.DecideRow(t.Context(), "none", request, ann)); codeOf(err) != admin.CodeConnectorNotFound {
		t.Error(err)
	}
	if err := second(c.UnpublishedRows("none")); codeOf(err) != admin.CodeConnectorNotFound {
		t.Error(err)
	}
}
