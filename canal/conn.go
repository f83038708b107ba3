package canal

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialer makes the connections of one stream and keeps hold of them, so that
// closing the stream closes the sockets at once: go-mysql's own way would open
// a second connection to KILL the first, which may hit a foreign thread behind
// a proxy and needs a privilege.
type dialer struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	received atomic.Uint64 // bytes
	heard    atomic.Int64  // when bytes last came, Unix nanoseconds

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

func newDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) *dialer {
	return &dialer{dial: dial, conns: map[*conn]struct{}{}}
}

// open returns a dial function whose connections give up after timeout without a byte.
func (d *dialer) open(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.isClosed() {
			return nil, ErrClosed
		}
		nc, err := d.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: nc, d: d, write: timeout}
		c.read.Store(int64(timeout))
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.closed {
			_ = nc.Close()
			return nil, ErrClosed
		}
		d.conns[c] = struct{}{}
		return c, nil
	}
}

func (d *dialer) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// close closes all connections and refuses new ones.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.conns {
		_ = c.Conn.Close()
	}
	clear(d.conns)
}

// reopen lets new connections be made again.
func (d *dialer) reopen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}

// setReadTimeout changes the read timeout of all connections, from their next read on.
func (d *dialer) setReadTimeout(timeout time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.read.Store(int64(timeout))
	}
}

// conn owns its deadlines: each read of the socket must bring a byte within the
// timeout, wherever in a packet it happens. Deadlines that others set are
// ignored; go-mysql would set one per packet, which costs more than the reading.
type conn struct {
	net.Conn
	d     *dialer
	read  atomic.Int64
	write time.Duration
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(time.Duration(c.read.Load()))); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.d.received.Add(uint64(n))
		c.d.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.write)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.d.mu.Lock()
	delete(c.d.conns, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}

func (*conn) SetDeadline(time.Time) error      { return nil }
func (*conn) SetReadDeadline(time.Time) error  { return nil }
func (*conn) SetWriteDeadline(time.Time) error { return nil }
