package ha

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

var when = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)

func pos(p position.Position) *position.Position { return &p }

// machine is a state machine that is fed by hand.
type machine struct {
	*fsm
	index  uint64
	failed error
}

func newMachine() *machine {
	m := &machine{}
	m.fsm = newFSM(func(err error) { m.failed = err })
	return m
}

// do applies a command in a Raft term, by way of its encoding.
func (m *machine) do(t testing.TB, term uint64, c command) error {
	t.Helper()
	c.At = when
	data, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	m.index++
	return m.Apply(&raft.Log{Index: m.index, Term: term, Type: raft.LogCommand, Data: data}).(applied).err
}

func (m *machine) lead(t testing.TB, term uint64) {
	t.Helper()
	if err := m.do(t, term, command{Op: opLead, Node: "n", Cluster: "c1"}); err != nil {
		t.Fatal(err)
	}
}

func save(run string, runTerm, seq uint64) command {
	return command{Op: opSavePosition, Connector: "orders", Session: &Session{Term: runTerm, ID: run},
		Position: pos(at(seq))}
}

// in is a save of a run that has read its position in an epoch.
func in(epoch uint64, c command) command {
	c.Session.Epoch = epoch
	return c
}

func set(seq uint64) command {
	return command{Op: opSetPosition, Connector: "orders", Position: pos(at(seq)), By: "ann", Reason: "why"}
}

func runState(s RunState) command {
	return command{Op: opSetRunState, Connector: "orders", RunState: s, By: "ann"}
}

func reasonOf(err error) Reason {
	var r *RejectedError
	if errors.As(err, &r) {
		return r.Reason
	}
	if err != nil {
		return Reason(err.Error())
	}
	return ""
}

func TestRefusals(t *testing.T) {
	file := position.Position{Server: "s1", File: "binlog.000003", Pos: 4}
	other := file
	other.Server = "s2"
	stopped := runState(Stopped)
	saveAt := func(p position.Position) command {
		return command{Op: opSavePosition, Connector: "orders", Session: &Session{Term: 2, ID: "r1"}, Position: &p}
	}
	tests := []struct {
		name  string
		steps []command // all but the last must be accepted, in term 2
		want  Reason    // of the last
	}{
		{"forward", []command{save("r1", 2, 5), save("r1", 2, 6)}, ""},
		{"same position again", []command{save("r1", 2, 5), save("r1", 2, 5)}, ""},
		{"B091 backward", []command{save("r1", 2, 5), save("r1", 2, 4)}, ReasonBehind},
		{"nothing after something", []command{save("r1", 2, 5), saveAt(position.Position{})}, ReasonBehind},
		{"file after GTID", []command{save("r1", 2, 5), saveAt(file)}, ReasonBehind},
		{"file of another server", []command{saveAt(file), saveAt(other)}, ReasonBehind},
		{"B089 older term", []command{save("r1", 1, 5)}, ReasonOlderTerm},
		{"new run of the term", []command{save("r1", 2, 5), save("r2", 2, 6)}, ""},
		{"older run of the term", []command{save("r1", 2, 5), save("r2", 2, 6), save("r1", 2, 7)}, ReasonOlderSession},
		{"set back while running", []command{save("r1", 2, 5), set(3)}, ReasonNotStopped},
		{"set forward while running", []command{save("r1", 2, 5), set(9)}, ReasonNotStopped},
		{"set forward when paused", []command{save("r1", 2, 5), runState(Paused), set(9)}, ReasonNotStopped},
		{"set before the first start", []command{set(3)}, ReasonNotStopped},
		{"set back when stopped", []command{save("r1", 2, 5), stopped, set(3)}, ""},
		{"set forward when stopped", []command{save("r1", 2, 5), stopped, set(9)}, ""},
		{"set before the first start, stopped", []command{stopped, set(3)}, ""},
		{"run after a set", []command{save("r1", 2, 5), stopped, set(3), save("r1", 2, 6)}, ReasonOlderSession},
		{"run that had not saved before a set", []command{save("r1", 2, 5), stopped, set(3), save("r2", 2, 6)},
			ReasonOlderSession},
		{"run that has read after a set", []command{save("r1", 2, 5), stopped, set(3), in(1, save("r2", 2, 4))}, ""},
		{"same run, having read again", []command{save("r1", 2, 5), stopped, set(3), in(1, save("r1", 2, 4))}, ""},
		{"run of a first set, after a second", []command{stopped, set(3), set(2), in(1, save("r1", 2, 4))},
			ReasonOlderSession},
		{"run after deletion of what was set to nothing", []command{stopped, set(0), {Op: opDelete, Connector: "orders"},
			save("r1", 2, 4)}, ReasonOlderSession},
		{"run after deletion", []command{save("r1", 2, 5), {Op: opDelete, Connector: "orders"}, save("r1", 2, 6)},
			ReasonOlderSession},
		{"delete what is not there", []command{{Op: opDelete, Connector: "orders"}}, ReasonUnknownConnector},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine()
			m.lead(t, 2)
			for i, c := range tt.steps {
				before, _ := m.connector("orders")
				err := m.do(t, 2, c)
				if i < len(tt.steps)-1 {
					if err != nil {
						t.Fatalf("step %d: %v", i, err)
					}
					continue
				}
				if got := reasonOf(err); got != tt.want {
					t.Fatalf("last step: %q, want %q", got, tt.want)
				}
				after, _ := m.connector("orders")
				if tt.want == "" {
					return
				}
				if diff := cmp.Diff(encode(t, before), encode(t, after)); diff != "" {
					t.Errorf("a refused command changed the state:\n%s", diff)
				}
				var r *RejectedError
				if errors.As(err, &r); r.Have.Revision != before.Revision || r.Connector != "orders" {
					t.Errorf("the refusal does not show the state: %+v", r)
				}
			}
			if m.failed != nil {
				t.Errorf("the state machine failed: %v", m.failed)
			}
		})
	}
}

func TestDeleteKeepsPosition(t *testing.T) {
	m := newMachine()
	m.lead(t, 2)
	for _, c := range []command{
		save("r1", 2, 5),
		{Op: opPutConfig, Connector: "orders", Config: json.RawMessage(`{}`), By: "ann"},
		{Op: opSetRunState, Connector: "orders", RunState: Stopped, By: "ann"},
		{Op: opDecision, Connector: "orders", Decision: &Decision{Kind: "k"}, By: "ann"},
		{Op: opDelete, Connector: "orders", By: "ann"},
	} {
		if err := m.do(t, 2, c); err != nil {
			t.Fatal(err)
		}
	}
	st, _ := m.connector("orders")
	if st.Position.Seq != 5 || st.Config != nil || st.RunState != (RunStatus{}) || st.Decisions != nil {
		t.Errorf("after deletion: %+v", st)
	}
}

func TestBounds(t *testing.T) {
	m := newMachine()
	m.lead(t, 2)
	for i := range maxAudit + 5 {
		if err := m.do(t, 2, command{Op: opSetRunState, Connector: "orders", RunState: Paused, By: "ann",
			Reason: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if a := m.auditLog(); len(a) != maxAudit || a[0].Reason != "5" || a[maxAudit-1].Reason != fmt.Sprint(maxAudit+4) {
		t.Errorf("audit: %d entries from %q", len(a), a[0].Reason)
	}
	for i := range 2 * maxRetired {
		if err := m.do(t, 2, save(fmt.Sprint("r", i), 2, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if st, _ := m.connector("orders"); len(st.Retired) != maxRetired ||
		st.Retired[maxRetired-1] != fmt.Sprint("r", 2*maxRetired-2) {
		t.Errorf("retired: %d %v", len(st.Retired), st.Retired)
	}
	full := State{Decisions: make([]Decision, maxDecisions)}
	full.Decisions[3] = Decision{Kind: "skip", Key: "k"}
	m.img.Connectors["full"] = full
	add := func(key string) error {
		return m.do(t, 2, command{Op: opDecision, Connector: "full", Decision: &Decision{Kind: "skip", Key: key}, By: "ann"})
	}
	if got := reasonOf(add("new")); got != ReasonFull {
		t.Errorf("one decision too many: %q", got)
	}
	if err := add("k"); err != nil {
		t.Errorf("replacing a decision: %v", err)
	}
}

// TestB091PositionNeverGoesBack drives the state machine with random commands of
// old and new leaders, runs and operators, with snapshots in between, and holds
// every outcome against a model.
func TestB091PositionNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine()
		m.lead(t, 1)
		var term, stored, epoch uint64 = 1, 0, 0
		highest := map[string]uint64{} // run -> its last accepted save
		rt.Repeat(map[string]func(*rapid.T){
			"lead": func(rt *rapid.T) {
				term += rapid.Uint64Range(1, 3).Draw(rt, "more")
				m.lead(t, term)
			},
			"save": func(rt *rapid.T) {
				runTerm := rapid.Uint64Range(1, term).Draw(rt, "term")
				run := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "session")
				seq := rapid.Uint64Range(0, 40).Draw(rt, "seq")
				read := epoch - min(epoch, rapid.Uint64Range(0, 2).Draw(rt, "sets missed"))
				err := m.do(t, term, in(read, save(run, runTerm, seq)))
				if read < epoch && err == nil {
					rt.Fatalf("a run saved that does not know of the last set")
				}
				if runTerm < term && err == nil {
					rt.Fatalf("a run of term %d saved in term %d", runTerm, term)
				}
				if seq < stored && err == nil {
					rt.Fatalf("position went back from %d to %d", stored, seq)
				}
				if err == nil {
					stored = seq
					highest[fmt.Sprint(runTerm, run)] = seq
				}
			},
			"set": func(rt *rapid.T) {
				seq := rapid.Uint64Range(0, 40).Draw(rt, "seq")
				state := rapid.SampledFrom([]RunState{Running, Paused, Stopped}).Draw(rt, "state")
				before, _ := m.connector("orders")
				if err := m.do(t, term, runState(state)); err != nil {
					rt.Fatal(err)
				}
				if err := m.do(t, term, set(seq)); (err == nil) != (state == Stopped) {
					rt.Fatalf("set of a connector that is %s: %v", state, err)
				} else if err != nil {
					return
				}
				stored, epoch = seq, epoch+1
				if id := before.Session.ID; id != "" {
					if got := reasonOf(m.do(t, term, in(before.Epoch, save(id, before.Session.Term,
						99)))); got != ReasonOlderSession && got != ReasonOlderTerm {
						rt.Fatalf("run %s saved after an operator set the position: %q", id, got)
					}
				}
			},
			"snapshot": func(rt *rapid.T) {
				var buf bytes.Buffer
				if err := writeImage(&buf, &m.img); err != nil {
					rt.Fatal(err)
				}
				index := m.index
				m = newMachine()
				m.index = index
				if err := m.Restore(io.NopCloser(&buf)); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				st, _ := m.connector("orders")
				if !st.Position.Covers(at(stored)) || !at(stored).Covers(st.Position) {
					rt.Fatalf("stored %s, want %d", st.Position, stored)
				}
			},
		})
	})
}

// TestSameLogSameBytes: two machines, one of them restored half-way, end with
// equal snapshots.
func TestSameLogSameBytes(t *testing.T) {
	a, b := newMachine(), newMachine()
	for i, c := range sampleCommands() {
		for _, m := range []*machine{a, b} {
			_ = m.do(t, 3, c) // refusals are part of it
		}
		if i%2 == 1 {
			var buf bytes.Buffer
			if err := writeImage(&buf, &b.img); err != nil {
				t.Fatal(err)
			}
			index := b.index
			b = newMachine()
			b.index = index
			if err := b.Restore(io.NopCloser(&buf)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var x, y bytes.Buffer
	if err := errors.Join(writeImage(&x, &a.img), writeImage(&y, &b.img)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x.String(), y.String()); diff != "" {
		t.Errorf("states differ:\n%s", diff)
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOffsetOverride: a position that an operator sets, which is possible while the
// connector is stopped, carries a mark that everything saved after it keeps.
func TestOffsetOverride(t *testing.T) {
	m := newMachine()
	m.lead(t, 2)
	do := func(c command) State {
		t.Helper()
		if err := m.do(t, 2, c); err != nil {
			t.Fatal(err)
		}
		st, _ := m.connector("orders")
		return st
	}
	do(save("r1", 2, 5))
	for _, busy := range []RunState{"", Running, Paused} {
		if busy != "" {
			do(runState(busy))
		}
		if got := reasonOf(m.do(t, 2, set(3))); got != ReasonNotStopped {
			t.Errorf("set while %q: %q", busy, got)
		}
	}
	do(runState(Stopped))
	first := do(set(3))
	// Numbers go on above those of the position before, and of what was not saved.
	if first.Position.OffsetOverride != uint64(when.UnixMicro()) || first.Position.Seq != 5+position.SeqGap {
		t.Fatalf("after a set: %+v", first)
	}
	if again := do(set(4)); again.Position.OffsetOverride != first.Position.OffsetOverride+1 {
		t.Errorf("a second choice at the same time has mark %d, the first %d", again.Position.OffsetOverride,
			first.Position.OffsetOverride)
	}
	if got := reasonOf(m.do(t, 2, save("r1", 2, 6))); got != ReasonOlderSession {
		t.Errorf("a run from before saved: %q", got)
	}
	if st := do(in(2, save("r2", 2, 4))); st.Position.OffsetOverride != first.Position.OffsetOverride+1 {
		t.Errorf("after a save that knows of it: %+v", st)
	}
	zero := set(0)
	zero.Position = &position.Position{}
	if st := do(zero); st.Position.OffsetOverride != first.Position.OffsetOverride+2 || !st.Position.IsZero() {
		t.Errorf("after a start over: %+v", st)
	}
}

func TestRestartCounts(t *testing.T) {
	m := newMachine()
	m.lead(t, 2)
	for range 2 {
		if err := m.do(t, 2, command{Op: opRestart, Connector: "orders", By: "ann", Reason: "kick"}); err != nil {
			t.Fatal(err)
		}
	}
	st, _ := m.connector("orders")
	if st.Restarts != 2 || len(m.auditLog()) != 2 || m.auditLog()[0].Action != "restart_connector" {
		t.Errorf("%+v, %+v", st, m.auditLog())
	}
}
