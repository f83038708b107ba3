package canal_test

import (
	"bytes"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// benchmark walks the same events again and again, lent as the connection's reader
// lends them.
func benchmark(b *testing.B, build func(l *canaltest.Binlog), rowsEach int) {
	b.Helper()
	l := mysqlLog()
	head := l.Events
	l.Events = nil
	build(l)
	rows := 0
	q := canal.NewQueue(1 << 40)
	w := canal.NewEventHandler(canal.Config{ServerID: 1, Tables: canal.Tables{Match: isOutbox}, SpoolDir: b.TempDir()},
		position.MySQL,
		position.Position{Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: 4}, nil0,
		func(t txn.Transaction) error {
			rows += len(t.Rows)
			t.Rows = nil
			return q.Put(t)
		})
	for _, e := range head {
		if err := w.Handle(e); err != nil {
			b.Fatal(err)
		}
	}
	var size int64
	for _, e := range l.Events {
		size += int64(len(e))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range l.Events {
			if err := w.HandleLent(e); err != nil {
				b.Fatal(err)
			}
		}
	}
	if rows != b.N*rowsEach {
		b.Fatalf("%d rows, want %d", rows, b.N*rowsEach)
	}
	if rowsEach > 0 {
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	}
}

// One-row transactions on other tables: 100 a round, 250 bytes of row each.
func BenchmarkForeignEvents(b *testing.B) {
	benchmark(b, func(l *canaltest.Binlog) {
		rest := append([]byte{1, 0xff, 0}, make([]byte, 250)...)
		for i := range 100 {
			l.Transaction(gtid(uint64(i+1)), func() {
				l.Map(foreign())
				l.Rows(30, 200, 1, rest)
			})
		}
	}, 0)
}

// One-row transactions of the outbox, 250 bytes of payload each.
func BenchmarkOutboxRows(b *testing.B) {
	benchmark(b, func(l *canaltest.Binlog) {
		for i := range 100 {
			l.Transaction(gtid(uint64(i+1)), func() { insertPayload(l, i, 250) })
		}
	}, 100)
}

// The same rows in one transaction, 25 to an event.
func BenchmarkOutboxBulk(b *testing.B) {
	benchmark(b, func(l *canaltest.Binlog) {
		l.Transaction(gtid(1), func() {
			o := canaltest.Outbox()
			for range 4 {
				var rows [][]any
				for i := range 25 {
					r := row(i)
					r[4] = string(bytes.Repeat([]byte("x"), 250))
					rows = append(rows, r)
				}
				l.Map(o)
				l.Insert(o, rows...)
			}
		})
	}, 100)
}

// Compressed transactions of other tables' rows.
func BenchmarkCompressedForeign(b *testing.B) {
	benchmark(b, func(l *canaltest.Binlog) {
		rest := append([]byte{1, 0xff, 0}, make([]byte, 250)...)
		for i := range 100 {
			l.GTID(gtid(uint64(i+1)), 1, 0)
			l.Compressed(func(in *canaltest.Binlog) {
				in.Query("shop", "BEGIN")
				in.Map(foreign())
				in.Rows(30, 200, 1, rest)
				in.XID()
			})
		}
	}, 0)
}

func insertPayload(l *canaltest.Binlog, id, size int) {
	o := canaltest.Outbox()
	r := row(id)
	r[4] = string(bytes.Repeat([]byte("x"), size))
	l.Map(o)
	l.Insert(o, r)
}
