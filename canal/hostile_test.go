package canal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// mangled is a connection to a server that turned hostile: of what it sends, each
// change replaces, drops, repeats or inserts bytes.
type mangled struct {
	net.Conn
	changes []change
	at      int // in what the server really sent
	left    []byte
}

type change struct {
	at   int
	what byte
	arg  byte
}

// changesOf reads changes for one connection: four bytes each.
func changesOf(script []byte, conn int) (all []change) {
	for ; len(script) >= 4; script = script[4:] {
		if int(script[0]>>6) == conn%4 {
			all = append(all, change{at: int(script[0]&0x3f)<<8 | int(script[1]), what: script[2], arg: script[3]})
		}
	}
	return all
}

func (c *mangled) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		buf := make([]byte, 4096)
		n, err := c.Conn.Read(buf)
		if n == 0 {
			return 0, err
		}
		c.left = c.mangle(buf[:n])
		c.at += n
		if len(c.left) == 0 {
			return c.Read(p)
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *mangled) mangle(sent []byte) []byte {
	out := bytes.Clone(sent)
	for _, ch := range c.changes {
		i := ch.at - c.at
		if i < 0 || i >= len(sent) || i >= len(out) {
			continue
		}
		switch ch.what % 6 {
		case 0:
			out[i] = ch.arg
		case 1: // a length, mostly
			copy(out[i:], []byte{0xff, 0xff, 0xff, ch.arg})
		case 2:
			out = append(out[:i:i], out[min(len(out), i+int(ch.arg)):]...)
		case 3:
			out = append(out, out[i:]...)
		case 4:
			out = append(out[:i:i], bytes.Repeat([]byte{ch.arg}, 1000)...)
		case 5:
			out[i] ^= 1 << (ch.arg % 8)
		}
	}
	return out
}

// hostile reads from a server whose answers and events are mangled, until an error.
func hostile(t *testing.T, script []byte) error {
	t.Helper()
	b := mysqlLog()
	b.Transaction(gtid(101), func() { foreignRows(b); insert(b, 1, 2) })
	b.GTID(gtid(102), 0, 0)
	b.Compressed(func(in *canaltest.Binlog) { in.Query("shop", "BEGIN"); insert(in, 3); in.XID() })
	b.Heartbeat("binlog.000001")
	b.Rotate("binlog.000002")
	f := startFake(t, events(b, func(to *canaltest.Sender) error { to.Cut(); return io.EOF }))
	f.cfg.Heartbeat, f.cfg.ConnectTimeout, f.cfg.MaxUncompressed = 100*time.Millisecond, 500*time.Millisecond, 1<<20
	var mu sync.Mutex
	dials := 0
	f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialTCP(ctx, network, address)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		dials++
		return &mangled{Conn: c, changes: changesOf(script, dials-1)}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := canal.Open(ctx, f.cfg, set(t, sid.String()+":1-100"))
	if err != nil {
		return err
	}
	defer s.Close()
	for err == nil {
		_, err = s.Next(ctx)
	}
	return err
}

func wantOwn(t *testing.T, script []byte, err error) {
	t.Helper()
	var own *canal.Error
	if !errors.As(err, &own) || own.Kind == 0 || own.Kind.String() == "unknown" {
		t.Errorf("script %x: %v", script, err)
	}
}

// FuzzHostileServer talks to a server that sends anything in place of what it should:
// no panic, an error that names its kind in bounded time, and no goroutine left.
func FuzzHostileServer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x00, 0, 1, 0})       // the greeting's length
	f.Add([]byte{0x40, 0x60, 4, 0xff}) // the dump's login
	f.Add([]byte{0x42, 0, 1, 3, 0x43, 0, 2, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 64 {
			return
		}
		noLeaks(t)
		wantOwn(t, script, hostile(t, script))
	})
}

// The same with what chance says, so that each run of the tests sees some of it.
func TestHostileServer(t *testing.T) {
	noLeaks(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var most uint64
	for range 60 {
		script := make([]byte, 4*(1+dice.IntN(4)))
		for i := range script {
			script[i] = byte(dice.Uint32())
		}
		for i := 0; i < len(script); i += 4 {
			script[i] = script[i]&0xc0 | byte(dice.IntN(6)) // where there is something to mangle
		}
		begin := time.Now()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		before := m.TotalAlloc
		err := hostile(t, script)
		runtime.ReadMemStats(&m)
		most = max(most, m.TotalAlloc-before)
		wantOwn(t, script, err)
		if took := time.Since(begin); took > patience {
			t.Errorf("script %x: %s", script, took)
		}
	}
	if most > 256<<20 {
		t.Errorf("%d MiB were allocated for one connection", most>>20)
	}
}

// flooded is a connection to a server whose answer to a question does not end.
type flooded struct {
	net.Conn
	question []byte
	flood    *endless
}

func (c *flooded) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.question) {
		c.flood = &endless{sequence: 1}
	}
	return c.Conn.Write(b)
}

func (c *flooded) Read(p []byte) (int, error) {
	if c.flood != nil {
		return c.flood.Read(p)
	}
	return c.Conn.Read(p)
}

// An answer without end ends all the same, and takes little memory.
func TestHostileAnswersHaveALimit(t *testing.T) {
	for _, question := range []string{"SHOW GLOBAL VARIABLES", "gtid_executed", "SHOW BINARY LOGS", "checksum"} {
		t.Run(question, func(t *testing.T) {
			f := newFake(t, events(mysqlLog(), silence))
			f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dialTCP(ctx, network, address)
				return &flooded{Conn: c, question: []byte(question)}, err
			}
			from := set(t, sid.String()+":1-100")
			if question == "SHOW BINARY LOGS" {
				from = position.Position{File: "binlog.000010", Pos: 777}
			}
			var err error
			if n := peak(func() { _, err = canal.Open(t.Context(), f.cfg, from) }); n > 256 {
				t.Errorf("it takes %d MiB of memory", n)
			}
			wantOwn(t, nil, err)
			if err == nil || !strings.Contains(err.Error(), "larger than any") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// scripted is a connection to a server that answers a question with certain packets.
type scripted struct {
	net.Conn
	question []byte
	answer   []byte
	repeat   []byte // behind it, up to 31 MiB, which an answer may have
	sent     int
	asked    bool
	sequence byte
}

// eof ends columns, and rows.
var eof = []byte{5, 0, 0, 0, 0xfe, 0, 0, 2, 0}

func (c *scripted) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.question) {
		c.asked, c.sequence = true, 1
		c.answer = c.packets(c.answer)
	}
	return c.Conn.Write(b)
}

// packets numbers what is written with number 0.
func (c *scripted) packets(b []byte) []byte {
	b = bytes.Clone(b)
	for at := 0; at < len(b); at += 4 + int(b[at]) {
		b[at+3] = c.sequence
		c.sequence++
	}
	return b
}

func (c *scripted) Read(p []byte) (int, error) {
	if !c.asked {
		return c.Conn.Read(p)
	}
	switch {
	case len(c.answer) > 0:
	case c.repeat == nil:
		return c.Conn.Read(p)
	case c.sent < 31<<20:
		c.answer = c.packets(c.repeat)
	default:
		c.answer, c.repeat = c.packets(eof), nil
	}
	n := copy(p, c.answer)
	c.answer = c.answer[n:]
	c.sent += n
	return n, nil
}

// What a server announces takes no memory, and small cells take no more than large ones.
func TestHostileAnswersTakeLittleMemory(t *testing.T) {
	column := append([]byte{23, 0, 0, 0, 3, 'd', 'e', 'f', 0, 0, 0, 1, 'a', 0, 12, 63, 0, 1, 0, 0, 0, 253}, 0, 0, 0, 0, 0)
	head := func(columns byte) []byte {
		b := []byte{1, 0, 0, 0, columns}
		for range columns {
			b = append(b, column...)
		}
		return append(b, eof...)
	}
	nulls := func(n byte) []byte { return append([]byte{n, 0, 0, 0}, bytes.Repeat([]byte{0xfb}, int(n))...) }
	for name, c := range map[string]struct{ answer, repeat []byte }{
		"columns without end": {answer: []byte{9, 0, 0, 0, 0xfe, 0, 0, 0, 0, 0, 1, 0, 0}},
		"one small cell":      {answer: head(1), repeat: bytes.Repeat(nulls(1), 1000)},
		"small cells":         {answer: head(200), repeat: bytes.Repeat(nulls(200), 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, events(mysqlLog(), silence))
			f.cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialTCP(ctx, network, address)
				return &scripted{Conn: conn, question: []byte("gtid_executed"), answer: c.answer, repeat: c.repeat}, err
			}
			var err error
			if n := peak(func() { _, err = canal.Open(t.Context(), f.cfg, set(t, sid.String()+":1-100")) }); n > 256 {
				t.Errorf("it takes %d MiB of memory", n)
			}
			wantOwn(t, nil, err)
			if err == nil || !strings.Contains(err.Error(), "larger than any") {
				t.Errorf("got %v", err)
			}
		})
	}
}
