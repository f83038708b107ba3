package node

import (
	"context"
	"net"
	"sync"
	"time"
)

// paced dials connections that are read with at most rate bytes a second each; nil,
// which is the usual dialer, for no bound.
func paced(rate int64) func(ctx context.Context, network, address string) (net.Conn, error) {
	if rate <= 0 {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &pacedConn{Conn: c, rate: rate, closed: make(chan struct{})}, nil
	}
}

// pacedConn waits after what it has read for as long as that may take.
type pacedConn struct {
	net.Conn

	rate   int64
	free   time.Time // when the rate allows the next read
	close  sync.Once
	closed chan struct{}
}

// Read implements net.Conn. It is called by one goroutine at a time.
func (c *pacedConn) Read(b []byte) (int, error) {
	if wait := time.Until(c.free); wait > time.Millisecond {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.closed:
		}
	}
	// A tenth of a second's worth at most, so that the pauses are short.
	n, err := c.Conn.Read(b[:min(len(b), max(1, int(c.rate/10)))])
	if now := time.Now(); c.free.Before(now) {
		c.free = now
	}
	c.free = c.free.Add(time.Duration(float64(n) / float64(c.rate) * float64(time.Second)))
	return n, err
}

// Close implements net.Conn; it ends a pause.
func (c *pacedConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
