package node

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
)

// TestLoggers: a level changes while the program runs, for all who log under the
// name, and goes back by itself.
func TestLoggers(t *testing.T) {
	c, _ := leading(t)
	var out bytes.Buffer
	c.log = NewLogger(config.Log{Level: "info", Levels: map[string]string{"raft": "warn"}}, &out)
	kafka := c.log.With("component", "kafka").With("connector", "orders")
	level := func(name string) (string, bool) {
		for _, l := range c.Loggers() {
			if l.Name == name {
				return l.Level, l.Until != nil
			}
		}
		return "", false
	}
	for name, want := range map[string]string{"root": "info", "raft": "warn", "kafka": "info"} {
		if got, _ := level(name); got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
	kafka.Debug("first")
	if err := c.SetLogger("kafka", "debug", time.Hour, ann); err != nil {
		t.Fatal(err)
	}
	kafka.Debug("second")
	c.log.Debug("third")
	if got, limited := level("kafka"); got != "debug" || !limited {
		t.Errorf("kafka is at %q, limited %v", got, limited)
	}
	if s := out.String(); strings.Contains(s, "first") || !strings.Contains(s, "second") || strings.Contains(s, "third") ||
		!strings.Contains(s, `"by":"ann"`) {
		t.Errorf("log: %s", s)
	}
	if codeOf(c.SetLogger("none", "debug", 0, ann)) != admin.CodeLoggerNotFound ||
		codeOf(c.SetLogger("kafka", "loud", 0, ann)) != admin.CodeInvalid {
		t.Error("a wrong name or level is taken")
	}
	if err := c.SetLogger("root", "error", 0, ann); err != nil || kafka.Enabled(context.Background(),
		slog.LevelInfo) == false {
		t.Error("the root's level is not that of a logger with its own")
	}
	if c.log.Enabled(context.Background(), slog.LevelWarn) {
		t.Error("the root's level has not changed")
	}
}

// TestLevelsGoBack: a level that was changed for a time is the configured one afterwards.
func TestLevelsGoBack(t *testing.T) {
	var later atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	n := runNode(t, configured(t, "n1", t.TempDir(), ""), Options{Now: clock})
	kafka := n.log.With("component", "kafka")
	if err := n.api.SetLogger("kafka", "debug", time.Hour, ann); err != nil ||
		!kafka.Enabled(t.Context(), slog.LevelDebug) {
		t.Fatalf("it is not changed: %v", err)
	}
	later.Store(int64(2 * time.Hour))
	if kafka.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("it is still changed")
	}
	for _, l := range n.api.Loggers() {
		if l.Level != "info" || l.Until != nil {
			t.Errorf("%+v", l)
		}
	}
}

// TestOperationsOfOneNode: what a node says of itself, and what is refused with one.
func TestOperationsOfOneNode(t *testing.T) {
	c, _ := leading(t)
	ctx := t.Context()
	s := c.Cluster()
	if s.NodeID != "n1" || s.LeaderID != "n1" || s.Role != "leader" || !s.Ready || len(s.Members) != 1 ||
		!s.Members[0].Leader || s.Members[0].Reachable == nil {
		t.Errorf("%+v", s)
	}
	if codeOf(c.TransferLeadership(ctx, "", ann)) != admin.CodeNoOtherVoter ||
		codeOf(c.AddMember(ctx, "n2", "127.0.0.1:1", ann)) != admin.CodeInvalid {
		t.Error("a node alone has others")
	}
	var out bytes.Buffer
	if err := c.Snapshot(ctx, &out, ann); err != nil || !strings.HasPrefix(out.String(), "1 ") ||
		!strings.Contains(out.String(), `"cluster":`) {
		t.Errorf("%v, %.100q", err, out.String())
	}
	if a := c.Audit(); len(a) != 1 || a[0].Action != "snapshot" || a[0].By != "ann" {
		t.Errorf("%+v", a)
	}
	text, err := c.Config()
	if err != nil || !strings.Contains(string(text), `"brokers"`) {
		t.Errorf("%v, %s", err, text)
	}
}

// TestWebConfig: the file decides how clients prove who they are, also after a change.
func TestWebConfig(t *testing.T) {
	file := write(t, "web.yaml", "basic_auth_users: {ann: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n")
	cfg := &config.Config{Admin: config.Admin{Listen: "0.0.0.0:0", WebConfig: file,
		Roles: map[string]string{"ann": "operate"}}}
	a, err := adminConfig(cfg)
	if err != nil || a.Auth() != (admin.Auth{Users: true}) || a.Roles["ann"] != admin.Operate {
		t.Fatalf("%+v, %v", a, err)
	}
	s, err := admin.Listen(a, nil, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err) // users are enough for an address that is not loopback
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	cfg.Admin.WebConfig = write(t, "web.yaml", "basic_auth_users: {ann: plain}\n")
	if _, err := adminConfig(cfg); err == nil {
		t.Error("a password that is not hashed is taken")
	}
	// Roles that nobody could have are refused; so are guards that are none.
	const certificate = "cert_file: /x.crt, key_file: /x.key"
	for text, good := range map[string]bool{
		"{}": false, "tls_server_config: {client_auth_type: RequestClientCert}": false,
		"tls_server_config: {" + certificate + "}": false,
	} {
		cfg.Admin.WebConfig = write(t, "web.yaml", text+"\n")
		if _, err := adminConfig(cfg); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, warned := range map[string]bool{
		"basic_auth_users: {ann: x}": true, "{}": false, "{basic_auth_users: {ann: x}, tls_server_config: {" + certificate +
			"}}": false,
	} {
		cfg.Admin.WebConfig = write(t, "web.yaml", text+"\n")
		for listen, remote := range map[string]bool{"0.0.0.0:1": true, "127.0.0.1:1": false, "localhost:1": false,
			":1": true} {
			cfg.Admin.Listen = listen
			var log bytes.Buffer
			warnOfPlainPasswords(cfg, slog.New(slog.NewTextHandler(&log, nil)))
			if (log.Len() > 0) != (warned && remote) {
				t.Errorf("%s at %s: %q", text, listen, log.String())
			}
		}
	}
	for text, want := range map[string]admin.Auth{
		"tls_server_config: {client_auth_type: RequireAndVerifyClientCert}": {Certificates: true},
		"tls_server_config: {client_auth_type: RequestClientCert}":          {},
		"basic_auth_users: [": {Users: true, Certificates: true},
	} {
		if got := asksFor(write(t, "web.yaml", text)); got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
