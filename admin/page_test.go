package admin

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/docs"
)

// askOnce does not follow redirects.
func askOnce(t *testing.T, base, method, path string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func TestPageFiles(t *testing.T) {
	base := serveBoth(t, Config{Listen: "127.0.0.1:0"}, &fakeNode{}, &fakeControl{})
	for path, kind := range map[string]string{
		"/ui/": "text/html; charset=utf-8", "/ui/index.html": "text/html; charset=utf-8",
		"/ui/runbook.html": "text/html; charset=utf-8",
		"/ui/app.js":       "text/javascript; charset=utf-8", "/ui/style.css": "text/css; charset=utf-8",
		"/ui/icon.svg": "image/svg+xml",
		"/ui/runbooks/BinlogOutboxConnectorFailed.md": "text/markdown; charset=utf-8",
		"/ui/runbooks.json":                           "application/json",
	} {
		resp := askOnce(t, base, "GET", path)
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: %d %v", path, resp.StatusCode, h)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") ||
			strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("GET %s: Content-Security-Policy %q", path, csp)
		}
		// It is kept by browsers, but never shown without being asked for again.
		if h.Get("ETag") == "" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("GET %s: ETag %q, Cache-Control %q", path, h.Get("ETag"), h.Get("Cache-Control"))
		}
		if again := askOnce(t, base, "GET", path, "If-None-Match",
			h.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("GET %s again: %d, want 304", path, again.StatusCode)
		}
		if head := askOnce(t, base, "HEAD", path); head.StatusCode != 200 || head.ContentLength != resp.ContentLength {
			t.Errorf("HEAD %s: %d, %d bytes of %d", path, head.StatusCode, head.ContentLength, resp.ContentLength)
		}
	}
	for _, path := range []string{
		"/ui/nothing.js", "/ui/page.go", "/ui/runbooks/", "/ui/%2e%2e/page.go", "/ui/..%2fserver.go", "/ui/page/index.html",
		"/ui/runbooks/..%2f..%2fgo.mod", "/ui/%2fetc%2fpasswd",
	} {
		if resp := askOnce(t, base, "GET", path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %d, want 404", path, resp.StatusCode)
		}
	}
	if resp := askOnce(t, base, "POST", "/ui/"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /ui/: %d, want 405", resp.StatusCode)
	}
	if resp := askOnce(t, base, "GET", "/ui"); resp.StatusCode != http.StatusFound ||
		resp.Header.Get("Location") != "ui/" {
		t.Errorf("GET /ui: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
}

// TestRootIsForBrowsersAndClients: Connect's clients ask for / to learn the version,
// and say that they want JSON or say nothing.
func TestRootIsForBrowsersAndClients(t *testing.T) {
	connect := httptest.NewServer(&problems{mux: http.NewServeMux(), connect: http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	})})
	t.Cleanup(connect.Close)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct {
		method, path, accept string
		want                 int
	}{
		{"GET", "/", browser, http.StatusFound}, {"HEAD", "/", browser, http.StatusFound},
		{"GET", "/", "", http.StatusTeapot}, {"GET", "/", "*/*", http.StatusTeapot},
		{"GET", "/", "application/json", http.StatusTeapot},
		{"GET", "/connectors", browser, http.StatusTeapot}, {"POST", "/", browser, http.StatusTeapot},
	} {
		header := []string{}
		if c.accept != "" {
			header = []string{"Accept", c.accept}
		}
		resp := askOnce(t, connect.URL, c.method, c.path, header...)
		if resp.StatusCode != c.want || c.want == http.StatusFound && resp.Header.Get("Location") != "ui/" {
			t.Errorf("%s %s as %q: %d to %q, want %d", c.method, c.path, c.accept, resp.StatusCode, resp.Header.Get("Location"),
				c.want)
		}
	}
}

// TestPageNeedsNothingElse: the page loads from its own server alone, has no script or
// style in its HTML, which its policy would refuse, and names runbooks that exist.
func TestPageNeedsNothingElse(t *testing.T) {
	outside := regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9.-]+\.[a-z]|\.innerHTML|\beval\(|document\.write`)
	inline := regexp.MustCompile(`(?i)<script(?:>| [^>]*>[^<])|<style|\sstyle=|\son[a-z]+=`)
	runbook := regexp.MustCompile(`\bBinlogOutbox[A-Z]\w+`)
	all, err := assets()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Fatalf("%d files only", len(all))
	}
	for name, a := range all {
		text := string(a.body)
		if strings.HasSuffix(name, ".md") {
			continue
		}
		if found := outside.FindString(strings.ReplaceAll(text, "http://www.w3.org/", "")); found != "" {
			t.Errorf("%s: %s", name, found)
		}
		if found := inline.FindString(text); strings.HasSuffix(name, ".html") && found != "" {
			t.Errorf("%s: %s", name, found)
		}
		for _, book := range runbook.FindAllString(text, -1) {
			if _, err := fs.Stat(docs.Runbooks, "runbooks/"+book+".md"); err != nil {
				t.Errorf("%s names the runbook %s: %v", name, book, err)
			}
		}
	}
}

// TestPageIsGuarded: who has no password does not see the page either.
func TestPageIsGuarded(t *testing.T) {
	base := serveBoth(t, Config{
		Listen: "127.0.0.1:0", WebConfig: webFile(t, "basic_auth_users: {vera: "+hash+"}\n"),
		Auth: func() Auth { return Auth{Users: true} },
	}, &fakeNode{}, &fakeControl{})
	if resp := askOnce(t, base, "GET", "/ui/"); resp.StatusCode != http.StatusUnauthorized ||
		resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("GET /ui/ without a password: %d %v", resp.StatusCode, resp.Header)
	}
	open := serveBoth(t, Config{Listen: "127.0.0.1:0"}, &fakeNode{}, &fakeControl{})
	if resp := askOnce(t, open, "GET", "/ui/"); resp.StatusCode != 200 {
		t.Errorf("GET /ui/: %d", resp.StatusCode)
	}
}
