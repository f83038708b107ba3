package admin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Operations is what may be asked of the cluster and of the node, apart from
// connectors. What is said of Control is true of it.
type Operations interface {
	// Cluster returns the cluster as this node knows it.
	Cluster() ha.Status
	AddMember(ctx context.Context, id, address string, by Actor) error
	// RemoveMember refuses to leave the cluster without a majority, unless forced.
	RemoveMember(ctx context.Context, id string, force bool, by Actor) error
	Promote(ctx context.Context, id string, by Actor) error
	// TransferLeadership hands over to the voter named to, or to the best for "".
	TransferLeadership(ctx context.Context, to string, by Actor) error
	// Snapshot writes what this node has of the replicated state.
	Snapshot(ctx context.Context, w io.Writer, by Actor) error
	// Audit returns the last writes, oldest first.
	Audit() []ha.AuditEntry
	// Config returns the effective configuration as JSON, with secrets masked.
	Config() (json.RawMessage, error)
	// Loggers returns the loggers of this node.
	Loggers() []Logger
	// SetLogger changes a logger's level on this node until it ends, or for a time.
	SetLogger(name, level string, during time.Duration, by Actor) error
}

// Logger is one part of the program that logs.
type Logger struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	// Until is when the level goes back to the configured one; absent for never.
	Until *time.Time `json:"until,omitempty"`
	// Changed is when the level was last set over HTTP; absent for never.
	Changed *time.Time `json:"changed_at,omitempty"`
}

// operationRoutes are the routes of the cluster and the node.
func (s *Server) operationRoutes(handle handle) {
	handle(View, "GET /v1/cluster", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK,
			s.control.Cluster())
	})
	handle(View, "GET /v1/cluster/members", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct {
			Members []ha.Member `json:"members"`
		}{s.control.Cluster().Members})
	})
	handle(Admin, "POST /v1/cluster/members", s.addMember)
	handle(Admin, "DELETE /v1/cluster/members/{id}", s.removeMember)
	handle(Admin, "POST /v1/cluster/members/{id}/promote", s.promote)
	handle(Operate, "POST /v1/cluster/leader/transfer", s.transfer)
	handle(Admin, "GET /v1/cluster/snapshot", s.snapshot)
	handle(View, "GET /v1/audit", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct {
			Entries []ha.AuditEntry `json:"entries"`
		}{s.control.Audit()})
	})
	handle(View, "GET /v1/config", s.config)
	handle(View, "GET /v1/loggers", func(w http.ResponseWriter, _ *http.Request) { s.answerLoggers(w) })
	handle(Operate, "PUT /v1/loggers/{name}", s.setLogger)
}

func (s *Server) addMember(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		ID      string `json:"id"`
		Address string `json:"address"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if err == nil {
		err = s.control.AddMember(r.Context(), body.ID, body.Address, by)
	}
	s.answerCluster(w, err)
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		Force bool `json:"force,omitempty"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if err == nil {
		err = s.control.RemoveMember(r.Context(), r.PathValue("id"), body.Force, by)
	}
	s.answerCluster(w, err)
}

func (s *Server) promote(w http.ResponseWriter, r *http.Request) {
	var body actorFields
	by, err := readActor(w, r, &body, &body)
	if err == nil {
		err = s.control.Promote(r.Context(), r.PathValue("id"), by)
	}
	s.answerCluster(w, err)
}

func (s *Server) transfer(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		To string `json:"to,omitempty"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if err == nil {
		err = s.control.TransferLeadership(r.Context(), body.To, by)
	}
	s.answerCluster(w, err)
}

func (s *Server) answerCluster(w http.ResponseWriter, err error) {
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, s.control.Cluster())
}

// snapshot streams; the reason is in the header. What fails after the first byte
// can only be shown by cutting the answer off.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) {
	var body actorFields
	by, err := readActor(w, r, &body, &body)
	out := &stream{w: w}
	if err == nil {
		err = s.control.Snapshot(r.Context(), out, by)
	}
	switch {
	case err != nil && out.begun:
		s.log.Warn("sending a snapshot", "error", err)
		panic(http.ErrAbortHandler)
	case err != nil:
		writeProblem(w, err)
	}
}

// stream answers with bytes from the first one that there is.
type stream struct {
	w     http.ResponseWriter
	begun bool
}

func (s *stream) Write(b []byte) (int, error) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "application/octet-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.Header().Set("Content-Disposition", `attachment; filename="binlog-outbox.snapshot"`)
	}
	return s.w.Write(b)
}

func (s *Server) config(w http.ResponseWriter, _ *http.Request) {
	c, err := s.control.Config()
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, c)
}

func (s *Server) setLogger(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		Level string `json:"level"`
		For   string `json:"for,omitempty"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	var during time.Duration
	if err == nil && body.For != "" {
		if during, err = time.ParseDuration(body.For); err != nil || during <= 0 {
			err = invalid("for: want a time like 10m")
		}
	}
	if err == nil {
		err = s.control.SetLogger(r.PathValue("name"), body.Level, during, by)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	s.answerLoggers(w)
}

func (s *Server) answerLoggers(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, struct {
		Loggers []Logger `json:"loggers"`
	}{s.control.Loggers()})
}
