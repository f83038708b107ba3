package canal

import (
	"net"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/packet"
)

const (
	// maxCells bounds the cells of an answer that is kept, and one more for each row:
	// go-mysql takes about 40 bytes for each, however small it is.
	maxCells = 2 << 20
	// firstBytes are enough of a packet to tell how many columns it announces.
	firstBytes = 9
)

// answers looks at the packets of the answers that go-mysql reads, before it does: it
// allocates for as many columns as a server announces, and keeps all rows. Reading and
// writing take turns, as the protocol does.
type answers struct {
	net.Conn // behind TLS
	// kept says that the rows of the answer are kept.
	kept bool

	head    []byte // of the packet at hand
	left    int    // bytes of it that are to come
	packets int    // of the answer so far
	columns int
	first   []byte // what the answer begins with
}

// watchAnswers puts itself between a connection that has logged in and the network.
func watchAnswers(c *client.Conn) *answers {
	a := &answers{Conn: c.Conn.Conn}
	c.Conn = packet.NewConn(a)
	return a
}

// Write begins a question.
func (a *answers) Write(b []byte) (int, error) {
	a.head, a.left, a.packets, a.columns, a.first = a.head[:0], 0, 0, 0, a.first[:0]
	return a.Conn.Write(b)
}

// Read hands on what is within the bounds.
func (a *answers) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	for p := b[:n]; len(p) > 0; {
		if !a.look(&p) {
			return 0, errAllowance
		}
	}
	return n, err
}

// look takes a part of what was read, and reports whether the answer is within the bounds.
func (a *answers) look(p *[]byte) bool {
	if a.left == 0 {
		n := min(packetHeader-len(a.head), len(*p))
		a.head, *p = append(a.head, (*p)[:n]...), (*p)[n:]
		if len(a.head) < packetHeader {
			return true
		}
		a.left = int(a.head[0]) | int(a.head[1])<<8 | int(a.head[2])<<16
		a.head = a.head[:0]
		a.packets++
		return !a.kept || a.packets*(a.columns+1) <= maxCells
	}
	n := min(a.left, len(*p))
	if a.packets == 1 && len(a.first) < firstBytes {
		a.first = append(a.first, (*p)[:min(n, firstBytes-len(a.first))]...)
	}
	a.left, *p = a.left-n, (*p)[n:]
	if a.packets > 1 || a.left > 0 {
		return true
	}
	switch a.first[0] {
	case mysql.OK_HEADER, mysql.ERR_HEADER, mysql.LocalInFile_HEADER:
		return true
	}
	r := reader{b: a.first}
	columns := r.lenenc()
	a.columns = int(min(columns, maxColumns))
	return columns <= maxColumns
}
