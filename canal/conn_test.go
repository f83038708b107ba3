package canal_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// A host whose packets are dropped does not hold an opening for as long as the
// system's own time-outs, two minutes.
func TestConnectTimeoutBoundsTheDial(t *testing.T) {
	f := newFake(t, events(mysqlLog(), silence))
	f.cfg.ConnectTimeout = 200 * time.Millisecond
	f.cfg.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := canal.Open(t.Context(), f.cfg, set(t, sid.String()+":1-100"))
		opened <- err
	}()
	select {
	case err := <-opened:
		wantError(t, err, canal.Unreachable, position.GTID{}, "127.0.0.1", "deadline")
	case <-time.After(patience):
		t.Fatal("the dial has no bound")
	}
}

// A server that logs somebody in a byte at a time, each well within the time-out.
func TestConnectTimeoutBoundsTheLogin(t *testing.T) {
	noLeaks(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for b := []byte{0xff, 0xff, 0, 0, 10}; ; b = []byte{'8'} {
				if _, err := c.Write(b); err != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			_ = c.Close()
		}
	}()
	cfg := canal.Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "u",
		ConnectTimeout: 300 * time.Millisecond}
	inspected := make(chan error, 1)
	go func() {
		_, err := canal.Inspect(t.Context(), cfg)
		inspected <- err
	}()
	select {
	case err := <-inspected:
		wantError(t, err, canal.Unreachable, position.GTID{})
	case <-time.After(patience):
		t.Fatal("the login has no bound")
	}
}

// Close ends the stream at once, whatever the network does.
func TestCloseEndsADial(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(101), func() { insert(b, 1) })
	f := newFake(t, events(b, silence))
	f.cfg.ConnectTimeout = time.Hour
	f.cfg.Heartbeat = time.Hour
	var dials atomic.Int64
	dialing := make(chan struct{})
	f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) < 3 {
			return dialTCP(ctx, network, address)
		}
		close(dialing) // this one asks for the columns of the outbox table, and the network has gone
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	r := f.open(set(t, sid.String()+":1-100"))
	<-dialing
	closed := make(chan struct{})
	go func() { _ = r.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close waits for a connection that is still being made")
	}
}

// A server that has many or cold binlogs takes long to find the place of a GTID set,
// and says nothing meanwhile: heartbeats come with the events. It is waited for, and
// asked once.
func TestB019SlowSeekIsWaitedFor(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(101), func() { insert(b, 1) })
	serve := events(b, silence)
	f := newFake(t, func(d canaltest.Dump, to *canaltest.Sender) error {
		time.Sleep(800 * time.Millisecond)
		return serve(d, to)
	})
	f.cfg.Heartbeat = 50 * time.Millisecond
	f.open(set(t, sid.String()+":1-100")).until(1)
	if n := len(f.Dumps()); n != 1 {
		t.Errorf("the binlog was asked for %d times", n)
	}
}

// A server that does not answer elsewhere either is not waited for, nor is one that
// has begun to send.
func TestB019SilenceIsTold(t *testing.T) {
	b := mysqlLog()
	b.Transaction(gtid(101), func() { insert(b, 1) })
	for name, log := range map[string]*canaltest.Binlog{"seeking": mysqlLog(), "sending": b} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, events(log, silence))
			f.cfg.Heartbeat, f.cfg.ConnectTimeout = 50*time.Millisecond, 500*time.Millisecond
			var hangs atomic.Bool
			f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				if hangs.Load() {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return dialTCP(ctx, network, address)
			}
			r := f.open(set(t, sid.String()+":1-100"))
			hangs.Store(name == "seeking")
			if e := r.fails(); e.Kind != canal.Disconnected {
				t.Errorf("got %v", e)
			}
		})
	}
}
