package ha

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/binlog-outbox/binlog-outbox/position"
)

func sampleCommands() []command {
	maria, err := position.ParseSet(position.MariaDB, "0-1-7,2-3-9")
	if err != nil {
		panic(err)
	}
	full := at(12)
	full.Partials = []position.Partial{{GTID: markTo(13).GTID,
		Rows: []position.KindRows{{Kind: position.Kind{Database: "shop", Table: "outbox", Op: "insert"}, N: 50_000}}}}
	cmds := []command{
		{Op: opLead, Node: "n1", Cluster: "5b0c1c8e-9c3f-4a76-8f0e-4a1c7d3c9a11"},
		{Op: opSavePosition, Connector: "orders", Session: &Session{Term: 3, ID: "r1"}, Position: &full},
		{Op: opSavePosition, Connector: "maria", Session: &Session{Term: 3, ID: "r2"},
			Position: &position.Position{Flavor: position.MariaDB, Set: maria, Seq: 4}},
		{Op: opSavePosition, Connector: "files", Session: &Session{Term: 3, ID: "r3"},
			Position: &position.Position{Server: testSID, File: "binlog.000007", Pos: 1 << 33}},
		{Op: opSetRunState, Connector: "orders", RunState: Stopped, Reason: "maintenance", By: "ann"},
		{Op: opSetPosition, Connector: "orders", Position: pos(at(3)), Reason: "replay", By: "ann"},
		{Op: opPutConfig, Connector: "rest", Config: json.RawMessage(`{"name":"rest","config":{"tasks.max":"1"}}`),
			Reason: "created", By: "bob"},
		{Op: opDecision, Connector: "orders", Decision: &Decision{Kind: "quarantine", Version: 2, Key: testSID + ":9",
			Data: json.RawMessage(`{"row":1}`), Reason: "no such topic", By: "policy", At: when}, By: "policy",
			Reason: "no such topic"},
		{Op: opDelete, Connector: "rest", Reason: "gone", By: "bob"},
		{Op: opNote, Action: "add_member", Detail: "n4/x at n4:7400", Reason: "more room", By: "ann"},
		{Op: opSavePosition, Connector: "orders", Session: &Session{Term: 3, ID: "r4", Epoch: 1}, Position: pos(at(4))},
	}
	cmds = append(cmds,
		command{Op: opSetRunState, Connector: "maria", RunState: Stopped, Reason: "maintenance", By: "ann"},
		command{Op: opSetPosition, Connector: "orders", Position: pos(at(2)), Reason: "replay", By: "ann"},
		command{Op: opRestart, Connector: "orders", Reason: "kick", By: "ann"},
		command{Op: opSetPosition, Connector: "maria", Position: &position.Position{}, Reason: "start over", By: "ann"},
		command{Op: opSavePosition, Connector: "orders", Session: &Session{Term: 3, ID: "r5", Epoch: 2},
			Position: chosen(at(3), 1772600767000008)},
		command{Op: opDecision, Connector: "orders", Decision: &Decision{Kind: KindRowDecision, Version: 1,
			Key: testSID + ":9#2", Data: json.RawMessage(`{"action":"skip"}`), Reason: "no such topic", By: "ann", At: when},
			By: "ann", Reason: "no such topic"},
	)
	return stamped(cmds)
}

func chosen(p position.Position, override uint64) *position.Position {
	p.OffsetOverride = override
	return &p
}

func stamped(cmds []command) []command {
	for i := range cmds {
		cmds[i].At = when
		if cmds[i].Node == "" {
			cmds[i].Node = "n1"
		}
	}
	return cmds
}

// golden compares got with a file of a released format. A difference means that
// nodes of two releases do not understand each other: it needs a new version.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is written differently:\n%s", name, diff)
	}
	return want
}

func TestB097GoldenCommands(t *testing.T) {
	const name = "commands.v1"
	samples := sampleCommands()
	var got bytes.Buffer
	for _, c := range samples {
		line, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		got.Write(line)
		got.WriteByte('\n')
	}
	lines := strings.Split(strings.TrimSpace(string(golden(t, name, got.Bytes()))), "\n")
	if len(lines) != len(samples) {
		t.Fatalf("%d commands in the file, %d here", len(lines), len(samples))
	}
	for i, line := range lines {
		c, err := decodeCommand([]byte(line))
		if err != nil {
			t.Errorf("%s line %d: %v", name, i+1, err)
			continue
		}
		if diff := cmp.Diff(encode(t, samples[i]), encode(t, *c)); diff != "" {
			t.Errorf("%s line %d reads differently:\n%s", name, i+1, diff)
		}
	}
}

func TestB097GoldenSnapshot(t *testing.T) {
	m := newMachine()
	for _, c := range sampleCommands() {
		if err := m.do(t, 3, c); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := writeImage(&got, &m.img); err != nil {
		t.Fatal(err)
	}
	want := golden(t, "snapshot.v1", got.Bytes())
	r := newMachine()
	if err := r.Restore(io.NopCloser(bytes.NewReader(want))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encode(t, m.img), encode(t, r.img)); diff != "" {
		t.Errorf("it reads differently:\n%s", diff)
	}
}

func TestB097CommandsThatStopTheNode(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"newer version", sealed(2, `{"op":"save_position","shape":[1]}`), ErrNewerFormat},
		{"unknown operation", sealed(1, `{"op":"dance","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrNewerFormat},
		{"unknown field", sealed(1, `{"op":"delete_connector","connector":"c","at":"2026-01-01T00:00:00Z","hue":1}`),
			ErrCorrupt},
		{"flipped bit", append(sealed(1, `{"op":"delete_connector","connector":"c"}`)[:20], 'x'), ErrCorrupt},
		{"empty", nil, ErrCorrupt},
		{"not JSON", []byte("1 00000000 {"), ErrCorrupt},
		{"part missing", sealed(1, `{"op":"save_position","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrCorrupt},
		{"no version", []byte(`{"op":"delete_connector","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine()
			m.lead(t, 1)
			if err := m.do(t, 1, save("r", 1, 5)); err != nil {
				t.Fatal(err)
			}
			err := m.Apply(&raft.Log{Index: 9, Term: 1, Data: tt.data}).(applied).err
			if !errors.Is(err, tt.want) || !errors.Is(m.failed, tt.want) {
				t.Fatalf("got %v, failure %v, want %v", err, m.failed, tt.want)
			}
			if err := m.do(t, 1, save("r", 1, 6)); !errors.Is(err, tt.want) {
				t.Errorf("a later command was applied: %v", err)
			}
			if _, err := m.Snapshot(); !errors.Is(err, tt.want) {
				t.Errorf("a snapshot of the half-understood state was taken: %v", err)
			}
		})
	}
}

func TestSnapshotsThatAreRefused(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "snapshot.v1"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		origin string
		data   string
		want   error
	}{
		{"B091 another cluster's", "another", string(good), ErrForeignState},
		{"newer version", "", strings.Replace(string(good), "1 ", "2 ", 1), ErrNewerFormat},
		{"flipped byte", "", strings.Replace(string(good), "binlog.000007", "binlog.000008", 1), ErrCorrupt},
		{"cut short", "", string(good[:len(good)-10]), ErrCorrupt},
		{"not ours", "", "{}\n{}", ErrCorrupt},
		{"empty", "", "", ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine()
			m.lead(t, 1)
			if err := m.do(t, 1, save("r", 1, 5)); err != nil {
				t.Fatal(err)
			}
			m.setOrigin(tt.origin)
			if err := m.Restore(io.NopCloser(strings.NewReader(tt.data))); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if st, _ := m.connector("orders"); st.Position.Seq != 5 {
				t.Errorf("a refused snapshot changed the state: %+v", st)
			}
		})
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range sampleCommands() {
		data, err := c.encode()
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(data, []byte(" {"))
		f.Add(append([]byte("{"), body...))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		c, err := decodeCommand(sealed(commandVersion, string(body)))
		if err != nil {
			return
		}
		m := newMachine()
		_ = m.do(t, 1, *c) // must not panic
	})
}

func FuzzReadSnapshot(f *testing.F) {
	good, err := os.ReadFile(filepath.Join("testdata", "snapshot.v1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		if img, err := readImage(bytes.NewReader(data)); err == nil && img.Connectors == nil {
			t.Error("a snapshot was read without its connectors")
		}
	})
}
