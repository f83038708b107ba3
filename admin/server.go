package admin

import (
	"cmp"
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
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
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
	// WebConfig is the path of a Prometheus web configuration file, which gives the
	// server TLS, client certificates and users; it is read again at each connection.
	// Empty for none.
	WebConfig string
	// Auth says what that file asks for, at the moment; nil without a file. It may be
	// called by many goroutines.
	Auth func() Auth
	// Roles are those of the users and certificates that have not all rights; who is
	// not listed, or shows no name, may view. Empty: everybody who is let in may do all.
	Roles map[string]Role
	// Connect is Kafka Connect's REST API; nil serves none.
	Connect *ConnectAPI

	// pace and patience are those of events, reading bounds how long a request may take
	// to come, conns the connections; 0 for the defaults.
	pace, patience, reading time.Duration
	conns                   int
}

// Auth is how clients prove who they are.
type Auth struct {
	// Users is true when passwords are asked for, Certificates when certificates are
	// required and verified.
	Users, Certificates bool
}

// Server is the HTTP surface of one node.
type Server struct {
	cfg      Config
	node     Node
	control  Control
	log      *slog.Logger
	listener net.Listener
	http     *http.Server
	// streams holds a place for each client that follows events, closing is closed
	// when the server ends.
	streams chan struct{}
	closing chan struct{}
	page    map[string]asset
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
	page, err := assets()
	if err != nil {
		return nil, fmt.Errorf("reading the files of the page: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening the admin listener: %w", err)
	}
	s := &Server{cfg: cfg, node: node, control: control, log: log, listener: l, streams: make(chan struct{}, maxStreams),
		closing: make(chan struct{}), page: page}
	s.http = &http.Server{
		Handler:           s.routes(metrics),
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: cmp.Or(cfg.reading, readTimeout), WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.http.ConnState = newConnections(cmp.Or(cfg.conns, maxConns)).follow
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(s.closing) }))
	return s, nil
}

func checkAddress(cfg Config) error {
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return fmt.Errorf("admin.listen %q: want host:port: %w", cfg.Listen, err)
	}
	ip := net.ParseIP(host)
	proves := false
	if cfg.Auth != nil {
		a := cfg.Auth()
		proves = a.Users || a.Certificates
	}
	if proves || cfg.AllowRemote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("admin.listen %q is not a loopback address and the admin server has no authentication: use "+
		"127.0.0.1, name a file with users or client certificates in admin.web_config, or set admin.allow_remote: true if "+
		"the network protects it", cfg.Listen)
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends a server that is not run.
func (s *Server) Close() error { return s.listener.Close() }

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
	err := web.Serve(s.listener, s.http, &web.FlagConfig{WebConfigFile: &s.cfg.WebConfig}, s.toolkitLog())
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	stop()
	return fmt.Errorf("serving the admin API: %w", err)
}

// toolkitLog keeps what the server says at its start to who looks for it.
func (s *Server) toolkitLog() *slog.Logger { return slog.New(demoted{s.log.Handler()}) }

// demoted writes what is for information as debugging.
type demoted struct{ slog.Handler }

// Enabled implements slog.Handler.
func (d demoted) Enabled(ctx context.Context, l slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(l))
}

// Handle implements slog.Handler.
func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	return d.Handler.Handle(ctx, r)
}

func demote(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

func (s *Server) routes(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	handle := func(need Role, pattern string, h http.HandlerFunc) { mux.Handle(pattern, s.guarded(need, h)) }
	handle(View, "GET /v1/status", s.status)
	handle(View, "GET /v1/events", s.events)
	s.controlRoutes(handle)
	eventRoutes(s.control, func(need Role, pattern string, h http.HandlerFunc) {
		handle(need, pattern, atLeader(s.control, h, func(w http.ResponseWriter, _ *http.Request, err error) {
			writeProblem(w,
				err)
		}))
	})
	s.operationRoutes(handle)
	s.pageRoutes(handle)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError),
	}))
	handle(Admin, "GET /debug/pprof/", pprof.Index)
	handle(Admin, "GET /debug/pprof/cmdline", pprof.Cmdline)
	handle(Admin, "GET /debug/pprof/profile", pprof.Profile)
	handle(Admin, "GET /debug/pprof/symbol", pprof.Symbol)
	handle(Admin, "GET /debug/pprof/trace", pprof.Trace)
	p := &problems{mux: mux}
	if s.cfg.Connect != nil {
		p.connect = s.guardedConnect(s.cfg.Connect)
	}
	return p
}

// problems answers in the form of /v1 below it, also for what no route is there for.
// Whatever else has no route is Kafka Connect's, if that is served.
type problems struct {
	mux     *http.ServeMux
	connect http.Handler
}

func (p *problems) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if browserAtRoot(r) {
		redirect(w, "ui/")
		return
	}
	h, pattern := p.mux.Handler(r)
	v1 := strings.HasPrefix(r.URL.Path, "/v1/")
	if pattern == "" && !v1 && p.connect != nil {
		p.connect.ServeHTTP(w, r)
		return
	}
	if pattern == "" && v1 {
		said := &unsaid{header: http.Header{}}
		h.ServeHTTP(said, r)
		if said.code == http.StatusMethodNotAllowed {
			w.Header()["Allow"] = said.header["Allow"]
			writeProblem(w, &Problem{Status: said.code, Code: CodeMethod, Detail: r.Method + " is not possible here; " +
				said.header.Get("Allow") + " is"})
			return
		}
		writeProblem(w, &Problem{Status: http.StatusNotFound, Code: CodeNotFound,
			Detail: "there is nothing at " + r.URL.Path})
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
