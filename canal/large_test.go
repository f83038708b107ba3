package canal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

func files(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestSpool(t *testing.T) {
	build := func(end string) *canaltest.Binlog {
		b := mysqlLog()
		b.GTID(gtid(1), 0, 0)
		b.Begin()
		for i := range 50 {
			insert(b, i)
			foreignRows(b)
		}
		b.Query("shop", "SAVEPOINT s")
		for range 50 {
			insert(b, 999)
		}
		b.Query("shop", "ROLLBACK TO s")
		insert(b, 50)
		b.Query("shop", end)
		b.Transaction(gtid(2), func() { insert(b, 60) })
		return b
	}
	f := newFeed(t)
	f.cfg.SpoolThreshold, f.cfg.PartRows = 1000, 20
	b := build("COMMIT")
	last := b.Events[len(b.Events)-6:]
	b.Events = b.Events[:len(b.Events)-6]
	f.walk(b).want("")
	if all, memory := f.w.Held(); all < 3000 || memory > 1000 || files(t, f.cfg.SpoolDir) != 1 {
		t.Errorf("%d bytes held, %d in memory, %d files", all, memory, files(t, f.cfg.SpoolDir))
	}
	b.Events = last
	f.walk(b)
	var tableVersion []string
	next := int64(0)
	for _, tr := range f.out[:len(f.out)-1] {
		tableVersion = append(tableVersion, fmt.Sprintf("%d+%d %t", tr.FirstRow, len(tr.Rows), tr.Final))
		for _, r := range tr.Rows {
			if r.After[0] != next {
				t.Fatalf("row %v in place of %d", r.After[0], next)
			}
			next++
		}
	}
	if got, want := strings.Join(tableVersion, ", "), "0+20 false, 20+20 false, 40+11 true"; got != want {
		t.Errorf("parts are %s, want %s", got, want)
	}
	if got := idsOf(f.out[len(f.out)-1:]); got != "2[60]" {
		t.Errorf("the transaction behind is %s", got)
	}
	if n := files(t, f.cfg.SpoolDir); n != 0 {
		t.Errorf("%d files are left", n)
	}

	f = newFeed(t)
	f.cfg.SpoolThreshold = 1000
	f.walk(build("ROLLBACK")).want("1[] 2[60]")
	if n := files(t, f.cfg.SpoolDir); n != 0 {
		t.Errorf("%d files are left after a rollback", n)
	}
}

// A transaction that is cut in the middle publishes nothing, and its file goes.
func TestSpoolOfACutTransaction(t *testing.T) {
	b := mysqlLog()
	b.GTID(gtid(101), 0, 0)
	b.Begin()
	for i := range 100 {
		insert(b, i)
	}
	f := newFake(t, events(b, func(to *canaltest.Sender) error { to.Cut(); return errors.New("cut") }))
	f.cfg.SpoolThreshold, f.cfg.PartRows = 1000, 10
	f.cfg.SpoolDir = filepath.Join(f.cfg.SpoolDir, "[a") // a name, not a pattern
	if err := os.Mkdir(f.cfg.SpoolDir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(f.cfg.SpoolDir, "transaction-1.spool")
	if err := os.WriteFile(left, []byte("of a killed process"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := f.open(set(t, sid.String()+":1-100"))
	if _, err := os.Stat(left); err == nil {
		t.Error("the file of an earlier process is still there")
	}
	if e := r.fails(); e.Kind != canal.Disconnected || len(r.all) != 0 {
		t.Errorf("got %v, transactions %s", e, idsOf(r.all))
	}
	_ = r.Close()
	if n := files(t, f.cfg.SpoolDir); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestSpoolDirectoryIsBad(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(1), func() { insert(b, 1) })
	f := newFeed(t)
	f.cfg.SpoolThreshold = 1
	f.cfg.SpoolDir = filepath.Join(f.cfg.SpoolDir, "file")
	if err := os.WriteFile(f.cfg.SpoolDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.walk(b).fails(canal.SpoolFailed, gtid(1))
}

// A large transaction must pass in little memory: 200 MB of rows here.
func TestLargeTransactionInLittleMemory(t *testing.T) {
	const rows, size = 200_000, 1000
	o := canaltest.Outbox()
	f := newFeed(t)
	got, peak := 0, uint64(0)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	runtime.GC() // what other tests of the package left behind
	before := heap()
	check := func() { peak = max(peak, heap()) }
	f.w = canal.NewEventHandler(f.cfg, f.flavor, f.from, nil0, func(tr txn.Transaction) error {
		for _, r := range tr.Rows {
			if r.After[0] != int64(got) {
				t.Fatalf("row %v in place of %d", r.After[0], got)
			}
			got++
		}
		check()
		return nil
	})
	t.Cleanup(func() { _ = f.w.Close() })
	b := mysqlLog()
	b.GTID(gtid(1), 0, rows*size)
	b.Begin()
	f.walk(b).want("")
	payload := strings.Repeat("x", size-60)
	for i := 0; i < rows; i += 8 {
		var some [][]any
		for j := range 8 {
			r := row(i + j)
			r[4] = payload
			some = append(some, r)
		}
		b.Map(o)
		b.Insert(o, some...)
		f.walk(b)
		if i%10_000 == 0 {
			check()
		}
	}
	if f.err != nil || got != 0 {
		t.Fatalf("before the commit: %v, %d rows", f.err, got)
	}
	b.XID()
	if f.walk(b); f.err != nil || got != rows {
		t.Fatalf("%d rows, %v", got, f.err)
	}
	if peak > before+100<<20 {
		t.Errorf("the heap grew by %d MB", (peak-before)>>20)
	}
}

func nil0(schema.Name) ([]schema.ColumnInfo, error) { return nil, nil }

func TestB001CompressedLikeUncompressed(t *testing.T) {
	inside := func(b *canaltest.Binlog) {
		b.Query("shop", "BEGIN")
		foreignRows(b)
		insert(b, 1, 2)
		b.Query("shop", "SAVEPOINT s")
		insert(b, 3)
		b.Query("shop", "ROLLBACK TO s")
		insert(b, 4)
		b.XID()
	}
	b := mysqlLog()
	b.GTID(gtid(1), 1, 0)
	inside(b)
	plain := newFeed(t).walk(b)
	b = mysqlLog()
	b.GTID(gtid(1), 1, 0)
	b.Compressed(inside)
	end := b.Pos
	b.Transaction(gtid(2), func() { insert(b, 5) })
	f := newFeed(t).walk(b)
	f.want(plain.ids() + " 2[5]")
	if got := f.out[0].Commit.Pos; got != end {
		t.Errorf("the compressed transaction ends at %d, want %d", got, end)
	}
}

// Only the commit inside may move the position, and without one nothing does.
func TestB002NoMarkBeforeTheInnerCommit(t *testing.T) {
	b := mysqlLog()
	b.GTID(gtid(1), 0, 0)
	b.Compressed(func(in *canaltest.Binlog) {
		in.Query("shop", "BEGIN")
		for i := range 10_000 {
			insert(in, i)
		}
	})
	f := newFeed(t).walk(b)
	if len(f.out) != 0 {
		t.Errorf("handed on %s", idsOf(f.out))
	}
	f.fails(canal.Undecodable, gtid(1), "no commit")
}

func TestBadPayloads(t *testing.T) {
	payload := func(f func(b *canaltest.Binlog)) *canaltest.Binlog {
		b := mysqlLog()
		b.GTID(gtid(1), 0, 0)
		f(b)
		return b
	}
	inner := mysqlLog()
	inner.Events = nil
	inner.Query("shop", "BEGIN")
	inner.XID()
	plain := bytes.Join(inner.Events, nil)
	for _, c := range []struct {
		name string
		b    *canaltest.Binlog
		kind canal.Kind
	}{
		{"announces too much", payload(func(b *canaltest.Binlog) { b.Payload(0, 1<<40, []byte("x")) }), canal.TooLarge},
		{"announces an absurd ratio", payload(func(b *canaltest.Binlog) { b.Payload(0, 1<<33, []byte("x")) }),
			canal.TooLarge},
		{"inflates to more than announced", payload(func(b *canaltest.Binlog) {
			b.Payload(255, uint64(len(plain)-1),
				plain)
		}), canal.Undecodable},
		{"not zstd", payload(func(b *canaltest.Binlog) { b.Payload(0, 1000, []byte("garbage")) }), canal.Undecodable},
		{"unknown compression", payload(func(b *canaltest.Binlog) { b.Payload(7, 10, plain) }), canal.Undecodable},
		{"a payload inside", payload(func(b *canaltest.Binlog) {
			b.Compressed(func(in *canaltest.Binlog) { in.Payload(255, 10, plain) })
		}), canal.Undecodable},
		{"ends in an event", payload(func(b *canaltest.Binlog) { b.Payload(255, uint64(len(plain)), plain[:len(plain)-3]) }),
			canal.Undecodable},
		{"rows of no table", payload(func(b *canaltest.Binlog) {
			b.Compressed(func(in *canaltest.Binlog) { in.Query("", "BEGIN"); in.Insert(canaltest.Outbox(), row(1)) })
		}), canal.Undecodable},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed(t).walk(c.b)
			f.fails(c.kind, gtid(1))
			if len(f.out) != 0 {
				t.Errorf("handed on %s", idsOf(f.out))
			}
		})
	}
	f := newFeed(t).walk(payload(func(b *canaltest.Binlog) { b.Payload(255, uint64(len(plain)), plain) }))
	f.want("1[]") // uncompressed payloads exist
}

func TestQueue(t *testing.T) {
	put := func(q *canal.Queue, n uint64, bytes int) error {
		tr := txn.Transaction{Commit: position.Commit{GTID: gtid(n), First: n}, Final: true, Bytes: bytes}
		if bytes > 0 {
			tr.Rows = make([]schema.Row, 1)
		}
		return q.Put(tr)
	}
	t.Run("blocks when full, lets one large transaction in", func(t *testing.T) {
		q := canal.NewQueue(1000)
		if err := put(q, 1, 5000); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- put(q, 2, 1) }()
		select {
		case <-done:
			t.Fatal("a full queue took more")
		case <-time.After(30 * time.Millisecond):
		}
		if got, err := canal.QueueNext(q, t.Context()); err != nil || len(got) != 1 {
			t.Errorf("took %d, %v", len(got), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Run("runs of foreign transactions are one", func(t *testing.T) {
		q := canal.NewQueue(1000)
		for i := range uint64(100_000) {
			if err := put(q, i+1, 0); err != nil {
				t.Fatal(err)
			}
		}
		got, err := canal.QueueNext(q, t.Context())
		if err != nil || len(got) != 1 || got[0].Commit.First != 1 || got[0].Commit.GTID.Seq != 100_000 {
			t.Errorf("got %s, %v", idsOf(got), err)
		}
	})
	t.Run("rows keep apart", func(t *testing.T) {
		q := canal.NewQueue(10_000)
		for n, size := range []int{0, 0, 10, 0, 0, 10} {
			if err := put(q, uint64(n+1), size); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := canal.QueueNext(q, t.Context())
		if len(got) != 4 || got[0].Commit.First != 1 || got[2].Commit.First != 4 {
			t.Errorf("got %d entries", len(got))
		}
	})
	t.Run("what came before an error is taken first", func(t *testing.T) {
		q := canal.NewQueue(1000)
		_ = put(q, 1, 1)
		why := errors.New("why")
		q.Fail(why)
		q.Fail(errors.New("later"))
		if got, err := canal.QueueNext(q, t.Context()); err != nil || len(got) != 1 {
			t.Errorf("took %d, %v", len(got), err)
		}
		for range 2 {
			if _, err := canal.QueueNext(q, t.Context()); !errors.Is(err, why) {
				t.Errorf("then %v", err)
			}
		}
	})
	t.Run("close wakes everybody", func(t *testing.T) {
		q := canal.NewQueue(1)
		_ = put(q, 1, 100)
		ended := make(chan error, 3)
		go func() { ended <- put(q, 2, 1) }()
		empty := canal.NewQueue(1)
		for range 2 {
			go func() { _, err := canal.QueueNext(empty, context.Background()); ended <- err }()
		}
		q.Close()
		empty.Close()
		for range 3 {
			if err := <-ended; !errors.Is(err, canal.ErrClosed) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}
