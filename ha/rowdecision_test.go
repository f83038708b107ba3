package ha

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func rowDecision(seq, row int) command {
	return command{Op: opDecision, Connector: "orders", By: "ann", Reason: "poison", Decision: &Decision{
		Kind: KindRowDecision, Version: 1, Key: fmt.Sprintf("%s:%d#%d", testSID, seq, row),
		Data: json.RawMessage(`{"action":"skip"}`), By: "ann",
	}}
}

// Decisions about rows that the position covers are dropped when there are many, and
// no others: not those about rows still to come, and not those of another kind.
func TestDecisionsAboutPublishedRowsAreDropped(t *testing.T) {
	m := newMachine()
	m.lead(t, 1)
	must := func(c command) {
		t.Helper()
		if err := m.do(t, 1, c); err != nil {
			t.Fatal(err)
		}
	}
	must(command{Op: opDecision, Connector: "orders", By: "ann", Decision: &Decision{Kind: "lost transaction",
		Key: testSID + ":1"}})
	for n := 1; n < maxRowDecisions; n++ {
		must(rowDecision(n, 1))
	}
	must(save("r", 1, uint64(maxRowDecisions-10)))
	count := func() int { return len(m.img.Connectors["orders"].Decisions) }
	if count() != maxRowDecisions {
		t.Fatalf("%d decisions, want all %d", count(), maxRowDecisions)
	}
	must(rowDecision(maxRowDecisions, 1)) // there are not too many yet
	must(rowDecision(maxRowDecisions, 2))
	var keys []string
	for _, d := range m.img.Connectors["orders"].Decisions {
		keys = append(keys, d.Kind+" "+strings.TrimPrefix(d.Key, testSID))
	}
	if len(keys) != 12 || keys[0] != "lost transaction :1" || keys[1] != "row_decision :991#1" ||
		keys[11] != "row_decision :1000#2" {
		t.Errorf("kept are %v", keys)
	}
	must(rowDecision(maxRowDecisions, 2)) // again
	if count() != 12 {
		t.Errorf("a decision that came twice stands twice: %d", count())
	}
}

// What is decided stands in the audit list.
func TestDecisionAboutARowIsAudited(t *testing.T) {
	m := newMachine()
	m.lead(t, 1)
	c := rowDecision(7, 2)
	if err := m.do(t, 1, c); err != nil {
		t.Fatal(err)
	}
	a := m.img.Audit[len(m.img.Audit)-1]
	if a.By != "ann" || a.Reason != "poison" || !strings.Contains(a.Detail, testSID+":7#2") ||
		!strings.Contains(a.Detail, "skip") {
		t.Errorf("%+v", a)
	}
}
