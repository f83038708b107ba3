package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Connect is what the Kafka Connect REST API needs of the node beside Control. Its
// methods may be called by many goroutines. Errors that a client can do something
// about are of type *Problem.
type Connect interface {
	// Worker is what GET / tells. It may wait for Kafka as long as ctx lasts.
	Worker(ctx context.Context) ConnectWorker
	// Version is the one of this program.
	Version() string
	// Healthy says what keeps this node from taking part in the cluster; nil when
	// nothing does.
	Healthy() error
	// Connectors returns all connectors, as this node knows them.
	Connectors() []ConnectConnector
	// PutConnector stores the configuration of a connector, with the secrets that
	// were masked put back, and the state that it begins in when it is new. It
	// refuses what the node's file declares.
	PutConnector(ctx context.Context, put ConnectPut, by Actor) error
	// DeleteConnector ends a connector and removes its configuration; its position
	// stays.
	DeleteConnector(ctx context.Context, name string, by Actor) error
	// ResetTopics forgets the topics of a connector.
	ResetTopics(name string) error
	// Validate says what would become of a configuration, key by key. blind does not
	// look whether the files and variables that it names are there: who may only view
	// must not find out.
	Validate(config map[string]string, blind bool) []ConnectKey
	// Keys are all that a configuration may have.
	Keys() []ConnectKey
}

// ConnectWorker is the answer of GET /. Clients read the version of Kafka Connect
// from it whose API this is.
type ConnectWorker struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	ClusterID string `json:"kafka_cluster_id"`
}

// ConnectConnector is a connector as the Connect REST API tells of it.
type ConnectConnector struct {
	Connector

	// Node is the node that answers for it, Version that of its program.
	Node, Version string
	// Class is its connector.class, Server its topic.prefix, the name of its
	// partition in offsets.
	Class, Server string
	// Config has Debezium's keys with secrets masked.
	Config map[string]string
	Topics []string
}

// ConnectPut is a configuration that is to be stored.
type ConnectPut struct {
	Name   string
	Config map[string]string
	// State is what a new connector begins in; empty is Running.
	State ha.RunState
}

// ConnectKey is one key of a configuration.
type ConnectKey struct {
	Name string
	// Value is nil when the key is not given. Secrets are masked.
	Value    *string
	Secret   bool
	Required bool
	// Text says what becomes of it, Errors what is wrong.
	Text   string
	Errors []string
}

// ConnectAPI serves Kafka Connect's REST API: the same paths, status codes and
// bodies, over the connectors of this cluster. What is about connectors is answered
// by the leader; other nodes bring the requests there, as Connect's workers do.
type ConnectAPI struct {
	connect Connect
	control Control
	log     *slog.Logger
	mux     *http.ServeMux
	// leader is mux at the node that leads.
	leader http.Handler
	// writing lets changes of configurations happen one after the other: a PATCH
	// reads before it writes.
	writing sync.Mutex
}

// NewConnectAPI returns the API over a node.
func NewConnectAPI(connect Connect, control Control, log *slog.Logger) *ConnectAPI {
	a := &ConnectAPI{connect: connect, control: control, log: log, mux: http.NewServeMux()}
	a.leader = atLeader(control, a.mux, func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Method == http.MethodGet { // this node knows configurations and positions, and no states
			a.mux.ServeHTTP(w, r)
			return
		}
		a.failure(err).write(w)
	})
	handle := func(pattern string, h func(*http.Request) (httpAnswer, error)) {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			got, err := h(r)
			if err != nil {
				got = a.failure(err)
			}
			got.write(w)
		})
	}
	handle("GET /{$}", a.worker)
	handle("GET /health", a.health)
	handle("GET /connectors", a.list)
	handle("POST /connectors", a.create)
	handle("GET /connectors/{name}", a.get)
	handle("DELETE /connectors/{name}", a.delete)
	handle("GET /connectors/{name}/config", a.getConfig)
	handle("PUT /connectors/{name}/config", a.putConfig)
	handle("PATCH /connectors/{name}/config", a.patchConfig)
	handle("GET /connectors/{name}/status", a.getStatus)
	handle("POST /connectors/{name}/restart", a.restart)
	handle("PUT /connectors/{name}/pause", a.setState(ha.Paused, http.StatusAccepted))
	handle("PUT /connectors/{name}/resume", a.setState(ha.Running, http.StatusAccepted))
	handle("PUT /connectors/{name}/stop", a.setState(ha.Stopped, http.StatusNoContent))
	handle("GET /connectors/{name}/tasks", a.tasks)
	handle("GET /connectors/{name}/tasks/{task}/status", a.taskStatus)
	handle("POST /connectors/{name}/tasks/{task}/restart", a.restartTask)
	handle("GET /connectors/{name}/topics", a.topics)
	handle("PUT /connectors/{name}/topics/reset", a.resetTopics)
	handle("GET /connectors/{name}/offsets", a.offsets)
	handle("PATCH /connectors/{name}/offsets", a.alterOffsets)
	handle("DELETE /connectors/{name}/offsets", a.resetOffsets)
	handle("GET /connector-plugins", a.plugins)
	handle("GET /connector-plugins/{class}/config", a.pluginKeys)
	handle("PUT /connector-plugins/{class}/config/validate", a.validate)
	handle("GET /admin/loggers", a.loggers)
	handle("GET /admin/loggers/{logger}", a.logger)
	handle("PUT /admin/loggers/{logger}", a.setLogger)
	return a
}

// httpAnswer is what a client gets: a status, and JSON unless body is nil.
type httpAnswer struct {
	status   int
	location string
	body     any
}

func ok(body any) (httpAnswer, error) { return httpAnswer{status: http.StatusOK, body: body}, nil }

func (a httpAnswer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(encode(a.body)) // the client is gone
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // only maps, texts and numbers come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// connectRole is what a request needs: to change what is published, or from where,
// needs more than to stop and start it.
func connectRole(r *http.Request) Role {
	// As it was escaped, since routes are found by it: a slash in a name ends no part.
	path := strings.TrimRight(r.URL.EscapedPath(), "/")
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead, strings.HasPrefix(path, "/connector-plugins/") &&
		last == "validate":
		return View
	case strings.HasPrefix(path, "/admin/loggers/"), slices.Contains([]string{"pause", "resume", "stop", "restart",
		"reset"}, last) && strings.Count(path, "/") > 2:
		return Operate
	default:
		return Admin
	}
}

// ServeHTTP implements http.Handler. Who asks, and may, is known already.
func (a *ConnectAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if path := strings.TrimRight(r.URL.Path, "/"); path != "" && path != r.URL.Path {
		u := *r.URL
		u.Path, u.RawPath = path, strings.TrimRight(r.URL.RawPath, "/")
		r = r.Clone(r.Context())
		r.URL = &u
	}
	if got, refused := a.noRoute(r); refused {
		got.write(w)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/connectors") {
		a.leader.ServeHTTP(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// noRoute answers what no route is there for as JAX-RS does.
func (a *ConnectAPI) noRoute(r *http.Request) (httpAnswer, bool) {
	h, pattern := a.mux.Handler(r)
	if pattern == "" {
		said := &unsaid{header: http.Header{}}
		h.ServeHTTP(said, r)
		if said.code == http.StatusMethodNotAllowed {
			return failed(said.code, "HTTP 405 Method Not Allowed"), true
		}
		return failed(http.StatusNotFound, "HTTP 404 Not Found"), true
	}
	if r.Method == http.MethodGet || r.ContentLength == 0 {
		return httpAnswer{}, false
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return failed(http.StatusUnsupportedMediaType, "HTTP 415 Unsupported Media Type"), true
	}
	return httpAnswer{}, false
}

// order is who asks and why. Connect's clients say neither, so that the
// request stands for the reason, unless a header gives one.
func actor(r *http.Request) Actor {
	clip := func(s string) string { return s[:min(len(s), maxReason)] }
	reason := strings.TrimSpace(r.Header.Get(ReasonHeader))
	if reason == "" {
		reason = "Connect REST API: " + r.Method + " " + r.URL.Path
	}
	return Actor{By: asker(r, clip(strings.TrimSpace(r.Header.Get(ByHeader)))), Reason: clip(reason)}
}
