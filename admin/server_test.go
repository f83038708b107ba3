package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeNode struct {
	checks []Check
	stuck  chan struct{}
}

func (f *fakeNode) Checks() []Check { return f.checks }

func (f *fakeNode) Status() Status {
	if f.stuck != nil {
		<-f.stuck
	}
	return Status{Node: "n1", Role: "leader", Term: 7, Connectors: []Connector{{Name: "orders", State: "running",
		Wanted: ha.RunStatus{State: ha.Running}, Phase: "streaming"}}}
}

// serveBoth runs a server until the test ends and returns its URL.
func serveBoth(t *testing.T, cfg Config, node Node, control Control) (base string) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "binlog_outbox_test", Help: "x."}))
	s, err := Listen(cfg, node, control, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr()
}

func serve(t *testing.T, node Node) (get func(path string) (int, string)) {
	t.Helper()
	ask := serveControl(t, node, &fakeControl{})
	return func(path string) (int, string) {
		t.Helper()
		a := ask("GET", path, "")
		return a.code, a.body
	}
}

func TestRoutes(t *testing.T) {
	get := serve(t, &fakeNode{checks: []Check{{Name: "raft", OK: true}}})
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz": "ok", "/readyz?verbose": `"raft"`, "/metrics": "binlog_outbox_test 0",
		"/v1/status": `"phase": "streaming"`, "/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile",
	} {
		if code, body := get(path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d %.80q, want 200 with %q", path, code, body, want)
		}
	}
	if code, _ := get("/v1/nothing"); code != 404 {
		t.Errorf("unknown path: %d, want 404", code)
	}
	var s Status
	_, body := get("/v1/status")
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Term != 7 || len(s.Connectors) != 1 {
		t.Errorf("status %+v, %v", s, err)
	}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	get := serve(t, &fakeNode{checks: []Check{{Name: "raft", OK: true},
		{Name: "connector orders", Detail: "MySQL is away"}}})
	code, body := get("/readyz")
	if code != 503 || body != "connector orders: MySQL is away\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get("/livez"); code != 200 {
		t.Errorf("liveness depends on a server: %d", code)
	}
}

func TestLivenessSeesAStuckLoop(t *testing.T) {
	stuck := make(chan struct{})
	get := serve(t, &fakeNode{stuck: stuck})
	if code, _ := get("/livez"); code != 503 {
		t.Errorf("%d, want 503 while the state can't be read", code)
	}
	close(stuck)
}

func TestLoopbackByDefault(t *testing.T) {
	for listen, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true, "0.0.0.0:0": false, ":0": false, "10.1.2.3:80": false,
		"x": false,
	} {
		if err := checkAddress(Config{Listen: listen}); (err == nil) != ok {
			t.Errorf("listen %q: %v", listen, err)
		}
	}
	if err := checkAddress(Config{Listen: "0.0.0.0:0", AllowRemote: true}); err != nil {
		t.Error(err)
	}
}
