package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the connector.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "stand-in" {
		os.Exit(standIn(os.Args[2]))
	}
	os.Exit(m.Run())
}

// standIn logs and answers as the connector does.
func standIn(how string) int {
	if how == "refuse" {
		fmt.Fprintln(os.Stderr, "node.yaml:1:1: no")
		return 78
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"connectors":[{"name":"c","state":"failed","sessions":3,"last_error":{"code":"x","message":"why","gtid":"a:1"}}]}`)
	}))
	fmt.Fprintf(os.Stderr, "{\"msg\":\"starting\"}\nnot JSON\n{\"msg\":\"admin server is listening\",\"address\":%q}\n",
		l.Addr())
	<-stop
	if how == "stubborn" {
		return 3
	}
	return 0
}

func startStandIn(t *testing.T, how, log string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(self, []string{"stand-in", how}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

func TestProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	log := filepath.Join(t.TempDir(), "log")
	first := startStandIn(t, "works", log)
	c, err := first.Await(ctx, "it has failed", func(c ConnectorStatus) bool { return c.State == "failed" })
	if err != nil {
		t.Fatal(err)
	}
	if c.Sessions != 3 || c.LastError == nil || c.LastError.GTID != "a:1" || c.LastError.RetryAt != nil {
		t.Errorf("status %+v", c)
	}
	if rss, err := first.PeakRSS(); err != nil || rss < 1<<20 || rss > 1<<30 {
		t.Errorf("PeakRSS = %d, %v", rss, err)
	}
	if err := first.Terminate(ctx); err != nil {
		t.Error(err)
	}

	// The next process on the same log has an address of its own.
	second := startStandIn(t, "works", log)
	before, _ := first.Admin(ctx)
	after, err := second.Admin(ctx)
	if err != nil || before == after {
		t.Errorf("addresses %q, then %q, %v", before, after, err)
	}
	if err := second.Kill(); err != nil {
		t.Error(err)
	}
	if code, err := second.Wait(ctx); code != -1 || err != nil {
		t.Errorf("after a kill: exit code %d, %v", code, err)
	}
}

func TestProcessThatDoesNotStay(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p := startStandIn(t, "refuse", filepath.Join(t.TempDir(), "log"))
	if _, err := p.Admin(ctx); !errors.Is(err, errEnded) {
		t.Errorf("Admin of a process that ended: %v", err)
	}
	if code, err := p.Wait(ctx); code != 78 || err != nil {
		t.Errorf("exit code %d, %v, want 78", code, err)
	}
	if b, err := p.Log(); err != nil || !strings.HasPrefix(string(b), "node.yaml:1:1") {
		t.Errorf("log %q, %v", b, err)
	}

	p = startStandIn(t, "stubborn", filepath.Join(t.TempDir(), "log"))
	if _, err := p.Admin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(ctx); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("Terminate of a process that ends with 3: %v", err)
	}
}
