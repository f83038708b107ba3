package admin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// oneConnector is a node with a connector that it runs.
type oneConnector struct{ Connect }

func (oneConnector) Connectors() []ConnectConnector {
	return []ConnectConnector{{Connector: Connector{Name: "orders", State: "running"}, Node: "n1"}}
}

func (oneConnector) DeleteConnector(context.Context, string, Actor) error { return nil }

// Users may do what their role lets them, and are told in Connect's form what not.
func TestConnectAsksForRoles(t *testing.T) {
	f := &fakeControl{}
	users := "basic_auth_users:\n"
	for _, u := range []string{"vera", "otto", "ann"} {
		users += "  " + u + ": " + hash + "\n"
	}
	base := serveBoth(t, Config{
		Listen: "127.0.0.1:0", WebConfig: webFile(t, users), Auth: func() Auth { return Auth{Users: true} },
		Roles:   map[string]Role{"vera": View, "otto": Operate, "ann": Admin},
		Connect: NewConnectAPI(oneConnector{}, f, slog.New(slog.DiscardHandler)),
	}, &fakeNode{}, f)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	routes := []string{"GET /connectors", "PUT /connectors/orders/pause", "DELETE /connectors/orders"}
	for user, want := range map[string][3]int{"vera": {200, 403, 403}, "otto": {200, 202, 403}, "ann": {200, 202, 204}} {
		for i, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, base+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth(user, "fakepassword")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil || resp.StatusCode != want[i] || want[i] == 403 && !strings.HasPrefix(string(body),
				`{"error_code":403,"message":"`+user) {
				t.Errorf("%s: %s: %d %s, %v, want %d", user, route, resp.StatusCode, body, err, want[i])
			}
		}
	}
	if f.last.By != "ann" && f.last.By != "otto" {
		t.Errorf("the audit list names %q", f.last.By)
	}
}

// Looking needs less than stopping, and that less than changing what is published.
func TestConnectRoles(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         Role
	}{
		{"GET", "/", View},
		{"GET", "/connectors/orders/config", View},
		{"GET", "/connectors/pause", View},
		{"PUT", "/connector-plugins/MySqlConnector/config/validate", View},
		{"PUT", "/connectors/orders/pause", Operate},
		{"PUT", "/connectors/orders/stop/", Operate},
		{"POST", "/connectors/orders/restart", Operate},
		{"POST", "/connectors/orders/tasks/0/restart", Operate},
		{"PUT", "/connectors/orders/topics/reset", Operate},
		{"PUT", "/admin/loggers/root", Operate},
		{"POST", "/connectors", Admin},
		{"DELETE", "/connectors/restart", Admin}, // a connector of this name
		{"PUT", "/connectors/orders/config", Admin},
		{"PUT", "/connectors/validate/config", Admin},
		{"PATCH", "/connectors/orders/config", Admin},
		{"DELETE", "/connectors/orders", Admin},
		{"PATCH", "/connectors/orders/offsets", Admin},
		{"DELETE", "/connectors/orders/offsets", Admin},
		{"PUT", "/nosuch", Admin},
	} {
		if got := connectRole(httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)); got != c.want {
			t.Errorf("%s %s needs %s, want %s", c.method, c.path, got, c.want)
		}
	}
}
