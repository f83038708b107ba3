package admin

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Leader is the way to the node that leads. It alone knows what connectors do and where
// events went.
type Leader interface {
	// Leads reports whether it is this node.
	Leads() bool
	// RoundTripper brings a request to the PeerHandler of the node that the URL's host
	// names, or of the leader when it names none. Errors are of type *Problem.
	http.RoundTripper
}

const (
	// leaderTimeout bounds a request that the leader answers for this node.
	leaderTimeout = 10 * time.Second
	// userHeader and addressHeader say who asks, of what another node brings. Nobody but
	// PeerHandler believes them.
	userHeader    = "Binlog-Outbox-User"
	addressHeader = "Binlog-Outbox-Address"
)

type broughtKey struct{}

// brought reports whether another node has brought a request here: it goes no further.
func brought(r *http.Request) bool { return r.Context().Value(broughtKey{}) != nil }

// bring makes out, a copy of in, a request to another node's PeerHandler, with its body.
func bring(out, in *http.Request, to string, body []byte) {
	out.URL.Host = to
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	out.Header.Set(userHeader, url.QueryEscape(authenticated(in)))
	out.Header.Set(addressHeader, in.RemoteAddr)
	out.Header.Del("Authorization") // it was checked here
}

// atLeader has h answer at the leader, whole requests by whole answers. fail says what an
// error is to the client.
func atLeader(l Leader, h http.Handler, fail func(http.ResponseWriter, *http.Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if brought(r) || l.Leads() {
			h.ServeHTTP(w, r)
			return
		}
		// It comes from the client at its own pace, and goes on at once.
		body, err := readAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			fail(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), leaderTimeout)
		defer cancel()
		proxy := httputil.ReverseProxy{
			Transport:    l,
			Rewrite:      func(p *httputil.ProxyRequest) { bring(p.Out, r, "", body) },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, r, err) },
		}
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}
}

// PeerHandler answers what other nodes bring here. They have checked whether the asker
// may, and so it must be served to nobody else.
func PeerHandler(control Control, connect *ConnectAPI) http.Handler {
	routes := http.NewServeMux()
	eventRoutes(control, func(_ Role, pattern string, h http.HandlerFunc) { routes.Handle(pattern, h) })
	for _, pattern := range []string{"/connectors", "/connectors/", "PUT /admin/loggers/{logger}"} {
		routes.Handle(pattern, connect)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := url.QueryUnescape(r.Header.Get(userHeader)) // what can't be read is nobody's name
		ctx := context.WithValue(context.WithValue(r.Context(), userKey{}, user), broughtKey{}, true)
		r = r.WithContext(ctx)
		r.RemoteAddr = r.Header.Get(addressHeader)
		routes.ServeHTTP(w, r)
	})
}
