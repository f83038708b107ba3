package canal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
)

func TestSourceStatus(t *testing.T) {
	f := newFake(t, events(mysqlLog(), silence))
	f.Executed, f.Purged = sid.String()+":1-100,11111111-2222-3333-4444-555555555555:1-7", sid.String()+":1-5"
	f.cfg.Origins = func(id uuid.UUID) (bool, error) { return id == sid, nil }
	before := time.Now()
	v, err := canal.PollStatus(t.Context(), f.cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	if v.At.Before(before) || v.Server != sid.String() || v.Several || v.Executed.String() != sid.String()+":1-100" ||
		v.Purged.Count() != 5 || len(v.Binlogs) == 0 {
		t.Errorf("%+v", v)
	}
	for _, q := range f.Queries() {
		if !strings.HasPrefix(q, "SHOW ") && !strings.HasPrefix(q, "SELECT @@") {
			t.Errorf("a status poll asks for more than it needs: %s", q)
		}
	}
}

func TestSourceStatusBytes(t *testing.T) {
	s := canal.SourceStatus{Binlogs: []canal.Binlog{{Name: "b.000008", Size: 100}, {Name: "b.000009", Size: 50},
		{Name: "b.000010", Size: 30}}}
	for _, c := range []struct {
		file          string
		pos           uint64
		before, after uint64
		ok            bool
	}{
		{"b.000008", 4, 4, 176, true},
		{"b.000009", 20, 120, 60, true},
		{"b.000010", 30, 180, 0, true},
		{"b.000010", 31, 180, 0, true}, // it has grown since
		{"b.000007", 9, 180, 0, false},
	} {
		if before, after, ok := s.BytesBefore(c.file, c.pos); before != c.before || after != c.after || ok != c.ok {
			t.Errorf("%s:%d: %d before, %d after, %v", c.file, c.pos, before, after, ok)
		}
	}
}

// On a server that has nothing to say, heartbeats tell that all was read, also
// when it began another binlog, by GTID set and by file.
func TestRealStatusOfAnIdleServer(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		db.cfg.Heartbeat = 600 * time.Millisecond
		for _, byFile := range []bool{false, true} {
			from := db.now()
			if byFile {
				from.Set = nil
			}
			r := db.open(from)
			db.exec("INSERT INTO outbox (payload) VALUES ('a')", "INSERT INTO orders (note) VALUES ('x')")
			want := db.now()
			for r.at.Pos < want.Pos {
				if err := r.step(); err != nil {
					t.Fatal(err)
				}
			}
			db.exec("FLUSH BINARY LOGS")
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				v, err := canal.PollStatus(t.Context(), db.cfg, r.Status().Address)
				if err != nil {
					t.Fatal(err)
				}
				st := r.Status()
				_, after, ok := v.BytesBefore(st.File, st.Pos)
				if ok && after == 0 && v.Executed.Beyond(want.Set) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("by file %v: read up to %s:%d, %d bytes after it; the server has %v", byFile, st.File, st.Pos, after,
						v.Binlogs)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
