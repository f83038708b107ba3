package admin

import (
	"net/http"
	"time"
)

// UnpublishedRows is the answer of GET /v1/connectors/{name}/unpublished-rows.
type UnpublishedRows struct {
	Connector string `json:"connector"`
	// Decisions are kept in the cluster, in the order in which they were made. Those
	// about rows that the position has passed are dropped when there are many; the
	// audit list tells of them.
	Decisions []RowDecision `json:"decisions"`
	// Unpublished is what was skipped or dead-lettered on this node, by decisions and by the policy.
	Unpublished Unpublished `json:"unpublished"`
}

// RowDecision is the decision, by the policy or an operator, about one row.
type RowDecision struct {
	RowRequest

	Cause   string    `json:"cause"`
	Message string    `json:"message,omitempty"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	// Passed says that the stored position has the row behind it.
	Passed bool `json:"passed"`
}

// RowRequest names a row, as last_error and the log do, and what to do with it.
type RowRequest struct {
	// Transaction is a GTID, or file:pos of the transaction's end where there is none.
	Transaction string `json:"transaction"`
	// Row is the number among the transaction's outbox rows, from 1.
	Row uint64 `json:"row"`
	// Action is skip or dead_letter.
	Action string `json:"action"`
}

func (s *Server) listUnpublished(w http.ResponseWriter, r *http.Request) {
	list, err := s.control.UnpublishedRows(r.PathValue("name"))
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) postRowDecision(w http.ResponseWriter, r *http.Request) {
	var body struct {
		actorFields
		RowRequest
	}
	by, err := readActor(w, r, &body, &body.actorFields)
	if err == nil && (body.Transaction == "" || body.Row == 0 || body.Action == "") {
		err = invalid("say which row and what to do: transaction (GTID, or file:pos of its end), row (from 1) and action " +
			"(skip or dead_letter)")
	}
	var d RowDecision
	if err == nil {
		d, err = s.control.DecideRow(r.Context(), r.PathValue("name"), body.RowRequest, by)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusCreated, d)
}
