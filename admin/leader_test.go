package admin

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// twoNodes serves one that follows, whose leader is the other one, and returns what was
// brought there.
func twoNodes(t *testing.T, cfg Config, leader *fakeControl) (url string, asked *[]*http.Request) {
	t.Helper()
	asked = new([]*http.Request)
	quiet := slog.New(slog.DiscardHandler)
	there := PeerHandler(leader, NewConnectAPI(oneConnector{}, leader, quiet))
	follower := &oneOfThree{&fakeControl{leader: func(r *http.Request) (*http.Response, error) {
		*asked = append(*asked, r.Clone(t.Context()))
		w := httptest.NewRecorder()
		there.ServeHTTP(w, r)
		return w.Result(), nil
	}}}
	cfg.Listen, cfg.Connect = "127.0.0.1:0", NewConnectAPI(oneConnector{}, follower, quiet)
	return serveBoth(t, cfg, &fakeNode{}, follower), asked
}

// oneOfThree is n1 in a cluster of three.
type oneOfThree struct{ *fakeControl }

func (oneOfThree) Cluster() ha.Status {
	return ha.Status{NodeID: "n1", Members: []ha.Member{{ID: "n1", Voter: true}, {ID: "n2", Voter: true},
		{ID: "n3", Voter: true}, {ID: "n4"}}}
}

func do(t *testing.T, method, url, body, user string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	if user != "" {
		r.SetBasicAuth(user, "fakepassword")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A request that another node answers is the same there: path, body, reason and who asks,
// proven or claimed; what only nodes may say of it is not believed of a client.
func TestRequestsAreBroughtToTheLeaderWhole(t *testing.T) {
	const search = `{"connector":"orders","reason":"r"}`
	claims := []string{userHeader, "root", addressHeader, "10.0.0.1:1", ByHeader, "ann"}
	for _, c := range []struct {
		name, user, method, path, body string
		code                           int
		asked                          string
		by, reason                     string
	}{
		{"claimed, /v1", "", "POST", "/v1/events/a%2Fb/search", search, 202, "search a/b", "ann (unverified) at 127.0.0.1",
			"r"},
		{"proven, /v1", "jörg %41", "POST", "/v1/events/e/search", search, 202, "search e", "jörg %41", "r"},
		{"claimed, Connect's", "", "PUT", "/connectors/orders/pause/", "", 202, "PAUSED", "ann (unverified) at 127.0.0.1",
			"Connect REST API: PUT /connectors/orders/pause"},
		{"proven, Connect's", "jörg %41", "PUT", "/connectors/orders/pause", "", 202, "PAUSED", "jörg %41",
			"Connect REST API: PUT /connectors/orders/pause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leader, cfg := &fakeControl{}, Config{}
			if c.user != "" {
				cfg.WebConfig = webFile(t, "basic_auth_users:\n  \"jörg %41\": "+hash+"\n")
				cfg.Auth = func() Auth { return Auth{Users: true} }
			}
			url, asked := twoNodes(t, cfg, leader)
			code, text := do(t, c.method, url+c.path, c.body, c.user, claims...)
			if code != c.code || len(leader.asked) != 1 || !strings.EqualFold(leader.asked[0], c.asked) {
				t.Fatalf("%d %s, asked for %q", code, text, leader.asked)
			}
			if leader.last != (Actor{By: c.by, Reason: c.reason}) {
				t.Errorf("asked by %+v, want %q for %q", leader.last, c.by, c.reason)
			}
			if len(*asked) != 1 || (*asked)[0].Header.Get("Authorization") != "" {
				t.Errorf("%d requests, %v", len(*asked), *asked)
			}
		})
	}
	t.Run("not believed of clients", func(t *testing.T) {
		f := &fakeControl{}
		url := serveBoth(t, Config{Listen: "127.0.0.1:0"}, &fakeNode{}, f)
		if code, text := do(t, "POST", url+"/v1/events/e/search", search, "", claims...); code != 202 ||
			f.last.By != "ann (unverified) at 127.0.0.1" {
			t.Errorf("%d %s, by %q", code, text, f.last.By)
		}
	})
	t.Run("too large", func(t *testing.T) {
		url, asked := twoNodes(t, Config{}, &fakeControl{})
		for _, path := range []string{"/v1/events/e/search", "/connectors"} {
			if code, text := do(t, "POST", url+path, strings.Repeat(" ", maxBody+1), ""); code != 413 || len(*asked) != 0 {
				t.Errorf("%s: %d %s, %d times asked", path, code, text, len(*asked))
			}
		}
	})
}

// Levels of loggers are set everywhere, once.
func TestLoggersOfAllNodes(t *testing.T) {
	url, asked := twoNodes(t, Config{}, &fakeControl{})
	if code, text := do(t, "PUT", url+"/admin/loggers/raft?scope=cluster", `{"level":"WARN"}`, ""); code != 204 {
		t.Errorf("%d %s", code, text)
	}
	var to []string
	for _, r := range *asked {
		to = append(to, r.URL.Host)
	}
	if !slices.Equal(to, []string{"n2", "n3"}) {
		t.Errorf("nodes asked: %q", to)
	}
}

// What a node was brought goes no further, also when it does not lead; and it answers
// nothing there but what it is for.
func TestWhatWasBroughtStays(t *testing.T) {
	f := &fakeControl{leader: func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s goes on to %q", r.Method, r.URL, r.URL.Host)
		return nil, http.ErrServerClosed
	}}
	there := PeerHandler(f, NewConnectAPI(oneConnector{}, f, slog.New(slog.DiscardHandler)))
	for route, want := range map[string]int{
		"GET /v1/events/e": 200, "GET /connectors": 200, "PUT /connectors/orders/pause": 202,
		"PUT /admin/loggers/raft?scope=cluster": 200,
		"GET /v1/config":                        404, "GET /debug/pprof/heap": 404, "GET /v1/cluster/snapshot": 404,
		"GET /metrics": 404,
		"GET /":        404,
		"PUT /connector-plugins/x/config/validate": 404, "POST /v1/connectors/orders/pause": 404,
	} {
		method, path, _ := strings.Cut(route, " ")
		body := ""
		if strings.Contains(path, "loggers") {
			body = `{"level":"WARN"}`
		}
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		there.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", route, w.Code, w.Body, want)
		}
	}
}

// Without a leader nothing is changed; Connect's clients are told what this node knows.
func TestNoLeader(t *testing.T) {
	f := &fakeControl{leader: func(*http.Request) (*http.Response, error) {
		return nil, &Problem{Status: 503, Code: CodeNoLeader, Detail: "no leader", RetryAfter: 1}
	}}
	url := serveBoth(t, Config{Listen: "127.0.0.1:0", Connect: NewConnectAPI(oneConnector{}, f,
		slog.New(slog.DiscardHandler))}, &fakeNode{}, f)
	for route, want := range map[string]int{
		"GET /v1/events/e": 503, "GET /connectors": 200, "PUT /connectors/orders/pause": 409,
		"DELETE /connectors/orders": 409,
	} {
		method, path, _ := strings.Cut(route, " ")
		if code, text := do(t, method, url+path, "", ""); code != want || want != 200 &&
			!strings.Contains(text, "no leader") {
			t.Errorf("%s: %d %s, want %d", route, code, text, want)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("asked for %q", f.asked)
	}
}
