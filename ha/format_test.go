package ha

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	full.Partials = []position.Partial{{GTID: markTo(13).GTID, Rows: []position.KindRows{{Kind: position.Kind{Database: "shop", Table: "outbox", Op: "insert"}, N: 50_000}}}}
	cmds := []command{
		{Op: opLead, Node: "n1", Cluster: "5b0c1c8e-9c3f-4a76-8f0e-4a1c7d3c9a11"},
		{Op: opSavePosition, Connector: "orders", Run: &Run{Term: 3, ID: "r1"}, Position: &full},
		{Op: opSavePosition, Connector: "maria", Run: &Run{Term: 3, ID: "r2"}, Position: &position.Position{Flavor: position.MariaDB, Set: maria, Seq: 4}},
		{Op: opSavePosition, Connector: "files", Run: &Run{Term: 3, ID: "r3"}, Position: &position.Position{Server: testSID, File: "binlog.000007", Pos: 1 << 33}},
		{Op: opSetPosition, Connector: "orders", Position: pos(at(3)), Force: true, Reason: "replay", By: "ann"},
		{Op: opSetRunState, Connector: "orders", RunState: Stopped, Reason: "maintenance", By: "ann"},
		{Op: opPutConfig, Connector: "rest", Config: json.RawMessage(`{"name":"rest","config":{"tasks.max":"1"}}`), Reason: "created", By: "bob"},
		{Op: opDecision, Connector: "orders", Decision: &Decision{Kind: "quarantine", Version: 2, Key: testSID + ":9", Data: json.RawMessage(`{"row":1}`), Reason: "no such topic", By: "policy", At: when}, By: "policy", Reason: "no such topic"},
		{Op: opDelete, Connector: "rest", Reason: "gone", By: "bob"},
		{Op: opNote, Action: "add_member", Detail: "n4/x at n4:7400", Reason: "more room", By: "ann"},
		{Op: opSavePosition, Connector: "orders", Run: &Run{Term: 3, ID: "r4", Epoch: 1}, Position: pos(at(4))},
	}
	return stamped(1, cmds)
}

// laterCommands are those of version 2.
func laterCommands() []command {
	return stamped(2, []command{
		{Op: opSetRunState, Connector: "maria", RunState: Stopped, Reason: "maintenance", By: "ann"},
		{Op: opSetPosition, Connector: "orders", Position: pos(at(2)), Reason: "replay", By: "ann"},
		{Op: opRestart, Connector: "orders", Reason: "kick", By: "ann"},
		{Op: opSetPosition, Connector: "maria", Position: &position.Position{}, Reason: "start over", By: "ann"},
		{Op: opSavePosition, Connector: "orders", Run: &Run{Term: 3, ID: "r5", Epoch: 2}, Position: chosen(at(3), 1772600767000008)},
		{Op: opDecision, Connector: "orders", Decision: &Decision{Kind: KindSetAside, Version: 1, Key: testSID + ":9#2", Data: json.RawMessage(`{"action":"skip"}`), Reason: "no such topic", By: "ann", At: when}, By: "ann", Reason: "no such topic"},
	})
}

func chosen(p position.Position, choice uint64) *position.Position {
	p.Choice = choice
	return &p
}

func stamped(version int, cmds []command) []command {
	for i := range cmds {
		cmds[i].Version, cmds[i].At = version, when
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
	for name, samples := range map[string][]command{"commands.v1": sampleCommands(), "commands.v2": laterCommands()} {
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
}

func TestB097GoldenSnapshot(t *testing.T) {
	m := newMachine()
	for _, more := range []struct {
		file     string
		commands []command
	}{{"snapshot.v1", sampleCommands()}, {"snapshot.v2", laterCommands()}} {
		for _, c := range more.commands {
			if err := m.do(t, 3, c); err != nil {
				t.Fatal(err)
			}
		}
		var got bytes.Buffer
		if err := writeImage(&got, &m.img); err != nil {
			t.Fatal(err)
		}
		want := golden(t, more.file, got.Bytes())
		r := newMachine()
		if err := r.Restore(io.NopCloser(bytes.NewReader(want))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(encode(t, m.img), encode(t, r.img)); diff != "" {
			t.Errorf("%s reads differently:\n%s", more.file, diff)
		}
	}
}

func TestB097CommandsThatStopTheNode(t *testing.T) {
	sum := func(body string) []byte {
		return fmt.Appendf(nil, "%08x %s", checksum([]byte(body)), body)
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"newer version", sum(`{"v":3,"op":"save_position","shape":[1]}`), ErrNewerFormat},
		{"unknown operation", sum(`{"v":1,"op":"dance","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrNewerFormat},
		{"unknown field", sum(`{"v":1,"op":"delete_connector","connector":"c","at":"2026-01-01T00:00:00Z","hue":1}`), ErrCorrupt},
		{"flipped bit", append(sum(`{"v":1,"op":"delete_connector","connector":"c"}`)[:20], 'x'), ErrCorrupt},
		{"empty", nil, ErrCorrupt},
		{"not JSON", sum(`{`), ErrCorrupt},
		{"part missing", sum(`{"v":1,"op":"save_position","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrCorrupt},
		{"no version", sum(`{"op":"delete_connector","connector":"c","at":"2026-01-01T00:00:00Z"}`), ErrCorrupt},
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
		{"newer version", "", strings.Replace(string(good), `"version":1`, `"version":3`, 1), ErrNewerFormat},
		{"flipped byte", "", strings.Replace(string(good), "binlog.000007", "binlog.000008", 1), ErrCorrupt},
		{"cut short", "", string(good[:len(good)-10]), ErrCorrupt},
		{"not ours", "", "{}\n{}", ErrCorrupt},
		{"empty", "", "", ErrCorrupt},
		{"huge claim", "", `{"format":"binlog-outbox raft snapshot","version":1,"length":9000000000000,"crc32c":0}` + "\n", ErrCorrupt},
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
		f.Add(data[9:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := decodeCommand(fmt.Appendf(nil, "%08x %s", checksum(body), body))
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

// Positions with initial rows need the newer version, in commands and in snapshots;
// everything else is written so that the release before reads it.
func TestInitialRowsHaveAVersion(t *testing.T) {
	p := at(4)
	p.Initial = &position.Initial{Database: "shop", Table: "outbox", Key: []string{"7"}, Rows: 7}
	c := command{Op: opSavePosition, Connector: "orders", Run: &Run{Term: 3, ID: "r1"}, Position: &p, At: when, Node: "n1"}
	if c.Version = c.needs(); c.Version != 2 {
		t.Errorf("version %d", c.Version)
	}
	line, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeCommand(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Initial, back.Position.Initial); diff != "" {
		t.Errorf("the command reads differently:\n%s", diff)
	}
	img := image{Connectors: map[string]State{"orders": {Position: p}}}
	var buf bytes.Buffer
	if err := writeImage(&buf, &img); err != nil || !strings.Contains(buf.String(), `"version":2`) {
		t.Errorf("snapshot: %.80s, %v", buf.String(), err)
	}
	read, err := readImage(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Initial, read.Connectors["orders"].Position.Initial); diff != "" {
		t.Errorf("the snapshot reads differently:\n%s", diff)
	}
}
