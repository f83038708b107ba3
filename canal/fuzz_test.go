package canal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// FuzzEventHandler feeds any bytes as events: first a good format description, then
// what the fuzzer makes, cut at the sizes in the headers. Nothing may panic, and
// what is an error must be an *Error or come from the test itself.
func FuzzEventHandler(f *testing.F) {
	seed := func(maria bool, build func(b *canaltest.Binlog)) {
		b := mysqlLog()
		if maria {
			b = mariaLog()
		}
		b.Events = nil
		build(b)
		f.Add(maria, bytes.Join(b.Events, nil))
	}
	seed(false, func(b *canaltest.Binlog) {
		b.Transaction(gtid(1), func() { foreignRows(b); insert(b, 1, 2) })
	})
	seed(false, func(b *canaltest.Binlog) {
		b.GTID(position.GTID{SID: sid, Tag: "t", Seq: 3}, 1, 2)
		b.Compressed(func(in *canaltest.Binlog) { in.Query("shop", "BEGIN"); insert(in, 1); in.XID() })
	})
	seed(false, func(b *canaltest.Binlog) {
		b.Transaction(gtid(1), func() {
			b.Query("shop", "SAVEPOINT a")
			insert(b, 1)
			b.Query("shop", "ROLLBACK TO a")
			b.LoadQuery("shop", "LOAD DATA INFILE 'x' INTO TABLE other")
		})
		b.Rotate("binlog.000002")
	})
	seed(true, func(b *canaltest.Binlog) {
		b.Transaction(maria(1), func() { o := canaltest.Outbox(); b.Map(o); b.InsertCompressed(o, row(1)) })
		b.MariaGTID(maria(2), 1)
		b.CompressedQuery("shop", "DROP TABLE x")
	})
	f.Fuzz(func(t *testing.T, isMaria bool, data []byte) {
		flavor, b := position.MySQL, mysqlLog()
		if isMaria {
			flavor, b = position.MariaDB, mariaLog()
		}
		from := position.Position{Set: position.NewSet(flavor), File: "binlog.000001", Pos: 4}
		cfg := canal.Config{ServerID: 1, Tables: canal.Tables{Match: isOutbox}, SpoolDir: t.TempDir(),
			SpoolThreshold: 1 << 16, MaxUncompressed: 1 << 20}
		rows := 0
		w := canal.NewEventHandler(cfg, flavor, from, func(schema.Name) ([]schema.ColumnInfo, error) {
			return described(),
				nil
		},
			func(tr txn.Transaction) error { rows += len(tr.Rows); return nil })
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		events := b.Events
		for len(data) > 0 {
			n := len(data)
			if n >= canaltest.HeaderLen {
				n = max(1, min(n, int(binary.LittleEndian.Uint32(data[9:]))))
			}
			events = append(events, bytes.Clone(data[:n]))
			data = data[n:]
		}
		for _, e := range events {
			if err := w.Handle(e); err != nil {
				var own *canal.Error
				if !errors.As(err, &own) || own.Kind == 0 {
					t.Fatalf("error without a kind: %v", err)
				}
				return
			}
		}
	})
}
