package canal

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// isDirect reports a type whose values are read here and not by go-mysql: integers,
// texts and blobs, all that an outbox table usually has.
func isDirect(t byte, meta uint16) bool {
	switch t {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG,
		mysql.MYSQL_TYPE_LONGLONG,
		mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_JSON:
		return true
	case mysql.MYSQL_TYPE_STRING:
		// ENUM and SET hide behind this type, see stringLen.
		hi := byte(meta >> 8)
		return meta < 256 || hi&0x30 != 0x30 || hi == mysql.MYSQL_TYPE_STRING
	}
	return false
}

// areDirect reports whether all columns that are wanted are direct.
func (sh *tableVersion) areDirect() bool {
	for i, t := range sh.types {
		if (sh.want == nil || sh.want[i]) && !isDirect(t, sh.metas[i]) {
			return false
		}
	}
	return true
}

// directValue is what go-mysql makes of the bytes of one value, as many as valueLen
// says. Texts and blobs share their memory.
func directValue(data []byte, t byte, meta uint16) any {
	switch t {
	case mysql.MYSQL_TYPE_TINY:
		return int8(data[0])
	case mysql.MYSQL_TYPE_SHORT:
		return int16(binary.LittleEndian.Uint16(data))
	case mysql.MYSQL_TYPE_INT24:
		return int32(uint32(data[0])<<8|uint32(data[1])<<16|uint32(data[2])<<24) >> 8
	case mysql.MYSQL_TYPE_LONG:
		return int32(binary.LittleEndian.Uint32(data))
	case mysql.MYSQL_TYPE_LONGLONG:
		return int64(binary.LittleEndian.Uint64(data))
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_JSON:
		return data[meta:len(data):len(data)]
	}
	prefix := 1
	switch {
	case t != mysql.MYSQL_TYPE_STRING:
		prefix = stringPrefix(int(meta))
	case meta >= 256 && byte(meta>>8)&0x30 != 0x30:
		prefix = stringPrefix(int(meta&0xff) | int((byte(meta>>8)&0x30)^0x30)<<4)
	}
	text := data[prefix:]
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// direct decodes the rows of an event, in images of one or two a row, whose wanted
// columns are all direct. The rows keep body.
func (sh *tableVersion) direct(body []byte, images []rowsHead, f func(schema.Row) error) error {
	for data := body[images[0].prefix:]; len(data) > 0; {
		var values [2][]any
		for i := range images {
			values[i] = make([]any, len(sh.types))
			n, err := sh.directImage(data, &images[i], values[i])
			if err != nil {
				return err
			}
			data = data[n:]
		}
		if err := f(sh.row(images, values[:])); err != nil {
			return err
		}
	}
	return nil
}

// directImage decodes the image at the start of data and returns its length.
func (sh *tableVersion) directImage(data []byte, h *rowsHead, values []any) (int, error) {
	nulls := (h.countPresent() + 7) / 8
	if len(data) < nulls {
		return 0, errShortRow
	}
	pos, at := nulls, 0
	for i := range sh.types {
		values[i] = schema.Missing
		if !h.has(i) {
			continue
		}
		null := data[at/8]&(1<<(at%8)) != 0
		at++
		wanted := sh.want == nil || sh.want[i]
		if null {
			if wanted {
				values[i] = nil
			}
			continue
		}
		n, err := valueLen(data[pos:], sh.types[i], sh.metas[i])
		if err != nil {
			return 0, err
		}
		if n > len(data)-pos {
			return 0, errShortRow
		}
		if wanted {
			v, err := sh.table.Columns[i].Decode(directValue(data[pos:pos+n], sh.types[i], sh.metas[i]))
			if err != nil {
				return 0, fmt.Errorf("reading a row of %s: %w", sh.table.Name, err)
			}
			values[i] = v
		}
		pos += n
	}
	return pos, nil
}
