package canal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// headerLen is the length of a version 4 event header, the only one since MySQL 5.0.
const headerLen = 19

// crcLen is the length of the checksum behind an event body.
const crcLen = 4

// Flags of MariaDB's GTID event (sql/log_event.h of MariaDB, Gtid_log_event).
const (
	mariaStandalone    = 1
	mariaGroupCommitID = 2
	mariaPreparedXA    = 64
)

// header is an event header. Pos is the position after the event as the server
// wrote it: modulo 4 GiB, and zero for events inside a compressed transaction,
// for artificial events, and for most events of MariaDB 11.4 and newer.
type header struct {
	seconds uint32
	kind    replication.EventType
	server  uint32
	size    uint32
	pos     uint32
	flags   uint16
}

func parseHeader(b []byte) (header, error) {
	if len(b) < headerLen {
		return header{}, fmt.Errorf("event of %d bytes is shorter than its header", len(b))
	}
	h := header{
		seconds: binary.LittleEndian.Uint32(b),
		kind:    replication.EventType(b[4]),
		server:  binary.LittleEndian.Uint32(b[5:]),
		size:    binary.LittleEndian.Uint32(b[9:]),
		pos:     binary.LittleEndian.Uint32(b[13:]),
		flags:   binary.LittleEndian.Uint16(b[17:]),
	}
	if h.size < headerLen {
		return header{}, fmt.Errorf("event header says %d bytes, less than the header itself", h.size)
	}
	return h, nil
}

// artificial events are made up by the server for this connection; they do not
// stand in the binlog file.
func (h header) artificial() bool { return h.flags&replication.LOG_EVENT_ARTIFICIAL_F != 0 }

func (h header) time() time.Time {
	if h.seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(h.seconds), 0).UTC()
}

// reader takes little-endian values from a byte slice. The first value that is
// not there makes it bad, and it stays bad: callers check once, at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint(n int) uint64 {
	var v uint64
	for i, c := range r.take(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// lenenc takes a length-encoded integer of the MySQL protocol.
func (r *reader) lenenc() uint64 {
	switch first := r.uint(1); first {
	case 0xfc:
		return r.uint(2)
	case 0xfd:
		return r.uint(3)
	case 0xfe:
		return r.uint(8)
	case 0xfb, 0xff:
		r.bad = true
		return 0
	default:
		return first
	}
}

// gtidEvent is what counts of a GTID event of either flavor.
type gtidEvent struct {
	gtid      position.GTID // zero when anonymous
	committed time.Time     // original commit time; zero when the event has none
	length    uint64        // of the transaction in the binlog; zero when not told
	flags     byte          // MariaDB's, zero on MySQL
}

// parseGTID reads GTID_LOG_EVENT and ANONYMOUS_GTID_LOG_EVENT. The parts after
// the number were added over time: logical timestamps in 5.7, commit timestamps
// in 8.0.1, the transaction's length in 8.0.2.
func parseGTID(kind replication.EventType, body []byte) (gtidEvent, error) {
	r := reader{b: body}
	r.take(1)
	var e gtidEvent
	sid, number := r.take(16), r.uint(8)
	if r.bad {
		return e, fmt.Errorf("GTID event of %d bytes is too short", len(body))
	}
	if kind == replication.GTID_EVENT {
		copy(e.gtid.SID[:], sid)
		e.gtid.Seq = number
		if number == 0 {
			return e, fmt.Errorf("GTID event with number 0")
		}
	}
	if len(r.b) == 0 || r.uint(1) != replication.LogicalTimestampTypeCode {
		return e, nil
	}
	r.take(16)
	if len(r.b) < 7 {
		return e, nil
	}
	const hasOriginal = 1 << 55
	micros := r.uint(7)
	if micros&hasOriginal != 0 {
		micros = r.uint(7)
	}
	e.committed = microTime(micros)
	if len(r.b) > 0 {
		e.length = r.lenenc()
	}
	if r.bad {
		return e, fmt.Errorf("GTID event of %d bytes ends early", len(body))
	}
	return e, nil
}

// parseTagged reads GTID_TAGGED_LOG_EVENT, which has a serialisation of its own.
func parseTagged(body []byte) (e gtidEvent, err error) {
	var t replication.GtidTaggedLogEvent
	if err := t.Decode(body); err != nil {
		return e, fmt.Errorf("reading tagged GTID event: %w", err)
	}
	if len(t.SID) != 16 || t.GNO <= 0 {
		return e, fmt.Errorf("tagged GTID event with a source id of %d bytes and number %d", len(t.SID), t.GNO)
	}
	copy(e.gtid.SID[:], t.SID)
	e.gtid.Tag, e.gtid.Seq = t.Tag.String(), uint64(t.GNO)
	e.committed, e.length = microTime(t.OriginalCommitTimestamp), t.TransactionLength
	return e, nil
}

func parseMariaGTID(h header, body []byte) (gtidEvent, error) {
	r := reader{b: body}
	e := gtidEvent{gtid: position.GTID{Server: h.server, Seq: r.uint(8), Domain: uint32(r.uint(4))},
		flags: byte(r.uint(1))}
	if r.bad || e.gtid.Seq == 0 {
		return e, fmt.Errorf("GTID event of %d bytes is not readable", len(body))
	}
	return e, nil
}

func microTime(micros uint64) time.Time {
	if micros == 0 || micros >= 1<<55 {
		return time.Time{}
	}
	return time.UnixMicro(int64(micros)).UTC()
}

// tableMapHead is the part of a table map that tells whose rows follow.
type tableMapHead struct {
	id   uint64
	name []byte // database 0x00 length table 0x00 as it lies in the event, a key without copying
	db   []byte
	tab  []byte
	rest []byte // everything from the name on: equal bytes mean an equal shape
}

func parseTableMapHead(body []byte, idSize int) (tableMapHead, error) {
	r := reader{b: body}
	m := tableMapHead{id: r.uint(idSize)}
	r.take(2)
	m.rest = r.b
	m.db = r.take(int(r.uint(1)))
	r.take(1)
	m.tab = r.take(int(r.uint(1)))
	r.take(1)
	if r.bad {
		return m, fmt.Errorf("table map event of %d bytes ends early", len(body))
	}
	m.name = m.rest[:len(m.rest)-len(r.b)]
	return m, nil
}

// parseRotate reads which file follows, and where it is gone on with there.
func parseRotate(body []byte) (file string, pos uint64, err error) {
	r := reader{b: body}
	pos = r.uint(8)
	if r.bad || len(r.b) == 0 || len(r.b) > 512 {
		return "", 0, fmt.Errorf("rotate event of %d bytes is not readable", len(body))
	}
	// Some servers pad the name with zero bytes.
	name, _, _ := bytes.Cut(r.b, []byte{0})
	return string(name), pos, nil
}

// format is what a format description event says about the events behind it.
type format struct {
	raw     []byte // the event itself with its checksum algorithm set to none
	lengths []byte // post-header length by event type - 1
	crc     bool
}

func parseFormat(raw []byte) (*format, error) {
	var e replication.FormatDescriptionEvent
	if len(raw) < headerLen+2+50+4+1+5 {
		return nil, fmt.Errorf("format description event of %d bytes is too short", len(raw))
	}
	if err := e.Decode(raw[headerLen:]); err != nil {
		return nil, fmt.Errorf("reading format description event: %w", err)
	}
	if e.Version != 4 {
		return nil, fmt.Errorf("binlog version %d is not supported, only version 4 (MySQL 5.0 and newer)", e.Version)
	}
	f := &format{raw: bytes.Clone(raw), lengths: bytes.Clone(e.EventTypeHeaderLengths)}
	switch e.ChecksumAlgorithm {
	case replication.BINLOG_CHECKSUM_ALG_CRC32:
		f.crc = true
		f.raw[len(f.raw)-crcLen-1] = byte(replication.BINLOG_CHECKSUM_ALG_OFF)
	case replication.BINLOG_CHECKSUM_ALG_OFF, replication.BINLOG_CHECKSUM_ALG_UNDEF:
	default:
		return nil, fmt.Errorf("binlog checksum algorithm %d is not known", e.ChecksumAlgorithm)
	}
	return f, nil
}

// idSize is the length of a table id in events of this kind: 4 bytes before
// MySQL 5.1.4, 6 since.
func (f *format) idSize(kind replication.EventType) int {
	if i := int(kind) - 1; i < len(f.lengths) && f.lengths[i] == 6 {
		return 4
	}
	return 6
}
