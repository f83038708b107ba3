package canal

import (
	"context"
	"errors"
	"net"
	"os"
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
	waits  map[*context.CancelFunc]struct{}
	closed bool
}

func newDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) *dialer {
	return &dialer{dial: dial, conns: map[*conn]struct{}{}, waits: map[*context.CancelFunc]struct{}{}}
}

// open dials within timeout; the connection gives up after timeout without a byte.
func (d *dialer) open(ctx context.Context, network, address string, timeout time.Duration) (*conn, error) {
	ctx, end := d.within(ctx, timeout)
	defer end()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
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

// within bounds ctx by a time and by the life of the dialer: it ends, with ErrClosed
// as the cause, at close. The caller calls end.
func (d *dialer) within(ctx context.Context, timeout time.Duration) (bound context.Context, end context.CancelFunc) {
	ctx, free := context.WithTimeout(ctx, timeout)
	ctx, because := context.WithCancelCause(ctx)
	cut := context.CancelFunc(func() { because(ErrClosed) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		cut()
	}
	d.waits[&cut] = struct{}{}
	return ctx, func() {
		d.mu.Lock()
		delete(d.waits, &cut)
		d.mu.Unlock()
		because(nil)
		free()
	}
}

// close closes all connections, ends what is being dialled, and refuses new ones.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for cut := range d.waits {
		(*cut)()
	}
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
//
// A peer that sends a byte now and then, or without end, is held by an allowance:
// so much, until then.
type conn struct {
	net.Conn
	d     *dialer
	read  atomic.Int64
	write time.Duration

	// The goroutine that reads sets these.
	allowed bool // whether the others count
	left    int64
	until   time.Time
	// patient is asked, after each timeout, whether to go on waiting; nil means no.
	patient func() bool
}

// allow lets size bytes come until within is over, and no more.
func (c *conn) allow(size int64, within time.Duration) {
	c.allowed, c.left, c.until = true, size, time.Now().Add(within)
}

// allowAll takes the allowance back: whoever reads has bounds of its own.
func (c *conn) allowAll() { c.allowed = false }

var errAllowance = errors.New("the answer is larger than any that is asked for")

func (c *conn) Read(b []byte) (int, error) {
	for {
		deadline := time.Now().Add(time.Duration(c.read.Load()))
		if c.allowed {
			if c.left <= 0 {
				return 0, errAllowance
			}
			b = b[:min(int64(len(b)), c.left)]
			if c.until.Before(deadline) {
				deadline = c.until
			}
		}
		if err := c.Conn.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(b)
		if n > 0 {
			c.left -= int64(n)
			c.d.received.Add(uint64(n))
			c.d.heard.Store(time.Now().UnixNano())
		}
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.patient != nil && c.patient() {
			continue
		}
		return n, err
	}
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
