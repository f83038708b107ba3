package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

type loggerLevel struct {
	Level    string `json:"level"`
	Modified *int64 `json:"last_modified"`
}

func (l *Logger) connectLevel() loggerLevel {
	out := loggerLevel{Level: strings.ToUpper(l.Level)}
	if l.Changed != nil {
		ms := l.Changed.UnixMilli()
		out.Modified = &ms
	}
	return out
}

func (a *ConnectAPI) loggers(*http.Request) (httpAnswer, error) {
	out := map[string]loggerLevel{}
	for _, l := range a.control.Loggers() {
		out[l.Name] = l.connectLevel()
	}
	return ok(out)
}

func (a *ConnectAPI) logger(r *http.Request) (httpAnswer, error) {
	for _, l := range a.control.Loggers() {
		if l.Name == r.PathValue("logger") {
			return ok(l.connectLevel())
		}
	}
	return httpAnswer{}, refused(http.StatusNotFound, "Logger %s not found.", r.PathValue("logger"))
}

// connectLevels are ours, by log4j's.
var connectLevels = map[string]string{"TRACE": "debug", "DEBUG": "debug", "INFO": "info", "WARN": "warn",
	"ERROR": "error", "FATAL": "error"}

func (a *ConnectAPI) setLogger(r *http.Request) (httpAnswer, error) {
	var body map[string]any
	if err := readConnectBody(r, &body); err != nil {
		return httpAnswer{}, err
	}
	text, given := body["level"].(string)
	if !given {
		return httpAnswer{}, refused(http.StatusBadRequest, "Desired 'level' parameter was not specified in request.")
	}
	level, known := connectLevels[strings.ToUpper(text)]
	if !known {
		return httpAnswer{}, refused(http.StatusNotFound, "invalid log level '%s'.", text)
	}
	name := r.PathValue("logger")
	if err := a.control.SetLogger(name, level, 0, actor(r)); err != nil {
		return httpAnswer{}, err
	}
	if strings.EqualFold(r.URL.Query().Get("scope"), "cluster") && !brought(r) {
		return httpAnswer{status: http.StatusNoContent}, a.setLoggerElsewhere(r, body)
	}
	return ok([]string{name})
}

// setLoggerElsewhere has the other nodes do the same.
func (a *ConnectAPI) setLoggerElsewhere(r *http.Request, level map[string]any) error {
	body, err := json.Marshal(level)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), leaderTimeout)
	defer cancel()
	var errs []error
	cluster := a.control.Cluster()
	for _, m := range cluster.Members {
		if !m.Voter || m.ID == cluster.NodeID {
			continue
		}
		out := r.Clone(ctx)
		bring(out, r, m.ID, body)
		resp, err := a.control.RoundTrip(out)
		if err == nil {
			err = resp.Body.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
