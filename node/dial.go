package node

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// dialer opens connections as net.Dialer.DialContext does.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// paced opens connections that are read with at most so many bytes a second each; without
// a bound for zero. A nil dial is the machine's.
func paced(bytes int64, dial dialer) dialer {
	if bytes <= 0 {
		return dial
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// A tenth of a second's worth at a time, so that the pauses are short.
		limit := rate.NewLimiter(rate.Limit(bytes), max(1, int(bytes/10)))
		return &pacedConn{Conn: c, limit: limit, closed: make(chan struct{})}, nil
	}
}

// pacedConn waits after what it has read for as long as that may take.
type pacedConn struct {
	net.Conn

	limit  *rate.Limiter
	close  sync.Once
	closed chan struct{}
}

// Read implements net.Conn.
func (c *pacedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.limit.Burst())])
	pause := time.NewTimer(c.limit.ReserveN(time.Now(), n).Delay())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.closed:
	}
	return n, err
}

// Close implements net.Conn; it ends a pause.
func (c *pacedConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
