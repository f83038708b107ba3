package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// A decision about a row comes back from the replicated store as it was made, in the
// place of the one before it, and one that can't be understood stops the connector.
func TestSetAsidesAreKept(t *testing.T) {
	c, r := leading(t)
	p := &positions{node: c.d.node, notices: c.d.notices, name: r.name}
	row, err := position.ParseRow("3e11fa47-71ca-11e1-9e33-c80aa9429562:23#2")
	if err != nil {
		t.Fatal(err)
	}
	want := connector.SetAside{Row: row, Action: connector.DeadLetter, Cause: "record_too_large", Message: "too large", Reason: "the policy", By: "policy"}
	for _, action := range []connector.Action{connector.Skip, connector.DeadLetter} {
		want.Action = action
		if err := p.SetAside(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.SetAsides()
	if err != nil || len(got) != 1 || got[0].At.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	want.At = got[0].At
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	long := want
	long.Row.N, long.Message = 7, strings.Repeat("é", maxAsideMessage)
	if err := p.SetAside(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got, err := p.SetAsides(); err != nil || len(got) != 2 || len(got[1].Message) > maxAsideMessage {
		t.Errorf("%d decisions, %v", len(got), err)
	}
	// What a newer release may write.
	for _, d := range []ha.Decision{
		{Kind: ha.KindSetAside, Version: asideVersion + 1, Key: row.String(), Data: json.RawMessage(`{"action":"skip"}`)},
		{Kind: ha.KindSetAside, Version: 1, Key: row.String(), Data: json.RawMessage(`{"action":"mend"}`)},
		{Kind: ha.KindSetAside, Version: 1, Key: "nonsense", Data: json.RawMessage(`{"action":"skip"}`)},
	} {
		if _, err := readSetAside(d); err == nil || !strings.Contains(err.Error(), d.Key) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
