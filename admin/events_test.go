package admin

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/connector"
)

// changingNode has a status that a test changes.
type changingNode struct {
	mu sync.Mutex
	s  Status
}

func (n *changingNode) Checks() []Check { return nil }

func (n *changingNode) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.s
}

func (n *changingNode) set(s Status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.s = s
}

// nextEvent skips to an event of this kind and returns its data.
func nextEvent(t *testing.T, lines *bufio.Scanner, kind string) string {
	t.Helper()
	for lines.Scan() {
		if lines.Text() == "event: "+kind && lines.Scan() {
			return strings.TrimPrefix(lines.Text(), "data: ")
		}
	}
	t.Fatalf("the stream ended before an event %s: %v", kind, lines.Err())
	return ""
}

func TestEvents(t *testing.T) {
	n := &changingNode{s: Status{Leader: "n1", Term: 1, Connectors: []Connector{{Name: "orders", State: "running",
		Phase: "streaming"}}}}
	base := serveBoth(t, Config{Listen: "127.0.0.1:0", pace: 5 * time.Millisecond}, n, &fakeControl{})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(base + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	if data := nextEvent(t, lines, "status"); !strings.Contains(data, `"phase":"streaming"`) {
		t.Errorf("status: %s", data)
	}
	n.set(Status{Leader: "n1", Term: 1, Connectors: []Connector{{Name: "orders", State: "failed",
		LastError: &connector.LastError{Code: "row_refused", At: time.Now()}}}})
	if data := nextEvent(t, lines, "state"); data != `{"connector":"orders","from":"running","to":"failed"}` {
		t.Errorf("state: %s", data)
	}
	if data := nextEvent(t, lines, "error"); !strings.Contains(data, `"connector":"orders"`) ||
		!strings.Contains(data, `"code":"row_refused"`) {
		t.Errorf("error: %s", data)
	}
	n.set(Status{Leader: "n2", Term: 2})
	if data := nextEvent(t, lines, "leader"); data != `{"leader":"n2","term":2}` {
		t.Errorf("leader: %s", data)
	}
}

// TestEventsDropSlowReaders: who does not read is cut off and takes no place.
func TestEventsDropSlowReaders(t *testing.T) {
	big := Status{Connectors: []Connector{{Name: "orders", Position: Position{GTIDSet: strings.Repeat("x", 4<<20)}}}}
	base := serveBoth(t, Config{Listen: "127.0.0.1:0", pace: time.Millisecond, patience: 50 * time.Millisecond},
		&changingNode{s: big}, &fakeControl{})
	for range 2 * maxStreams {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for deadline := time.Now().Add(30 * time.Second); ; {
		resp, err := client.Get(base + "/v1/events")
		code := 0 // the client itself may be too slow on a busy host
		if err == nil {
			resp.Body.Close()
			code = resp.StatusCode
		}
		if code == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("slow readers keep their places: %d, %v", code, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestEventsAreBounded: one client more than there is room for is told so.
func TestEventsAreBounded(t *testing.T) {
	base := serveBoth(t, Config{Listen: "127.0.0.1:0"}, &fakeNode{}, &fakeControl{})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for i := range maxStreams + 1 {
		resp, err := client.Get(base + "/v1/events")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if want := map[bool]int{true: 200, false: 503}[i < maxStreams]; resp.StatusCode != want {
			t.Errorf("client %d: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
}
