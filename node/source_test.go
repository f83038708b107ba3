package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func sourceOf(t *testing.T, change func(*config.Source)) *sources {
	t.Helper()
	node, err := config.Build(config.YAML("good.yaml", []byte(exampleYAML())))
	if err != nil {
		t.Fatal(err)
	}
	c := &node.Connectors[0]
	change(&c.Source)
	route, err := newRoute(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSources(node, c, route, surroundings{log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the settings of the source become.
func TestF14SeveralHosts(t *testing.T) {
	one, err := sourceOf(t, func(*config.Source) {}).connect()
	if err != nil || one.Host != "mysql.example.internal" || one.Port != 3306 || len(one.Others) > 0 || one.PrimaryOnly ||
		one.Origins != nil {
		t.Errorf("one host: %+v, %v", one, err)
	}
	many, err := sourceOf(t, func(s *config.Source) {
		s.Hosts = []string{"b:3307", "c"}
		s.GTIDExclude = []string{"3E11.*"}
		s.TLS.Mode = config.SSLVerifyIdentity
	}).connect()
	if err != nil || many.Host != "mysql.example.internal" || len(many.Others) != 2 || many.Others[0] != "b:3307" ||
		many.Others[1] != "c:3306" || !many.PrimaryOnly {
		t.Errorf("three hosts: %+v, %v", many, err)
	}
	if many.TLS.ServerName != "" {
		t.Errorf("the certificates of all hosts must be of %s", many.TLS.ServerName)
	}
	for id, want := range map[uuid.UUID]bool{{0x3e, 0x11}: false, {1}: true} {
		if got, err := many.Origins(id); got != want || err != nil {
			t.Errorf("origin %s counts: %v, %v", id, got, err)
		}
	}
	alone, err := sourceOf(t, func(s *config.Source) {
		s.Host, s.Hosts, s.PrimaryOnly = "", []string{"b", "[::1]:7"},
			false
	}).connect()
	if err != nil || alone.Host != "b" || alone.Port != 3306 || alone.Others[0] != "[::1]:7" || alone.PrimaryOnly {
		t.Errorf("hosts alone: %+v, %v", alone, err)
	}
}

// A loss that was accepted is in the replicated store, and asked of it again.
func TestF15AcceptedLossIsRecorded(t *testing.T) {
	cfg := ha.DefaultConfig()
	cfg.NodeID, cfg.DataDir = "n1", t.TempDir()
	n, err := ha.Open(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for !n.Status().Ready {
		time.Sleep(time.Millisecond)
	}
	for _, policy := range []config.LostTransactions{config.LostTransactionsStop, config.LostTransactionsAccept} {
		s := sourceOf(t, func(c *config.Source) { c.LostTransactions = policy })
		var c canal.Config
		if err := s.decided(&c); err != nil || c.OnLostTransactions != nil || c.Accepted != nil {
			t.Errorf("without a store: %+v, %v", c, err)
		}
		s.decisions = &decisions{store: n, name: "orders"}
		if err := s.decided(&c); err != nil || c.Accepted != nil ||
			(c.OnLostTransactions != nil) != (policy == config.LostTransactionsAccept) {
			t.Errorf("policy %s: %+v, %v", policy, c, err)
		}
	}
	d := &decisions{store: n, name: "orders"}
	for _, text := range []string{"3e11fa47-71ca-11e1-9e33-c80aa9429562:8-10", "3e11fa47-71ca-11e1-9e33-c80aa9429562:8-10",
		"11111111-2222-3333-4444-555555555555:1"} {
		set, err := position.ParseSet(position.MySQL, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.AcceptLostTransactions(ctx, set, "22222222-2222-3333-4444-555555555555"); err != nil {
			t.Fatal(err)
		}
	}
	state, _ := n.Connector("orders")
	if len(state.Decisions) != 2 || state.Decisions[0].Kind != "lost transaction" ||
		state.Decisions[0].Key != "3e11fa47-71ca-11e1-9e33-c80aa9429562:8-10" {
		t.Errorf("decisions are %+v", state.Decisions)
	}
	all, err := d.AcceptedLostTransactions()
	if err != nil || all.String() != "11111111-2222-3333-4444-555555555555:1,3e11fa47-71ca-11e1-9e33-c80aa9429562:8-10" {
		t.Errorf("accepted are %v, %v", all, err)
	}
}

// A pattern that no table matches would publish nothing, and nobody would see why.
func TestPatternsThatMatchNothing(t *testing.T) {
	for _, c := range []struct {
		tables, patterns []string
		missing          bool
	}{
		{[]string{"orders", "outbox"}, []string{`shop\.out.*`}, false},
		{[]string{"orders"}, []string{`shop\.out.*`}, true},
		{[]string{"outbox"}, []string{"outbox"}, true}, // the database is missing
	} {
		server := &canaltest.Server{UUID: "3e11fa47-71ca-11e1-9e33-c80aa9429562", GTIDMode: "ON", LogBin: "ON",
			Tables: c.tables}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		s := sourceOf(t, func(s *config.Source) {
			s.Host, s.Port, s.User, s.TLS.Mode = "127.0.0.1", server.Port(), canaltest.User, config.SSLDisabled
			s.Table, s.TablePatterns = "", c.patterns
		})
		cc, err := s.connect()
		if err != nil {
			t.Fatal(err)
		}
		cc.Password = canaltest.Password
		err = s.checkTables(t.Context(), cc)
		var e *tableError
		if missing := errors.As(err, &e) && e.code == "missing_table"; missing != c.missing || !missing && err != nil {
			t.Errorf("%q of %q: %v", c.patterns, c.tables, err)
		}
	}
}

// What can't be read reaches no router, so the source must know what is fatal.
func TestFatalUpdatesAreFatalInPart(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                 false,
		"    outbox: {on_update: fatal}\n": true,
		"    outbox: {on_update: fatal, skip_operations: [\"u\"]}\n": false,
	} {
		node, err := config.Build(config.YAML("good.yaml", []byte(exampleYAML()+text)))
		if err != nil {
			t.Fatal(err)
		}
		c := &node.Connectors[0]
		route, err := newRoute(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSources(node, c, route, surroundings{log: slog.New(slog.DiscardHandler)})
		if err != nil || s.canal.RefusePartialUpdates != want {
			t.Errorf("%q: %t, %v", text, s.canal.RefusePartialUpdates, err)
		}
	}
}
