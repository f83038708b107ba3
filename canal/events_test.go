package canal_test

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func TestMariaDB(t *testing.T) {
	t.Run("transactions", func(t *testing.T) {
		b := mariaLog()
		b.Raw(replication.MARIADB_GTID_LIST_EVENT, 0, make([]byte, 4))
		b.Raw(replication.MARIADB_BINLOG_CHECKPOINT_EVENT, 0, make([]byte, 8))
		b.Transaction(maria(1), func() {
			b.Raw(replication.MARIADB_ANNOTATE_ROWS_EVENT, 0, []byte("insert"))
			insert(b, 1)
		})
		b.MariaGTID(maria(2), 1)
		b.Query("shop", "CREATE TABLE x (id INT)")
		b.MariaGTID(maria(3), 0)
		insert(b, 3)
		b.Query("shop", "COMMIT")
		b.MariaGTID(maria(4), 0)
		insert(b, 4)
		b.Query("shop", "ROLLBACK")
		f := newFeed(t).maria().walk(b)
		f.want("1[1] 2[] 3[3] 4[]")
		if g := f.out[0].Commit.GTID; g != maria(1) {
			t.Errorf("GTID is %v", g)
		}
	})
	t.Run("compressed events", func(t *testing.T) {
		b := mariaLog()
		b.Transaction(maria(1), func() {
			o := canaltest.Outbox()
			b.Map(o)
			b.InsertCompressed(o, row(1), row(2))
		})
		b.MariaGTID(maria(2), 0)
		b.CompressedQuery("shop", "INSERT INTO outbox VALUES (1)")
		b.XID()
		f := newFeed(t).maria().walk(b)
		if got := idsOf(f.out); got != "1[1 2]" {
			t.Errorf("handed on %s", got)
		}
		f.fails(canal.StatementFormat, maria(2))
	})
	t.Run("B053 zero positions", func(t *testing.T) {
		b := mariaLog()
		for i := range 3 {
			b.ZeroPos = false
			b.GTID(maria(uint64(i+1)), 0, 0)
			b.ZeroPos = true
			insert(b, i)
			b.XID()
		}
		f := newFeed(t).maria().walk(b)
		f.want("1[0] 2[1] 3[2]")
		if got := f.out[2].Commit.Pos; got != b.Pos {
			t.Errorf("position is %d, want %d", got, b.Pos)
		}
	})
}

func TestBadEvents(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *canaltest.Binlog)
		kind  canal.Kind
		gtid  position.GTID
	}{
		{"incident", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Raw(replication.INCIDENT_EVENT, 0, []byte{1, 0, 0})
		}, canal.Incident, gtid(1)},
		{"unknown event", func(b *canaltest.Binlog) { b.Raw(99, 0, nil) }, canal.Undecodable, position.GTID{}},
		{"rows without table map", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { b.Rows(replication.WRITE_ROWS_EVENTv2, 5, 1, nil) })
		}, canal.Undecodable, gtid(1)},
		{"table map of the statement before", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				insert(b, 1)
				b.Insert(canaltest.Outbox(), row(2))
			})
		}, canal.Undecodable, gtid(1)},
		{"rows outside of a transaction", func(b *canaltest.Binlog) { insert(b, 1) }, canal.Undecodable, position.GTID{}},
		{"no end of the transaction before", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Begin()
			insert(b, 1)
			b.GTID(gtid(2), 0, 0)
		}, canal.Undecodable, gtid(1)},
		{"damaged row", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(o)
				r := rowBytes(o, row(1))
				b.Rows(replication.WRITE_ROWS_EVENTv2, o.ID, 1, r[:len(r)-3])
			})
		}, canal.Undecodable, gtid(1)},
		{"another number of columns", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(o)
				o.Columns = o.Columns[:4]
				b.Insert(o, row(1)[:4])
			})
		}, canal.SchemaMismatch, gtid(1)},
		{"bad text", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(o)
				r := row(1)
				r[4] = "\xff"
				b.Insert(o, r)
			})
		}, canal.Undecodable, gtid(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mysqlLog()
			c.build(b)
			newFeed(t).walk(b).fails(c.kind, c.gtid)
		})
	}
}
