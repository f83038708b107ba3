package recent

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

var server = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

// event is what a history remembers exactly.
type event struct {
	text string
	Found
}

// history publishes events of random transactions and batches to a index and keeps
// them all.
type history struct {
	rnd     *rand.Rand
	recent  *Index
	now     time.Time
	commits []position.Commit // the next transaction counts on from one of these
	offsets map[string]int64
	events  []event
}

func newHistory(t *Index, seed uint64) *history {
	now := time.UnixMilli(1_700_000_000_000).UTC()
	h := &history{rnd: rand.New(rand.NewPCG(seed, 1)), recent: t, now: now, offsets: map[string]int64{}}
	for _, g := range []position.GTID{{SID: server, Seq: 1}, {SID: server, Tag: "app", Seq: 5},
		{Domain: 0, Server: 1, Seq: 9}, {}} {
		h.commits = append(h.commits, position.Commit{GTID: g, File: "b.000001", Pos: 4, Committed: now})
	}
	return h
}

func (h *history) one(odds int) bool { return h.rnd.IntN(odds) == 0 }

// batch publishes transactions with one to five events each.
func (h *history) batch(transactions int) {
	var list []Published
	h.now = h.now.Add(time.Duration(h.rnd.IntN(20)) * time.Millisecond)
	if h.one(50) {
		h.now = h.now.Add(time.Duration(h.rnd.IntN(5000)-1000) * time.Hour) // also back
	}
	for range transactions {
		m := h.transaction()
		for range 1 + h.rnd.IntN(5) {
			topic, partition := fmt.Sprintf("outbox.event.%d", h.rnd.IntN(3)), int32(h.rnd.IntN(600))
			key := fmt.Sprint(topic, partition)
			h.offsets[key] += 1 + int64(h.rnd.IntN(3))
			if h.one(500) {
				h.offsets[key] += 1 << 33
			}
			offset := h.offsets[key]
			if h.one(100) {
				offset = -1
			}
			text := uuid.NewString()
			list = append(list, Published{ID: h.recent.ID([]byte(text)), Commit: &m, Topic: topic, Partition: partition,
				Offset: offset})
			h.events = append(h.events, event{text, Found{Commit: m, Topic: topic, Partition: partition, Offset: offset,
				At: h.now}})
		}
	}
	h.recent.Add(h.now, len(list), func(i int) Published { return list[i] })
}

func (h *history) transaction() position.Commit {
	m := &h.commits[0]
	if h.one(20) {
		m = &h.commits[h.rnd.IntN(len(h.commits))]
	}
	m.Pos += uint64(h.rnd.IntN(500))
	m.Committed = m.Committed.Add(time.Duration(h.rnd.IntN(10_000)) * time.Microsecond)
	switch h.rnd.IntN(100) {
	case 0:
		m.File, m.Pos = fmt.Sprintf("b.%06d", h.rnd.IntN(1000)), 4
	case 1:
		m.Pos += 3 << 32 // a large transaction
	case 2:
		m.Committed = m.Committed.Add(time.Duration(h.rnd.IntN(100)-50) * time.Hour)
	case 3:
		if m.GTID.Seq > 0 {
			m.GTID.Seq += 1 << 40
		}
	}
	if m.GTID.Seq > 0 {
		m.GTID.Seq++
	}
	m.First = m.GTID.Seq
	out := *m
	if h.one(50) {
		out.Committed = time.Time{}
	}
	return out
}

// What is found is what was published, to the microsecond and the offset, and the
// last ones are never the ones that are forgotten.
func TestFoundIsWhatWasPublished(t *testing.T) {
	for seed := range uint64(3) {
		const ids = 5000
		tr := newIndex(ids)
		h := newHistory(tr, seed)
		tr.Begin(h.now)
		for len(h.events) < 3*ids {
			h.batch(1 + h.rnd.IntN(50))
		}
		_, kept := tr.Known()
		found := 0
		for i, e := range h.events {
			got := tr.Find(tr.ID([]byte(e.text)), 10)
			if len(got) == 0 {
				if i >= len(h.events)-kept {
					t.Fatalf("event %d of %d is forgotten, but %d are said to be remembered", i, len(h.events), kept)
				}
				continue
			}
			found++
			want := e.Found
			want.At = want.At.Truncate(time.Millisecond)
			if len(got) != 1 || got[0] != want {
				t.Fatalf("event %d:\n got %+v\nwant %+v", i, got, want)
			}
		}
		if found != kept {
			t.Errorf("%d found, %d are said to be remembered", found, kept)
		}
		if len(tr.Find(tr.ID([]byte("another")), 1)) != 0 {
			t.Error("found what was never published")
		}
	}
}

// Rows from before the start are found by their number.
func TestSnapshotRows(t *testing.T) {
	tr := newIndex(1000)
	commits := make([]position.Commit, 100)
	tr.Add(time.Now(), len(commits), func(i int) Published {
		commits[i].Snapshot = &position.Snapshot{Database: "shop", Table: fmt.Sprint("outbox", i/50), Key: []string{"k"},
			Begun: 7, Rows: uint64(i + 1)}
		return Published{ID: ID(i + 1), Commit: &commits[i], Topic: "t", Offset: int64(i)}
	})
	for i := range commits {
		got := tr.Find(ID(i+1), 1)
		if len(got) != 1 || got[0].Commit.Snapshot == nil {
			t.Fatalf("%+v", got)
		}
		in, want := *got[0].Commit.Snapshot, *commits[i].Snapshot
		if in.Database != want.Database || in.Table != want.Table || in.Begun != want.Begun || in.Rows != want.Rows ||
			got[0].Commit.Pos != 0 {
			t.Errorf("%+v, want %+v", in, want)
		}
	}
}

// As many ids are remembered as were asked for, at least.
func TestHoldsWhatItIsMadeFor(t *testing.T) {
	const ids = 10_000
	tr := newIndex(ids)
	fill(tr, 50_000, 6)
	if _, kept := tr.Known(); kept < ids || kept > ids+2*chunkRows {
		t.Errorf("%d remembered, want %d", kept, ids)
	}
}

// An event that was published again has both places, the last first.
func TestRepeatedEventHasAllItsPlaces(t *testing.T) {
	tr := newIndex(1000)
	m := position.Commit{GTID: position.GTID{SID: server, Seq: 7}, First: 7}
	for i := range int64(3) {
		tr.Add(time.Now(), 1, func(int) Published {
			return Published{ID: tr.ID([]byte("e")), Commit: &m, Topic: "t", Offset: 10 + i}
		})
	}
	got := tr.Find(tr.ID([]byte("e")), 2)
	if len(got) != 2 || got[0].Offset != 12 || got[1].Offset != 11 {
		t.Errorf("%+v", got)
	}
}

// What is said to be known begins with the leadership, or when something had to be
// forgotten since then, with the oldest that is left.
func TestKnownSince(t *testing.T) {
	tr := newIndex(4096)
	began := time.UnixMilli(1_700_000_000_000).UTC()
	tr.Begin(began)
	add := func(n int, at time.Time) {
		m := position.Commit{File: "b.1"}
		tr.Add(at, n, func(i int) Published { return Published{ID: ID(i + 1), Commit: &m, Topic: "t", Offset: int64(i)} })
	}
	add(5000, began.Add(time.Second))
	if since, ids := tr.Known(); !since.Equal(began) || ids != 5000 {
		t.Errorf("since %v with %d ids, want %v with 5000", since, ids, began)
	}
	add(8000, began.Add(time.Minute))
	if since, _ := tr.Known(); !since.After(began) {
		t.Errorf("since %v, but what was published then is forgotten", since)
	}
	again := began.Add(time.Hour)
	tr.Begin(again)
	if since, ids := tr.Known(); !since.Equal(again) || ids == 0 {
		t.Errorf("since %v with %d ids, want %v", since, ids, again)
	}
}

// The rows that were skipped or dead-lettered last are found, with the last decision about each.
func TestUnpublished(t *testing.T) {
	tr := newIndex(1)
	for i := range 3 * maxUnpublished {
		tr.AddUnpublished(Unpublished{ID: ID(i + 1), Message: "first"})
	}
	tr.AddUnpublished(Unpublished{ID: 2500, Message: "second"})
	if a, ok := tr.FindUnpublished(2500); !ok || a.Message != "second" {
		t.Errorf("%+v, %v", a, ok)
	}
	if _, ok := tr.FindUnpublished(3 * maxUnpublished); !ok {
		t.Error("the last but one is not found")
	}
	if _, ok := tr.FindUnpublished(100); ok {
		t.Error("an old one is still there")
	}
}

// Size 0 remembers nothing and costs nothing.
func TestOff(t *testing.T) {
	tr := newIndex(0)
	if tr != nil {
		t.Fatal("there is a memory")
	}
	tr.Begin(time.Now())
	tr.Add(time.Now(), 1, nil)
	tr.AddUnpublished(Unpublished{})
	if _, ids := tr.Known(); ids != 0 || len(tr.Find(1, 1)) != 0 {
		t.Error("something is remembered")
	}
	if _, ok := tr.FindUnpublished(0); ok {
		t.Error("something is remembered")
	}
}

// fill publishes n events with UUIDs, each of a transaction of its own, in batches of
// up to 10 to so many partitions.
func fill(tr *Index, n, partitions int) {
	tr.Begin(time.UnixMilli(1_700_000_000_000))
	id := uuid.MustParse("0192d1a0-0000-7000-8000-000000000000")
	commits := make([]position.Commit, 10)
	var text [36]byte
	for done := 0; done < n; done += len(commits) {
		at := time.UnixMilli(1_700_000_000_000 + int64(done)/10)
		tr.Add(at, len(commits), func(i int) Published {
			k := done + i
			commits[i] = position.Commit{
				GTID: position.GTID{SID: server, Seq: uint64(k + 1)}, First: uint64(k + 1), File: "binlog.000001",
				Pos: uint64(k) * 700, Committed: at,
			}
			id[4], id[5], id[13], id[14] = byte(k>>24), byte(k>>16), byte(k>>8), byte(k)
			copy(text[:], id.String())
			return Published{ID: tr.ID(text[:]), Commit: &commits[i], Topic: "outbox.event.order",
				Partition: int32(k % partitions), Offset: int64(k / partitions)}
		})
	}
}

// A million events with UUIDs take 32 bytes each.
func TestMemory(t *testing.T) {
	const ids = 1_000_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	tr := newIndex(ids)
	fill(tr, ids+ids/2, 12)
	used := float64(heap()-before) / ids
	if _, kept := tr.Known(); kept < ids {
		t.Errorf("only %d ids are remembered", kept)
	}
	t.Logf("%.1f bytes an id", used)
	if used > 32 {
		t.Errorf("%.1f bytes an id, want 32 at most", used)
	}
	runtime.KeepAlive(tr)
}

// BenchmarkAdd is the cost of one event of a transaction of its own, in batches of
// 1,000: the number made of its id, and what is noted.
func BenchmarkAdd(b *testing.B) {
	for _, partitions := range []int{1, 12, 1000} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			tr := newIndex(1_000_000)
			const rows = 1000
			commits := make([]position.Commit, rows)
			texts := make([][]byte, rows)
			for i := range texts {
				texts[i] = []byte(uuid.NewString())
			}
			at, seq := time.Now(), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				tr.Add(at, rows, func(i int) Published {
					seq++
					commits[i] = position.Commit{GTID: position.GTID{SID: server, Seq: seq}, First: seq, File: "binlog.000001",
						Pos: seq, Committed: at}
					return Published{ID: tr.ID(texts[i]), Commit: &commits[i], Topic: "outbox.event.order",
						Partition: int32(seq) % int32(partitions), Offset: int64(seq)}
				})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}

// BenchmarkFind is the longest search: of what is not there.
func BenchmarkFind(b *testing.B) {
	tr := newIndex(1_000_000)
	fill(tr, 1_500_000, 12)
	for b.Loop() {
		tr.Find(1, 1)
	}
}

// newIndex returns a index that has a budget of its own.
func newIndex(ids int) *Index { return NewBudget(ids + chunkRows).New(ids) }

// Indexes that share a budget keep to it together; busy ones leave a quiet one what it
// has, and one that is forgotten leaves its room to the others.
func TestBudget(t *testing.T) {
	const ids = 20 * chunkRows
	budget := NewBudget(ids)
	quiet := budget.New(1_000_000)
	fill(quiet, 5000, 3)
	busy := []*Index{budget.New(1_000_000), budget.New(1_000_000)}
	known := func(tr *Index) int {
		_, n := tr.Known()
		return n
	}
	for _, tr := range busy {
		fill(tr, 200_000, 3)
	}
	fill(busy[0], 200_000, 3)
	if n := known(quiet); n != 5000 {
		t.Errorf("the quiet one knows %d events, want all 5000", n)
	}
	sum := known(busy[0]) + known(busy[1])
	if sum+known(quiet) > ids || sum < ids/2 {
		t.Errorf("the busy ones know %d events, of a budget of %d", sum, ids)
	}
	if a, b := known(busy[0]), known(busy[1]); a < ids/4 || b < ids/4 {
		t.Errorf("they know %d and %d, which is no even share of %d", a, b, ids)
	}
	if since, _ := busy[1].Known(); !since.After(time.UnixMilli(1_700_000_000_000)) {
		t.Errorf("known since %v, though what was published first was given up for another", since)
	}
	busy[1].Forget()
	fill(busy[0], 200_000, 3)
	if n := known(busy[0]); n < ids*3/4 {
		t.Errorf("it knows %d events, though the other is gone", n)
	}
	fill(busy[1], 10_000, 3)
	if n := known(busy[1]); n != 0 {
		t.Errorf("a forgotten index knows %d events", n)
	}
}
