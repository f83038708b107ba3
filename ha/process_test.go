package ha

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// member is a node of a cluster as a process of its own.
type member struct {
	conf   memberConfig
	cmd    *exec.Cmd
	exited chan struct{}
}

// memberConfig goes to the process as JSON.
type memberConfig struct {
	ID        string
	Dir       string
	Peers     []Peer
	Heartbeat time.Duration
}

// event is what a node's process tells: "lead" when its Lead function begins,
// "over" when the context of that has ended.
type event struct {
	node, what string
	term       uint64
	at         time.Time
	text       string
}

// testNodes is a cluster of processes.
type testNodes struct {
	t       testing.TB
	members []*member
	events  chan event
}

// freePorts are loopback addresses that nobody listens on at the moment.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var addrs []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close() // all are held until all are chosen
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs
}

func newTestNodes(t testing.TB, n int, heartbeat time.Duration) *testNodes {
	t.Helper()
	f := &testNodes{t: t, events: make(chan event, 4096)}
	var peers []Peer
	for i, addr := range freePorts(t, n) {
		peers = append(peers, Peer{ID: string(rune('a' + i)), Addr: addr})
	}
	for _, p := range peers {
		m := &member{conf: memberConfig{ID: p.ID, Dir: t.TempDir(), Peers: peers, Heartbeat: heartbeat}}
		f.members = append(f.members, m)
		f.start(m)
	}
	t.Cleanup(func() {
		for _, m := range f.members {
			f.kill(m)
		}
	})
	return f
}

func (f *testNodes) start(m *member) {
	f.t.Helper()
	conf, err := json.Marshal(m.conf)
	if err != nil {
		f.t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), "HA_TEST_CHILD=member", "HA_TEST_CONFIG="+string(conf))
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	m.exited = make(chan struct{})
	go func(id string, exited chan struct{}) {
		defer close(exited)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			e := event{node: id}
			var nanos int64
			if _, err := fmt.Sscanf(lines.Text(), "%s %d %d", &e.what, &e.term, &nanos); err != nil {
				e.what, e.text = "said", lines.Text()
			}
			e.at = time.Unix(0, nanos)
			_, e.text, _ = strings.Cut(lines.Text(), ":")
			f.events <- e
		}
	}(m.conf.ID, m.exited)
}

func (f *testNodes) signal(m *member, s syscall.Signal) {
	f.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// kill ends a process without a word, and waits until it is gone.
func (f *testNodes) kill(m *member) {
	_ = m.cmd.Process.Kill() // fails when it has ended
	<-m.exited
	_ = m.cmd.Wait() // killed
}

func (f *testNodes) member(id string) *member {
	i := slices.IndexFunc(f.members, func(m *member) bool { return m.conf.ID == id })
	return f.members[i]
}

// next waits for an event of a kind.
func (f *testNodes) next(what string) event {
	f.t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case e := <-f.events:
			if e.what == what {
				return e
			}
			if e.what == "said" {
				f.t.Logf("%s: %s", e.node, e.text)
			}
		case <-limit:
			f.t.Fatalf("no node said %q within a minute", what)
		}
	}
}

// memberMain is a process of a fleet.
func memberMain() int {
	var m memberConfig
	if err := json.Unmarshal([]byte(os.Getenv("HA_TEST_CONFIG")), &m); err != nil {
		fmt.Println(err)
		return 2
	}
	c := DefaultConfig()
	c.NodeID, c.DataDir, c.Peers, c.HeartbeatTimeout = m.ID, m.Dir, m.Peers, m.Heartbeat
	log := quiet()
	if os.Getenv("HA_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	n, err := Open(c, log, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	err = n.Lead(context.Background(), func(ctx context.Context, term uint64) error {
		fmt.Printf("lead %d %d\n", term, time.Now().UnixNano())
		<-ctx.Done()
		fmt.Printf("over %d %d :%v\n", term, time.Now().UnixNano(), context.Cause(ctx))
		return ctx.Err()
	})
	fmt.Println(err, <-done)
	return 0
}

// percentiles prints a row of times.
func percentiles(d []time.Duration) string {
	d = slices.Sorted(slices.Values(d))
	return fmt.Sprintf("%d rounds: min %s, p50 %s, p90 %s, max %s", len(d),
		d[0].Round(time.Millisecond), d[len(d)/2].Round(time.Millisecond), d[len(d)*9/10].Round(time.Millisecond),
		d[len(d)-1].Round(time.Millisecond))
}

// TestB089KilledLeaderIsReplaced: kill -9, and another process works within a
// second; it must not take the seconds of a forgotten timeout.
func TestB089KilledLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t, 3, 0)
	var took []time.Duration
	lead := f.next("lead")
	for range 4 {
		m := f.member(lead.node)
		killed := time.Now()
		f.kill(m)
		next := f.next("lead")
		if next.node == lead.node || next.term <= lead.term {
			t.Fatalf("after %+v came %+v", lead, next)
		}
		took = append(took, next.at.Sub(killed))
		f.start(m)
		lead = next
	}
	t.Log(percentiles(took))
	if worst := slices.Max(took); worst > 15*time.Second {
		t.Errorf("a killed leader was replaced after %s", worst)
	}
}

// BenchmarkTakeover measures kill -9 to the next Lead function, over loopback.
func BenchmarkTakeover(b *testing.B) {
	f := newTestNodes(b, 3, 0)
	var took []time.Duration
	lead := f.next("lead")
	for range max(b.N, 20) {
		time.Sleep(700 * time.Millisecond) // let the others settle
		m := f.member(lead.node)
		killed := time.Now()
		f.kill(m)
		lead = f.next("lead")
		took = append(took, lead.at.Sub(killed))
		if os.Getenv("HA_TEST_LOG") != "" {
			fmt.Fprintln(os.Stderr, "TOOK", m.conf.ID, lead.node, took[len(took)-1], "killed", killed)
		}
		f.start(m)
	}
	b.Log(percentiles(took))
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "max-ms")
}

// TestB089ZombieLeader stops a leader's process for longer than it takes to
// elect another, and lets it go on: it then ends its Lead function, and for how
// long there are two is measured.
func TestB089ZombieLeader(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t, 3, 0)
	lead := f.next("lead")
	var both, took []time.Duration
	for range 3 {
		m := f.member(lead.node)
		stopped := time.Now()
		f.signal(m, syscall.SIGSTOP)
		next := f.next("lead")
		if next.node == lead.node || next.term <= lead.term {
			t.Fatalf("after %+v came %+v", lead, next)
		}
		took = append(took, next.at.Sub(stopped))
		woken := time.Now()
		f.signal(m, syscall.SIGCONT)
		over := f.next("over")
		if over.node != lead.node || over.term != lead.term || !strings.Contains(over.text, ErrLeadershipLost.Error()) {
			t.Fatalf("after its return %+v said %+v", lead, over)
		}
		both = append(both, over.at.Sub(woken))
		lead = next
	}
	t.Logf("another leads after: %s", percentiles(took))
	t.Logf("two lead for: %s", percentiles(both))
	if worst := slices.Max(both); worst > 15*time.Second {
		t.Errorf("a leader that was stopped went on for %s", worst)
	}
}

// BenchmarkSteady counts the leaderships of half a minute in which other
// processes want twice the processors that there are: more than one is a
// takeover for nothing.
func BenchmarkSteady(b *testing.B) {
	for _, heartbeat := range []time.Duration{150 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond} {
		b.Run(heartbeat.String(), func(b *testing.B) {
			f := newTestNodes(b, 3, heartbeat)
			f.next("lead")
			for range 2 * runtime.NumCPU() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "HA_TEST_CHILD=burn")
				cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			}
			end := time.After(30 * time.Second)
			changes := 0
			for running := true; running; {
				select {
				case e := <-f.events:
					if e.what == "lead" {
						changes++
					}
				case <-end:
					running = false
				}
			}
			b.ReportMetric(float64(changes), "needless-takeovers")
		})
	}
}
