package kafkatest

import (
	"context"
	"errors"
	"net"
	"sync"
)

var errDropped = errors.New("connection dropped by the test")

// Network is what lies between the clients and the brokers of a Cluster. All its
// methods are safe for concurrent use.
type Network struct {
	mu     sync.Mutex
	conns  map[*pausable]struct{}
	paused chan struct{} // closed by Resume; nil while running
	dials  int
}

// Listen is for kfake.ListenFn.
func (n *Network) Listen(network, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, network: n}, nil
}

// Pause turns all brokers into black holes: connections are accepted, but nothing
// is read and nothing answered until Resume.
func (n *Network) Pause() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused == nil {
		n.paused = make(chan struct{})
	}
}

// Resume ends Pause. What was written meanwhile is then read.
func (n *Network) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused != nil {
		close(n.paused)
		n.paused = nil
	}
}

// Cut closes all connections; new ones are accepted.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Conn.Close() // that is the point
	}
}

// Dials returns how many connections were accepted so far.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

func (n *Network) gate() chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

type listener struct {
	net.Listener
	network *Network
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &pausable{Conn: c, network: l.network}
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.conns == nil {
		l.network.conns = map[*pausable]struct{}{}
	}
	l.network.conns[p] = struct{}{}
	l.network.dials++
	return p, nil
}

type pausable struct {
	net.Conn
	network *Network
}

func (p *pausable) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if g := p.network.gate(); g != nil {
		<-g
	}
	return n, err
}

func (p *pausable) Write(b []byte) (int, error) {
	if g := p.network.gate(); g != nil {
		<-g
	}
	return p.Conn.Write(b)
}

func (p *pausable) Close() error {
	p.network.mu.Lock()
	delete(p.network.conns, p)
	p.network.mu.Unlock()
	return p.Conn.Close()
}
