package canal

import (
	"errors"
	"math/bits"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Errors of the row walk; they never hold data.
var (
	errShortRow   = errors.New("a row ends early")
	errWireType   = errors.New("a column has a type that is not supported")
	errNoColumns  = errors.New("the row image holds no columns")
	errColumnSize = errors.New("a column has impossible metadata")
)

// rowsHead is the fixed part of a rows event.
type rowsHead struct {
	flags   uint16
	columns uint64
	present []byte // bitmap of the columns in the (first) image
	after   []byte // bitmap of the after image of an update, nil otherwise
	prefix  int    // bytes of the body before the first row
	deleted bool   // the rows are gone
}

func isVersion2(kind replication.EventType) bool {
	switch kind {
	case replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2,
		replication.PARTIAL_UPDATE_ROWS_EVENT:
		return true
	}
	return false
}

// isUpdate reports an event of pairs of whole images. Partial updates are none.
func isUpdate(kind replication.EventType) bool {
	switch kind {
	case replication.UPDATE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2,
		replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1:
		return true
	}
	return false
}

// isDelete reports an event of deleted rows.
func isDelete(kind replication.EventType) bool {
	switch kind {
	case replication.DELETE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return true
	}
	return false
}

// parseRowsHead reads the head of a rows event of whole images.
func parseRowsHead(kind replication.EventType, body []byte, idSize int) (rowsHead, error) {
	r := reader{b: body}
	r.take(idSize)
	h := rowsHead{flags: uint16(r.uint(2)), deleted: isDelete(kind)}
	if isVersion2(kind) {
		extra := int(r.uint(2)) // counts itself
		if extra < 2 {
			r.bad = true
		}
		r.take(extra - 2)
	}
	h.columns = r.lenenc()
	if h.columns > 1<<16 {
		r.bad = true
	}
	h.present = r.take(int(h.columns+7) / 8)
	if isUpdate(kind) {
		h.after = r.take(int(h.columns+7) / 8)
	}
	h.prefix = len(body) - len(r.b)
	if r.bad {
		return h, errShortRow
	}
	return h, nil
}

// countPresent is the number of columns that the image holds.
func (h *rowsHead) countPresent() int {
	n := 0
	for i, b := range h.present {
		if rest := int(h.columns) - 8*i; rest < 8 {
			b &= 1<<rest - 1
		}
		n += bits.OnesCount8(b)
	}
	return n
}

// afterImage is the head as it holds for the second image of an update.
func (h *rowsHead) afterImage() rowsHead {
	second := *h
	second.present = h.after
	return second
}

func (h *rowsHead) has(i int) bool { return h.present[i/8]&(1<<(i%8)) != 0 }

// imageLen measures one row image at the start of data. It is what stands
// between the bytes of a server and go-mysql's decoder, which trusts them.
func imageLen(data []byte, types []byte, metas []uint16, h *rowsHead, presentCount int) (int, error) {
	nulls := (presentCount + 7) / 8
	if len(data) < nulls {
		return 0, errShortRow
	}
	nullBits, pos, at := data[:nulls], nulls, 0
	for i := range types {
		if !h.has(i) {
			continue
		}
		null := nullBits[at/8]&(1<<(at%8)) != 0
		at++
		if null {
			continue
		}
		n, err := valueLen(data[pos:], types[i], metas[i])
		if err != nil {
			return 0, err
		}
		if n > len(data)-pos {
			return 0, errShortRow
		}
		pos += n
	}
	return pos, nil
}

// valueLen is the number of bytes of one value (sql/log_event.cc of MySQL,
// calc_field_size).
func valueLen(data []byte, t byte, meta uint16) (int, error) {
	switch t {
	case mysql.MYSQL_TYPE_NULL:
		return 0, nil
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_YEAR:
		return 1, nil
	case mysql.MYSQL_TYPE_SHORT:
		return 2, nil
	case mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_TIME:
		return 3, nil
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_TIMESTAMP:
		return 4, nil
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_DATETIME:
		return 8, nil
	case mysql.MYSQL_TYPE_TIMESTAMP2, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIME2:
		return temporalLen(t, meta)
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return decimalLen(int(meta>>8), int(meta&0xff))
	case mysql.MYSQL_TYPE_BIT:
		n := int(meta>>8)*8 + int(meta&0xff)
		if n > 64 {
			return 0, errColumnSize
		}
		return (n + 7) / 8, nil
	case mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET:
		return elementsLen(t, meta)
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING:
		return prefixed(data, stringPrefix(int(meta)))
	case mysql.MYSQL_TYPE_STRING:
		return stringLen(data, meta)
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR, mysql.MYSQL_TYPE_JSON:
		if meta < 1 || meta > 4 {
			return 0, errColumnSize
		}
		return prefixed(data, int(meta))
	}
	return 0, errWireType
}

func stringPrefix(maxBytes int) int {
	if maxBytes > 255 {
		return 2
	}
	return 1
}

func prefixed(data []byte, prefix int) (int, error) {
	r := reader{b: data}
	n := int(r.uint(prefix))
	if r.bad {
		return 0, errShortRow
	}
	return prefix + n, nil
}

// stringLen: CHAR, BINARY, ENUM and SET share the type; the metadata's high byte
// tells which, with two bits of a CHAR's length folded into it.
func stringLen(data []byte, meta uint16) (int, error) {
	hi := byte(meta >> 8)
	if meta < 256 {
		return prefixed(data, 1)
	}
	if hi&0x30 != 0x30 {
		return prefixed(data, stringPrefix(int(meta&0xff)|int((hi&0x30)^0x30)<<4))
	}
	switch hi {
	case mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET:
		return elementsLen(hi, meta)
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR:
		return prefixed(data, 1)
	}
	return 0, errWireType
}

func elementsLen(t byte, meta uint16) (int, error) {
	n := int(meta & 0xff)
	if n < 1 || n > 8 || t == mysql.MYSQL_TYPE_ENUM && n > 2 {
		return 0, errColumnSize
	}
	return n, nil
}

func temporalLen(t byte, meta uint16) (int, error) {
	if meta > 6 {
		return 0, errColumnSize
	}
	n := int(meta+1) / 2
	switch t {
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		return 4 + n, nil
	case mysql.MYSQL_TYPE_DATETIME2:
		return 5 + n, nil
	}
	return 3 + n, nil
}

// decimalLen: groups of nine digits take four bytes, the rest what they need.
func decimalLen(precision, scale int) (int, error) {
	left := [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}
	if precision < scale || precision < 1 || precision > 65 {
		return 0, errColumnSize
	}
	whole := precision - scale
	return whole/9*4 + left[whole%9] + scale/9*4 + left[scale%9], nil
}
