package ha

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// stranger dials the peers' port from an address of the machine's own network.
func stranger(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hear asks a node who it is, as a peer does.
func hear(t *testing.T, n *runningNode, addr string) {
	t.Helper()
	if h, err := n.hail(testContext(t), addr); err != nil || h.Name == "" {
		t.Errorf("asking %s: %+v %v", addr, h, err)
	}
}

// Whoever reaches the peers' port, without any certificate, keeps the node neither
// from reaching its peers nor its peers from reaching it: those that have not said who
// they are share the places, address by address.
func TestStrangersDoNotCutANodeOff(t *testing.T) {
	for _, ca := range []*authority{nil, newAuthority(t)} {
		for _, hosts := range []int{1, 8} {
			t.Run(fmt.Sprintf("TLS %t, from %d hosts", ca != nil, hosts), func(t *testing.T) {
				configs := clusterOf(t, 3, ca)
				victim, peer := start(t, configs[0]), start(t, configs[1])
				addr := configs[0].Peers[0].Addr
				for i := range 320 {
					stranger(t, fmt.Sprintf("127.0.0.%d", 2+i%hosts), addr)
				}
				waitUntil(t, "the strangers have their share", func() bool {
					victim.mux.waiting.mu.Lock()
					defer victim.mux.waiting.mu.Unlock()
					return victim.mux.waiting.total >= min(maxWaitingOf*hosts, maxWaiting)
				})
				for range 20 {
					hear(t, victim, configs[0].Peers[1].Addr)
					hear(t, peer, addr)
				}
				waitUntil(t, "nobody waits any more", func() bool {
					victim.mux.waiting.mu.Lock()
					defer victim.mux.waiting.mu.Unlock()
					return victim.mux.waiting.total == 0 && len(victim.mux.waiting.of) == 0
				})
			})
		}
	}
}

// hostiles are clients of the peers' port that do what none should.
var hostiles = map[string]func(c net.Conn, rnd *rand.Rand){
	"says nothing":    func(net.Conn, *rand.Rand) {},
	"half-open":       func(c net.Conn, _ *rand.Rand) { _ = c.(*net.TCPConn).CloseWrite() },
	"cuts":            func(c net.Conn, _ *rand.Rand) { _, _ = c.Write([]byte{kindRequest}); _ = c.Close() },
	"garbage":         func(c net.Conn, rnd *rand.Rand) { _, _ = c.Write(noise(rnd, 1+rnd.IntN(4096))) },
	"garbage after R": func(c net.Conn, rnd *rand.Rand) { _, _ = c.Write(append([]byte{kindRaft}, noise(rnd, 4096)...)) },
	"garbage after Q": func(c net.Conn, rnd *rand.Rand) { _, _ = c.Write(append(asking(), noise(rnd, 4096)...)) },
	"HTTP":            func(c net.Conn, _ *rand.Rand) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") },
	"Kafka": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write([]byte{0, 0, 0, 16, 0, 18, 0, 3, 0, 0, 0, 1, 0, 1, 'x', 0})
	},
	"the largest length":   func(c net.Conn, _ *rand.Rand) { _, _ = c.Write(posting(math.MaxInt64)) },
	"a length and nothing": func(c net.Conn, _ *rand.Rand) { _, _ = c.Write(posting(maxMessage)) },
	"most of a message": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write(posting(maxMessage))
		_, _ = c.Write(almost)
	},
	"deep JSON": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write(posting(len(deep)))
		_, _ = c.Write(deep)
	},
	"chunks without end": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write(append(asking(), "POST /ha/hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"...))
		for range 1 << 10 {
			if _, err := io.WriteString(c, "1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n"); err != nil {
				return
			}
		}
	},
	"a header without end": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write(append(asking(), "GET / HTTP/1.1\r\nX: "...))
		_, _ = c.Write(almost)
	},
	"an answer that is not read": func(c net.Conn, _ *rand.Rand) {
		_, _ = c.Write(append(posting(2), "{}"...))
		time.Sleep(time.Second)
	},
	"drips": func(c net.Conn, _ *rand.Rand) {
		for _, b := range posting(2) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	},
	"TLS that stops": func(c net.Conn, _ *rand.Rand) {
		_ = tls.Client(&cutAfter{c, 1}, &tls.Config{InsecureSkipVerify: true}).Handshake()
	},
	"TLS without a certificate": func(c net.Conn, _ *rand.Rand) {
		conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		_, _ = conn.Write(asking())
	},
}

// What is sent by many is there once: the attackers are in the same process.
var almost, deep = make([]byte, maxMessage-1), bytes.Repeat([]byte("["), 1<<20)

func asking() []byte { return preamble{kind: kindRequest, source: "x/y"}.encode() }

// posting is how a request with so many bytes begins.
func posting(bytes int) []byte {
	return fmt.Appendf(asking(), "POST /ha/hello HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", bytes)
}

func noise(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// cutAfter swallows what is written after so many writes.
type cutAfter struct {
	net.Conn
	left int
}

func (c *cutAfter) Write(b []byte) (int, error) {
	if c.left == 0 {
		return len(b), nil
	}
	c.left--
	return c.Conn.Write(b)
}

// All kinds of hostile clients at once, many of each: the node answers its peers
// meanwhile, takes a bounded amount of memory, and has forgotten them all after a while.
func TestHostileClients(t *testing.T) {
	const each = 16
	for _, ca := range []*authority{nil, newAuthority(t)} {
		t.Run(fmt.Sprintf("TLS %t", ca != nil), func(t *testing.T) {
			configs := clusterOf(t, 3, ca)
			victim, peer := start(t, configs[0]), start(t, configs[1])
			addr := configs[0].Peers[0].Addr
			base, before := victim.mux.open(), heap()
			var attackers sync.WaitGroup
			from := 2 // each kind has an address, and so a share of its own
			for _, attack := range hostiles {
				for i := range each {
					c := stranger(t, fmt.Sprintf("127.0.0.%d", from), addr)
					_ = c.SetDeadline(time.Now().Add(time.Minute)) // a victim that reads no more
					attackers.Go(func() { attack(c, rand.New(rand.NewPCG(uint64(i), 1))) })
				}
				from++
			}
			for range 10 {
				hear(t, peer, addr)
			}
			// Each large request that is read may have its largest size, in buffers that grow.
			if grown := heap() - before; grown > 4*maxLarge*maxMessage+64<<20 {
				t.Errorf("it takes %d MiB more", grown>>20)
			}
			attackers.Wait()
			waitUntil(t, "the strangers are gone", func() bool { return victim.mux.open() <= base+8 })
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (m *mux) open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}

// A node of another cluster, whose addresses got mixed up, has nothing carried out; one
// that does not know its cluster yet is heard.
func TestRequestsOfAnotherCluster(t *testing.T) {
	configs := clusterOf(t, 3, nil)
	n := start(t, configs[0])
	n.fsm.mu.Lock()
	n.fsm.img.Cluster = "ours"
	n.fsm.mu.Unlock()
	command, err := (&command{Op: opDelete, Connector: "orders", By: "ann"}).encode()
	must(t, err)
	requests := map[string]any{
		pathApply: command, pathMembers: &memberRequest{Op: opTransfer, By: "ann"}, pathGone: "b/x",
		pathJoin: &memberRequest{ID: "d", Addr: "d:1"}, pathHello: &hello{Name: "b"}, "/of/the/program": "x",
	}
	for path, body := range requests {
		for cluster, want := range map[string]bool{"ours": true, "theirs": path == pathHello, "": true} {
			conn := stranger(t, "127.0.0.1", configs[0].Peers[0].Addr)
			said, err := askOn(conn, preamble{kindRequest, cluster, "", "b/x"}, path, body)
			must(t, err)
			refused := strings.Contains(said, refusedHeader) && strings.Contains(said, "the asking node")
			if refused == want {
				t.Errorf("%s of cluster %q: %s", path, cluster, said)
			}
			if refused && !strings.Contains(said, `"code":"invalid"`) {
				t.Errorf("%s of cluster %q: nothing was done, and it says %s", path, cluster, said)
			}
		}
	}
}

// What a peer's bytes say is read without a panic, and takes no more memory than a
// message may have.
func FuzzPeer(f *testing.F) {
	f.Add(preamble{kindRaft, "c", "a/x", "b/y"}.encode())
	f.Add(asking())
	f.Add(append(posting(2), '{', '}'))
	f.Add(posting(math.MaxInt64))
	command, err := (&command{Op: opDelete, Connector: "orders", By: "ann"}).encode()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := json.Marshal(command)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(posting(len(whole)), whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		p, err := readPreamble(r)
		if err != nil {
			return
		}
		if read := len(data) - r.Len(); !bytes.Equal(p.encode(), data[:read]) {
			t.Errorf("%q is read as %+v", data[:read], p)
		}
		var command []byte
		req, err := http.ReadRequest(bufio.NewReader(r))
		if err != nil || json.NewDecoder(req.Body).Decode(&command) != nil {
			return
		}
		if c, err := decodeCommand(command); err == nil && c.check() != nil {
			t.Errorf("command %q was accepted", command)
		} else if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
			t.Error(err)
		}
	})
}

// Refusals by the hundred are one line a second.
func TestRefusalsAreToldNowAndThen(t *testing.T) {
	w := newWaitingRoom()
	told, at := 0, time.Now()
	for i := range 1000 {
		if more, say := w.say(at.Add(time.Duration(i) * 10 * time.Millisecond)); say {
			if told++; told > 1 && more != 99 {
				t.Errorf("%d others, want 99", more)
			}
		}
	}
	if told != 10 {
		t.Errorf("%d lines in ten seconds", told)
	}
}

// Hosts of one IPv6 network share their places; mapped IPv4 addresses are as others.
func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1:1", "10.0.0.1:2", true}, {"10.0.0.1:1", "10.0.0.2:1", false}, {"[::ffff:10.0.0.1]:1", "10.0.0.1:2", true},
		{"[2001:db8::1]:1", "[2001:db8::2:3]:2", true}, {"[2001:db8:0:1::1]:1", "[2001:db8::1]:1", false},
	} {
		a, _ := net.ResolveTCPAddr("tcp", c.a)
		b, _ := net.ResolveTCPAddr("tcp", c.b)
		if got := network(a) == network(b); got != c.same {
			t.Errorf("%s and %s: %t", c.a, c.b, got)
		}
	}
}
