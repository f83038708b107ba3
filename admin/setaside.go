package admin

import (
	"net/http"
	"time"
)

// SetAsides is the answer of GET /v1/connectors/{name}/set-aside.
type SetAsides struct {
	Connector string `json:"connector"`
	// Decisions are kept in the cluster, in the order in which they were made. Those
	// about rows that the position has passed are dropped when there are many; the
	// audit list tells of them.
	Decisions []AsideDecision `json:"decisions"`
	// SetAside is what was set aside on this node, by decisions and by the policy.
	SetAside SetAside `json:"set_aside"`
}

// AsideDecision is the decision, by the policy or an operator, about one row.
type AsideDecision struct {
	AsideChoice

	Cause   string    `json:"cause"`
	Message string    `json:"message,omitempty"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	// Passed says that the stored position has the row behind it.
	Passed bool `json:"passed"`
}

// AsideChoice names a row, as last_error and the log do, and what to do with it.
type AsideChoice struct {
	// Transaction is a GTID, or file:pos of the transaction's end where there is none.
	Transaction string `json:"transaction"`
	// Row is the number among the transaction's outbox rows, from 1.
	Row uint64 `json:"row"`
	// Action is skip or dead_letter.
	Action string `json:"action"`
}

func (s *Server) listSetAside(w http.ResponseWriter, r *http.Request) {
	list, err := s.control.SetAsides(r.PathValue("name"))
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) postSetAside(w http.ResponseWriter, r *http.Request) {
	var body struct {
		orderFields
		AsideChoice
	}
	by, err := readOrder(w, r, &body, &body.orderFields)
	if err == nil && (body.Transaction == "" || body.Row == 0 || body.Action == "") {
		err = invalid("say which row and what to do: transaction (GTID, or file:pos of its end), row (from 1) and action (skip or dead_letter)")
	}
	var d AsideDecision
	if err == nil {
		d, err = s.control.SetAside(r.Context(), r.PathValue("name"), body.AsideChoice, by)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeJSON(w, http.StatusCreated, d)
}
