package connector

import (
	"slices"
	"strconv"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// The headers by which a consumer can drop a repetition. A record that comes again
// after a crash has the same seq; per partition, what is not above the highest seq
// seen is a repetition. A row that is skipped or dead-lettered has its seq as any other: its dead
// letter carries it, and one that is skipped leaves a gap. Where an operator has set
// the position it goes on position.SeqGap further.
const (
	HeaderGTID    = "__binlog_outbox.gtid"    // of the transaction; empty without GTIDs
	HeaderOrdinal = "__binlog_outbox.ordinal" // of the row among the transaction's outbox rows, from 1
	HeaderSeq     = "__binlog_outbox.seq"     // of the row in the connector's life, from 1
	HeaderTerm    = "__binlog_outbox.term"    // of the leader that sent it
)

// sequence numbers records. A nil *sequence does nothing.
type sequence struct {
	seq  uint64 // of the last record
	term []byte

	gtid position.GTID
	text []byte // of gtid
}

func newSequence(from position.Position, term uint64) *sequence {
	return &sequence{seq: from.Seq, term: strconv.AppendUint(nil, term, 10)}
}

// skip counts a row that has no record.
func (s *sequence) skip() {
	if s != nil {
		s.seq++
	}
}

// add appends the headers to rec, whose own stay as they are.
func (s *sequence) add(rec *txn.Record, gtid position.GTID, row uint64) {
	if s == nil {
		return
	}
	s.seq++
	if gtid != s.gtid {
		s.gtid, s.text = gtid, []byte(gtid.String())
	}
	rec.Headers = append(slices.Clip(rec.Headers),
		txn.Header{Key: HeaderGTID, Value: s.text},
		txn.Header{Key: HeaderOrdinal, Value: strconv.AppendUint(nil, row+1, 10)},
		txn.Header{Key: HeaderSeq, Value: strconv.AppendUint(nil, s.seq, 10)},
		txn.Header{Key: HeaderTerm, Value: s.term},
	)
}
