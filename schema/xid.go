package schema

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// FormatXID writes an XA transaction id as Statement.Name has it, for the binary
// form that an XA PREPARE event holds.
func FormatXID(format int32, gtrid, bqual []byte) string {
	return fmt.Sprintf("X'%x',X'%x',%d", gtrid, bqual, format)
}

// xa reads the verb and the id of an XA statement.
func (s *scanner) xa() {
	verb := s.cur
	s.advance()
	switch {
	case verb.isAny("START", "BEGIN"):
		s.out.Kind = XAStart
	case verb.is("END"):
		s.out.Kind = XAEnd
	case verb.is("PREPARE"):
		s.out.Kind = XAPrepare
	case verb.is("COMMIT"):
		s.out.Kind = XACommit
	case verb.is("ROLLBACK"):
		s.out.Kind = XARollback
	default:
		return // XA RECOVER
	}
	s.out.Name = s.xid()
	if s.out.Kind == XACommit && s.accept("ONE") && s.accept("PHASE") {
		s.out.Kind = XACommitOnePhase
	}
}

// xid reads gtrid [, bqual [, format]]; the server fills in an empty bqual and
// the format 1.
func (s *scanner) xid() string {
	gtrid := s.bytes()
	bqual, format := []byte(nil), int64(1)
	if s.cur.isPunct(',') {
		s.advance()
		bqual = s.bytes()
		if s.cur.isPunct(',') {
			s.advance()
			format, _ = strconv.ParseInt(string(s.cur.text), 0, 64)
			s.advance()
		}
	}
	return FormatXID(int32(format), gtrid, bqual)
}

// bytes reads a text or hexadecimal literal.
func (s *scanner) bytes() []byte {
	t := string(s.cur.text)
	kind := s.cur.kind
	s.advance()
	switch kind {
	case tokenText:
		text, _, _ := unquote(t)
		return []byte(text)
	case tokenHex:
		t = strings.Trim(t[2:], "'")
		if len(t)%2 != 0 {
			t = "0" + t
		}
		b, _ := hex.DecodeString(t)
		return b
	}
	return nil
}
