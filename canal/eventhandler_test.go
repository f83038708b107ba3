package canal_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

func TestTransactions(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *canaltest.Binlog)
		want  string
	}{
		{"one row", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { insert(b, 1) })
		}, "1[1]"},
		{"several rows in a statement", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { insert(b, 1, 2, 3) })
		}, "1[1 2 3]"},
		{"several rows events in a statement", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(o)
				b.Rows(replication.WRITE_ROWS_EVENTv2, o.ID, 0, rowBytes(o, row(1)))
				b.Rows(replication.WRITE_ROWS_EVENTv2, o.ID, 1, rowBytes(o, row(2)))
			})
		}, "1[1 2]"},
		{"several statements", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { insert(b, 1); foreignRows(b); insert(b, 2) })
		}, "1[1 2]"},
		{"two tables in one statement", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(foreign())
				b.Map(o)
				b.Rows(replication.WRITE_ROWS_EVENTv2, 200, 0, []byte("garbage"))
				b.Insert(o, row(1))
			})
		}, "1[1]"},
		{"foreign only", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { foreignRows(b) })
		}, "1[]"},
		{"commit by query event", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Begin()
			insert(b, 1)
			b.Query("shop", "COMMIT")
		}, "1[1]"},
		{"DDL commits by itself", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Query("shop", "CREATE TABLE other (id INT)")
			b.Transaction(gtid(2), func() { insert(b, 1) })
		}, "1[] 2[1]"},
		{"create table select", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				b.Query("shop", "CREATE TABLE `outbox` (`id` bigint) START TRANSACTION")
				insert(b, 1)
			})
		}, "1[1]"},
		{"empty transaction", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Begin()
			b.Query("", "COMMIT")
		}, "1[]"},
		{"group of passed-over events only", func(b *canaltest.Binlog) {
			b.GTID(gtid(1), 0, 0)
			b.Raw(replication.VIEW_CHANGE_EVENT, 0, make([]byte, 40))
			b.Transaction(gtid(2), func() { insert(b, 1) })
		}, "1[] 2[1]"},
		{"updates and deletes", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				o := canaltest.Outbox()
				b.Map(o)
				b.Update(o, row(1), row(2))
				b.Map(o)
				b.Delete(o, row(2))
			})
		}, "1[]"},
		{"events to pass over", func(b *canaltest.Binlog) {
			b.Heartbeat("binlog.000001")
			b.Raw(replication.PREVIOUS_GTIDS_EVENT, 0, make([]byte, 8))
			b.Raw(99, replication.LOG_EVENT_IGNORABLE_F, []byte("new"))
			b.Transaction(gtid(1), func() {
				b.Raw(replication.ROWS_QUERY_EVENT, 0, []byte("\x04text"))
				insert(b, 1)
				b.Raw(replication.INTVAR_EVENT, 0, make([]byte, 9))
			})
		}, "1[1]"},
		{"rotation", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() { insert(b, 1) })
			b.Rotate("binlog.000002")
			b.Transaction(gtid(2), func() { insert(b, 2) })
		}, "1[1] 2[2]"},
		{"dummy rows event", func(b *canaltest.Binlog) {
			b.Transaction(gtid(1), func() {
				b.Rows(replication.WRITE_ROWS_EVENTv2, 1<<48-1, 1, []byte{0})
				insert(b, 1)
			})
		}, "1[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mysqlLog()
			c.build(b)
			newFeed(t).walk(b).want(c.want)
		})
		t.Run(c.name+" with checksums", func(t *testing.T) {
			b := mysqlLog()
			b.Events, b.CRC = nil, true
			b.Begins("binlog.000001", 4)
			c.build(b)
			newFeed(t).walk(b).want(c.want)
		})
	}
}

func foreignRows(b *canaltest.Binlog) {
	b.Map(foreign())
	b.Rows(replication.WRITE_ROWS_EVENTv2, 200, 1, []byte{0xff, 0xff, 0xff, 1})
}

// rowBytes is what follows the flags of a rows event.
func rowBytes(t canaltest.Table, row []any) []byte {
	b := mysqlLog()
	b.Insert(t, row)
	last := b.Events[len(b.Events)-1]
	return last[canaltest.HeaderLen+6+2+2:]
}

func TestMarks(t *testing.T) {
	b := mysqlLog()
	b.GTID(gtid(5), 1_700_000_001_234_567, 0)
	b.Begin()
	insert(b, 1)
	b.XID()
	end := b.Pos
	f := newFeed(t).walk(b)
	f.want("5[1]")
	want := position.Commit{GTID: gtid(5), First: 5, File: "binlog.000001", Pos: end,
		Committed: time.UnixMicro(1_700_000_001_234_567).UTC()}
	if got := f.out[0].Commit; got != want {
		t.Errorf("mark is %+v, want %+v", got, want)
	}
	r := f.out[0].Rows[0]
	if r.Op != schema.Insert || r.Table.String() != "shop.outbox" || r.After[4] != `{"id":1}` || r.After[0] != int64(1) {
		t.Errorf("row is %+v", r)
	}
	b.Rotate("binlog.000002")
	b.GTID(gtid(6), 0, 0)
	b.Begin()
	b.XID()
	f.walk(b).want("5[1] 6[]")
	want = position.Commit{GTID: gtid(6), First: 6, File: "binlog.000002", Pos: b.Pos,
		Committed: time.Unix(1_700_000_000, 0).UTC()}
	if got := f.out[1].Commit; got != want {
		t.Errorf("mark without commit time is %+v, want %+v", got, want)
	}
}

// Without GTIDs the position goes on to the next file with the server, which may
// purge the old one though nothing happens; with GTIDs the set says it all.
func TestMarksOfFiles(t *testing.T) {
	anonymous := position.GTID{}
	const head = 127 // the end of a file's format description
	first := position.Commit{File: "binlog.000001", Pos: head, Created: begun}
	turn := position.Commit{File: "binlog.000002", Pos: head, Created: begun}
	for _, c := range []struct {
		name string
		from position.Position
		want []position.Commit
	}{
		{"by file", position.Position{File: "binlog.000001", Pos: 4, Created: begun}, []position.Commit{turn}},
		{"by file of which nothing more is known", position.Position{File: "binlog.000001", Pos: 4},
			[]position.Commit{first, turn}},
		{"by GTID", position.Position{Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: 4}, nil},
		{"a transaction is published in part", position.Position{File: "binlog.000001", Pos: 4,
			Partials: []position.Partial{{}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed(t)
			f.from = c.from
			b := mysqlLog()
			b.Rotate("binlog.000002")
			f.walk(b)
			if f.err != nil {
				t.Fatal(f.err)
			}
			var got []position.Commit
			for _, tx := range f.out {
				if !tx.Final || len(tx.Rows) != 0 {
					t.Errorf("%+v", tx)
				}
				got = append(got, tx.Commit)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("commit positions are %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("after the transaction that was published in part", func(t *testing.T) {
		f := newFeed(t)
		f.from = position.Position{File: "binlog.000001", Pos: 4, Partials: []position.Partial{{}}}
		b := mysqlLog()
		b.Rotate("binlog.000002")
		b.Transaction(anonymous, func() { insert(b, 1); insert(b, 2) })
		b.Rotate("binlog.000003")
		f.walk(b).want("0[1 2] 0[]")
		if got := f.out[1].Commit; got.File != "binlog.000003" || got.Pos != head || got.Created != begun {
			t.Errorf("the commit position is %+v", got)
		}
	})
}

// Another file of the name that the position has is no place to go on in.
func TestF14AnotherFileOfTheSameName(t *testing.T) {
	f := newFeed(t).byFile()
	f.from.Created--
	b := mysqlLog()
	b.Transaction(position.GTID{}, func() { insert(b, 1) })
	f.walk(b).fails(canal.Behind, position.GTID{}, "binlog.000001 is another file of that name",
		"begun at 2023-11-14 22:13:19 UTC, this one at 2023-11-14 22:13:20 UTC")
	if len(f.out) > 0 {
		t.Errorf("%s was handed on", idsOf(f.out))
	}
}

// A commit position may name a transaction only once its commit was read.
func TestB003NothingBeforeTheCommit(t *testing.T) {
	b := mysqlLog()
	f := newFeed(t)
	b.GTID(gtid(1), 0, 0)
	b.Begin()
	for i := range 100 {
		insert(b, i)
	}
	f.walk(b).want("")
	b.XID()
	f.walk(b)
	if len(f.out) != 1 || len(f.out[0].Rows) != 100 || !f.out[0].Final {
		t.Errorf("after the commit: %s", f.ids())
	}
}

func TestB014RollbackGroups(t *testing.T) {
	b := mysqlLog()
	b.GTID(gtid(1), 0, 0)
	b.Begin()
	insert(b, 1)
	b.Query("shop", "ROLLBACK")
	b.Transaction(gtid(2), func() { insert(b, 2) })
	f := newFeed(t).walk(b)
	f.want("1[] 2[2]") // the GTID of the rolled back group is used up
	if got, want := f.w.Counts(), [5]uint64{1, 0, 0, 2, 1}; got != want {
		t.Errorf("counts are %v, want %v", got, want)
	}
}

// A server that crashed while writing leaves the beginning of a group at the
// end of a file.
func TestCrashedServerLeavesHalfAGroup(t *testing.T) {
	b := mysqlLog()
	b.GTID(gtid(1), 0, 0)
	b.Begin()
	insert(b, 1)
	b.Begins("binlog.000002", 4)
	b.Transaction(gtid(1), func() { insert(b, 2) })
	newFeed(t).walk(b).want("1[2]")
}

func TestSavepoints(t *testing.T) {
	for _, spool := range []int64{1 << 20, 1} { // in memory, on disk
		b := mysqlLog()
		b.Transaction(gtid(1), func() {
			insert(b, 1)
			b.Query("shop", "SAVEPOINT `a`")
			insert(b, 2)
			b.Query("shop", "SAVEPOINT `b`")
			insert(b, 3)
			b.Query("shop", "ROLLBACK TO `B`") // names are compared without case
			insert(b, 4)
			b.Query("shop", "ROLLBACK TO `a`")
			insert(b, 5)
			b.Query("shop", "SAVEPOINT `a`") // moves
			insert(b, 6)
			b.Query("shop", "ROLLBACK TO `a`")
			insert(b, 7)
		})
		b.Transaction(gtid(2), func() {
			b.Query("shop", "SAVEPOINT `é``x`")
			insert(b, 8)
			b.Query("shop", "ROLLBACK TO `E``X`")
		})
		f := newFeed(t)
		f.cfg.SpoolThreshold = spool
		f.walk(b).want("1[1 5 7] 2[]")
	}
	// A statement that was undone is no reason to stop, one before the savepoint is.
	b := mysqlLog()
	b.Transaction(gtid(1), func() {
		b.Query("shop", "SAVEPOINT `a`")
		b.Query("shop", "INSERT INTO outbox VALUES (1)")
		b.Query("shop", "ROLLBACK TO `a`")
		insert(b, 2)
	})
	b.Transaction(gtid(2), func() {
		b.Query("shop", "INSERT INTO outbox VALUES (1)")
		b.Query("shop", "SAVEPOINT `a`")
		b.Query("shop", "ROLLBACK TO `a`")
	})
	f := newFeed(t).walk(b)
	if got := idsOf(f.out); got != "1[2]" {
		t.Errorf("handed on %s", got)
	}
	f.fails(canal.StatementFormat, gtid(2))
	b = mysqlLog()
	b.Transaction(gtid(1), func() { b.Query("shop", "ROLLBACK TO `nowhere`") })
	newFeed(t).walk(b).fails(canal.Undecodable, gtid(1), "savepoint")
	b = mysqlLog() // one that was set later is gone
	b.Transaction(gtid(1), func() {
		for _, s := range []string{"SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b"} {
			b.Query("shop", s)
		}
	})
	newFeed(t).walk(b).fails(canal.Undecodable, gtid(1), "savepoint")
}

func TestB013XA(t *testing.T) {
	prepare := func(b *canaltest.Binlog, rows func(), onePhase bool) {
		b.GTID(gtid(1), 0, 0)
		b.Query("shop", "XA START X'78',X'',1")
		rows()
		b.Query("shop", "XA END X'78',X'',1")
		b.XAPrepare(onePhase)
	}
	finish := func(b *canaltest.Binlog, sql string) {
		b.GTID(gtid(2), 0, 0)
		b.Query("shop", sql)
		b.Transaction(gtid(3), func() { insert(b, 3) })
	}
	t.Run("prepare with outbox rows stops", func(t *testing.T) {
		b := mysqlLog()
		prepare(b, func() { insert(b, 1) }, false)
		newFeed(t).walk(b).fails(canal.PreparedXA, gtid(1), "ONE PHASE")
	})
	// The XA COMMIT, days later maybe, does not show what it commits.
	t.Run("prepare with a statement on an outbox table stops", func(t *testing.T) {
		b := mysqlLog()
		prepare(b, func() { b.Query("shop", "INSERT INTO outbox VALUES (1)") }, false)
		finish(b, "XA COMMIT X'78',X'',1")
		newFeed(t).walk(b).fails(canal.StatementFormat, gtid(1))
	})
	t.Run("one phase is a commit", func(t *testing.T) {
		b := mysqlLog()
		prepare(b, func() { insert(b, 1) }, true)
		newFeed(t).walk(b).want("1[1]")
	})
	for _, sql := range []string{"XA COMMIT X'78',X'',1", "XA ROLLBACK X'78',X'',1"} {
		t.Run("foreign "+sql, func(t *testing.T) {
			b := mysqlLog()
			prepare(b, func() { foreignRows(b) }, false)
			finish(b, sql)
			newFeed(t).walk(b).want("1[] 2[] 3[3]")
		})
	}
}

// The binlog has 32 bits for positions; a large transaction runs past them.
func TestB015PositionsBeyond4GiB(t *testing.T) {
	f := newFeed(t).byFile()
	f.from.Pos = 1<<32 - 200
	b := canaltest.NewBinlog(position.MySQL, "binlog.000001", f.from.Pos)
	var ends []uint64
	for i := range 3 {
		b.Transaction(gtid(uint64(i+1)), func() { insert(b, i) })
		ends = append(ends, b.Pos)
	}
	f.walk(b).want("1[0] 2[1] 3[2]")
	for i, tr := range f.out {
		if tr.Commit.Pos != ends[i] {
			t.Errorf("transaction %d ends at %d, want %d", i, tr.Commit.Pos, ends[i])
		}
	}

	t.Run("resume", func(t *testing.T) {
		// The dump command can't name such a position: the file is read from its start.
		b := mysqlLog()
		b.Transaction(gtid(1), func() { insert(b, 1) })
		b.Pos = 1<<32 + 7
		b.Transaction(gtid(2), func() { insert(b, 2) })
		at := b.Pos
		b.Transaction(gtid(3), func() { insert(b, 3) })
		again := *b
		f := newFeed(t).byFile()
		f.from.Pos = at
		f.walk(b).want("3[3]")
		f = newFeed(t).byFile()
		f.from.Pos = at - 1
		f.walk(&again).fails(canal.WrongHistory, position.GTID{}, "not the end of a transaction")
	})
}

func TestB018AnonymousTransactions(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(1), func() { insert(b, 1) })
	b.Transaction(position.GTID{}, func() { insert(b, 2) })
	again := *b
	f := newFeed(t).walk(b)
	if got := idsOf(f.out); got != "1[1]" {
		t.Errorf("handed on %s", got)
	}
	f.fails(canal.AnonymousTransaction, position.GTID{}, "gtid_mode=ON")
	newFeed(t).byFile().walk(&again).want("1[1] 0[2]")

	b = mysqlLog() // before MySQL 5.7: no GTID events at all
	b.Begin()
	insert(b, 1)
	b.XID()
	b.Query("shop", "DROP TABLE x")
	again = *b
	newFeed(t).byFile().walk(b).want("0[1] 0[]")
	newFeed(t).walk(&again).fails(canal.AnonymousTransaction, position.GTID{})
}

// Tables that nobody wants are known by their id, and never decoded.
func TestB031ForeignRowsAreNotDecoded(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(1), func() {
		for _, kind := range []replication.EventType{
			replication.WRITE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
			replication.PARTIAL_UPDATE_ROWS_EVENT,
		} {
			b.Map(foreign())
			b.Rows(kind, 200, 1, []byte("\xfe\xff\xff\xff\xff\xff\xff\xff\xff"))
		}
		insert(b, 1)
	})
	f := newFeed(t)
	f.walk(b).want("1[1]")
	if got, want := f.w.Counts(), [5]uint64{1, 0, 0, 1, 0}; got != want {
		t.Errorf("counts are %v, want %v", got, want)
	}
}

func TestB032StatementFormat(t *testing.T) {
	const secret = "topsecret"
	for _, c := range []struct {
		name  string
		build func(b *canaltest.Binlog)
	}{
		{"insert", func(b *canaltest.Binlog) { b.Query("shop", "INSERT INTO outbox VALUES (1, '"+secret+"')") }},
		{"other database selected", func(b *canaltest.Binlog) {
			b.Query("test", "/* c */ REPLACE INTO `shop`.`outbox` VALUES (1, '"+secret+"')")
		}},
		{"load data", func(b *canaltest.Binlog) {
			b.Raw(replication.BEGIN_LOAD_QUERY_EVENT, 0, []byte("\x01\x00\x00\x00"+secret))
			b.LoadQuery("shop", "LOAD DATA INFILE '"+secret+"' INTO TABLE `outbox` FIELDS TERMINATED BY ',' (`id`)")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mysqlLog()
			b.Transaction(gtid(1), func() { insert(b, 1) })
			b.GTID(gtid(2), 0, 0)
			b.Begin()
			c.build(b)
			b.XID()
			f := newFeed(t).walk(b)
			f.fails(canal.StatementFormat, gtid(2), "shop.outbox", "binlog_format")
			wantAbsent(t, f.err, secret)

			b = mysqlLog() // rolled back: nothing is missing
			b.GTID(gtid(1), 0, 0)
			b.Begin()
			c.build(b)
			b.Query("shop", "ROLLBACK")
			newFeed(t).walk(b).want("1[]")
		})
	}
	b := mysqlLog()
	b.Transaction(gtid(1), func() {
		b.Query("shop", "INSERT INTO orders VALUES ('outbox')")
		insert(b, 1)
	})
	b.GTID(gtid(2), 0, 0)
	b.Query("shop", "TRUNCATE TABLE outbox")
	newFeed(t).walk(b).want("1[1] 2[]")
}

func TestB033MissingColumns(t *testing.T) {
	b := mysqlLog()
	o := canaltest.Outbox()
	b.Transaction(gtid(1), func() {
		b.Map(o)
		b.Insert(o, []any{int64(1), "Order", canaltest.Omitted, canaltest.Omitted, nil})
	})
	again := *b
	newFeed(t).walk(b).fails(canal.MissingColumn, gtid(1), "shop.outbox", "aggregateid, type", "binlog_row_image")

	f := newFeed(t) // nobody needs them: they are missing, not NULL
	f.cfg.Needed = func(t *schema.Table) []int { return []int{t.Column("id"), t.Column("payload")} }
	f.walk(&again).want("1[1]")
	if after := f.out[0].Rows[0].After; after[2] != schema.Missing || after[4] != nil {
		t.Errorf("row is %v", after)
	}
}

func TestB034PartialJSONUpdates(t *testing.T) {
	b := mysqlLog()
	o := canaltest.Outbox()
	b.Transaction(gtid(1), func() {
		b.Map(o)
		b.Rows(replication.PARTIAL_UPDATE_ROWS_EVENT, o.ID, 1, []byte("\x05\xff\xffnot a row"))
		insert(b, 1)
	})
	f := newFeed(t).walk(b)
	f.want("1[1]")
	if got, want := f.w.Counts(), [5]uint64{1, 1, 0, 1, 0}; got != want {
		t.Errorf("counts are %v, want %v", got, want)
	}
	// Where an update is fatal a partial one is, too, but not in what is undone.
	b = mysqlLog()
	for n, end := range []string{"ROLLBACK", "COMMIT"} {
		b.GTID(gtid(uint64(n+1)), 0, 0)
		b.Begin()
		b.Map(o)
		b.Rows(replication.PARTIAL_UPDATE_ROWS_EVENT, o.ID, 1, []byte("\x05\xff\xffnot a row"))
		b.Query("shop", end)
	}
	f = newFeed(t)
	f.cfg.RefusePartialUpdates = true
	f.walk(b).fails(canal.PartialUpdate, gtid(2), "shop.outbox", "PARTIAL_JSON")
}

func TestB007TaggedGTIDs(t *testing.T) {
	tagged := position.GTID{SID: sid, Tag: "mysqlsh", Seq: 70_000}
	b := mysqlLog()
	b.GTID(tagged, 1_700_000_001_234_567, 500)
	b.Begin()
	insert(b, 1)
	b.XID()
	f := newFeed(t).walk(b)
	f.want("70000[1]")
	if m := f.out[0].Commit; m.GTID != tagged || m.First != 70_000 ||
		m.Committed != time.UnixMicro(1_700_000_001_234_567).UTC() {
		t.Errorf("mark is %+v", m)
	}
}

// The tag belongs to one transaction, not to those behind it.
func TestB006UntaggedAfterTagged(t *testing.T) {
	b := mysqlLog()
	b.GTID(position.GTID{SID: sid, Tag: "app", Seq: 5}, 0, 0)
	b.Begin()
	b.XID()
	b.Transaction(gtid(1), func() {})
	f := newFeed(t).walk(b)
	p := position.Position{Set: position.NewSet(position.MySQL)}
	for _, tr := range f.out {
		p.Advance(tr.Commit)
	}
	if got, want := p.Set.String(), sid.String()+":1:app:5"; got != want {
		t.Errorf("position is %s, want %s", got, want)
	}
}

// A gap in the GTIDs is a transaction that is still to come.
func TestB008GapsStay(t *testing.T) {
	q := canal.NewQueue(1 << 20)
	for _, n := range []uint64{1, 2, 3, 5, 6, 4} {
		if err := q.Put(txn.Transaction{Commit: position.Commit{GTID: gtid(n), First: n}, Final: true}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := canal.QueueNext(q, t.Context())
	if err != nil || idsOf(got) != "1-3[] 5-6[] 4[]" {
		t.Errorf("runs are %s, %v", idsOf(got), err)
	}
}

// The server sends nothing of what the reader knows, and headers have 32 bits: behind
// a gap in a file beyond 4 GiB the place is not known, and a wrong one is not kept.
func TestB015PlaceBehindWhatWasNotSent(t *testing.T) {
	for _, c := range []struct {
		size, at uint64
		known    bool
	}{{5<<30 + 1<<20, 5 << 30, false}, {4 << 30, 3 << 30, true}, {7 << 30, 3 << 30, true}, {8 << 30, 3 << 30, false}} {
		f := newFeed(t)
		f.start()
		f.w.SetSize(c.size)
		b := canaltest.NewBinlog(position.MySQL, "binlog.000010", 4)
		b.Pos = c.at // all before it is known and not sent
		b.Transaction(gtid(7), func() { insert(b, 7) })
		end := b.Pos
		b.Rotate("binlog.000011")
		b.Transaction(gtid(8), func() { insert(b, 8) })
		f.walk(b).want("7[7] 8[8]")
		m := f.out[0].Commit
		if known := m.File == "binlog.000010" && m.Pos == end; known != c.known || !known && (m.File != "" || m.Pos != 0) {
			t.Errorf("a file of %d bytes: the commit position says %s:%d, the transaction ends at %d", c.size, m.File, m.Pos,
				end)
		}
		if m = f.out[1].Commit; m.File != "binlog.000011" || m.Pos != b.Pos {
			t.Errorf("in the next file the commit position says %s:%d, want %d", m.File, m.Pos, b.Pos)
		}
	}
}
