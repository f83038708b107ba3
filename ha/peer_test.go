package ha

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// bring has another node's Config.Handler answer, the leader's when to is empty.
func (n *runningNode) bring(ctx context.Context, to, path string, body []byte) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+to+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := n.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(said)), err
}

// Requests go to the leader, or to a node by its name, whole, and to nobody else.
func TestRequestsForOtherNodes(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	for i := range configs {
		id := configs[i].NodeID
		configs[i].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/panic" {
				panic("on purpose")
			}
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprintf(w, "%s heard %s %s?%s %d", id, r.Method, r.URL.Path, r.URL.RawQuery, len(body))
		})
	}
	nodes := startAll(t, configs)
	leader, followers := leaderOf(t, nodes)
	ctx, body := testContext(t), make([]byte, 1<<20)
	got, err := followers[0].bring(ctx, "", "/x?y=z", body)
	if err != nil || got != "202 "+leader.cfg.NodeID+" heard PUT /x?y=z 1048576" {
		t.Errorf("the leader answers %q, %v", got, err)
	}
	if _, err := leader.bring(ctx, "", "/x", nil); !errors.Is(err, ErrNoLeader) {
		t.Errorf("the leader asks itself: %v", err)
	}
	for _, n := range followers {
		got, err := leader.bring(ctx, n.cfg.NodeID, "/you", nil)
		if err != nil || got != "202 "+n.cfg.NodeID+" heard PUT /you? 0" {
			t.Errorf("node %s answers %q, %v", n.cfg.NodeID, got, err)
		}
	}
	if _, err := leader.bring(ctx, "nobody", "/x", nil); !errors.Is(err, ErrNotMember) {
		t.Errorf("an unknown node: %v", err)
	}
	// A node that was taken for the leader by mistake does not answer as one.
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+followers[0].cfg.Advertise+"/x", http.NoBody)
	must(t, err)
	r.Header.Set(toLeaderHeader, "1")
	if resp, _, err := leader.exchange(r); !errors.Is(err, ErrNotLeader) {
		_ = resp.Body.Close()
		t.Errorf("a follower answers for the leader: %v", err)
	}
	var unknown *UnknownOutcomeError
	if _, err := followers[0].bring(ctx, "", "/panic", nil); !errors.As(err, &unknown) {
		t.Errorf("a handler that panics: %v", err)
	}
	hear(t, followers[0], leader.cfg.Advertise)
	gone := followers[1]
	must(t, gone.stop(t))
	if _, err := leader.bring(ctx, gone.cfg.NodeID, "/x", nil); !errors.Is(err, ErrNoLeader) {
		t.Errorf("a node that is gone: %v", err)
	}
}

// Whether a request may have been carried out is known: not while nobody was reached,
// even when the dial hangs until the asker gives up.
func TestWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	var hanging sync.Map
	configs[0].Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, ok := hanging.Load(address); ok {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	n := start(t, configs[0])
	silent, cutting := stand(t, false), stand(t, true)
	hanging.Store("127.0.0.1:1", true)
	for _, tt := range []struct {
		addr    string
		reached bool
	}{{"127.0.0.1:1", false}, {"127.0.0.1:2", false}, {silent, true}, {cutting, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		reached, err := n.post(ctx, tt.addr, pathApply, []byte("x"), new(struct{}))
		cancel()
		var unknown *UnknownOutcomeError
		if reached != tt.reached || errors.As(err, &unknown) != tt.reached || err == nil {
			t.Errorf("%s: reached %t, %v", tt.addr, reached, err)
		}
	}
}

// stand accepts connections and says nothing on them, or cuts them when they have begun.
func stand(t *testing.T, cut bool) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				buf := make([]byte, 1<<10)
				for n := 1; n > 0; {
					if n, _ = c.Read(buf); cut && bytes.Contains(buf, []byte("HTTP/1.1")) {
						break
					}
				}
				_ = c.Close()
			})
		}
	})
	return ln.Addr().String()
}

// The limits of a request: who exceeds one is refused at once, who is slow when the time
// is over.
func TestLimitsOfRequests(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	configs[0].Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was answered") })
	start(t, configs[0])
	const head = "PUT /x HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		says, want string
	}{
		"a large header":     {head + "X: " + strings.Repeat("x", maxHeader+8<<10) + "\r\n\r\n", "431"},
		"a large body":       {head + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxMessage+1), "413"},
		"an unknown length":  {head + "Transfer-Encoding: chunked\r\n\r\n", "413"},
		"a slow header":      {head, ""},
		"a slow body":        {head + "Content-Length: 3\r\n\r\nab", "400"},
		"a slow, large body": {head + fmt.Sprintf("Content-Length: %d\r\n\r\nab", maxMessage), "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := stranger(t, "127.0.0.1", configs[0].Peers[0].Addr)
			must(t, conn.SetDeadline(time.Now().Add(6*handshakeTimeout)))
			_, err := io.WriteString(conn, string(asking())+c.says)
			must(t, err)
			said, err := io.ReadAll(conn)
			if err, slow := errors.AsType[net.Error](err); slow && err.Timeout() || statusOf(said) != c.want {
				t.Errorf("%q, %v, want %q", said, err, c.want)
			}
		})
	}
}

func statusOf(said []byte) string {
	if len(said) < 12 {
		return ""
	}
	return string(said[9:12])
}

// No more requests are answered at a time than there may be, and of the large ones fewer.
func TestRequestsAreAnsweredInTurn(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	let := make(chan struct{})
	var mu sync.Mutex
	var now, most [2]int // all, and large ones
	configs[1].Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			if now[0] += n; r.ContentLength > smallMessage {
				now[1] += n
			}
			most = [2]int{max(most[0], now[0]), max(most[1], now[1])}
		}
		count(1)
		defer count(-1)
		select {
		case <-let:
		case <-t.Context().Done():
		}
	})
	nodes := startAll(t, configs)
	var wg sync.WaitGroup
	for i := range 96 { // more than may be answered, and never more than may wait
		var body []byte
		if i < 3*maxLarge {
			body = make([]byte, smallMessage+1)
		}
		wg.Go(func() {
			if got, err := nodes[0].bring(testContext(t), "b", "/x", body); err != nil || got != "200 " {
				t.Errorf("%q, %v", got, err)
			}
		})
		if i == 47 {
			waitUntil(t, "the first have their turn", func() bool { return len(nodes[1].mux.requests) == 48-2*maxLarge })
		}
	}
	waitUntil(t, "all turns are taken", func() bool { return len(nodes[1].mux.requests) == maxRequests })
	time.Sleep(50 * time.Millisecond)
	close(let)
	wg.Wait()
	if most != [2]int{maxRequests, maxLarge} {
		t.Errorf("at a time there were %v, want %d, of them %d large", most, maxRequests, maxLarge)
	}
}
