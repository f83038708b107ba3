package canal

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
)

const (
	// maxEvent is the largest event: max_allowed_packet is 1 GiB at the most, also
	// where replicas have one of their own, and the header is not counted in.
	maxEvent = 1<<30 + 1<<20
	// trusted is how much memory a length is trusted with before the bytes are there,
	// trust how many times more than what is there already.
	trusted = 1 << 20
	trust   = 16
)

// readAll appends the next n bytes of r to data. Memory grows with what is really
// there and not with what was announced, and is never much more than n.
func readAll(r io.Reader, data []byte, n int) ([]byte, error) {
	for n > 0 {
		if len(data) == cap(data) {
			// A quarter at the least: whoever appends again and again is not to copy each time.
			grown := make([]byte, len(data), len(data)+max(len(data)/4, min(n, max(trusted, trust*len(data)))))
			copy(grown, data)
			data = grown
		}
		room := data[len(data):min(cap(data), len(data)+n)]
		got, err := io.ReadFull(r, room)
		data = data[:len(data)+got]
		n -= got
		if err != nil {
			return nil, noEOF(err)
		}
	}
	return data, nil
}

var errInflate = errors.New("compressed data is damaged")

// inflateMaria undoes MariaDB's compression of a part of an event: a byte with
// the algorithm (zlib only) and the number of length bytes, the inflated length
// in big endian, then the data.
func inflateMaria(data []byte, maxSize int64) ([]byte, error) {
	r := reader{b: data}
	head := r.uint(1)
	var size int64
	for _, b := range r.take(int(head & 7)) {
		size = size<<8 | int64(b)
	}
	if r.bad || head&0x70 != 0 {
		return nil, errInflate
	}
	if maxSize = min(maxSize, maxEvent); size > maxSize {
		return nil, newError(TooLarge, nil, "a compressed event inflates to %d bytes, the limit is %d", size, maxSize)
	}
	z, err := zlib.NewReader(bytes.NewReader(r.b))
	if err != nil {
		return nil, errInflate
	}
	defer z.Close()
	out, err := readAll(z, nil, int(size))
	if err != nil {
		return nil, errInflate
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errInflate
	}
	return out, nil
}
