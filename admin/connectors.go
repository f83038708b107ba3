package admin

import (
	"net/http"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// handle registers the handler of a route, which needs a role.
type handle func(need Role, pattern string, h http.HandlerFunc)

// controlRoutes are the routes of connectors.
func (s *Server) controlRoutes(handle handle) {
	handle(View, "GET /v1/connectors", s.listConnectors)
	handle(View, "GET /v1/connectors/{name}", s.getConnector)
	for action, want := range map[string]ha.RunState{"pause": ha.Paused, "resume": ha.Running, "stop": ha.Stopped} {
		handle(Operate, "PUT /v1/connectors/{name}/"+action, func(w http.ResponseWriter, r *http.Request) {
			s.setRunState(w,
				r, want)
		})
	}
	handle(Operate, "POST /v1/connectors/{name}/restart", s.restart)
	handle(View, "GET /v1/connectors/{name}/offset", s.getOffset)
	handle(Admin, "PUT /v1/connectors/{name}/offset", s.putOffset)
	handle(Admin, "POST /v1/connectors/{name}/offset", s.importOffset)
	handle(Admin, "DELETE /v1/connectors/{name}/offset", s.deleteOffset)
	handle(View, "GET /v1/connectors/{name}/unpublished-rows", s.listUnpublished)
	handle(Admin, "POST /v1/connectors/{name}/unpublished-rows", s.postRowDecision)
}

func (s *Server) listConnectors(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Connectors []Connector `json:"connectors"`
	}{s.node.Status().Connectors})
}

func (s *Server) getConnector(w http.ResponseWriter, r *http.Request) {
	s.answerConnector(w, http.StatusOK, r.PathValue("name"))
}

func (s *Server) answerConnector(w http.ResponseWriter, code int, name string) {
	c, err := s.control.Connector(name)
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, code, c)
}

func (s *Server) setRunState(w http.ResponseWriter, r *http.Request, want ha.RunState) {
	var body actorFields
	by, err := readActor(w, r, &body, &body)
	if err == nil {
		err = s.control.SetRunState(r.Context(), r.PathValue("name"), want, by)
	}
	s.accepted(w, r, err)
}

func (s *Server) restart(w http.ResponseWriter, r *http.Request) {
	var body actorFields
	by, err := readActor(w, r, &body, &body)
	if err == nil {
		err = s.control.Restart(r.Context(), r.PathValue("name"), by)
	}
	s.accepted(w, r, err)
}

// accepted answers a write that a connector will follow.
func (s *Server) accepted(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		writeProblem(w, err)
		return
	}
	s.answerConnector(w, http.StatusAccepted, r.PathValue("name"))
}

func (s *Server) getOffset(w http.ResponseWriter, r *http.Request) {
	o, err := s.control.Offset(r.PathValue("name"))
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, o)
}

func (s *Server) putOffset(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		OffsetRequest
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if err == nil && body.Debezium != nil {
		err = invalid("an offset of Debezium's is taken over with POST")
	}
	if err == nil && body.OffsetRequest == (OffsetRequest{DryRun: body.DryRun}) {
		err = invalid("say where to go on: gtid_set, file with pos, or at (now, earliest or a time)")
	}
	s.setOffset(w, r, body.OffsetRequest, by, err)
}

// importOffset takes over what Debezium has stored.
func (s *Server) importOffset(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		Debezium *DebeziumOffset `json:"debezium"`
		DryRun   bool            `json:"dry_run,omitempty"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if d := body.Debezium; err == nil && (d == nil || (len(d.Offset) == 0) == (d.Topic == "")) {
		err = invalid("give what Debezium has stored, as debezium.offset, or the topic that it is in, as debezium.topic")
	}
	s.setOffset(w, r, OffsetRequest{Debezium: body.Debezium, DryRun: body.DryRun}, by, err)
}

func (s *Server) deleteOffset(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		DryRun bool `json:"dry_run,omitempty"`
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	s.setOffset(w, r, OffsetRequest{Reset: true, DryRun: body.DryRun}, by, err)
}

func (s *Server) setOffset(w http.ResponseWriter, r *http.Request, request OffsetRequest, by Actor, err error) {
	var change OffsetChange
	if err == nil {
		change, err = s.control.SetOffset(r.Context(), r.PathValue("name"), request, by)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, change)
}
