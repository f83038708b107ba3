package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// api answers what the admin server is asked, and carries out what operators ask for.
// What is stored goes through the replicated store, at any node; the connectors at the
// leader follow it.
type api struct {
	cfg      *config.Config
	log      *slog.Logger
	store    *ha.Node
	manager  *manager
	searches *searches
	dial     dialer
	now      func() time.Time
}

// controlTimeout bounds one request to the store; a new leader is found meanwhile.
const controlTimeout = 10 * time.Second

func (a *api) instance(name string) (*instance, error) {
	for _, r := range a.manager.all() {
		if r.name == name {
			return r, nil
		}
	}
	return nil, &admin.Problem{Status: http.StatusNotFound, Code: admin.CodeConnectorNotFound,
		Detail: fmt.Sprintf("there is no connector %q", name)}
}

func invalid(format string, args ...any) error {
	return &admin.Problem{Status: http.StatusBadRequest, Code: admin.CodeInvalid, Detail: fmt.Sprintf(format, args...)}
}

// Connector implements admin.Control.
func (a *api) Connector(name string) (admin.Connector, error) {
	r, err := a.instance(name)
	if err != nil {
		return admin.Connector{}, err
	}
	return a.status(r), nil
}

// SetRunState implements admin.Control.
func (a *api) SetRunState(ctx context.Context, name string, want ha.RunState, by admin.Actor) error {
	if _, err := a.instance(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.SetRunState(ctx, name, want, by.Reason, by.By))
}

// Restart implements admin.Control.
func (a *api) Restart(ctx context.Context, name string, by admin.Actor) error {
	if _, err := a.instance(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.RestartConnector(ctx, name, by.Reason, by.By))
}

// Leads implements admin.Leader.
func (a *api) Leads() bool { return a.store.IsLeader() }

// RoundTrip implements admin.Leader.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.store.RoundTrip(r)
	return resp, problem(err)
}

// problem tells HTTP clients what an error of the store means to them.
func problem(err error) error {
	p := &admin.Problem{Code: admin.CodeInternal, Status: http.StatusInternalServerError}
	rejected, isRejected := errors.AsType[*ha.RejectedError](err)
	_, isUnknown := errors.AsType[*ha.UnknownOutcomeError](err)
	switch {
	case err == nil:
		return nil
	case isRejected:
		return rejection(rejected)
	case isUnknown:
		p.Status, p.Code = http.StatusGatewayTimeout, admin.CodeUnknownOutcome
	case errors.Is(err, ha.ErrNoLeader), errors.Is(err, ha.ErrNotLeader), errors.Is(err, ha.ErrShuttingDown):
		p.Status, p.Code, p.RetryAfter = http.StatusServiceUnavailable, admin.CodeNoLeader, time.Second
	case errors.Is(err, ha.ErrBusy):
		p.Status, p.Code, p.RetryAfter = http.StatusServiceUnavailable, admin.CodeBusy, time.Second
	case errors.Is(err, ha.ErrNotMember):
		p.Status, p.Code = http.StatusNotFound, admin.CodeMemberNotFound
	case errors.Is(err, ha.ErrQuorum):
		p.Status, p.Code = http.StatusConflict, admin.CodeQuorum
	case errors.Is(err, ha.ErrNoOtherVoter):
		p.Status, p.Code = http.StatusConflict, admin.CodeNoOtherVoter
	case errors.Is(err, ha.ErrInvalid):
		p.Status, p.Code = http.StatusBadRequest, admin.CodeInvalid
	}
	p.Detail = err.Error()
	return p
}

func rejection(r *ha.RejectedError) error {
	p := &admin.Problem{Status: http.StatusConflict, Code: admin.CodeRejected,
		Detail: fmt.Sprintf("connector %s: %s", r.Connector, r.Message)}
	switch r.Reason {
	case ha.ReasonNotStopped:
		p.Code = admin.CodeNotStopped
	case ha.ReasonUnknownConnector:
		p.Status, p.Code = http.StatusNotFound, admin.CodeConnectorNotFound
	}
	return p
}
