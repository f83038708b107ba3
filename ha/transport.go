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
// connection, after the TLS handshake, says which. Then come, with one byte of
// length each, the dialer's cluster id, so that nodes of two clusters whose
// addresses got mixed up do not talk; the raft id that the dialer expects here
// (empty for requests); and the dialer's own.
const (
	kindRaft    = 'R'
	kindRequest = 'Q'
)

const (
	handshakeTimeout = 5 * time.Second
	// maxWaiting bounds the connections that have not said yet who they are, and
	// maxWaitingOf those from one address: a peer has a few for milliseconds, a
	// stranger many for as long as he may.
	maxWaiting, maxWaitingOf = 256, 64
	// maxRequests and maxRaftConns bound those that have. Requests are rare and may
	// wait for each other; raft keeps a few connections open for each member.
	maxRequests, maxRaftConns = 64, 128
	// maxMessage bounds a request in bytes, maxHeader its header.
	maxMessage, maxHeader = 2 * maxCommand, 32 << 10
	// maxLarge bounds the requests at hand that are larger than smallMessage, in bytes.
	maxLarge, smallMessage = 4, 64 << 10
)

// mux owns the listener and every connection to and from peers.
type mux struct {
	ln        net.Listener
	dialer    func(ctx context.Context, network, address string) (net.Conn, error)
	creds     *peerTLS // nil: plain TCP
	log       *slog.Logger
	cluster   func() string
	self      raft.ServerID
	lost      chan raft.ServerID // who has closed its last raft connection to us; lossy
	raftConns chan net.Conn
	asking    chan net.Conn // with requests to come
	requests  chan struct{} // holds one for each request that is being answered
	large     chan struct{} // holds one for each large one that is read or answered
	waiting   *waitingRoom
	life      context.Context //nolint:containedctx // ends when the mux is closed
	end       context.CancelFunc

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	from   map[raft.ServerID]int // open raft connections that a node has to us
	inRaft int                   // their number
}

// serve accepts connections until ctx ends or the mux is closed, and returns when all
// handshakes have.
func (m *mux) serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer m.close()
	stop := context.AfterFunc(ctx, m.close)
	defer stop()
	pause := 5 * time.Millisecond
	for {
		conn, err := m.ln.Accept()
		if err != nil {
			if !sleep(m.life, pause) {
				return
			}
			m.log.Warn("accepting a peer's connection", "error", err)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		leave, full := m.waiting.enter(conn)
		if full != nil {
			m.refuse(conn, full)
			continue
		}
		if !m.track(conn) {
			leave()
			_ = conn.Close() // nothing was said on it
			continue
		}
		wg.Go(func() { m.welcome(ctx, conn, leave) })
	}
}

func (m *mux) track(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
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

// welcome does the handshake of an accepted connection and hands it on. leave gives
// up its place among those that wait, which is kept until a request is read.
func (m *mux) welcome(ctx context.Context, raw net.Conn, leave func()) {
	conn, h, err := m.handshake(ctx, raw)
	tracked := &trackedConn{Conn: conn, raw: raw, m: m, preamble: h, leave: leave}
	to := m.asking
	if err != nil || h.kind == kindRaft {
		to, tracked.leave = m.raftConns, func() {}
		leave()
	}
	if err == nil && h.kind == kindRaft {
		err = m.enter(tracked)
	}
	if err != nil {
		m.refuse(raw, err)
		return
	}
	select {
	case to <- tracked: // who takes it closes it
	case <-m.life.Done():
		_ = tracked.Close() // the other side sees a cut
	}
}

// enter counts a raft connection, until it is closed.
func (m *mux) enter(c *trackedConn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inRaft >= maxRaftConns {
		return fmt.Errorf("there are %d raft connections already", maxRaftConns)
	}
	m.inRaft++
	m.from[c.source]++
	c.leave = func() { m.leave(c.source) }
	return nil
}

// takeTurn puts one into a channel that has room for as many as there may be.
func (m *mux) takeTurn(turns chan struct{}, what string) error {
	timer := time.NewTimer(handshakeTimeout)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: %d %s, and none has ended for %s", ErrBusy, cap(turns), what, handshakeTimeout)
	case <-m.life.Done():
		return ErrShuttingDown
	}
}

// refuse ends an accepted connection and says why, not for each one when they are many.
func (m *mux) refuse(raw net.Conn, err error) {
	if more, say := m.waiting.say(time.Now()); say && !errors.Is(err, ErrShuttingDown) {
		m.log.Warn("refusing a peer's connection", "remote", raw.RemoteAddr().String(), "error", err, "others_meanwhile",
			more)
	}
	m.drop(raw)
}

// leave forgets a raft connection that a node had to us, and tells when it was
// the last: of a process that is gone, none is left.
func (m *mux) leave(id raft.ServerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inRaft--
	if m.from[id]--; m.from[id] > 0 || m.life.Err() != nil {
		return
	}
	delete(m.from, id)
	select {
	case m.lost <- id:
	default: // one notice is enough
	}
}

// preamble is how a connection begins.
type preamble struct {
	kind           byte
	cluster        string
	target, source raft.ServerID
}

func (p preamble) encode() []byte {
	b := []byte{p.kind}
	for _, s := range []string{p.cluster, string(p.target), string(p.source)} {
		b = append(append(b, byte(len(s))), s...) // ids are bounded by Config.Validate
	}
	return b
}

func readPreamble(r io.Reader) (p preamble, err error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return p, err
	}
	p.kind = kind[0]
	if p.kind != kindRaft && p.kind != kindRequest {
		return p, fmt.Errorf("first byte %#x is no protocol of ours", p.kind)
	}
	for _, s := range []*string{&p.cluster, (*string)(&p.target), (*string)(&p.source)} {
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return p, err
		}
		text := make([]byte, length[0])
		if _, err := io.ReadFull(r, text); err != nil {
			return p, err
		}
		*s = string(text)
	}
	return p, nil
}

func (m *mux) handshake(ctx context.Context, raw net.Conn) (_ net.Conn, p preamble, err error) {
	if err := raw.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, p, err
	}
	conn := raw
	if m.creds != nil {
		if conn, err = m.creds.accept(ctx, raw); err != nil {
			return nil, p, err
		}
	}
	if p, err = readPreamble(conn); err != nil {
		return nil, p, err
	}
	if p.kind == kindRaft {
		if ours := m.cluster(); ours != "" && p.cluster != "" && p.cluster != ours {
			return nil, p, fmt.Errorf("%w: the peer is of cluster %q, this node of %q", ErrForeignState, p.cluster, ours)
		}
		if p.target != m.self {
			return nil, p, fmt.Errorf("%w: the peer looks for node %q, this is %q", ErrForeignState, p.target, m.self)
		}
	}
	return conn, p, raw.SetDeadline(time.Time{})
}

// dial connects to a peer and says what for. addr is host:port, for raft with
// the id in front.
func (m *mux) dial(ctx context.Context, addr string, kind byte) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	ctx, release := both(ctx, m.life)
	defer release()
	id, addr := target(addr)
	raw, err := m.dialer(ctx, "tcp", addr)
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
	if _, err := conn.Write(preamble{kind, m.cluster(), id, m.self}.encode()); err != nil {
		m.drop(raw)
		return nil, fmt.Errorf("dialing peer %s: %w", addr, err)
	}
	return &trackedConn{Conn: conn, raw: raw, m: m, leave: func() {}}, nil
}

// probe connects and says nothing.
func (m *mux) probe(ctx context.Context, addr string) error {
	conn, err := m.dialer(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// close cuts everything. It may be called more than once.
func (m *mux) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
	_ = m.ln.Close()
	for c := range m.conns {
		_ = c.Close() // the other side sees a cut, which it must cope with anyway
	}
}

// trackedConn leaves the mux's list when it is closed.
type trackedConn struct {
	net.Conn
	preamble

	raw   net.Conn
	m     *mux
	leave func() // gives up the place of a connection that was accepted
	once  sync.Once
}

// Close implements net.Conn. Raft closes what it accepted when the other side has.
func (c *trackedConn) Close() error {
	c.once.Do(func() {
		c.m.drop(c.raw)
		c.leave()
	})
	return nil
}

// stream is what the mux accepts of one kind, as net.Listener and raft.StreamLayer.
type stream struct {
	m         *mux
	conns     chan net.Conn
	advertise raft.ServerAddress
}

var _ raft.StreamLayer = stream{}

// Accept implements net.Listener.
func (s stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.m.life.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s stream) Close() error {
	s.m.close()
	return nil
}

// Addr implements net.Listener; raft takes it as this node's address.
func (s stream) Addr() net.Addr { return advertised(s.advertise) }

// Dial implements raft.StreamLayer.
func (s stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.m.dial(ctx, string(addr), kindRaft)
}

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
