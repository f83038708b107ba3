package admin

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Problem is an error with what an HTTP client needs of it, after RFC 9457. Code is
// stable and meant for programs, Detail is for people.
type Problem struct { //nolint:errname // the RFC's word
	Status int
	Code   string
	Detail string
	// RetryAfter says when the same request may succeed; 0 when it will not by itself.
	RetryAfter time.Duration
}

// The codes of problems; docs/api.md lists them for users.
const (
	CodeInvalid           = "invalid_request"
	CodeReasonRequired    = "reason_required"
	CodeTooLarge          = "too_large"
	CodeTimeout           = "request_timeout"
	CodeMediaType         = "unsupported_media_type"
	CodeForbidden         = "forbidden"
	CodeUnauthorized      = "unauthorized"
	CodeNotFound          = "not_found"
	CodeMethod            = "method_not_allowed"
	CodeConnectorNotFound = "connector_not_found"
	CodeRowPassed         = "row_already_passed"
	CodeNotStopped        = "connector_not_stopped"
	CodeRejected          = "rejected"
	CodeMemberNotFound    = "member_not_found"
	CodeLoggerNotFound    = "logger_not_found"
	CodeQuorum            = "quorum"
	CodeNoOtherVoter      = "no_other_voter"
	CodeNoLeader          = "no_leader"
	CodeBusy              = "busy"
	CodeUnknownOutcome    = "unknown_outcome"
	CodeSourceUnavailable = "source_unavailable"
	CodeSearching         = "search_running"
	CodeNoSearch          = "search_not_found"
	CodeInternal          = "internal"
)

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// asProblem makes any error one that can be told; what is not known to be fit for
// it is an internal one.
func asProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge,
			Detail: "the body is larger than " + strconv.Itoa(maxBody) + " bytes"}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Problem{Status: http.StatusRequestTimeout, Code: CodeTimeout, Detail: "the body came too slowly"}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: CodeInternal, Detail: err.Error()}
}

func invalid(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: detail}
}

// writeProblem answers with err as application/problem+json.
func writeProblem(w http.ResponseWriter, err error) {
	p := asProblem(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(struct { // the client is gone
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(p.Status), p.Status, p.Code, p.Detail})
}
