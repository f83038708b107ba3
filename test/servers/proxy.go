package servers

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Proxy is a TCP proxy on a loopback port in front of a server, for faults of the
// network. Its methods may be called from several goroutines, at any time.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // of everything below
	target  string
	conns   map[*proxyConn]struct{}
	closed  bool
	refuse  bool
	paused  bool
	hole    bool
	silent  bool
	filling []net.Conn // fill the listener's queue while silent
	latency time.Duration
	limit   int64 // bytes from the server until the next cut; negative for none
}

type proxyConn struct{ client, server net.Conn }

func (c *proxyConn) close() {
	c.client.Close()
	if c.server != nil {
		c.server.Close()
	}
}

// StartProxy listens on a free loopback port and passes connections on to target, a
// host:port. The caller closes it.
func StartProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", addr(0))
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, conns: map[*proxyConn]struct{}{}, limit: -1}
	p.changed = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is the host:port that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Target makes new connections lead to another server, as a name does that moves.
// Open ones stay.
func (p *Proxy) Target(addr string) { p.set(func() { p.target = addr }) }

// Cut closes all connections that are open now. New ones pass.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	for c := range p.conns {
		c.close()
	}
}

// Refuse closes new connections as soon as they come, while on. Open ones stay.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refuse = on }) }

// Blackhole swallows what either side sends, while on, and tells nobody: connections
// stay open and new ones are taken. What was swallowed is lost, so a connection that
// had traffic meanwhile is of no use afterwards.
func (p *Proxy) Blackhole(on bool) { p.set(func() { p.hole = on }) }

// Swallow makes the address that of a host which swallows packets, while on: what
// open connections send is lost as with Blackhole, and new ones are not even taken,
// so that whoever dials waits until it gives up. Afterwards all connections are cut.
func (p *Proxy) Swallow(on bool) error {
	p.set(func() { p.silent, p.hole = on, on })
	if on {
		return p.fill()
	}
	p.mu.Lock()
	filling := p.filling
	p.filling = nil
	p.mu.Unlock()
	for _, c := range filling {
		c.Close()
	}
	p.Cut()
	return setBacklog(p.listener, 4096)
}

// fill makes connections until the system takes no more of them.
func (p *Proxy) fill() error {
	if err := setBacklog(p.listener, 0); err != nil {
		return err
	}
	// After a first refusal the accepting goroutine may still take one of the queue.
	for refused := 0; refused < 2; {
		c, err := net.DialTimeout("tcp", p.Addr(), 100*time.Millisecond)
		if err != nil {
			refused++
			continue
		}
		refused = 0
		p.mu.Lock()
		p.filling = append(p.filling, c)
		p.mu.Unlock()
	}
	return nil
}

// Pause holds back what either side sends, while on, and lets all of it pass in
// order afterwards.
func (p *Proxy) Pause(on bool) { p.set(func() { p.paused = on }) }

// Latency delays what either side sends by d, in steps of at most 32 KiB; 0 for none.
func (p *Proxy) Latency(d time.Duration) { p.set(func() { p.latency = d }) }

// CutAfter cuts all connections once the server has sent n more bytes, counted over
// all connections; exactly those n bytes pass. Negative takes the limit back, and a
// cut does as well.
func (p *Proxy) CutAfter(n int64) { p.set(func() { p.limit = n }) }

// Conns is the number of open connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// Close cuts all connections, stops listening and waits for its goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.filling {
		c.Close()
	}
	p.cutLocked()
	p.changed.Broadcast()
	p.mu.Unlock()
	err := p.listener.Close()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		c := &proxyConn{client: client}
		p.mu.Lock()
		for p.silent && !p.closed {
			p.changed.Wait()
		}
		if p.closed || p.refuse {
			p.mu.Unlock()
			client.Close()
			continue
		}
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(c *proxyConn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		c.close()
		delete(p.conns, c)
	}()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 10*time.Second)
	if err != nil {
		return
	}
	p.mu.Lock()
	c.server = server
	p.mu.Unlock()
	var pair sync.WaitGroup
	pair.Go(func() { p.pass(c, server, c.client, false) })
	pair.Go(func() { p.pass(c, c.client, server, true) })
	pair.Wait()
}

// pass copies one direction until either side ends, which ends both.
func (p *Proxy) pass(c *proxyConn, to, from net.Conn, counted bool) {
	defer c.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.forward(c, to, buf[:n], counted) {
			return
		}
		if err != nil {
			return
		}
	}
}

// forward says whether the connection may go on.
func (p *Proxy) forward(c *proxyConn, to io.Writer, data []byte, counted bool) bool {
	p.mu.Lock()
	latency := p.latency
	p.mu.Unlock()
	if latency > 0 {
		time.Sleep(latency)
	}
	p.mu.Lock()
	for p.paused && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		p.mu.Unlock()
		return false
	}
	if p.hole {
		p.mu.Unlock()
		return true
	}
	cut := false
	if counted && p.limit >= 0 {
		if int64(len(data)) >= p.limit {
			data, cut = data[:p.limit], true
			p.limit = -1
		} else {
			p.limit -= int64(len(data))
		}
	}
	p.mu.Unlock()
	_, err := to.Write(data)
	if cut {
		p.Cut()
	}
	return err == nil && !cut
}
