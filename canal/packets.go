package canal

import (
	"fmt"
	"io"
)

const (
	// packetBuffer holds the packets that one read brings. Events are mostly far
	// smaller.
	packetBuffer = 64 << 10
	packetHeader = 4
	// maxPacket is the length of a packet that is gone on with in the next one.
	maxPacket = 1<<24 - 1
)

// packets reads the packets of MySQL's protocol, uncompressed. One goroutine uses it.
type packets struct {
	r        io.Reader
	limit    int // bytes of packets that belong together
	sequence uint8
	buf      []byte
	from, to int // what of buf is read and not yet taken
}

func newPackets(r io.Reader, sequence uint8) *packets {
	return &packets{r: r, limit: maxEvent, sequence: sequence, buf: make([]byte, packetBuffer)}
}

// next returns what the next packet, or the row of packets that belong together,
// holds. Unless it is the caller's own it is valid until the next call.
func (p *packets) next() (data []byte, owned bool, err error) {
	n, err := p.header()
	if err != nil {
		return nil, false, err
	}
	if n <= len(p.buf) {
		if err := p.fill(n); err != nil {
			return nil, false, err
		}
		data = p.buf[p.from : p.from+n : p.from+n]
		p.from += n
		return data, false, nil
	}
	if data, err = p.appendTo(nil, n); err != nil {
		return nil, false, err
	}
	for n == maxPacket {
		if n, err = p.header(); err != nil {
			return nil, false, err
		}
		if len(data)+n > p.limit {
			return nil, false, newError(TooLarge, nil,
				"the server sent a packet of more than %d bytes, more than any event may have", p.limit)
		}
		if data, err = p.appendTo(data, n); err != nil {
			return nil, false, err
		}
	}
	return data, true, nil
}

// header takes a packet's header and returns the length of what follows.
func (p *packets) header() (int, error) {
	if err := p.fill(packetHeader); err != nil {
		return 0, err
	}
	h := p.buf[p.from : p.from+packetHeader]
	p.from += packetHeader
	if h[3] != p.sequence {
		return 0, fmt.Errorf("packet %d came in place of packet %d", h[3], p.sequence)
	}
	p.sequence++
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16, nil
}

// fill reads until n bytes are there, which buf must have room for.
func (p *packets) fill(n int) error {
	if p.to-p.from >= n {
		return nil
	}
	if len(p.buf)-p.from < n || p.from == p.to {
		p.to = copy(p.buf, p.buf[p.from:p.to])
		p.from = 0
	}
	for p.to-p.from < n {
		got, err := p.r.Read(p.buf[p.to:])
		p.to += got
		if err != nil && p.to-p.from < n {
			return err
		}
	}
	return nil
}

// appendTo appends the next n bytes.
func (p *packets) appendTo(data []byte, n int) ([]byte, error) {
	have := min(n, p.to-p.from)
	if data == nil {
		data = make([]byte, 0, min(n, trusted))
	}
	data = append(data, p.buf[p.from:p.from+have]...)
	p.from += have
	return readAll(p.r, data, n-have)
}
