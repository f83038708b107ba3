package ha

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// One listener serves raft and the nodes' own requests: the first byte of a
// connection, after the TLS handshake, says which. Then comes the dialer's
// cluster id (one byte length), so that nodes of two clusters whose addresses
// got mixed up do not talk.
const (
	kindRaft    = 'R'
	kindRequest = 'Q'
)

const (
	handshakeTimeout = 5 * time.Second
	// maxConns bounds connections from peers: each keeps a few, an attacker many.
	maxConns = 256
)

// transport makes raft's transport: in memory for a node that is alone, else
// over the mux.
func (n *Node) transport(shim *hclogger) (raft.Transport, error) {
	if n.cfg.alone() {
		_, t := raft.NewInmemTransport(raft.ServerAddress(n.cfg.NodeID))
		return t, nil
	}
	creds, err := newPeerTLS(n.cfg)
	if err != nil {
		return nil, err
	}
	ln := n.cfg.listener
	if ln == nil {
		if ln, err = net.Listen("tcp", n.cfg.Listen); err != nil {
			return nil, fmt.Errorf("listening for peers: %w", err)
		}
	}
	n.mux = &mux{
		ln: ln, creds: creds, log: n.log, cluster: n.fsm.cluster,
		raftConns: make(chan net.Conn), done: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:                  raftStream{n.mux, raft.ServerAddress(n.cfg.Advertise)},
		ServerAddressProvider:   addresses{n.cfg.Peers},
		MaxPool:                 3,
		Timeout:                 n.cfg.networkTimeout(),
		Logger:                  shim,
		MsgpackUseNewTimeFormat: true,
	}), nil
}

// addresses finds a node's address by its name at each dial; the one in raft's
// configuration is of the day the node was added.
type addresses struct{ peers []Peer }

// ServerAddr implements raft.ServerAddressProvider.
func (a addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	for _, p := range a.peers {
		if p.ID == nodeName(id) {
			return raft.ServerAddress(p.Addr), nil
		}
	}
	return "", fmt.Errorf("node %s is not among the configured peers", id)
}

// mux owns the listener and every connection to and from peers.
type mux struct {
	ln        net.Listener
	creds     *peerTLS // nil: plain TCP
	log       *slog.Logger
	cluster   func() string
	raftConns chan net.Conn
	done      chan struct{}

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// serve accepts connections until ctx ends or the mux is closed, and returns
// when all request handlers have.
func (m *mux) serve(ctx context.Context, handle func(context.Context, net.Conn)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer m.close()
	stop := context.AfterFunc(ctx, m.close)
	defer stop()
	pause := 5 * time.Millisecond
	for {
		conn, err := m.ln.Accept()
		if err != nil {
			select {
			case <-m.done:
				return
			case <-time.After(pause):
			}
			m.log.Warn("accepting a peer's connection", "error", err)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		if !m.track(conn) {
			_ = conn.Close() // nothing was said on it
			continue
		}
		wg.Go(func() { m.welcome(ctx, conn, handle) })
	}
}

func (m *mux) track(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.conns) >= maxConns {
		return false
	}
	m.conns[conn] = struct{}{}
	return true
}

// drop closes a connection; nil-safe use after close is fine.
func (m *mux) drop(conn net.Conn) {
	m.mu.Lock()
	delete(m.conns, conn)
	m.mu.Unlock()
	_ = conn.Close() // both sides cope with a cut at any place
}

// welcome does the handshake of an accepted connection and hands it on.
func (m *mux) welcome(ctx context.Context, raw net.Conn, handle func(context.Context, net.Conn)) {
	conn, kind, err := m.handshake(ctx, raw)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			m.log.Warn("refusing a peer's connection", "remote", raw.RemoteAddr().String(), "error", err)
		}
		m.drop(raw)
		return
	}
	tracked := trackedConn{conn, raw, m}
	if kind == kindRequest {
		handle(ctx, tracked)
		m.drop(raw)
		return
	}
	select {
	case m.raftConns <- tracked: // raft closes it
	case <-m.done:
		m.drop(raw)
	}
}

func (m *mux) handshake(ctx context.Context, raw net.Conn) (_ net.Conn, kind byte, err error) {
	if err := raw.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, 0, err
	}
	conn := raw
	if m.creds != nil {
		if conn, err = m.creds.accept(ctx, raw); err != nil {
			return nil, 0, err
		}
	}
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, 0, err
	}
	theirs := make([]byte, head[1])
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return nil, 0, err
	}
	if head[0] != kindRaft && head[0] != kindRequest {
		return nil, 0, fmt.Errorf("first byte %#x is no protocol of ours", head[0])
	}
	if ours := m.cluster(); head[0] == kindRaft && ours != "" && len(theirs) > 0 && string(theirs) != ours {
		return nil, 0, fmt.Errorf("%w: the peer is of cluster %q, this node of %q", ErrForeignState, theirs, ours)
	}
	return conn, head[0], raw.SetDeadline(time.Time{})
}

// dial connects to a peer and says what for.
func (m *mux) dial(ctx context.Context, addr string, kind byte) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the dial
		select {
		case <-m.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dialing peer: %w", err)
	}
	if !m.track(raw) {
		return nil, errors.Join(ErrShuttingDown, raw.Close())
	}
	conn := raw
	if m.creds != nil {
		if conn, err = m.creds.dial(ctx, raw, addr); err != nil {
			m.drop(raw)
			return nil, fmt.Errorf("dialing peer %s: %w", addr, err)
		}
	}
	id := m.cluster()
	if _, err := conn.Write(append([]byte{kind, byte(len(id))}, id...)); err != nil {
		m.drop(raw)
		return nil, fmt.Errorf("dialing peer %s: %w", addr, err)
	}
	return trackedConn{conn, raw, m}, nil
}

// close cuts everything. It may be called more than once.
func (m *mux) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	close(m.done)
	_ = m.ln.Close()
	for c := range m.conns {
		_ = c.Close() // the other side sees a cut, which it must cope with anyway
	}
}

// trackedConn leaves the mux's list when it is closed.
type trackedConn struct {
	net.Conn
	raw net.Conn
	m   *mux
}

func (c trackedConn) Close() error {
	c.m.drop(c.raw)
	return nil
}

// raftStream is the mux as raft.StreamLayer.
type raftStream struct {
	m         *mux
	advertise raft.ServerAddress
}

var _ raft.StreamLayer = raftStream{}

// Accept implements net.Listener.
func (s raftStream) Accept() (net.Conn, error) {
	select {
	case c := <-s.m.raftConns:
		return c, nil
	case <-s.m.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s raftStream) Close() error {
	s.m.close()
	return nil
}

// Addr implements net.Listener; raft takes it as this node's address.
func (s raftStream) Addr() net.Addr { return advertised(s.advertise) }

// Dial implements raft.StreamLayer.
func (s raftStream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.m.dial(ctx, string(addr), kindRaft)
}

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
