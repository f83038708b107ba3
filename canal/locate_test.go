package canal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// winding is a transaction with all that counts: what stands behind each event is its
// number.
func winding(b *canaltest.Binlog) {
	b.Begin()                                                    // 0
	foreignRows(b)                                               // 1, 2
	b.Map(canaltest.Outbox())                                    // 3
	b.Insert(canaltest.Outbox(), row(1), row(2), row(3))         // 4
	b.Query("shop", "SAVEPOINT s")                               // 5
	b.Map(canaltest.Outbox())                                    // 6
	b.Insert(canaltest.Outbox(), row(4), row(5))                 // 7
	b.Query("shop", "ROLLBACK TO SAVEPOINT s")                   // 8
	b.Raw(replication.ROWS_QUERY_EVENT, 0, []byte("\x06INSERT")) // 9
	b.Map(canaltest.Outbox())                                    // 10
	b.Insert(canaltest.Outbox(), row(6), row(7))                 // 11
	b.XID()                                                      // 12
}

// seek looks for a place in events, behind nothing.
func seek(t *testing.T, f *feed, b *canaltest.Binlog, at canal.BinlogOffset) (found string, err error) {
	t.Helper()
	f.start()
	var ids []string
	end := f.from
	end.Set, end.File, end.Pos = nil, "binlog.000099", 4
	if f.from.Set != nil {
		end.Set = position.NewSet(f.flavor)
		end.Set.Add(gtid(99))
		if f.flavor == position.MariaDB {
			end.Set = position.NewSet(f.flavor)
			end.Set.Add(maria(99))
		}
	}
	tally := f.w.Seek(at, f.from, end, func(r *schema.Row) { ids = append(ids, fmt.Sprint(r.After[0])) })
	if f.walk(b); f.err == nil {
		return "", nil
	}
	out, ok := tally.Located()
	if !ok {
		return "", f.err
	}
	found = out.Before.String()
	if out.Within != nil {
		found = fmt.Sprintf("%s within %s %v", found, position.Row{GTID: out.Within.Commit.GTID,
			File: out.Within.Commit.File}.TransactionID(), ids)
		if out.Within.More {
			found += " more"
		}
		if out.Within.Prepared {
			found += " prepared"
		}
	}
	return strings.ReplaceAll(found, sid.String()+":", ""), nil
}

// TestLocateCountsAsDebezium: every event of a transaction counts, from BEGIN on, whatever
// it is of; rows that are rolled back are none.
func TestLocateCountsAsDebezium(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		for _, test := range []struct {
			event, row uint64
			want       string
		}{
			{2, 1, "[] more"}, // a row of a foreign table is done
			{3, 0, "[] more"}, // a heartbeat after the table map
			{4, 1, "[1] more"},
			{4, 2, "[1 2] more"},
			{4, 3, "[1 2 3] more"},
			{4, 0, "[1 2 3] more"}, // a heartbeat after the rows: they are done
			{5, 0, "[1 2 3] more"},
			{7, 1, "[1 2 3] more"}, // row 4 was sent, and rolled back: it is none of ours
			{7, 2, "[1 2 3] more"},
			{9, 0, "[1 2 3] more"},
			{11, 1, "[1 2 3 6] more"},
			{11, 2, "[1 2 3 6 7]"},
			{12, 0, "[1 2 3 6 7]"}, // at the commit
		} {
			b := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4)
			b.GTID(gtid(1), 0, 0)
			b.Query("shop", "CREATE TABLE t (a INT)")
			b.GTID(gtid(2), uint64(b.Seconds)*1e6+77, 0)
			at := canal.BinlogOffset{Set: position.NewSet(position.MySQL), File: "binlog.000001", Pos: b.Pos, Events: test.event,
				Rows: test.row, Second: int64(b.Seconds)}
			if compressed {
				b.Compressed(winding)
			} else {
				winding(b)
			}
			f := newFeed(t)
			got, err := seek(t, f, b, at)
			want := fmt.Sprintf("1 within %s %s", "2", test.want)
			if err != nil || got != want {
				t.Errorf("compressed %t, event %d row %d: %s, %v; want %s", compressed, test.event, test.row, got, err, want)
			}
		}
	}
}

// TestLocate: what else a place may be.
func TestLocate(t *testing.T) {
	const file = "binlog.000001"
	log := func() *canaltest.Binlog { return canaltest.NewBinlog(position.MySQL, file, 4) }
	one := func(b *canaltest.Binlog, n int) func() {
		return func() { b.Map(canaltest.Outbox()); b.Insert(canaltest.Outbox(), row(n)) }
	}
	var start uint64 // of what is looked for
	second := func(b *canaltest.Binlog) int64 { return int64(b.Seconds) }
	for name, test := range map[string]struct {
		byFile bool
		build  func(b *canaltest.Binlog) canal.BinlogOffset
		want   string // or a part of the error
	}{
		"at the end of a transaction by file": {true, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			at.Pos, start = b.Pos, b.Pos
			b.Transaction(gtid(2), one(b, 2))
			return at
		}, file + ":%d"},
		"behind a GTID event": {true, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			start = b.Pos
			b.GTID(gtid(2), 1, 0)
			at.Pos = b.Pos
			b.Begin()
			b.XID()
			return at
		}, file + ":%d"},
		"inside, by file": {true, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			start = b.Pos
			b.GTID(gtid(2), uint64(b.Seconds)*1e6, 0)
			at = canal.BinlogOffset{Pos: b.Pos, Events: 2, Rows: 1, Second: second(b)}
			b.Begin()
			one(b, 2)()
			b.XID()
			return at
		}, file + ":%d within " + sid.String() + ":2 [2]"},
		"where no event ends": {true, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			at.Pos = b.Pos + 7
			b.Transaction(gtid(2), one(b, 2))
			return at
		}, "no event of binlog binlog.000001 ends at"},
		"at the end of all, by file": {true, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			b.GTID(gtid(2), 1, 0)
			b.Query("", "FLUSH LOGS")
			start = b.Pos
			b.Rotate("binlog.000002")
			b.Heartbeat("binlog.000002")
			b.Heartbeat("binlog.000002")
			return canal.BinlogOffset{File: "binlog.000002", Pos: 4}
		}, file + ":%d"},
		"an XA transaction that was sent when it was prepared": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.GTID(gtid(1), uint64(b.Seconds)*1e6, 0)
			b.Query("", "XA START 'a'")
			one(b, 1)()
			at = canal.BinlogOffset{Pos: b.Pos, Rows: 1, Second: second(b)}
			b.Query("", "XA END 'a'")
			b.XAPrepare(false)
			return at
		}, "an empty GTID set (binlog.000001:4) within " + sid.String() + ":1 [1] prepared"},
		"an XA transaction of another server": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.GTID(gtid(1), uint64(b.Seconds)*1e6, 0)
			b.Query("", "XA START 'a'")
			one(b, 1)()
			at = canal.BinlogOffset{File: "other.000001", Pos: b.Pos, Rows: 1, Second: second(b)}
			b.Query("", "XA END 'a'")
			b.XAPrepare(false)
			return at
		}, "it is an XA transaction"},
		"rolled back": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.GTID(gtid(1), uint64(b.Seconds)*1e6, 0)
			at = canal.BinlogOffset{Pos: b.Pos, Events: 2, Rows: 1, Second: second(b)}
			b.Begin()
			one(b, 1)()
			b.Query("", "ROLLBACK")
			return at
		}, "an empty GTID set (binlog.000001:4) within " + sid.String() + ":1 []"},
		"another transaction by its time": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			return canal.BinlogOffset{Events: 2, Rows: 1, Second: second(b) - 1}
		}, "it was committed at another time"},
		"another transaction by its events": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			return canal.BinlogOffset{Events: 4, Rows: 1}
		}, "it has fewer events"},
		"fewer rows": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			return canal.BinlogOffset{Events: 2, Rows: 2, Second: second(b)}
		}, "has fewer"},
		"a heartbeat inside of another transaction": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Transaction(gtid(1), one(b, 1))
			return canal.BinlogOffset{File: file, Pos: 9999, Events: 2}
		}, "it begins elsewhere"},
		"counted from the middle": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.GTID(gtid(1), uint64(b.Seconds)*1e6, 0)
			b.Begin()
			one(b, 1)()
			at = canal.BinlogOffset{File: file, Pos: b.Pos, Events: 2, Rows: 1, Second: second(b)}
			one(b, 2)()
			b.XID()
			return at
		}, "binlog.buffer.size"},
		"nothing comes any more": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Heartbeat(file)
			b.Heartbeat(file)
			return canal.BinlogOffset{Events: 2, Rows: 1}
		}, "the server has none after that"},
		"heartbeats for what is passed over": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.Raw(replication.HEARTBEAT_EVENT, 0, []byte(file)) // each has a place of its own
			b.Raw(replication.HEARTBEAT_EVENT, 0, []byte(file))
			b.Transaction(gtid(1), one(b, 1))
			return canal.BinlogOffset{Events: 2, Rows: 1, Second: second(b)}
		}, "an empty GTID set (binlog.000001:4) within " + sid.String() + ":1 [1]"},
		"the last that there is": {false, func(b *canaltest.Binlog) (at canal.BinlogOffset) {
			b.GTID(gtid(99), 1, 0)
			b.Query("shop", "CREATE TABLE t (a INT)")
			return canal.BinlogOffset{Events: 2, Rows: 1}
		}, "the server has none after that"},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := newFeed(t), log()
			at := test.build(b)
			if at.File == "" {
				at.File = file
			}
			if test.byFile {
				f.from.Set = nil
			} else {
				at.Set = position.NewSet(position.MySQL)
			}
			got, err := seek(t, f, b, at)
			want := strings.ReplaceAll(strings.ReplaceAll(test.want, "%d", fmt.Sprint(start)), sid.String()+":", "")
			if err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		})
	}
}

// TestLocateMariaDB: the GTID event is the BEGIN. Rows of log_bin_compress are none that
// Debezium reads.
func TestLocateMariaDB(t *testing.T) {
	for _, test := range []struct {
		event, row uint64
		want       string
	}{
		{2, 1, "0-1-1 within 0-1-2 [1] more"},
		{4, 1, "0-1-1 within 0-1-2 [1 3] more"},
		{5, 0, "0-1-1 within 0-1-2 [1 3] more"},
	} {
		f := newFeed(t)
		f.flavor, f.from.Set = position.MariaDB, position.NewSet(position.MariaDB)
		b := canaltest.NewBinlog(position.MariaDB, "binlog.000001", 4)
		b.MariaGTID(maria(1), 1)
		b.Query("shop", "CREATE TABLE t (a INT)")
		at := canal.BinlogOffset{Set: f.from.Set, File: "binlog.000001", Pos: b.Pos, Events: test.event, Rows: test.row,
			Second: int64(b.Seconds)}
		b.GTID(maria(2), 0, 0)
		b.Map(canaltest.Outbox())                      // 1
		b.Insert(canaltest.Outbox(), row(1))           // 2
		b.Map(canaltest.Outbox())                      // 3
		b.Insert(canaltest.Outbox(), row(3))           // 4
		b.Map(canaltest.Outbox())                      // 5
		b.InsertCompressed(canaltest.Outbox(), row(2)) // 6
		b.XID()
		got, err := seek(t, f, b, at)
		if err != nil || got != test.want {
			t.Errorf("event %d row %d: %s, %v; want %s", test.event, test.row, got, err, test.want)
		}
	}
}
