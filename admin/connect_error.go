package admin

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
)

// connectError is an error in Connect's form.
type connectError struct {
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func failed(status int, message string) httpAnswer {
	return httpAnswer{status: status, body: connectError{status, message}}
}

// restError is an error that a client is told as it is.
type restError struct {
	status  int
	message string
}

func (e *restError) Error() string { return e.message }

func refused(status int, format string, args ...any) error {
	return &restError{status, fmt.Sprintf(format, args...)}
}

func unknownConnector(name string) error {
	return refused(http.StatusNotFound, "Connector %s not found", name)
}

// failure turns an error into an answer. What passes by itself, such as an
// election, is 409: clients of Connect try again after it, as during a rebalance.
func (a *ConnectAPI) failure(err error) httpAnswer {
	if e, ok := errors.AsType[*restError](err); ok {
		return failed(e.status, e.message)
	}
	p := asProblem(err)
	switch p.Code {
	case CodeNoLeader, CodeBusy:
		return failed(http.StatusConflict, "Cannot complete request momentarily: "+p.Detail)
	case CodeUnknownOutcome, CodeSourceUnavailable, CodeInternal:
		a.log.Warn("request failed", "code", p.Code, "error", p.Detail)
		return failed(http.StatusInternalServerError, p.Detail)
	case CodeNotStopped:
		return failed(http.StatusBadRequest, p.Detail)
	}
	return failed(p.Status, p.Detail)
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}
