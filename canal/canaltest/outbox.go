package canaltest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// SID is the server_uuid of an OutboxServer.
const SID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// OutboxServer is a Server whose binlog has one file with transactions of one outbox row
// each, mostly of the table Outbox. Their numbers, and the ids and payloads of the rows, count from
// 1; they are of seven aggregates. More may be committed while it is read.
type OutboxServer struct {
	*Server

	table  Table
	binlog *Binlog
	// commits has the events of each transaction; grown is closed, and replaced, at a
	// commit. Both are guarded by Server.mu.
	commits [][][]byte
	grown   chan struct{}
}

// StartOutbox starts an OutboxServer that has so many transactions already. It ends with
// the test.
func StartOutbox(tb testing.TB, transactions int) *OutboxServer {
	tb.Helper()
	return StartTable(tb, Outbox(), transactions)
}

// StartTable does so with rows of another table that has the columns of Outbox.
func StartTable(tb testing.TB, table Table, transactions int) *OutboxServer {
	tb.Helper()
	s := &OutboxServer{
		table:  table,
		binlog: NewBinlog(position.MySQL, "binlog.000001", 4),
		grown:  make(chan struct{}),
	}
	head := slices.Clone(s.binlog.Events)
	s.Server = &Server{
		UUID:     SID,
		GTIDMode: "ON",
		LogBin:   "ON",
		Binlogs:  []string{"binlog.000001"},
		Tables:   []string{table.Name},
	}
	s.Serve = func(d Dump, to *Sender) error { return s.serve(head, d, to) }
	s.Commit(transactions)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func outboxGTID(n int) position.GTID {
	return position.GTID{SID: uuid.MustParse(SID), Seq: uint64(n)}
}

// Commit adds transactions. It may be called by any goroutine.
func (s *OutboxServer) Commit(transactions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range transactions {
		n, from := len(s.commits)+1, len(s.binlog.Events)
		s.binlog.GTID(outboxGTID(n), uint64(1_700_000_000_000_000+n), 0)
		s.binlog.Begin()
		s.binlog.Map(s.table)
		s.binlog.Insert(s.table, []any{int64(n), "order", fmt.Sprint("order-", n%7), "Created", strconv.Itoa(n)})
		s.binlog.XID()
		s.commits = append(s.commits, slices.Clone(s.binlog.Events[from:]))
	}
	if len(s.commits) > 0 {
		s.Executed = fmt.Sprintf("%s:1-%d", SID, len(s.commits))
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// serve sends what the reader has not, and then each commit as it comes.
func (s *OutboxServer) serve(head [][]byte, d Dump, to *Sender) error {
	known, err := position.ParseSet(position.MySQL, d.Set)
	if err != nil {
		return err
	}
	send := slices.Clone(head)
	for sent := 0; ; {
		s.mu.Lock()
		commits, grown := s.commits, s.grown
		s.mu.Unlock()
		for ; sent < len(commits); sent++ {
			if !known.Has(outboxGTID(sent + 1)) {
				send = append(send, commits[sent]...)
			}
		}
		for _, e := range send {
			if err := to.Event(slices.Clone(e)); err != nil {
				return err
			}
		}
		send = send[:0]
		select {
		case <-grown:
		case <-s.done:
			return nil
		}
	}
}
