package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// Cluster implements admin.Operations.
func (a *api) Cluster() ha.Status { return a.store.Status() }

// AddMember implements admin.Operations.
func (a *api) AddMember(ctx context.Context, id, address string, by admin.Actor) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.AddMember(ctx, id, address, by.Reason, by.By))
}

// RemoveMember implements admin.Operations.
func (a *api) RemoveMember(ctx context.Context, id string, force bool, by admin.Actor) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.RemoveMember(ctx, id, force, by.Reason, by.By))
}

// Promote implements admin.Operations.
func (a *api) Promote(ctx context.Context, id string, by admin.Actor) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.Promote(ctx, id, by.Reason, by.By))
}

// TransferLeadership implements admin.Operations.
func (a *api) TransferLeadership(ctx context.Context, to string, by admin.Actor) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return problem(a.store.TransferLeadership(ctx, to, by.Reason, by.By))
}

// Snapshot implements admin.Operations.
func (a *api) Snapshot(ctx context.Context, w io.Writer, by admin.Actor) error {
	return problem(a.store.Snapshot(ctx, w, by.Reason, by.By))
}

// Audit implements admin.Operations.
func (a *api) Audit() []ha.AuditEntry { return a.store.Audit() }

// Config implements admin.Operations.
func (a *api) Config() (json.RawMessage, error) {
	text, err := a.cfg.Show(true)
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// Loggers implements admin.Operations.
func (a *api) Loggers() []admin.Logger {
	out := []admin.Logger{}
	l, now := levelsOf(a.log), a.now()
	for _, name := range l.names() {
		at := l.of(name, now)
		out = append(out, admin.Logger{Name: name, Level: strings.ToLower(at.level.String()), Until: timeOrNil(at.until),
			Changed: timeOrNil(at.at)})
	}
	return out
}

// SetLogger implements admin.Operations. It must work without a leader, so that it
// is told in this node's log and nowhere else.
func (a *api) SetLogger(name, level string, during time.Duration, by admin.Actor) error {
	set := change{at: a.now()}
	switch strings.ToLower(level) {
	case "debug", "info", "warn", "error":
		set.level = parseLevel(level)
	default:
		return invalid("level: %q is not debug, info, warn or error", level)
	}
	if during > 0 {
		set.until = a.now().Add(during)
	}
	if !levelsOf(a.log).set(name, set) {
		return &admin.Problem{Status: http.StatusNotFound, Code: admin.CodeLoggerNotFound,
			Detail: fmt.Sprintf("there is no logger %q", name)}
	}
	a.log.Log(context.Background(), slog.LevelWarn, "log level set", "logger", name, "level", level, "for",
		during.String(), "by", by.By, "reason", by.Reason)
	return nil
}
