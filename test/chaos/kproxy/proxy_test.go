package kproxy

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker answers every request with its correlation id and keeps what came.
type broker struct {
	l  net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	came  []uint32
	conns map[net.Conn]bool
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{l: l, conns: map[net.Conn]bool{}}
	b.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns[c] = true
			b.mu.Unlock()
			b.wg.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.mu.Lock()
		for c := range b.conns {
			c.Close()
		}
		b.mu.Unlock()
		b.wg.Wait()
	})
	return b
}

func (b *broker) serve(c net.Conn) {
	defer c.Close()
	for {
		f, err := readFrame(c)
		if err != nil {
			return
		}
		id := Request{Frame: f}.correlation()
		b.mu.Lock()
		b.came = append(b.came, id)
		b.mu.Unlock()
		// The answer to EndTxn v3: correlation id, tags, throttle, error, tags.
		answer := binary.BigEndian.AppendUint32(nil, 4+1+4+2+1)
		answer = binary.BigEndian.AppendUint32(answer, id)
		answer = append(answer, 0, 0, 0, 0, 0, 0, 90, 0)
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func (b *broker) copies(id uint32) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.came {
		if x == id {
			n++
		}
	}
	return n
}

// endTxn is a whole request.
func endTxn(id uint32) []byte {
	req := kmsg.NewPtrEndTxnRequest()
	req.SetVersion(3)
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "tx", 7, 1, true
	f := []byte{0, 0, 0, 0}
	f = binary.BigEndian.AppendUint16(f, uint16(kmsg.EndTxn))
	f = binary.BigEndian.AppendUint16(f, 3)
	f = binary.BigEndian.AppendUint32(f, id)
	f = append(f, 0, 2, 'm', 'e', 0) // client id, tags
	f = req.AppendTo(f)
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	return f
}

// outcome is what a client sees of one request.
func outcome(c net.Conn, id uint32, wait time.Duration) string {
	c.SetDeadline(time.Now().Add(wait))
	if _, err := c.Write(endTxn(id)); err != nil {
		return "cut"
	}
	answer, err := readFrame(c)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case err != nil:
		return "cut"
	case correlationOf(answer) != id:
		return "another's answer"
	}
	return "answer"
}

func TestActions(t *testing.T) {
	tests := []struct {
		action Action
		client string
		copies int
	}{
		{Pass, "answer", 1},
		{Slow, "answer", 1},
		{Drop, "cut", 0},
		{Lose, "cut", 1},
		{Late, "cut", 1},
		{Copy, "cut", 2},
		{Stall, "silence", 1},
	}
	for _, tt := range tests {
		t.Run(tt.action.String(), func(t *testing.T) {
			b := startBroker(t)
			p := New()
			defer p.Close()
			addr, err := p.Listen(b.l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			release := make(chan struct{})
			p.Decide(func(r Request) Fate {
				if r.correlation() != 2 {
					return Fate{}
				}
				if tt.action == Slow {
					return Fate{Action: Slow, Delay: 20 * time.Millisecond}
				}
				return Fate{Action: tt.action, Until: release}
			})
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := outcome(c, 1, 10*time.Second); got != "answer" {
				t.Fatalf("a request without a rule: %s", got)
			}
			wait := 10 * time.Second
			if tt.client == "silence" {
				wait = 200 * time.Millisecond
			}
			if got := outcome(c, 2, wait); got != tt.client {
				t.Errorf("the client sees %s, want %s", got, tt.client)
			}
			held := map[Action]bool{Late: true, Copy: true, Stall: true}[tt.action]
			if early := b.copies(2); held && early != tt.copies-1 {
				t.Errorf("%d copies arrived before the release, want %d", early, tt.copies-1)
			}
			close(release)
			deadline := time.Now().Add(10 * time.Second)
			for b.copies(2) < tt.copies && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond) // for copies too many
			if got := b.copies(2); got != tt.copies {
				t.Errorf("%d copies arrived, want %d", got, tt.copies)
			}
			if held {
				name := "EndTxn " + tt.action.String() + " answered 90"
				want := 1
				if tt.action == Copy {
					want = 2
				}
				for p.Counts()[name] < want && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
				if got := p.Counts()[name]; got != want {
					t.Errorf("counts are %v, want %d of %q", p.Counts(), want, name)
				}
			}
		})
	}
}

func TestCloseGivesUpWhatIsHeld(t *testing.T) {
	b := startBroker(t)
	p := New()
	addr, err := p.Listen(b.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Decide(func(Request) Fate { return Fate{Action: Late, Delay: time.Hour} })
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := outcome(c, 1, 10*time.Second); got != "cut" {
		t.Errorf("the client sees %s", got)
	}
	if err := p.Close(); err != nil { // does not wait for the hour
		t.Error(err)
	}
	if b.copies(1) != 0 {
		t.Error("what was held has arrived")
	}
}

func TestRules(t *testing.T) {
	rules := []Rule{
		{Key: kmsg.EndTxn, Action: Late, Chance: .2, Least: time.Millisecond, Most: 3 * time.Millisecond},
		{Key: kmsg.EndTxn, Action: Copy, Chance: .1},
		{Key: kmsg.Produce, Action: Drop, Chance: 1},
	}
	run := func(seed uint64) (counts [len(actionNames)]int, fates []Fate) {
		decide := Rules(rand.New(rand.NewPCG(seed, 0)), rules...)
		for range 2000 {
			f := decide(Request{Frame: endTxn(1)})
			counts[f.Action]++
			if f.Action == Late && (f.Delay < time.Millisecond || f.Delay >= 3*time.Millisecond) {
				t.Fatalf("delay %v", f.Delay)
			}
			fates = append(fates, f)
		}
		return counts, fates
	}
	counts, first := run(1)
	if counts[Late] < 300 || counts[Late] > 500 || counts[Copy] < 130 || counts[Copy] > 270 || counts[Drop] != 0 {
		t.Errorf("of 2000: %v", counts)
	}
	_, again := run(1)
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("the same seed gives another fate for request %d", i)
		}
	}
}

func TestDecode(t *testing.T) {
	r := Request{Frame: endTxn(5)}
	req, ok := r.Decode().(*kmsg.EndTxnRequest)
	if !ok || req.TransactionalID != "tx" || req.ProducerID != 7 || !req.Commit || r.Name() != "EndTxn" ||
		r.Version() != 3 {
		t.Errorf("decoded %+v", req)
	}
	r.Frame = r.Frame[:headerLen+3]
	if r.Decode() != nil {
		t.Error("half a request was decoded")
	}
	if _, err := readFrame(io.LimitReader(nothing{}, 4)); err == nil {
		t.Error("a frame of 4 GB was taken")
	}
}

type nothing struct{}

func (nothing) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0xff
	}
	return len(b), nil
}
