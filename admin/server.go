package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Node answers for the node that the server is part of. Its methods may be called
// by many goroutines and must not wait for the network.
type Node interface {
	Status() Status
	// Checks say what readiness depends on, each with a name.
	Checks() []Check
}

// Check is one condition of readiness.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Detail says what is wrong and, where it is known, what to do.
	Detail string `json:"detail,omitempty"`
}

// Config is the server's own.
type Config struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// AllowRemote permits an address that is not loopback although the server has
	// neither TLS nor users yet.
	AllowRemote bool
}

// Server is the HTTP surface of one node.
type Server struct {
	node     Node
	control  Control
	log      *slog.Logger
	listener net.Listener
	http     *http.Server
}

// The limits keep a slow or greedy client from holding the node's memory; the
// zero values of http.Server mean no limit.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 120 * time.Second // a CPU profile takes 30 s by default
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 16 << 10
	aliveTimeout      = 2 * time.Second
)

// Listen opens the listener, so that the address is known before Run.
func Listen(cfg Config, node Node, control Control, metrics prometheus.Gatherer, log *slog.Logger) (*Server, error) {
	if err := checkAddress(cfg); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening the admin listener: %w", err)
	}
	s := &Server{node: node, control: control, log: log, listener: l}
	s.http = &http.Server{
		Handler:           s.routes(metrics),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func checkAddress(cfg Config) error {
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return fmt.Errorf("admin.listen %q: want host:port: %w", cfg.Listen, err)
	}
	ip := net.ParseIP(host)
	if cfg.AllowRemote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("admin.listen %q is not a loopback address and the admin server has no authentication: use 127.0.0.1, or set admin.allow_remote: true if the network protects it", cfg.Listen)
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends, then lets requests under way finish for a moment.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := s.http.Shutdown(grace); err != nil {
			_ = s.http.Close()
		}
	})
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	stop()
	return fmt.Errorf("serving the admin API: %w", err)
}

func (s *Server) routes(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /v1/status", s.status)
	s.controlRoutes(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError),
	}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &problems{mux}
}

// problems answers in the form of /v1 below it, also for what no route is there for.
type problems struct{ mux *http.ServeMux }

func (p *problems) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h, pattern := p.mux.Handler(r); pattern == "" && strings.HasPrefix(r.URL.Path, "/v1/") {
		said := &unsaid{header: http.Header{}}
		h.ServeHTTP(said, r)
		if said.code == http.StatusMethodNotAllowed {
			w.Header()["Allow"] = said.header["Allow"]
			writeProblem(w, &Problem{Status: said.code, Code: CodeMethod, Detail: r.Method + " is not possible here; " + said.header.Get("Allow") + " is"})
			return
		}
		writeProblem(w, &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: "there is nothing at " + r.URL.Path})
		return
	}
	p.mux.ServeHTTP(w, r)
}

// unsaid takes an answer that is said in another form.
type unsaid struct {
	header http.Header
	code   int
}

func (u *unsaid) Header() http.Header         { return u.header }
func (u *unsaid) WriteHeader(code int)        { u.code = code }
func (u *unsaid) Write(b []byte) (int, error) { return len(b), nil }

// livez is about this process alone: it fails when the node's own state can't be
// read in time, which is what a stuck loop or a deadlock looks like. Servers that
// are away are a matter of readiness, since a restart would not bring them back.
func (s *Server) livez(w http.ResponseWriter, r *http.Request) {
	done := make(chan struct{})
	go func() {
		s.node.Status()
		close(done)
	}()
	select {
	case <-done:
		_, _ = io.WriteString(w, "ok\n")
	case <-time.After(aliveTimeout):
		http.Error(w, "the node's state can't be read: a loop is stuck", http.StatusServiceUnavailable)
	case <-r.Context().Done():
	}
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	checks := s.node.Checks()
	code := http.StatusOK
	for _, c := range checks {
		if !c.OK {
			code = http.StatusServiceUnavailable
		}
	}
	if r.URL.Query().Has("verbose") {
		writeJSON(w, code, checks)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	if code == http.StatusOK {
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	for _, c := range checks {
		if !c.OK {
			fmt.Fprintf(w, "%s: %s\n", c.Name, c.Detail)
		}
	}
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.node.Status())
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client is gone
}
