package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
