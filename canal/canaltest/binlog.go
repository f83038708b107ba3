package canaltest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// HeaderLen is the length of an event header.
const HeaderLen = 19

// Binlog builds binlog events as a server would send them. Positions are counted
// as in a file; each method appends one event, if not said otherwise.
type Binlog struct {
	// Events are the events so far, with header and, if CRC is set, checksum.
	Events [][]byte
	// Pos is the end of the last event, in 64 bits.
	Pos uint64
	// Seconds is the timestamp that the next events get.
	Seconds uint32
	// ServerID is the originating server.
	ServerID uint32
	// CRC appends checksums, as servers do that don't listen to us.
	CRC bool
	// ZeroPos leaves the header's position zero, as MariaDB 11.4 does within
	// transactions.
	ZeroPos bool

	flavor position.Flavor
	inner  bool
}

// NewBinlog begins a stream of events with the artificial rotate event and the
// format description that a dump begins with.
func NewBinlog(flavor position.Flavor, file string, pos uint64) *Binlog {
	b := &Binlog{flavor: flavor, Seconds: 1_700_000_000, ServerID: 1}
	b.Begins(file, pos)
	return b
}

// Begins appends what a dump begins with at this place.
func (b *Binlog) Begins(file string, pos uint64) {
	b.ArtificialRotate(file, pos)
	b.Pos = pos
	zero := b.ZeroPos
	b.ZeroPos = zero || pos > 4 // within a file its format description is sent again, without a position
	b.Format()
	b.ZeroPos = zero
	if pos > 4 {
		b.Pos = pos
	}
}

// Raw appends an event of any type.
func (b *Binlog) Raw(kind replication.EventType, flags uint16, body []byte) []byte {
	size := HeaderLen + len(body)
	if b.CRC {
		size += 4
	}
	if flags&replication.LOG_EVENT_ARTIFICIAL_F == 0 && !b.inner {
		b.Pos += uint64(size)
	}
	pos := uint32(b.Pos)
	if b.ZeroPos || b.inner || flags&replication.LOG_EVENT_ARTIFICIAL_F != 0 {
		pos = 0
	}
	e := make([]byte, 0, size)
	e = binary.LittleEndian.AppendUint32(e, b.Seconds)
	e = append(e, byte(kind))
	e = binary.LittleEndian.AppendUint32(e, b.ServerID)
	e = binary.LittleEndian.AppendUint32(e, uint32(size))
	e = binary.LittleEndian.AppendUint32(e, pos)
	e = binary.LittleEndian.AppendUint16(e, flags)
	e = append(e, body...)
	if b.CRC {
		e = binary.LittleEndian.AppendUint32(e, crc32.ChecksumIEEE(e))
	}
	b.Events = append(b.Events, e)
	return e
}

// ArtificialRotate names the file that the dump begins in.
func (b *Binlog) ArtificialRotate(file string, pos uint64) {
	b.Raw(replication.ROTATE_EVENT, replication.LOG_EVENT_ARTIFICIAL_F, rotateBody(file, pos))
}

// Rotate ends the file and goes on in the next as a server does: the rotate
// event, the artificial one, a format description, and the position after it.
func (b *Binlog) Rotate(next string) {
	b.Raw(replication.ROTATE_EVENT, 0, rotateBody(next, 4))
	b.Begins(next, 4)
}

func rotateBody(file string, pos uint64) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, pos), file...)
}

// Format appends a format description event.
func (b *Binlog) Format() {
	lengths := make([]byte, 42)
	version := "8.4.0"
	if b.flavor == position.MariaDB {
		lengths = make([]byte, 171)
		version = "10.11.6-MariaDB-log"
		for _, k := range []replication.EventType{replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1,
			replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1} {
			lengths[k-1] = 8
		}
	}
	lengths[replication.QUERY_EVENT-1] = 13
	lengths[replication.ROTATE_EVENT-1] = 8
	lengths[replication.TABLE_MAP_EVENT-1] = 8
	for k := replication.WRITE_ROWS_EVENTv1; k <= replication.DELETE_ROWS_EVENTv1; k++ {
		lengths[k-1] = 8
	}
	for k := replication.WRITE_ROWS_EVENTv2; k <= replication.DELETE_ROWS_EVENTv2; k++ {
		lengths[k-1] = 10
	}
	if b.flavor != position.MariaDB {
		lengths[replication.PARTIAL_UPDATE_ROWS_EVENT-1] = 10
	}
	body := binary.LittleEndian.AppendUint16(nil, 4)
	body = append(body, append([]byte(version), make([]byte, 50-len(version))...)...)
	body = binary.LittleEndian.AppendUint32(body, 0)
	body = append(body, HeaderLen)
	body = append(body, lengths...)
	alg := byte(0)
	if b.CRC {
		alg = 1
	}
	body = append(body, alg)
	if !b.CRC {
		body = append(body, 0, 0, 0, 0) // the place of the checksum is always there
	}
	b.Raw(replication.FORMAT_DESCRIPTION_EVENT, 0, body)
}

// GTID appends the GTID event of the flavor; the zero GTID makes an anonymous
// one. length announces the transaction's size (MySQL), 0 nothing.
func (b *Binlog) GTID(g position.GTID, micros, length uint64) {
	switch {
	case b.flavor == position.MariaDB:
		b.MariaGTID(g, 0)
	case g.Tag != "":
		b.tagged(g, micros, length)
	default:
		body := append([]byte{1}, g.SID[:]...)
		body = binary.LittleEndian.AppendUint64(body, g.Seq)
		body = append(body, 2)
		body = append(body, make([]byte, 16)...)
		body = append(body, fixed(micros, 7)...)
		body = mysql.AppendLengthEncodedInteger(body, length)
		body = binary.LittleEndian.AppendUint32(body, 80400)
		kind := replication.GTID_EVENT
		if g.IsZero() {
			kind = replication.ANONYMOUS_GTID_EVENT
		}
		b.Raw(kind, 0, body)
	}
}

// MariaGTID appends MariaDB's GTID event with the given flags (1: standalone).
func (b *Binlog) MariaGTID(g position.GTID, flags byte) {
	server := b.ServerID
	b.ServerID = g.Server
	body := binary.LittleEndian.AppendUint64(nil, g.Seq)
	body = binary.LittleEndian.AppendUint32(body, g.Domain)
	b.Raw(replication.MARIADB_GTID_EVENT, 0, append(body, flags, 0, 0, 0, 0, 0, 0))
	b.ServerID = server
}

// tagged writes MySQL 8.3's serialisation format: a version, the total size, the
// number of the last field that may not be ignored, then fields by id.
func (b *Binlog) tagged(g position.GTID, micros, length uint64) {
	var fields []byte
	field := func(id uint64, value ...byte) { fields = append(append(fields, varint(id)...), value...) }
	field(0, varint(1)...)
	var sid []byte
	for _, c := range g.SID {
		sid = append(sid, varint(uint64(c))...)
	}
	field(1, sid...)
	field(2, svarint(int64(g.Seq))...)
	field(3, append(varint(uint64(len(g.Tag))), g.Tag...)...)
	field(4, svarint(0)...)
	field(5, svarint(1)...)
	field(6, varint(micros)...)
	field(8, varint(length)...)
	field(9, varint(80400)...)
	rest := append(varint(0), fields...) // last non-ignorable field
	total := 1 + 1 + len(rest)
	if total > 127 {
		total = 1 + 2 + len(rest)
	}
	b.Raw(replication.GTID_TAGGED_LOG_EVENT, 0, append(append(varint(1), varint(uint64(total))...), rest...))
}

// varint is the variable-length integer of MySQL's serialisation: the number of
// trailing one bits of the first byte is the number of bytes that follow.
func varint(v uint64) []byte {
	for n := 1; n <= 8; n++ {
		if v < 1<<(7*n) {
			return fixed(v<<n|(1<<(n-1)-1), n)
		}
	}
	return append([]byte{0xff}, fixed(v, 8)...)
}

func svarint(v int64) []byte { return varint(uint64(v<<1) ^ uint64(v>>63)) }

func fixed(v uint64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(v >> (8 * i))
	}
	return out
}

// Query appends a statement.
func (b *Binlog) Query(database, sql string) {
	b.Raw(replication.QUERY_EVENT, 0, append(queryHead(database, nil), sql...))
}

// LoadQuery appends the statement of a LOAD DATA in statement format.
func (b *Binlog) LoadQuery(database, sql string) {
	b.Raw(replication.EXECUTE_LOAD_QUERY_EVENT, 0, append(queryHead(database, make([]byte, 13)), sql...))
}

// CompressedQuery appends a statement as MariaDB does with log_bin_compress.
func (b *Binlog) CompressedQuery(database, sql string) {
	b.Raw(replication.MARIADB_QUERY_COMPRESSED_EVENT, 0, append(queryHead(database, nil), DeflateMaria([]byte(sql))...))
}

func queryHead(database string, extra []byte) []byte {
	body := make([]byte, 8, 64)
	body = append(body, byte(len(database)), 0, 0, 0, 0)
	body = append(body, extra...)
	body = append(body, database...)
	return append(body, 0)
}

// XID appends a commit.
func (b *Binlog) XID() { b.Raw(replication.XID_EVENT, 0, make([]byte, 8)) }

// Begin appends what begins a transaction behind its GTID event.
func (b *Binlog) Begin() {
	if b.flavor != position.MariaDB {
		b.Query("", "BEGIN")
	}
}

// XAPrepare appends the event that ends the first half of an XA transaction.
func (b *Binlog) XAPrepare(onePhase bool) {
	body := []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'x'}
	if onePhase {
		body[0] = 1
	}
	b.Raw(replication.XA_PREPARE_LOG_EVENT, 0, body)
}

// Heartbeat appends a sign of life.
func (b *Binlog) Heartbeat(file string) {
	b.Raw(replication.HEARTBEAT_EVENT, replication.LOG_EVENT_ARTIFICIAL_F, []byte(file))
}

// Transaction appends GTID event, BEGIN, what f appends, and a commit.
func (b *Binlog) Transaction(g position.GTID, f func()) {
	b.GTID(g, uint64(b.Seconds)*1e6, 0)
	b.Begin()
	f()
	b.XID()
}

// Compressed appends one TRANSACTION_PAYLOAD event with what f appends to the
// Binlog it is given.
func (b *Binlog) Compressed(f func(in *Binlog)) {
	in := &Binlog{flavor: b.flavor, Seconds: b.Seconds, ServerID: b.ServerID, inner: true}
	f(in)
	plain := bytes.Join(in.Events, nil)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // options are constant
	}
	b.Payload(0, uint64(len(plain)), z.EncodeAll(plain, nil))
}

// Payload appends a TRANSACTION_PAYLOAD event with any contents.
func (b *Binlog) Payload(compression, announced uint64, data []byte) {
	var body []byte
	field := func(id, v uint64) {
		value := mysql.AppendLengthEncodedInteger(nil, v)
		body = append(body, byte(id), byte(len(value)))
		body = append(body, value...)
	}
	field(2, compression)
	field(3, announced)
	field(1, uint64(len(data)))
	body = append(body, 0)
	b.Raw(replication.TRANSACTION_PAYLOAD_EVENT, 0, append(body, data...))
}
