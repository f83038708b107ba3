package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// playedNode answers as a node does that is in this state.
func playedNode(t *testing.T, s admin.Status, c ha.Status) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, v := range map[string]any{"/v1/status": s, "/v1/cluster": c} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func ptrTo[T any](v T) *T { return &v }

// TestDoctor: what is wrong is found, has a remedy and a runbook that is there, and
// decides the exit code.
func TestDoctor(t *testing.T) {
	yaml := write(t, "good.yaml", goodYAML())
	well := func() (admin.Status, ha.Status) {
		s := admin.Status{Node: "n1", Version: node.Version().Version, Role: "leader", Leader: "n1",
			Connectors: []admin.Connector{{
				Name: "orders-outbox", State: "running", Phase: "streaming", LagSeconds: ptrTo(0.2),
				Source:  &admin.Source{Connected: true},
				Backlog: &connector.Backlog{Transactions: ptrTo(uint64(3)), HeadroomSeconds: ptrTo(86400.0)},
			}}}
		c := ha.Status{NodeID: "n1", LeaderID: "n1", Members: []ha.Member{
			{ID: "n1", Voter: true, Leader: true}, {ID: "n2", Voter: true, Reachable: ptrTo(true)},
			{ID: "n3", Voter: true, Reachable: ptrTo(true)},
		}}
		return s, c
	}
	for name, one := range map[string]struct {
		spoil func(*admin.Status, *admin.Connector, *ha.Status)
		probe node.CheckStatus
		code  int
		want  []string
	}{
		"all is well":   {nil, node.CheckOK, exitOK, []string{"3 of 3 voters", "3 transactions", "streaming"}},
		"a bad server":  {nil, node.CheckFailed, exitFailed, []string{"binlog_format"}},
		"a weak server": {nil, node.CheckWarning, exitUnhealthy, []string{"binlog_format"}},
		"another release": {func(s *admin.Status, _ *admin.Connector, _ *ha.Status) { s.Version = "v0" }, node.CheckOK,
			exitUnhealthy, []string{"the node runs v0"}},
		"no leader": {func(s *admin.Status, _ *admin.Connector, _ *ha.Status) { s.Leader = "" }, node.CheckOK,
			exitFailed, []string{"NoLeader.md"}},
		"a node is away": {func(_ *admin.Status, _ *admin.Connector, c *ha.Status) { *c.Members[2].Reachable = false },
			node.CheckOK, exitUnhealthy, []string{"bring n3 back", "QuorumThin.md"}},
		"two are": {func(_ *admin.Status, _ *admin.Connector, c *ha.Status) {
			*c.Members[1].Reachable, *c.Members[2].Reachable = false, false
		}, node.CheckOK, exitFailed, []string{"n2, n3", "NoLeader.md"}},
		"failed": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) {
			c.State, c.LastError = "failed", &connector.LastError{Code: "row_refused", Message: "no topic"}
		}, node.CheckOK, exitFailed, []string{"row_refused: no topic", "connector restart orders-outbox",
			"ConnectorFailed.md"}},
		"retrying": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) {
			c.LastError = &connector.LastError{Code: "unreachable", Message: "away"}
		}, node.CheckOK, exitUnhealthy, []string{"unreachable: away", "NotStreaming.md"}},
		"paused": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) {
			c.State, c.Wanted = "paused", ha.RunStatus{State: ha.Paused, By: "ann", Reason: "schema change"}
		}, node.CheckOK, exitUnhealthy, []string{"by ann: schema change", "connector resume"}},
		"behind": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { *c.LagSeconds = 300 }, node.CheckOK,
			exitUnhealthy, []string{"5m0s", "LagHigh.md"}},
		"a purge": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { *c.Backlog.HeadroomSeconds = 3600 },
			node.CheckOK, exitUnhealthy, []string{"1h0m0s", "BinlogPurgeRisk.md"}},
		"short": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) {
			*c.Backlog.HeadroomSeconds, c.Backlog.RetentionSeconds = 3000, ptrTo(3600.0)
		}, node.CheckOK, exitOK, []string{"50m0s"}},
		"silent": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { c.Backlog.At = time.Now().Add(-time.Hour) },
			node.CheckOK, exitUnhealthy, []string{"it is 1h0m", "LagUnknown.md"}},
		"cut off": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { c.Source.Connected = false }, node.CheckOK,
			exitUnhealthy, []string{"lost its source", "NotStreaming.md"}},
		"purged": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { *c.Backlog.HeadroomSeconds = 0 }, node.CheckOK,
			exitFailed, []string{"BinlogPurgeRisk.md"}},
		"unseen": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { c.UnseenTopics = []string{"order.events"} },
			node.CheckOK, exitUnhealthy, []string{"order.events", "grant READ"}},
		"asides": {func(_ *admin.Status, c *admin.Connector, _ *ha.Status) { c.Unpublished.Rows = 2 }, node.CheckOK,
			exitUnhealthy, []string{"rows list", "RowsUnpublished.md"}},
		"unknown": {func(s *admin.Status, _ *admin.Connector, _ *ha.Status) { s.Connectors = nil }, node.CheckOK,
			exitUnhealthy, []string{"does not have it"}},
		"stranger": {func(s *admin.Status, _ *admin.Connector, _ *ha.Status) {
			s.Connectors = append(s.Connectors, admin.Connector{Name: "put", State: "failed"})
		}, node.CheckOK, exitFailed, []string{"put\n"}},
		"follower": {func(s *admin.Status, c *admin.Connector, cl *ha.Status) {
			s.Role, s.Leader, cl.LeaderID, cl.NodeID = "follower", "n2", "n2", "n1"
			c.State, c.Phase, cl.Members[1].Reachable, cl.Members[2].Reachable = "unassigned", "", nil, nil
		}, node.CheckOK, exitOK, []string{"n2 leads, ask it", "only the leader knows: ask n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := well()
			if one.spoil != nil {
				one.spoil(&s, &s.Connectors[0], &c)
			}
			p := &probe{checks: []node.Check{{Name: "MySQL: binlog_format", Status: one.probe, Detail: "x"}}}
			url := playedNode(t, s, c)
			code, out, errs := command{probe: p.Probe}.run(t, "doctor", "-c", yaml, "--server", url)
			for _, want := range one.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if code != one.code || errs != "" {
				t.Errorf("exit code %d, want %d %s", code, one.code, errs)
			}
			for word := range strings.FieldsFuncSeq(out, func(r rune) bool { return strings.ContainsRune(" ()\n", r) }) {
				if strings.HasPrefix(word, "docs/runbooks/") {
					if _, err := os.Stat(filepath.Join("../..", word)); err != nil {
						t.Error(err)
					}
				}
			}
			if t.Failed() {
				t.Log(out)
			}
			code, out, _ = command{probe: p.Probe}.run(t, "doctor", "-c", yaml, "--server", url, "-o", "json")
			var d diagnosis
			if err := json.Unmarshal([]byte(out), &d); err != nil || code != one.code ||
				(d.Status == node.CheckOK) != (code == exitOK) {
				t.Errorf("as JSON: %v, %d, %s", err, code, d.Status)
			}
		})
	}
	code, out, _ := command{probe: (&probe{}).Probe}.run(t, "doctor", "-c", yaml, "--server", "http://127.0.0.1:1")
	if code != exitFailed || !strings.Contains(out, "start it") {
		t.Errorf("nobody answers: %d\n%s", code, out)
	}
}

// TestDoctorAtARealNode: whose servers are away.
func TestDoctorAtARealNode(t *testing.T) {
	url := served(t, canaltest.StartOutbox(t, 1), "127.0.0.1:1")
	yaml := write(t, "good.yaml", goodYAML())
	code, out, _ := command{probe: (&probe{}).Probe}.run(t, "doctor", "-c", yaml, "--server", url)
	if code == exitOK || !strings.Contains(out, "1 of 1 voters") || !strings.Contains(out, "orders") {
		t.Errorf("%d\n%s", code, out)
	}
}

// TestManAndCompletion: each command has its page, and the shells get their scripts.
func TestManAndCompletion(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := (command{}).run(t, "man", dir); code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"binlog-outbox.1", "binlog-outbox-run.1", "binlog-outbox-events-find.1",
		"binlog-outbox-offset-set.1"} {
		if !slices.Contains(pages, filepath.Join(dir, want)) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, _ := (command{}).run(t, "completion", shell); code != exitOK ||
			!strings.Contains(out, "binlog-outbox") {
			t.Errorf("completion for %s: %d", shell, code)
		}
	}
}
