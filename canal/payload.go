package canal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// Fields of TRANSACTION_PAYLOAD_EVENT (mysql/binlog/event/codecs/binary.h).
const (
	payloadEnd          = 0
	payloadSize         = 1
	payloadCompression  = 2
	payloadUncompressed = 3
)

const (
	payloadZstd = 0
	payloadNone = 255
)

// maxWindow is the largest history that zstd needs: 128 MiB at level 22, 2 MiB
// at MySQL's default.
const maxWindow = 128 << 20

// maxRatio is more than zstd can pack: a block of 128 KiB takes four bytes at the
// least. A payload that announces more lies.
const maxRatio = 1 << 16

// payload inflates compressed transactions. Its decoder and buffer are reused.
type payload struct {
	zstd *zstd.Decoder
	buf  *bufio.Reader
	src  bytes.Reader
}

// payloadHead is what stands before the compressed events.
type payloadHead struct {
	compression uint64
	size        uint64 // inflated, as announced
	data        []byte
}

func parsePayload(body []byte) (payloadHead, error) {
	var h payloadHead
	r := reader{b: body}
	for !r.bad {
		field := r.lenenc()
		if field == payloadEnd {
			break
		}
		value := reader{b: r.take(int(r.lenenc()))}
		switch field {
		case payloadCompression:
			h.compression = value.lenenc()
		case payloadUncompressed:
			h.size = value.lenenc()
		}
		r.bad = r.bad || value.bad
	}
	if r.bad {
		return h, errors.New("its head ends early")
	}
	h.data = r.b
	return h, nil
}

// compressed walks the events of a compressed transaction as they are inflated.
func (w *eventHandler) compressed(h header, body []byte) error {
	if w.group.pass != handOn && w.tally == nil {
		return w.finish(h) // it is the whole transaction
	}
	w.payload = h
	return w.inflate(body)
}

func (w *eventHandler) inflate(body []byte) error {
	h, err := parsePayload(body)
	if err != nil {
		return w.fail(Undecodable, err, "reading a compressed transaction")
	}
	if h.size > uint64(w.limits.uncompressed) || h.size > uint64(len(h.data))*maxRatio {
		return w.fail(TooLarge, nil, "a compressed transaction of %d bytes announces %d bytes inflated; the limit is %d",
			len(h.data), h.size, w.limits.uncompressed)
	}
	src, err := w.inner.open(h)
	if err != nil {
		return w.fail(Undecodable, err, "reading a compressed transaction")
	}
	w.inside = true
	err = w.innerEvents(&countedReader{r: src, left: int64(h.size)})
	w.inside = false
	w.inner.src.Reset(nil)
	if err != nil && isOurs(err) {
		return err
	}
	if err != nil {
		return w.fail(Undecodable, err, "reading a compressed transaction")
	}
	if w.group.known {
		return w.fail(Undecodable, nil, "a compressed transaction holds no commit")
	}
	return nil
}

func (p *payload) open(h payloadHead) (*bufio.Reader, error) {
	p.src.Reset(h.data)
	if p.buf == nil {
		p.buf = bufio.NewReaderSize(nil, 64<<10)
	}
	switch h.compression {
	case payloadNone:
		p.buf.Reset(&p.src)
		return p.buf, nil
	case payloadZstd:
	default:
		return nil, fmt.Errorf("compression type %d is not known", h.compression)
	}
	var err error
	if p.zstd == nil {
		// One goroutine less than the default: decoding is done by the reader itself.
		p.zstd, err = zstd.NewReader(&p.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
	} else {
		err = p.zstd.Reset(&p.src)
	}
	if err != nil {
		return nil, err
	}
	p.buf.Reset(p.zstd)
	return p.buf, nil
}

func (p *payload) close() {
	if p.zstd != nil {
		p.zstd.Close()
		p.zstd = nil
	}
}

// countedReader holds a payload to the size that it announced.
type countedReader struct {
	r    *bufio.Reader
	left int64
}

var errBomb = errors.New("it inflates to more than it announces")

// take counts n bytes that are about to be read.
func (c *countedReader) take(n int64) error {
	if n > c.left {
		return errBomb
	}
	c.left -= n
	return nil
}

// innerEvents walks the events inside. Rows of foreign tables are inflated, since
// there is no other way past them, and dropped.
func (w *eventHandler) innerEvents(c *countedReader) error {
	var head [headerLen]byte
	for {
		if _, err := io.ReadFull(c.r, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		h, err := parseHeader(head[:])
		if err != nil {
			return err
		}
		if err := c.take(int64(h.size)); err != nil {
			return err
		}
		rest := int(h.size) - headerLen
		skipped, err := w.skipInner(c.r, h, rest)
		if err != nil {
			return err
		}
		if skipped {
			continue
		}
		if h.size > maxEvent {
			return w.fail(TooLarge, nil, "an event of a compressed transaction has %d bytes inflated, the limit is %d", h.size,
				maxEvent)
		}
		raw, err := readAll(c.r, append(make([]byte, 0, headerLen+min(rest, trusted)), head[:]...), rest)
		if err != nil {
			return err
		}
		if err := w.dispatch(h, raw); err != nil {
			return err
		}
	}
}

// skipInner passes over rows of foreign tables without holding them.
func (w *eventHandler) skipInner(r *bufio.Reader, h header, rest int) (bool, error) {
	if !isRows(h.kind) {
		return false, nil
	}
	start, err := r.Peek(min(rest, 8))
	if err != nil {
		return false, err
	}
	id, end, err := w.rowsRef(h.kind, start)
	if err != nil {
		return false, err
	}
	_, foreign, err := w.foreign(h.kind, id)
	if err != nil || !foreign {
		return false, err
	}
	w.tally.event(w, h)
	if !w.group.open {
		return false, w.fail(Undecodable, nil, "a rows event came outside of any transaction")
	}
	if _, err := r.Discard(rest); err != nil {
		return false, err
	}
	if end {
		w.tables.closeStatement()
	}
	return true, nil
}

func isRows(k replication.EventType) bool {
	switch k {
	case replication.WRITE_ROWS_EVENTv0, replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2,
		replication.UPDATE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2,
		replication.DELETE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
		replication.PARTIAL_UPDATE_ROWS_EVENT,
		replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return true
	}
	return false
}
