package kafka

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudgeOpenTransaction(t *testing.T) {
	const id = 7
	committed := &ending{producer: id, epoch: 3, offset: 99, sequence: 4}
	for name, c := range map[string]struct {
		h    hanging
		e    *ending
		want verdict
	}{
		"nothing was committed there": {hanging{id, 3, 0, 10}, nil, toAbort},
		"it was aborted": {hanging{id, 3, 4, 10}, &ending{producer: id, epoch: 3, offset: -1,
			aborted: true}, toAbort},
		"it ends with the committed rows": {hanging{id, 3, 4, 95}, committed, toCommit},
		"it begins behind them":           {hanging{id, 4, 0, 100}, committed, toAbort},
		"rows of the same epoch behind":   {hanging{id, 3, 5, 95}, committed, undecided},
		"rows of a later epoch behind":    {hanging{id, 4, 4, 95}, committed, undecided},
		"no offset, but the same sequence": {hanging{id, 3, 4, 95}, &ending{producer: id, epoch: 3, offset: -1, sequence: 4},
			toCommit},
		"no offset, and rows behind": {hanging{id, 3, 5, 95}, &ending{producer: id, epoch: 3, offset: -1, sequence: 4},
			undecided},
	} {
		if got := judge(c.h, c.e); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

func TestTraceKeepsEndings(t *testing.T) {
	want := map[topicPartition]ending{
		{"a", 0}: {7, 3, 99, 4, false, false}, {"a", 1}: {7, 3, -1, 1, false, true}, {"b", 0}: {7, 2, 5, 0, false, false},
		{"c", 2}: {6, 9, -1, 0, true, true},
	}
	raw, err := json.Marshal(newEvents(7, []int64{6}, want))
	if err != nil {
		t.Fatal(err)
	}
	var back trace
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back.endings(), cmp.AllowUnexported(topicPartition{}, ending{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{6, 7}, back.ids(8)); diff != "" {
		t.Error(diff)
	}
}

func TestTraceIsBounded(t *testing.T) {
	all := map[topicPartition]ending{}
	for i := range int32(maxEndings + 1) {
		all[topicPartition{"a", i}] = ending{producer: 7}
	}
	tr := newEvents(7, nil, all)
	if n := len(tr.endings()); n != maxEndings || !tr.Unnamed {
		t.Errorf("%d partitions are named, unnamed %v", n, tr.Unnamed)
	}
}
