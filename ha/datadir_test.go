package ha

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/binlog-outbox/binlog-outbox/envelope"
)

// filled makes a data directory with 50 log entries and, if asked, snapshots.
func filled(t *testing.T, snapshots int) string {
	t.Helper()
	dir := t.TempDir()
	c := testConfig(t, dir)
	c.TrailingLogs = 2
	n := start(t, c)
	n.waitReady(t)
	for i := range uint64(50) {
		if err := n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(i+1)); err != nil {
			t.Fatal(err)
		}
		if snapshots > 0 && i%20 == 19 {
			snapshots--
			if err := n.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitUntil(t, "the cluster id is written down", func() bool {
		id, err := readIdentity(dir, "n1")
		return err == nil && id.Cluster != ""
	})
	if err := n.stop(t); err != nil {
		t.Fatal(err)
	}
	return dir
}

func waitUntil(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

func newestSnapshot(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, snapshotDir, "*-*-*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no snapshots: %v", err)
	}
	return all[len(all)-1]
}

func damage(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestB091B092DirectoriesThatAreRefused takes good directories, spoils them as
// operators and disks do, and wants a text with what, where and what to do.
func TestB091B092DirectoriesThatAreRefused(t *testing.T) {
	t.Parallel()
	log := func(dir string) string { return filepath.Join(dir, logFile) }
	tests := []struct {
		name      string
		snapshots int
		spoil     func(t *testing.T, dir string)
		want      error
		names     string // what the text must name
	}{
		{"log deleted, snapshots kept", 2, func(t *testing.T, dir string) { must(t, os.Remove(log(dir))) }, ErrIncomplete,
			logFile},
		{"all but snapshots deleted", 2, func(t *testing.T, dir string) {
			must(t, os.Remove(log(dir)))
			must(t, os.Remove(filepath.Join(dir, nodeFile)))
		}, ErrIncomplete, nodeFile},
		{"snapshots deleted", 2, func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, snapshotDir)))
		}, ErrIncomplete, snapshotDir},
		{"snapshot without meta.json", 1, func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(newestSnapshot(t, dir), "meta.json")))
		}, ErrIncomplete, snapshotDir},
		{"newest of two snapshots damaged", 2, func(t *testing.T, dir string) {
			damage(t, filepath.Join(newestSnapshot(t, dir), "state.bin"), func(b []byte) []byte { b[len(b)-3]++; return b })
		}, ErrCorrupt, "state"},
		{"node.json deleted", 0, func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, nodeFile))) },
			ErrIncomplete, nodeFile},
		{"node.json garbled", 0, func(t *testing.T, dir string) {
			damage(t, filepath.Join(dir, nodeFile), func([]byte) []byte { return []byte("{}") })
		}, ErrCorrupt, nodeFile},
		{"B095 another node's directory", 0, func(t *testing.T, dir string) {
			damage(t, filepath.Join(dir, nodeFile), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"n1"`),
					[]byte(`"n2"`), 1)
			})
		}, ErrForeignState, `node "n2"`},
		{"B095 another node's log", 0, func(t *testing.T, dir string) {
			other, err := os.ReadFile(log(filled(t, 0)))
			must(t, err)
			damage(t, log(dir), func([]byte) []byte { return other })
		}, ErrForeignState, logFile},
		{"another cluster's snapshot", 1, func(t *testing.T, dir string) {
			damage(t, filepath.Join(dir, nodeFile), func(b []byte) []byte {
				i := bytes.Index(b, []byte(`"cluster": "`)) + len(`"cluster": "`)
				copy(b[i:], "ffffffff")
				return b
			})
		}, ErrForeignState, snapshotDir},
		{"B097 newer directory", 0, func(t *testing.T, dir string) {
			damage(t, filepath.Join(dir, nodeFile), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"format": 1`),
					[]byte(`"format": 2`), 1)
			})
		}, ErrNewerFormat, nodeFile},
		{"B097 newer command in the log", 0, func(t *testing.T, dir string) {
			rewriteEntry(t, log(dir), 20, func(l *raft.Log) {
				l.Data = sealed(7, `{"op":"save_position"}`)
			})
		}, ErrNewerFormat, "log entry 20"},
		{"entry with a flipped byte", 0, func(t *testing.T, dir string) {
			rewriteEntry(t, log(dir), 20, func(l *raft.Log) { l.Data[30]++ })
		}, ErrCorrupt, "log entry 20"},
		{"entry missing", 0, func(t *testing.T, dir string) { rewriteEntry(t, log(dir), 20, nil) }, ErrCorrupt,
			"log entry 20"},
		{"log cut in half", 0, func(t *testing.T, dir string) {
			damage(t, log(dir), func(b []byte) []byte { return b[:len(b)/2] })
		}, ErrCorrupt, logFile},
		{"log overwritten", 0, func(t *testing.T, dir string) {
			damage(t, log(dir), func(b []byte) []byte { return bytes.Repeat([]byte("zero"), len(b)/4) })
		}, ErrCorrupt, logFile},
		{"log pages overwritten", 0, func(t *testing.T, dir string) {
			damage(t, log(dir), func(b []byte) []byte {
				return append(b[:2*4096:2*4096],
					bytes.Repeat([]byte{0xff}, len(b)-2*4096)...)
			})
		}, ErrCorrupt, logFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filled(t, tt.snapshots)
			tt.spoil(t, dir)
			n, err := Open(testConfig(t, dir), quiet(), nil)
			if err == nil {
				must(t, n.Shutdown(testContext(t)))
				t.Fatal("the directory was accepted")
			}
			t.Log(err)
			var store *StoreError
			if !errors.Is(err, tt.want) || !errors.As(err, &store) || store.Remedy == "" {
				t.Errorf("got %v, want a StoreError with %v", err, tt.want)
			}
			if text := err.Error(); !strings.Contains(text, dir) || !strings.Contains(text, tt.names) {
				t.Errorf("the text does not name %s and %s", dir, tt.names)
			}
		})
	}
}

// TestB092EachDamagedPage overwrites the head of each page of the log in turn:
// the node refuses the file, or has lost nothing. It never crashes.
func TestB092EachDamagedPage(t *testing.T) {
	t.Parallel()
	dir := filled(t, 0)
	path := filepath.Join(dir, logFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	page, refused := os.Getpagesize(), 0
	for at := 0; at < len(whole); at += page {
		damage(t, path, func([]byte) []byte {
			b := bytes.Clone(whole)
			copy(b[at:], bytes.Repeat([]byte{0xa5}, 64))
			return b
		})
		n, err := Open(testConfig(t, dir), quiet(), nil)
		if err != nil {
			if refused++; !errors.Is(err, ErrCorrupt) {
				t.Errorf("page %d: %v", at/page, err)
			}
			continue
		}
		r := run(t, n)
		r.waitReady(t)
		if st, _ := r.Connector("orders"); st.Position.Seq != 50 {
			t.Errorf("page %d: position %d after damage that was not seen", at/page, st.Position.Seq)
		}
		must(t, r.stop(t))
	}
	if refused == 0 {
		t.Error("no damage was seen")
	}
	t.Logf("%d of %d pages matter", refused, len(whole)/page)
}

// sealed is an envelope of any version and body.
func sealed(version int, body string) []byte {
	data, err := envelope.Seal(version, json.RawMessage(body))
	if err != nil {
		panic(err)
	}
	return data
}

// rewriteEntry changes an entry of a closed log; nil removes it.
func rewriteEntry(t *testing.T, path string, index uint64, change func(*raft.Log)) {
	t.Helper()
	s, err := openLogStore(path, func(error) {})
	must(t, err)
	if change == nil {
		must(t, s.DeleteRange(index, index))
	} else {
		var l raft.Log
		must(t, s.GetLog(index, &l))
		change(&l)
		must(t, s.StoreLog(&l))
	}
	must(t, s.Close())
}

// TestB092OlderSnapshotAndWholeLog: a damaged snapshot costs nothing while the
// log still holds all that was in it.
func TestB092OlderSnapshotAndWholeLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := alone(t, dir) // 1024 trailing entries: nothing is cut off
	for i := range uint64(50) {
		must(t, n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(i+1)))
		if i%20 == 19 {
			must(t, n.raft.Snapshot().Error())
		}
	}
	must(t, n.stop(t))
	damage(t, filepath.Join(newestSnapshot(t, dir), "state.bin"), func(b []byte) []byte { b[len(b)-3]++; return b })
	n = alone(t, dir)
	if st, _ := n.Connector("orders"); st.Position.Seq != 50 {
		t.Errorf("position %d, want 50", st.Position.Seq)
	}
}

// TestSnapshotAndRestart: the state comes from a snapshot and the entries after it.
func TestSnapshotAndRestart(t *testing.T) {
	t.Parallel()
	dir := filled(t, 2)
	n := alone(t, dir)
	if st, _ := n.Connector("orders"); st.Position.Seq != 50 || st.Revision != 50 {
		t.Errorf("position %d, revision %d, want 50", st.Position.Seq, st.Revision)
	}
	first, err := n.dir.log.FirstIndex()
	if err != nil || first < 30 {
		t.Errorf("the log begins at %d (%v): it was not cut, so the test proves nothing", first, err)
	}
}

func TestSecondProcessOnTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := alone(t, dir)
	must(t, n.SetRunState(testContext(t), "orders", Paused, "", "ann"))
	begin := time.Now()
	cmd, lines := startChild(t, "save", dir)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
	}
	_ = cmd.Wait() // exits with 1
	text := strings.Join(said, "\n")
	t.Logf("after %s: %s", time.Since(begin), text)
	if !strings.Contains(text, ErrDataDirInUse.Error()) || !strings.Contains(text, dir) {
		t.Error("the second process does not say that the directory is in use")
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the second process took %s to say so", took)
	}
	must(t, n.SetRunState(testContext(t), "orders", Running, "", "ann"))
}

// TestCrashDuringFirstStart: whatever is there after a crash at any step of the
// first start, the next start goes on.
func TestCrashDuringFirstStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		left func(t *testing.T, dir string)
	}{
		{"empty log file", func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, logFile), nil, 0o600)) }},
		{"log without anything", func(t *testing.T, dir string) {
			s, err := openLogStore(filepath.Join(dir, logFile), func(error) {})
			must(t, err)
			must(t, s.Close())
		}},
		{"log with an owner, no node.json", func(t *testing.T, dir string) {
			s, err := openLogStore(filepath.Join(dir, logFile), func(error) {})
			must(t, err)
			must(t, s.setOwner("someone"))
			must(t, s.Close())
		}},
		{"a term but no entry", func(t *testing.T, dir string) {
			d, err := openDataDir(dir, "n1", newRaftLogger(quiet(), false), func(error) {})
			must(t, err)
			must(t, d.log.SetUint64([]byte(keyCurrentTerm), 1))
			must(t, d.close())
		}},
		{"half a node.json", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, nodeFile+".123.tmp"), []byte("{"), 0o600))
		}},
		{"half a snapshot", func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, snapshotDir, "2-20-1700000000000.tmp"), 0o700))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.left(t, dir)
			n := alone(t, dir)
			must(t, n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(1)))
		})
	}
}

// TestUnknownCommandEndsRun: what this release does not understand ends the node
// with a text, and is still there for the next release.
func TestUnknownCommandEndsRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := alone(t, dir)
	must(t, n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(1)))
	_, err := n.applyLocal(context.Background(), "future", sealed(commandVersion+1, `{"op":"teleport"}`))
	if !errors.Is(err, ErrNewerFormat) {
		t.Errorf("applying it: %v", err)
	}
	select {
	case err := <-n.done:
		n.done <- err
		if !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), "it has version 2, this release knows up to 1") {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the node goes on")
	}
	if err := n.SavePosition(testContext(t), "orders", Session{Term: n.term(), ID: "r"}, at(2)); !errors.Is(err,
		ErrNewerFormat) {
		t.Errorf("a write after it: %v", err)
	}
	if s := n.Status(); s.Error == "" || s.Ready {
		t.Errorf("status: %+v", s)
	}
	if _, err := Open(testConfig(t, dir), quiet(), nil); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("opening again: %v", err)
	}
}

// TestStoredTermFails: raft panics when it can't store its term; the node must
// end with the file's name instead.
func TestStoredTermFails(t *testing.T) {
	t.Parallel()
	n := alone(t, t.TempDir())
	must(t, n.dir.log.BoltStore.Close())
	n.dir.log.mu.Lock()
	n.dir.log.failed = &StoreError{Path: n.dir.log.path, Err: bolterrors.ErrDatabaseReadOnly, Remedy: "none"}
	n.dir.log.mu.Unlock()
	// As raft's main goroutine would, while it holds an election.
	done := make(chan bool)
	go func() {
		returned := false
		defer func() { done <- returned }()
		_ = n.dir.log.SetUint64([]byte(keyCurrentTerm), 99)
		returned = true
	}()
	if <-done {
		t.Error("the failure was returned to raft, which panics on it")
	}
	n.fail(n.dir.log.failed)
	if err := n.stop(t); err == nil || !strings.Contains(err.Error(), logFile) {
		t.Errorf("Run: %v", err)
	}
}
