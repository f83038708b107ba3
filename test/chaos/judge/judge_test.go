package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

var (
	sid   = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")
	start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func set(text string) *position.Set {
	s, err := position.ParseSet(position.MySQL, sid.String()+":"+text)
	if err != nil {
		panic(err)
	}
	return s
}

// keys 0 and 1 are in different partitions of two.
func keysOf(t *testing.T) (even, odd int32) {
	t.Helper()
	for k := int32(0); ; k++ {
		if history.PartitionOf([]byte(history.Key(k)), 2) == 0 {
			even = k
			break
		}
	}
	for k := int32(0); ; k++ {
		if history.PartitionOf([]byte(history.Key(k)), 2) == 1 {
			return even, k
		}
	}
}

// good is a run of five transactions of the source, one of them foreign, in three
// transactions of Kafka, by two writers, with an aborted one in between.
func good(t *testing.T) *Evidence {
	t.Helper()
	even, odd := keysOf(t)
	txn := func(id uint64, keys ...int32) *history.Txn {
		return &history.Txn{ID: id, Keys: keys, Rows: uint32(len(keys)), Outcome: history.Committed}
	}
	row := func(txn uint64, n uint32) history.Row { return history.Row{Txn: txn, Number: n} }
	data := func(offset int64, epoch int16, r history.Row) Entry {
		return Entry{Offset: offset, Producer: 7, Epoch: epoch, Row: r}
	}
	end := func(offset int64, epoch int16, commit bool) Entry {
		return Entry{Offset: offset, Producer: 7, Epoch: epoch, Control: true, Commit: commit}
	}
	mark := func(offset int64, epoch int16, seconds int, m Mark) Entry {
		return Entry{Offset: offset, Producer: 7, Epoch: epoch, Mark: &m, Time: at(seconds)}
	}
	e := &Evidence{
		Journal: map[uint64]*history.Txn{1: txn(1, even), 2: txn(2, odd, even), 3: txn(3, odd), 4: txn(4, even)},
		Binlog: []Commit{
			{position.GTID{SID: sid, Seq: 1}, 1}, {position.GTID{SID: sid, Seq: 2}, 2}, {position.GTID{SID: sid, Seq: 3}, 0},
			{position.GTID{SID: sid, Seq: 4}, 3}, {position.GTID{SID: sid, Seq: 5}, 4},
		},
		Executed: set("1-5"),
		Data: [][]Entry{
			{data(0, 1, row(1, 1)), data(1, 1, row(2, 2)), end(2, 1, true), end(5, 1, false), data(6, 2, row(4, 1)),
				end(7, 2, true)},
			{data(0, 1, row(2, 1)), end(1, 1, true), data(2, 2, row(3, 1)), end(3, 2, true)},
		},
		Positions: []Entry{
			mark(0, 1, 0, Mark{Open: true}), end(1, 1, true),
			mark(2, 1, 10, Mark{Set: set("1-2"), Seq: 3}), end(3, 1, true),
			mark(4, 2, 20, Mark{Open: true}), end(5, 2, true),
			mark(6, 2, 30, Mark{Set: set("1-4"), Seq: 4}), end(7, 2, true),
			mark(8, 2, 40, Mark{Set: set("1-5"), Seq: 5}), end(9, 2, true),
		},
		Samples: []Sample{
			{"a", 1, at(11), set("1-2")}, {"b", 1, at(12), nil}, {"b", 1, at(31), set("1-4")}, {"a", 2, at(31), set("1-2")},
			{"a", 2, at(41), set("1-5")},
		},
		Final:     map[string]*position.Set{"a": set("1-5"), "b": set("1-5")},
		Ends:      []Ends{{"t", 0, 8, 8}, {"p", 0, 10, 10}},
		Processes: []Process{{"a", Usage{40, 20, 30 << 20}, Usage{45, 22, 60 << 20}}},
	}
	e.Live = [][]Entry{{e.Data[0][0], e.Data[0][1], e.Data[0][4]}, {e.Data[1][0], e.Data[1][2], e.Data[1][0]}}
	return e
}

func TestGoodRun(t *testing.T) {
	if err := Validate(good(t)); err != nil {
		t.Fatal(err)
	}
}

// A transaction of the source above the limit is published in parts.
func TestSplitTransaction(t *testing.T) {
	e := good(t)
	part := Entry{Offset: 1, Producer: 7, Epoch: 1, Mark: &Mark{Set: set("1"), Seq: 2, Partial: true}, Time: at(9)}
	e.Positions = slices.Insert(e.Positions, 2, part)
	// The rows of transactions 1 and 2 are cut behind the first.
	e.Data[0] = slices.Insert(e.Data[0], 1, Entry{Offset: 0, Producer: 7, Epoch: 1, Control: true, Commit: true})
	if err := Validate(e); err != nil {
		t.Error(err)
	}
}

func TestBadRuns(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Evidence)
		want  error
		words string
	}{
		{"a position without one of its rows", func(e *Evidence) { e.Data[0] = slices.Delete(e.Data[0], 1, 2) },
			ErrOneTransaction, "2 rows from row 1 of transaction 1"},
		{"a position without any of its rows", func(e *Evidence) { e.Data[1] = e.Data[1][:2] }, ErrOneTransaction,
			"has no rows"},
		{"a row that its position does not cover",
			func(e *Evidence) { e.Positions = e.Positions[:8]; e.Executed = set("1-4") }, ErrOneTransaction, "no position"},
		{"rows and position in two transactions", func(e *Evidence) {
			e.Data[0] = slices.Insert(e.Data[0], 1, Entry{Offset: 0, Producer: 7, Epoch: 1, Control: true, Commit: true})
		}, ErrOneTransaction, "covers 2 rows"},
		{"a transaction of the source torn over two of Kafka", func(e *Evidence) {
			e.Positions = slices.Insert(e.Positions, 2, Entry{Offset: 1, Producer: 7, Epoch: 1,
				Mark: &Mark{Set: set("1"), Seq: 1}, Time: at(5)})
		}, ErrOneTransaction, "covers row 1 of transaction 1"},
		{"rows of another writer", func(e *Evidence) {
			e.Data[1][2].Epoch, e.Data[1][3].Epoch = 3, 3
		}, ErrOneTransaction, "epoch 3"},
		{"rows in another order", func(e *Evidence) {
			e.Data[0][0].Row, e.Data[0][1].Row = e.Data[0][1].Row, e.Data[0][0].Row
			e.Live = nil
		}, ErrOneTransaction, "covers 2 rows"},
		{"a record twice", func(e *Evidence) { e.Data[0] = slices.Insert(e.Data[0], 1, e.Data[0][0]) }, ErrOneTransaction,
			"covers 2 rows"},
		{"a position goes back", func(e *Evidence) { e.Positions[8].Mark.Set = set("1-3:5") }, ErrPositionsGrow, "lacks"},
		{"a count goes back", func(e *Evidence) { e.Positions[8].Mark.Seq = 3 }, ErrPositionsGrow, "counts 3 rows"},
		{"a position that rots", func(e *Evidence) { e.Executed = set("1-7") }, ErrPositionWhole, ":6-7"},
		{"no position", func(e *Evidence) { e.Positions = nil }, ErrPositionWhole, "no position at all"},
		{"a node's position goes back", func(e *Evidence) { e.Samples[4].Set = set("1") }, ErrReplicated, "process 2"},
		{"a node is ahead of Kafka", func(e *Evidence) { e.Samples[0].Set = set("1-3") }, ErrReplicated, "it lacks"},
		{"a node differs in the end", func(e *Evidence) { e.Final["b"] = set("1-4") }, ErrAgree, "node b"},
		{"a node has nothing in the end", func(e *Evidence) { e.Final["b"] = nil }, ErrAgree, "node b"},
		{"an open transaction", func(e *Evidence) { e.Ends[1].Stable = 7 }, ErrNothingOpen, "open at offset 7"},
		{"a consumer saw what is not there", func(e *Evidence) { e.Data[0] = slices.Delete(e.Data[0], 1, 2) }, ErrLive,
			"holds nothing"},
		{"a consumer saw another row", func(e *Evidence) { e.Live[0][1].Row.Number = 9 }, ErrLive, "row 9"},
		{"a consumer was not given a record", func(e *Evidence) { e.Live[0] = slices.Delete(e.Live[0], 1, 2) }, ErrLive,
			"never given offset 1"},
		{"goroutines leak", func(e *Evidence) { e.Processes[0].After.Goroutines = 100 }, ErrAtRest, "100 goroutines"},
		{"files leak", func(e *Evidence) { e.Processes[0].After.Files = 100 }, ErrAtRest, "100 files"},
		{"memory leaks", func(e *Evidence) { e.Processes[0].After.RSS = 1 << 30 }, ErrAtRest, "bytes of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := good(t)
			c.spoil(e)
			err := Validate(e)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.words) {
				t.Errorf("Validate: %v\nwant %v\nwith %q", err, c.want, c.words)
			}
		})
	}
}
