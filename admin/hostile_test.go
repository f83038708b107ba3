package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// putNode is a node that takes any configuration.
type putNode struct{ oneConnector }

func (putNode) Worker(context.Context) ConnectWorker                  { return ConnectWorker{} }
func (putNode) Version() string                                       { return "1" }
func (putNode) Healthy() error                                        { return nil }
func (putNode) PutConnector(context.Context, ConnectPut, Actor) error { return nil }
func (putNode) ResetTopics(string) error                              { return nil }
func (putNode) Keys() []ConnectKey                                    { return nil }

func (putNode) Validate(config map[string]string, _ bool) (out []ConnectKey) {
	for key := range config {
		out = append(out, ConnectKey{Name: key})
	}
	return out
}

func serveHostile(t *testing.T, cfg Config) (address string) {
	t.Helper()
	f := &fakeControl{}
	cfg.Listen, cfg.Connect = "127.0.0.1:0", NewConnectAPI(putNode{}, f, slog.New(slog.DiscardHandler))
	return strings.TrimPrefix(serveBoth(t, cfg, &fakeNode{}, f), "http://")
}

// rawly sends bytes and returns the answer's status, 0 for a connection that ended.
func rawly(t *testing.T, address, text string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, text) }() // the server may not take all
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func request(method, path, contentType, body string, header ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: "+
		"%d\r\n%s\r\n%s",
		method, path, contentType, len(body), strings.Join(header, "\r\n"), body)
}

// Who sends nonsense is told that it is nonsense, by 4xx: 5xx is a fault of the server.
func TestHostileRequests(t *testing.T) {
	address := serveHostile(t, Config{})
	const pause, put, js = "/v1/connectors/orders/pause", "/connectors/orders/config", "application/json"
	var manyKeys strings.Builder
	for i := range 2 * maxKeys {
		fmt.Fprintf(&manyKeys, `,"k%d":""`, i)
	}
	deep := strings.Repeat("[", 500_000)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"deep JSON":                {request("PUT", put, js, `{"a":`+deep), 400},
		"deep JSON to /v1":         {request("PUT", pause, js, `{"reason":`+deep), 400},
		"a body that is too large": {request("PUT", put, js, strings.Repeat(" ", maxBody+1)), 413},
		"a large one to /v1":       {request("PUT", pause, js, strings.Repeat(" ", maxBody+1)), 413},
		"not UTF-8":                {request("PUT", put, js, "{\"a\": \"\xff\xfe\"}"), 400},
		"not UTF-8 to /v1":         {request("PUT", pause, js, "{\"reason\": \"\xe9\"}"), 400},
		"UTF-16": {request("PUT", put, js+"; charset=utf-16", "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00"),
			400},
		"compressed": {request("PUT", put, js, "\x1f\x8b\x08\x00\x00\x00\x00\x00", "Content-Encoding: gzip",
			""), 400},
		"another type":  {request("PUT", put, "text/plain", "{}"), 415},
		"too many keys": {request("PUT", put, js, `{"a1":1`+manyKeys.String()+"}"), 400},
		"a list":        {request("PUT", put, js, "[1]"), 400},
		"two values":    {request("PUT", put, js, "{} {}"), 400},
		"huge headers": {"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) +
			"\r\n\r\n", 431},
		"many headers": {"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 100_000) +
			"\r\n", 431},
		"a long path": {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
		"two lengths": {"PUT " + put +
			" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400},
		"length and chunks": {"PUT " + put +
			" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
			"1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"a negative length": {"PUT " + put + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}", 400},
		"a chunk that is too large": {"PUT " + put +
			" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: " +
			"chunked\r\n\r\nffffffffffffffffff\r\n", 400},
		"no HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"up and away":              {request("GET", "/ui/../../../etc/passwd", js, ""), 404},
		"up and away, escaped":     {request("GET", "/ui/%2e%2e%2f%2e%2e%2fetc%2fpasswd", js, ""), 404},
		"up and away, of runbooks": {request("GET", "/ui/runbooks/..%2f..%2fembed.go", js, ""), 404},
		"a zero in a name":         {request("GET", "/connectors/%00/status", js, ""), 404},
		"a slash in a name":        {request("GET", "/connectors/a%2Fb/status", js, ""), 404},
		"a name that is not UTF-8": {request("GET", "/connectors/%ff", js, ""), 404},
		"an escape that is none":   {request("GET", "/connectors/%zz", js, ""), 400},
		"a method that is none":    {request("BREW", "/v1/status", js, ""), 405},
		"an expansion of nothing": {request("GET", "/connectors?expand="+strings.Repeat("&expand=status", 500), js, ""),
			200},
		"an action behind a name":    {request("DELETE", "/connectors/a%2Fb%2Fpause", js, ""), 404},
		"a number that is too large": {request("GET", "/connectors/orders/tasks/99999999999999999999/status", js, ""), 404},
		"a time that is none": {request("PUT", "/v1/loggers/root", js,
			`{"reason":"x","level":"debug","for":"`+strings.Repeat("9", 1000)+`h"}`), 400},
		"a proxy's request": {request("GET", "http://evil.example/v1/status", js, ""), 403},
	} {
		if got, body := rawly(t, address, c.text); got != c.want {
			t.Errorf("%s: %d %.200s, want %d", name, got, body, c.want)
		}
	}
}

// A body that comes too slowly is the client's fault, and holds nothing for long.
func TestSlowBodies(t *testing.T) {
	address := serveHostile(t, Config{reading: 300 * time.Millisecond})
	for _, path := range []string{"/v1/connectors/orders/pause", "/connectors/orders/config",
		"/connector-plugins/MySqlConnector/config/validate"} {
		begun := time.Now()
		code, body := rawly(t, address, "PUT "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: 100\r\n\r\n{")
		if code != http.StatusRequestTimeout {
			t.Errorf("%s: %d %s, want 408", path, code, body)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s took %s", path, took)
		}
	}
	// One that ends too early is no fault of the server either.
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "PUT /connectors/orders/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that ends too early: %d, want 400", resp.StatusCode)
	}
}

// Somebody who opens more connections than there may be loses them; others are served.
func TestManyConnections(t *testing.T) {
	const most = 20
	address := serveHostile(t, Config{conns: most})
	dial := func(from string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
		c, err := d.Dial("tcp", address)
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return c, err
	}
	// The strangers are in the midst of a request, or have said nothing.
	var strangers []net.Conn
	for i := range 3 * most {
		c, err := dial("127.0.0.3")
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX: ") // it may be closed already
		}
		strangers = append(strangers, c)
	}
	for range most / 2 {
		c, err := dial("127.0.0.2")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("another client is not served: %v", err)
		}
		resp.Body.Close()
	}
	open := 0
	for _, c := range strangers {
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open > most {
		t.Errorf("%d connections of strangers are open, %d may be", open, most)
	}
}

// Large bodies of many clients take what their number and size says, and not a
// multiple of it.
func TestMemoryOfManyBodies(t *testing.T) {
	address := serveHostile(t, Config{})
	body := `{"a": [` + strings.Repeat("{},", (maxBody-100)/3) + `{}]}` // refused, and large when decoded
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const clients = 8
	done := make(chan int, clients)
	for range clients {
		go func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				done <- 0
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, request("PUT", "/connectors/orders/config", "application/json", body)) // the answer tells
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				done <- 0
				return
			}
			resp.Body.Close()
			done <- resp.StatusCode
		}()
	}
	for range clients {
		if code := <-done; code != 400 {
			t.Errorf("%d, want 400", code)
		}
	}
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapSys) - int64(before.HeapSys); took > clients*64*maxBody {
		t.Errorf("the heap grew by %d MiB for %d bodies of 1 MiB", took>>20, clients)
	}
}

// There are so many readers of events and no more, and one that leaves makes room.
func TestManyReadersOfEvents(t *testing.T) {
	address := serveHostile(t, Config{pace: 10 * time.Millisecond, patience: 200 * time.Millisecond})
	var open []net.Conn
	status := func() int {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		if _, err := io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // it has no end; the connection is closed
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for i := range maxStreams + 8 {
		want := 200
		if i >= maxStreams {
			want = 503
		}
		if got := status(); got != want {
			t.Fatalf("reader %d: %d, want %d", i, got, want)
		}
	}
	open[0].Close()
	for end := time.Now().Add(20 * time.Second); status() != 200; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a reader has left, and there is no room")
		}
	}
}

// With roles, nobody has none that changes anything, also where the web configuration
// asks nobody who they are.
func TestNobodyIsNoAdmin(t *testing.T) {
	address := serveHostile(t, Config{Auth: func() Auth { return Auth{} },
		Roles: map[string]Role{"vera": View, "ann": Admin, "": Admin}})
	for text, want := range map[string]int{
		request("DELETE", "/connectors/orders", "application/json", ""):        403,
		request("PUT", "/connectors/orders/pause", "application/json", ""):     403,
		request("PUT", "/v1/connectors/orders/pause", "application/json", why): 403,
		request("GET", "/debug/pprof/heap", "application/json", ""):            403,
		request("GET", "/connectors", "application/json", ""):                  200,
		// ann, unproven
		request("GET", "/v1/status", "application/json", "", "Authorization: Basic YW5uOng=", ""):            200,
		request("DELETE", "/connectors/orders", "application/json", "", "Authorization: Basic YW5uOng=", ""): 403,
	} {
		if code, body := rawly(t, address, text); code != want {
			t.Errorf("%.60q: %d %s, want %d", text, code, body, want)
		}
	}
}

func FuzzRequests(f *testing.F) {
	for _, method := range []string{"GET", "PUT", "PATCH", "POST", "DELETE"} {
		f.Add(method, "/connectors/orders/config", `{"name":"orders","a":1}`)
		f.Add(method, "/connectors", `{"name":"b","config":{},"initial_state":"STOPPED"}`)
		f.Add(method, "/v1/connectors/orders/offset", `{"reason":"x","gtid_set":"a:1"}`)
	}
	f.Add("PATCH", "/connectors/orders/offsets",
		`{"offsets":[{"partition":{"server":""},"offset":{"file":"b","pos":"1","event":2}}]}`)
	f.Add("PUT", "/connector-plugins/MySqlConnector/config/validate", `{"connector.class":"MySqlConnector","x":null}`)
	f.Add("PUT", "/v1/loggers/a", `{"reason":"x","level":"debug","for":"1m"}`)
	f.Add("POST", "/connectors/orders/unpublished-rows?expand=a&expand=%", "\xff")
	control := &fakeControl{}
	cfg := Config{Listen: "127.0.0.1:0", Connect: NewConnectAPI(putNode{}, control, slog.New(slog.DiscardHandler))}
	s, err := Listen(cfg, &fakeNode{}, control, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	defer s.listener.Close()
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, bytes.NewReader([]byte(body)))
		if err != nil || strings.HasSuffix(r.URL.Path, "/v1/events") || strings.Contains(r.URL.Path, "pprof") {
			return // these last
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s %q: %d %s", method, path, body, w.Code, w.Body)
		}
	})
}
