package canal_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/binlog-outbox/binlog-outbox/canal"
)

// wire is the packets of a row of payloads as MySQL sends them.
func wire(from uint8, payloads ...[]byte) []byte {
	const most = 1<<24 - 1
	var out []byte
	for _, p := range payloads {
		for {
			n := min(len(p), most)
			out = append(out, byte(n), byte(n>>8), byte(n>>16), from)
			out = append(out, p[:n]...)
			from++
			p = p[n:]
			if n < most {
				break
			}
		}
	}
	return out
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// Packets of all sizes around the buffer's and the protocol's own limits come out as
// they went in, however the network cuts them.
func TestPackets(t *testing.T) {
	sizes := []int{0, 1, 3, 19, 250, 64<<10 - 5, 64<<10 - 4, 64 << 10, 64<<10 + 1, 5, 1 << 20, 1<<20 + 1, 7, 1<<24 - 2,
		1<<24 - 1, 2, 1 << 24, 1<<25 - 2, 4}
	var payloads [][]byte
	for _, n := range sizes {
		payloads = append(payloads, pattern(n))
	}
	all := wire(250, payloads...) // the sequence number wraps on the way
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(all), "halves": iotest.HalfReader(bytes.NewReader(all)),
		"with the end": iotest.DataErrReader(bytes.NewReader(all)),
	} {
		t.Run(name, func(t *testing.T) {
			p := canal.NewPackets(r, 250)
			for i, want := range payloads {
				got, _, err := p.Next()
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("packet %d: %d bytes and %v, want %d bytes", i, len(got), err, len(want))
				}
			}
			if _, _, err := p.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the last: %v", err)
			}
		})
	}
	t.Run("byte by byte", func(t *testing.T) {
		p := canal.NewPackets(iotest.OneByteReader(bytes.NewReader(wire(0, payloads[:8]...))), 0)
		for i, want := range payloads[:8] {
			if got, _, err := p.Next(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("packet %d: %d bytes and %v", i, len(got), err)
			}
		}
	})
}

// What is the caller's own stays as it is while more is read.
func TestOwnedPacketsStay(t *testing.T) {
	want := pattern(100 << 10)
	p := canal.NewPackets(bytes.NewReader(wire(0, want, pattern(100<<10), pattern(300))), 0)
	got, owned, err := p.Next()
	if err != nil || !owned {
		t.Fatalf("owned %t, %v", owned, err)
	}
	for range 2 {
		if _, _, err := p.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("a packet changed after it was handed out")
	}
}

func TestPacketsBroken(t *testing.T) {
	whole := wire(1, pattern(100), pattern(100<<10))
	for name, b := range map[string][]byte{
		"out of order": wire(2, pattern(5)), "short header": whole[:2], "short": whole[:50], "short second": whole[:200],
		"short large one": whole[:90<<10],
		"16 MB announced": {0xfe, 0xff, 0xff, 1, 0},
	} {
		p := canal.NewPackets(bytes.NewReader(b), 1)
		var err error
		for err == nil {
			_, _, err = p.Next()
		}
		if name == "short second" && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPackets(f *testing.F) {
	f.Add(wire(0, pattern(3), pattern(70<<10)))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := canal.NewPackets(bytes.NewReader(b), 0)
		total := 0
		for {
			data, _, err := p.Next()
			if err != nil {
				break
			}
			total += len(data) + 4
		}
		if total > len(b) {
			t.Errorf("%d bytes came out of %d", total, len(b))
		}
	})
}
