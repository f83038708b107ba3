package admin

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/docs"
)

// pageFiles is the page for people: what a browser loads, as it is.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load and ask for what this server has, and nothing else:
// text of a row or an error that finds its way into the page stays text.
const pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// asset is one file of the page.
type asset struct {
	body       []byte
	kind, etag string
}

// assets are the files of the page by what follows /ui/ in their path, runbooks
// among them. It fails for a file of a type that it does not know.
func assets() (map[string]asset, error) {
	all := map[string]asset{}
	add := func(name string, body []byte) error {
		kind := map[string]string{
			".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml", ".json": "application/json", ".md": "text/markdown; charset=utf-8",
		}[path.Ext(name)]
		if kind == "" {
			return fmt.Errorf("%s: no content type is known for it", name)
		}
		sum := sha256.Sum256(body)
		all[name] = asset{body, kind, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	}
	walk := func(from fs.FS, root, below string) error {
		return fs.WalkDir(from, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			body, err := fs.ReadFile(from, name)
			if err != nil {
				return err
			}
			return add(below+strings.TrimPrefix(name, root+"/"), body)
		})
	}
	if err := walk(pageFiles, "page", ""); err != nil {
		return nil, err
	}
	if err := walk(docs.Runbooks, "runbooks", "runbooks/"); err != nil {
		return nil, err
	}
	names, err := runbookNames()
	if err != nil {
		return nil, err
	}
	if err := add("runbooks.json", names); err != nil {
		return nil, err
	}
	all[""] = all["index.html"]
	return all, nil
}

// runbookNames is the list of runbooks that the page offers.
func runbookNames() ([]byte, error) {
	files, err := fs.Glob(docs.Runbooks, "runbooks/*.md")
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".md"))
	}
	return json.Marshal(names)
}

// pageRoutes are the routes of the page. Its links are relative, so that a proxy may
// put it below another path.
func (s *Server) pageRoutes(handle handle) {
	handle(View, "GET /ui", func(w http.ResponseWriter, _ *http.Request) { redirect(w, "ui/") })
	handle(View, "GET /ui/{file...}", func(w http.ResponseWriter, r *http.Request) {
		a, found := s.page[r.PathValue("file")]
		if !found {
			http.Error(w, "there is no such page", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("ETag", a.etag)
		h.Set("Cache-Control", "no-cache") // may be kept, and is asked for again: a new version shows at once
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
	})
}

// redirect sends to a path relative to the one asked for.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept")
	w.WriteHeader(http.StatusFound)
}

// browserAtRoot is true for a person who typed the server's address. Programs ask
// for / too, to learn the version of a Connect worker; they do not want HTML.
func browserAtRoot(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}
