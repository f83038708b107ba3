package servers

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func dialable(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", addr(0))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	return listener.Addr().String()
}

func proxied(t *testing.T) *Proxy {
	t.Helper()
	target := echo(t)
	p, err := StartProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// talker is a client of the echo server.
type talker struct {
	net.Conn
	in *bufio.Reader
}

func talk(t *testing.T, p *Proxy) *talker {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &talker{conn, bufio.NewReader(conn)}
}

func (c *talker) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *talker) hear(limit time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

const (
	longEnough = 10 * time.Second      // for what must come
	aWhile     = 50 * time.Millisecond // for what must not
)

func (c *talker) mustHear(t *testing.T, want string) {
	t.Helper()
	if got, err := c.hear(longEnough); err != nil || got != want {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func (c *talker) mustEnd(t *testing.T) {
	t.Helper()
	if got, err := c.hear(longEnough); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v; want the end", got, err)
	}
}

func (c *talker) mustHearNothing(t *testing.T) {
	t.Helper()
	if got, err := c.hear(aWhile); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v; want nothing", got, err)
	}
}

func TestProxyCut(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	one.say(t, "a")
	one.mustHear(t, "a")
	p.Cut()
	one.mustEnd(t)
	two := talk(t, p)
	two.say(t, "b")
	two.mustHear(t, "b")
}

func TestProxyRefuse(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	one.say(t, "a")
	one.mustHear(t, "a")
	p.Refuse(true)
	talk(t, p).mustEnd(t)
	one.say(t, "b")
	one.mustHear(t, "b")
	p.Refuse(false)
	two := talk(t, p)
	two.say(t, "c")
	two.mustHear(t, "c")
}

func TestProxyBlackhole(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	one.say(t, "a")
	one.mustHear(t, "a")
	p.Blackhole(true)
	one.say(t, "b")
	one.mustHearNothing(t)
	p.Blackhole(false)
	one.say(t, "c")
	one.mustHear(t, "c") // b is lost
}

func TestProxyPause(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	p.Pause(true)
	one.say(t, "a")
	one.say(t, "b")
	one.mustHearNothing(t)
	p.Pause(false)
	one.mustHear(t, "a")
	one.mustHear(t, "b")
}

func TestProxyCutWhilePaused(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	p.Pause(true)
	one.say(t, "a")
	one.mustHearNothing(t)
	p.Cut()
	one.mustEnd(t)
}

func TestProxyLatency(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	one.say(t, "a")
	one.mustHear(t, "a")
	const each = 60 * time.Millisecond
	p.Latency(each)
	start := time.Now()
	one.say(t, "b")
	one.mustHear(t, "b")
	if took := time.Since(start); took < 2*each {
		t.Errorf("there and back took %s, less than twice %s", took, each)
	}
}

func TestProxyCutAfter(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit int64
		heard string
	}{
		{"within what is sent", 5, "01234"},
		{"at its end", 10, "0123456789"},
		{"at once", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := proxied(t)
			one := talk(t, p)
			one.say(t, "a")
			one.mustHear(t, "a")
			p.CutAfter(test.limit)
			if _, err := io.WriteString(one, "0123456789"); err != nil {
				t.Fatal(err)
			}
			if err := one.SetReadDeadline(time.Now().Add(longEnough)); err != nil {
				t.Fatal(err)
			}
			heard, err := io.ReadAll(one.in)
			if errors.Is(err, os.ErrDeadlineExceeded) || string(heard) != test.heard {
				t.Errorf("heard %q, %v; want %q", heard, err, test.heard)
			}
			two := talk(t, p)
			two.say(t, "b")
			two.mustHear(t, "b")
		})
	}
}

func TestProxyWithoutServer(t *testing.T) {
	p, err := StartProxy(addr(1))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	talk(t, p).mustEnd(t)
}

// A host that swallows packets: open connections hear nothing, new ones are not made,
// and afterwards all is as before.
func TestProxySwallow(t *testing.T) {
	p := proxied(t)
	one := talk(t, p)
	one.say(t, "a")
	one.mustHear(t, "a")
	for range 2 {
		if err := p.Swallow(true); err != nil {
			t.Fatal(err)
		}
		one.say(t, "b")
		one.mustHearNothing(t)
		if c, err := net.DialTimeout("tcp", p.Addr(), 300*time.Millisecond); err == nil {
			c.Close()
			t.Error("a connection was made")
		} else if timeout := (net.Error)(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("dialling: %v, want a time-out", err)
		}
		if err := p.Swallow(false); err != nil {
			t.Fatal(err)
		}
		one.mustEnd(t)
		one = talk(t, p)
		one.say(t, "c")
		one.mustHear(t, "c")
	}
}
