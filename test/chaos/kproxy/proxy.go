package kproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Action is what becomes of one request.
type Action uint8

// The actions. Those that cut close the client's connection, so that the client
// does not know what became of the request.
const (
	// Pass hands the request on and the answer back.
	Pass Action = iota
	// Slow does so after the delay; requests behind it wait.
	Slow
	// Drop cuts, and the request is gone.
	Drop
	// Lose hands the request on and cuts when it is answered.
	Lose
	// Late cuts, and hands the request on after the delay on a connection of its
	// own: the client has long sent it again by then (KAFKA-17754).
	Late
	// Copy does as Lose and sends the same request again after the delay.
	Copy
	// Stall says nothing, and hands the request on after the delay, which should be
	// longer than the client waits for an answer.
	Stall
)

var actionNames = [...]string{"pass", "slow", "drop", "lose", "late", "copy", "stall"}

// String names the action as in counts.
func (a Action) String() string { return actionNames[a] }

// Fate is what becomes of one request. Until, if not nil, is waited for in place
// of Delay.
type Fate struct {
	Action Action
	Delay  time.Duration
	Until  <-chan struct{}
}

// Decider says what becomes of a request. It is called by several goroutines.
type Decider func(Request) Fate

// Proxy stands between one client and a cluster. All methods may be called from
// several goroutines.
type Proxy struct {
	decide atomic.Pointer[Decider]
	ctx    context.Context //nolint:containedctx // the life of its goroutines, ended by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]struct{}
	counts    map[string]int
}

// New returns a proxy that passes everything. The caller closes it.
func New() *Proxy {
	p := &Proxy{conns: map[net.Conn]struct{}{}, counts: map[string]int{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Decide sets who says what becomes of requests; nil passes all of them.
func (p *Proxy) Decide(d Decider) {
	if d == nil {
		p.decide.Store(nil)
		return
	}
	p.decide.Store(&d)
}

// Counts returns how often what was done, under names as "EndTxn late", and how
// requests were answered that the client had given up: "EndTxn late answered 90".
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

func (p *Proxy) count(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[fmt.Sprintf(format, args...)]++
}

// dialFunc opens a connection to the broker that a client wants.
type dialFunc func(ctx context.Context) (net.Conn, error)

// Listen takes connections on a free loopback port and passes them on to the
// broker at backend. It returns the address to advertise.
func (p *Proxy) Listen(backend string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errors.Join(net.ErrClosed, l.Close())
	}
	p.listeners = append(p.listeners, l)
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", backend)
	}
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.start(client, dial)
		}
	})
	return l.Addr().String(), nil
}

// Dialer returns a dial function whose connections lead through the proxy, for a
// client in the same process. dial opens those to the brokers.
func (p *Proxy) Dialer(dial func(ctx context.Context, network, address string) (net.Conn,
	error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		backend, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ours, theirs := net.Pipe()
		first := backend
		ok := p.start(ours, func(ctx context.Context) (net.Conn, error) {
			if c := first; c != nil {
				first = nil
				return c, nil
			}
			return dial(ctx, network, address)
		})
		if !ok {
			return nil, errors.Join(net.ErrClosed, backend.Close())
		}
		return theirs, nil
	}
}

// start serves a client's connection until either side ends; false when the proxy
// is closed.
func (p *Proxy) start(client net.Conn, dial dialFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = client.Close() // the client sees it
		return false
	}
	p.conns[client] = struct{}{}
	p.wg.Go(func() {
		defer p.forget(client)
		backend, err := dial(p.ctx)
		if err != nil {
			return
		}
		if !p.track(backend) {
			return
		}
		defer p.forget(backend)
		s := &session{proxy: p, client: client, backend: backend, dial: dial, fates: map[uint32]sent{}}
		s.run()
	})
	return true
}

func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close() // nobody uses it
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close() // it is of no use any more
}

// Cut closes all connections. New ones pass.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // that is the point
	}
}

// Close cuts all connections, gives requests up that are held, and waits for its
// goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	var errs []error
	for _, l := range p.listeners {
		errs = append(errs, l.Close())
	}
	p.listeners = nil
	for c := range p.conns {
		_ = c.Close() // that is the point
	}
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}

func (p *Proxy) fate(r Request) Fate {
	d := p.decide.Load()
	if d == nil {
		return Fate{}
	}
	f := (*d)(r)
	if f.Action != Pass {
		p.count("%s %s", r.Name(), f.Action)
	}
	return f
}

// wait waits as long as f says; false when the proxy is closed meanwhile.
func (p *Proxy) wait(f Fate) bool {
	var after <-chan time.Time
	if f.Until == nil {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-after:
	case <-f.Until:
	case <-p.ctx.Done():
		return false
	}
	return true
}

// later sends a request on a connection of its own and counts the answer.
func (p *Proxy) later(r Request, f Fate, dial dialFunc) {
	p.wg.Go(func() {
		if !p.wait(f) {
			return
		}
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		defer cancel()
		c, err := dial(ctx)
		if err != nil || !p.track(c) {
			p.count("%s %s never arrived", r.Name(), f.Action)
			return
		}
		defer p.forget(c)
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return
		}
		if _, err := c.Write(r.Frame); err != nil {
			p.count("%s %s never arrived", r.Name(), f.Action)
			return
		}
		answer, err := readFrame(c)
		if err != nil {
			p.count("%s %s not answered", r.Name(), f.Action)
			return
		}
		p.count("%s %s answered %s", r.Name(), f.Action, r.answerCode(answer))
	})
}
