package canaltest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Column is a column as a table map event has it. The values of its rows are
// int64 for the integer types, string for the others.
type Column struct {
	Name     string
	Type     byte   // mysql.MYSQL_TYPE_...
	Meta     uint16 // VARCHAR, CHAR: bytes; BLOB, JSON: length bytes
	NotNull  bool
	Unsigned bool
}

// BigInt, VarChar, Text and JSON are the columns that outbox tables are made of;
// texts are utf8mb4.
func BigInt(name string) Column {
	return Column{Name: name, Type: mysql.MYSQL_TYPE_LONGLONG, NotNull: true}
}

// VarChar is VARCHAR(chars).
func VarChar(name string, chars int) Column {
	return Column{Name: name, Type: mysql.MYSQL_TYPE_VARCHAR, Meta: uint16(4 * chars)}
}

// Text is LONGTEXT.
func Text(name string) Column { return Column{Name: name, Type: mysql.MYSQL_TYPE_BLOB, Meta: 4} }

// Char is CHAR(chars).
func Char(name string, chars int) Column {
	return Column{Name: name, Type: mysql.MYSQL_TYPE_STRING, Meta: uint16(4 * chars)}
}

// JSON is MySQL's JSON; its values are binary documents.
func JSON(name string) Column { return Column{Name: name, Type: mysql.MYSQL_TYPE_JSON, Meta: 4} }

// Table is a table with the id that its table map events carry.
type Table struct {
	ID             uint64
	Database, Name string
	Columns        []Column
	// Full writes the names into the table map (binlog_row_metadata=FULL).
	Full bool
}

// Outbox is the table that EventRouter expects by default.
func Outbox() Table {
	return Table{
		ID: 100, Database: "shop", Name: "outbox", Full: true,
		Columns: []Column{BigInt("id"), VarChar("aggregatetype", 255), VarChar("aggregateid", 255), VarChar("type", 255),
			Text("payload")},
	}
}

// Omitted is the value of a column that is left out of a row image. All rows of
// an event leave out the same columns.
var Omitted any = omitted{}

type omitted struct{}

// Map appends the table map event.
func (b *Binlog) Map(t Table) {
	body := append(fixed(t.ID, 6), 1, 0)
	body = append(body, byte(len(t.Database)))
	body = append(append(body, t.Database...), 0, byte(len(t.Name)))
	body = append(append(body, t.Name...), 0)
	body = mysql.AppendLengthEncodedInteger(body, uint64(len(t.Columns)))
	var metas []byte
	nulls := make([]byte, (len(t.Columns)+7)/8)
	for i, c := range t.Columns {
		body = append(body, c.Type)
		switch c.Type {
		case mysql.MYSQL_TYPE_STRING:
			// The type comes first; two bits of the length are folded into it.
			metas = append(metas, mysql.MYSQL_TYPE_STRING^byte(c.Meta>>8&3)<<4, byte(c.Meta))
		case mysql.MYSQL_TYPE_VARCHAR:
			metas = binary.LittleEndian.AppendUint16(metas, c.Meta)
		case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR:
			metas = append(metas, byte(c.Meta))
		}
		if !c.NotNull {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	body = mysql.AppendLengthEncodedInteger(body, uint64(len(metas)))
	body = append(append(body, metas...), nulls...)
	b.Raw(replication.TABLE_MAP_EVENT, 0, append(body, t.optional()...))
}

func (t Table) optional() []byte {
	var signs, names, out []byte
	n := 0
	for _, c := range t.Columns {
		switch c.Type {
		case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG,
			mysql.MYSQL_TYPE_LONGLONG:
			if n%8 == 0 {
				signs = append(signs, 0)
			}
			if c.Unsigned {
				signs[n/8] |= 0x80 >> (n % 8)
			}
			n++
		}
		names = append(append(names, byte(len(c.Name))), c.Name...)
	}
	field := func(id byte, v []byte) {
		out = append(mysql.AppendLengthEncodedInteger(append(out, id), uint64(len(v))), v...)
	}
	if signs != nil {
		field(replication.TABLE_MAP_OPT_META_SIGNEDNESS, signs)
	}
	field(replication.TABLE_MAP_OPT_META_DEFAULT_CHARSET, []byte{0xfc, 255, 0}) // utf8mb4_0900_ai_ci
	if t.Full {
		field(replication.TABLE_MAP_OPT_META_COLUMN_NAME, names)
	}
	return out
}

// Insert appends a write rows event that ends the statement; map the table before.
func (b *Binlog) Insert(t Table, rows ...[]any) {
	b.rows(b.kind(replication.WRITE_ROWS_EVENTv2), t, rows)
}

// Delete appends a delete rows event with before images.
func (b *Binlog) Delete(t Table, rows ...[]any) {
	b.rows(b.kind(replication.DELETE_ROWS_EVENTv2), t, rows)
}

// Update appends an update rows event: before and after images in turn.
func (b *Binlog) Update(t Table, rows ...[]any) {
	b.rows(b.kind(replication.UPDATE_ROWS_EVENTv2), t, rows)
}

// InsertCompressed appends a write rows event as MariaDB does with log_bin_compress.
func (b *Binlog) InsertCompressed(t Table, rows ...[]any) {
	b.rows(replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, t, rows)
}

// kind is the version 1 of a rows event on MariaDB.
func (b *Binlog) kind(v2 replication.EventType) replication.EventType {
	if b.flavor == position.MariaDB {
		return v2 - (replication.WRITE_ROWS_EVENTv2 - replication.WRITE_ROWS_EVENTv1)
	}
	return v2
}

// Rows appends a rows event of any kind whose images are given as bytes: for
// tables whose values nobody should look at.
func (b *Binlog) Rows(kind replication.EventType, id uint64, flags uint16, rest []byte) {
	body := append(fixed(id, 6), byte(flags), byte(flags>>8))
	if kind >= replication.WRITE_ROWS_EVENTv2 && kind <= replication.DELETE_ROWS_EVENTv2 ||
		kind == replication.PARTIAL_UPDATE_ROWS_EVENT {
		body = append(body, 2, 0)
	}
	b.Raw(kind, 0, append(body, rest...))
}

func (b *Binlog) rows(kind replication.EventType, t Table, rows [][]any) {
	head := mysql.AppendLengthEncodedInteger(nil, uint64(len(t.Columns)))
	present := make([]byte, (len(t.Columns)+7)/8)
	for i := range t.Columns {
		if len(rows) == 0 || rows[0][i] != Omitted {
			present[i/8] |= 1 << (i % 8)
		}
	}
	head = append(head, present...)
	if kind == replication.UPDATE_ROWS_EVENTv1 || kind == replication.UPDATE_ROWS_EVENTv2 {
		head = append(head, present...)
	}
	var images []byte
	for _, r := range rows {
		images = append(images, t.image(r)...)
	}
	if kind == replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1 {
		images = DeflateMaria(images)
	}
	b.Rows(kind, t.ID, replication.RowsEventStmtEndFlag, append(head, images...))
}

func (t Table) image(row []any) []byte {
	var nulls, out []byte
	n := 0
	for i, v := range row {
		if v == Omitted {
			continue
		}
		if n%8 == 0 {
			nulls = append(nulls, 0)
		}
		if v == nil {
			nulls[n/8] |= 1 << (n % 8)
		} else {
			out = append(out, encode(t.Columns[i], v)...)
		}
		n++
	}
	return append(nulls, out...)
}

func encode(c Column, v any) []byte {
	switch c.Type {
	case mysql.MYSQL_TYPE_TINY:
		return fixed(uint64(v.(int64)), 1)
	case mysql.MYSQL_TYPE_SHORT:
		return fixed(uint64(v.(int64)), 2)
	case mysql.MYSQL_TYPE_INT24:
		return fixed(uint64(v.(int64)), 3)
	case mysql.MYSQL_TYPE_LONG:
		return fixed(uint64(v.(int64)), 4)
	case mysql.MYSQL_TYPE_LONGLONG:
		return fixed(uint64(v.(int64)), 8)
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_STRING:
		n := 1
		if c.Meta > 255 {
			n = 2
		}
		return append(fixed(uint64(len(v.(string))), n), v.(string)...)
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_JSON:
		return append(fixed(uint64(len(v.(string))), int(c.Meta)), v.(string)...)
	}
	panic(fmt.Sprintf("canaltest: columns of type %d can't be encoded", c.Type))
}

// DeflateMaria compresses a part of an event as MariaDB does.
func DeflateMaria(plain []byte) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(plain) // to memory
	_ = w.Close()
	n := len(plain)
	return append([]byte{0x80 | 4, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, z.Bytes()...)
}
