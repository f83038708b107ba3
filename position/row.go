package position

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is where one outbox row is: its transaction, and its number there. It is a
// comparable value.
type Row struct {
	// GTID of the transaction. When the source gave none, File and Pos are the
	// binlog coordinates right after the transaction; else they are empty.
	GTID GTID
	File string
	Pos  uint64
	// N is the number of the row among the transaction's outbox rows, from 0.
	N uint64
}

// initialFile is the base name that the rows from before a start have instead of a
// binlog's. The number is that of the start, and the offset that of the row: their
// order is fixed at the start, whatever is written later.
const initialFile = "initial-rows"

// Row returns where row n (from 0) of m's transaction is.
func (m Mark) Row(n uint64) Row {
	if in := m.Initial; in != nil {
		return Row{File: initialFile + "." + strconv.FormatUint(in.Begun, 10), Pos: in.Rows, N: n}
	}
	if m.GTID.IsZero() {
		return Row{File: m.File, Pos: m.Pos, N: n}
	}
	return Row{GTID: m.GTID, N: n}
}

// IsInitial reports a row that stood in its table at the start.
func (r Row) IsInitial() bool { return strings.HasPrefix(r.File, initialFile+".") }

// Place is the transaction as text: its GTID, or file:pos.
func (r Row) Place() string {
	if r.GTID.IsZero() {
		return r.File + ":" + strconv.FormatUint(r.Pos, 10)
	}
	return r.GTID.String()
}

// String is the transaction and, after a "#", the number of the row from 1, as
// people and headers count: "3e11fa47-71ca-11e1-9e33-c80aa9429562:23#2".
func (r Row) String() string { return r.Place() + "#" + strconv.FormatUint(r.N+1, 10) }

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
	if r.IsInitial() {
		begun := FileNumber(r.File)
		return p.Initial == nil || p.Initial.Begun > begun || p.Initial.Begun == begun && p.Initial.Rows >= r.Pos
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
