package position

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Row is where one outbox row is: its transaction, and its number there. The transaction
// is one of three: a GTID; File and Pos, the binlog coordinates right after it, when the
// source gave none; or Snapshot, for a row that stood in its table at a start. It is a
// comparable value.
type Row struct {
	GTID     GTID
	File     string
	Pos      uint64
	Snapshot SnapshotRow
	// N is the number of the row among the transaction's outbox rows, from 0.
	N uint64
}

// SnapshotRow names a row that stood in its table at the start that Begun tells: by its
// number among all of them, from 1. Their order is fixed at the start, whatever is written
// later. The zero value is none.
type SnapshotRow struct{ Begun, Number uint64 }

// Row returns where row n (from 0) of m's transaction is.
func (m Commit) Row(n uint64) Row {
	switch in := m.Snapshot; {
	case in != nil:
		return Row{Snapshot: SnapshotRow{in.Begun, in.Rows}, N: n}
	case m.GTID.IsZero():
		return Row{File: m.File, Pos: m.Pos, N: n}
	default:
		return Row{GTID: m.GTID, N: n}
	}
}

// IsSnapshot reports a row that stood in its table at the start.
func (r Row) IsSnapshot() bool { return r.Snapshot != SnapshotRow{} }

// snapshotText begins the text of a row from before a start, in a transaction's place.
const snapshotText = "snapshot:"

// TransactionID is the transaction as text: its GTID, file:pos, or snapshot:begun:number.
func (r Row) TransactionID() string {
	switch {
	case r.IsSnapshot():
		return fmt.Sprintf("%s%d:%d", snapshotText, r.Snapshot.Begun, r.Snapshot.Number)
	case r.GTID.IsZero():
		return r.File + ":" + strconv.FormatUint(r.Pos, 10)
	default:
		return r.GTID.String()
	}
}

// String is the transaction and, after a "#", the number of the row from 1, as
// people and headers count: "3e11fa47-71ca-11e1-9e33-c80aa9429562:23#2".
func (r Row) String() string { return r.TransactionID() + "#" + strconv.FormatUint(r.N+1, 10) }

// ParseRow reads the text that String writes.
func ParseRow(s string) (Row, error) {
	tx, number, ok := strings.Cut(s, "#")
	if !ok {
		return Row{}, fmt.Errorf("parsing row %q: want a transaction, # and the number of its outbox row, from 1", s)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 {
		return Row{}, fmt.Errorf("parsing row %q: rows of a transaction are numbered from 1", s)
	}
	return RowOf(tx, n-1)
}

// RowOf returns row n (from 0) of the transaction that Place has written as tx.
func RowOf(tx string, n uint64) (Row, error) {
	if g, err := ParseGTID(tx); err == nil && !g.IsZero() {
		return Row{GTID: g, N: n}, nil
	}
	if text, ok := strings.CutPrefix(tx, snapshotText); ok {
		begun, number, _ := strings.Cut(text, ":")
		in := SnapshotRow{}
		var err1, err2 error
		in.Begun, err1 = strconv.ParseUint(begun, 10, 64)
		in.Number, err2 = strconv.ParseUint(number, 10, 64)
		if err := errors.Join(err1, err2); err != nil || in.Number == 0 {
			return Row{}, fmt.Errorf("parsing transaction %q: want snapshot:begun:number, both as the connector says them", tx)
		}
		return Row{Snapshot: in, N: n}, nil
	}
	cut := strings.LastIndexByte(tx, ':')
	if cut <= 0 {
		return Row{}, fmt.Errorf("parsing transaction %q: want a GTID, or file:pos of its end", tx)
	}
	pos, err := strconv.ParseUint(tx[cut+1:], 10, 64)
	if err != nil {
		return Row{}, fmt.Errorf("parsing transaction %q: want a GTID, or file:pos of its end", tx)
	}
	if _, _, err := splitFile(tx[:cut]); err != nil {
		return Row{}, fmt.Errorf("parsing transaction %q: want a GTID, or file:pos of its end: %w", tx, err)
	}
	return Row{File: tx[:cut], Pos: pos, N: n}, nil
}

// CoversRow reports whether row r is published at p, or was passed over. Without a
// GTID that can be told of the binlogs of one server only; elsewhere it is false, and
// so it is of the rows of a transaction that is published in part.
func (p Position) CoversRow(r Row) bool {
	if r.IsSnapshot() {
		in := p.Snapshot
		return in == nil || in.Begun > r.Snapshot.Begun || in.Begun == r.Snapshot.Begun && in.Rows >= r.Snapshot.Number
	}
	if !r.GTID.IsZero() {
		return p.Set != nil && p.Set.Has(r.GTID)
	}
	if p.Set != nil || p.File == "" {
		return false
	}
	c, err := CompareFiles(p.File, r.File)
	return err == nil && (c > 0 || c == 0 && p.Pos >= r.Pos)
}
