package ha

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// hclogger gives raft our slog.Logger. Raft's Info is our Debug: elections and
// connections are its inner life, what matters of it the node logs itself.
type hclogger struct {
	log     *slog.Logger
	name    string
	implied []any
	// quiet turns warnings into Debug, for a node that is alone: there every
	// start is a "heartbeat timeout".
	quiet bool
}

var _ hclog.Logger = (*hclogger)(nil)

// repeats are raft's messages about a peer or quorum that is away, several times
// a second for as long as that lasts, and about what is normal when a node comes
// or goes. The node and its listener log the change itself, once.
var repeats = map[string]bool{
	"failed to heartbeat to":                                        true,
	"failed to appendEntries to":                                    true,
	"failed to pipeline appendEntries":                              true,
	"failed to start pipeline replication to":                       true,
	"failed to make requestVote RPC":                                true,
	"failed to contact":                                             true,
	"failed to accept connection":                                   true, // the listener is closed
	"failed to decode incoming command":                             true, // a connection was cut
	"failed to get previous log":                                    true, // a follower catches up
	"failed to get log":                                             true, // it does by a snapshot
	"failed to flush response":                                      true, // a connection was cut
	"peer has newer term, stopping replication":                     true, // another leads
	"appendEntries rejected, sending older logs":                    true,
	"Election timeout reached, restarting election":                 true,
	"rejecting vote request since we have a leader":                 true,
	"rejecting pre-vote request since we have a leader":             true,
	"rejecting vote request since node is not in configuration":     true,
	"rejecting pre-vote request since node is not in configuration": true,
}

func (h *hclogger) level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		if h.quiet {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case hclog.Info:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

func (h *hclogger) Log(l hclog.Level, msg string, args ...any) {
	if repeats[msg] && l > hclog.Debug {
		l = hclog.Debug
	}
	if l == hclog.Off || !h.enabled(l) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 { // hclog formats these late
			args = slices.Clone(args)
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	h.log.Log(context.Background(), h.level(l), "raft: "+msg, args...) //nolint:sloglint // the message is raft's own
}

func (h *hclogger) enabled(l hclog.Level) bool {
	return h.log.Enabled(context.Background(), h.level(l))
}

func (h *hclogger) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }
func (h *hclogger) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }
func (h *hclogger) Info(msg string, args ...any)  { h.Log(hclog.Info, msg, args...) }
func (h *hclogger) Warn(msg string, args ...any)  { h.Log(hclog.Warn, msg, args...) }
func (h *hclogger) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h *hclogger) IsTrace() bool { return h.enabled(hclog.Trace) }
func (h *hclogger) IsDebug() bool { return h.enabled(hclog.Debug) }
func (h *hclogger) IsInfo() bool  { return h.enabled(hclog.Info) }
func (h *hclogger) IsWarn() bool  { return h.enabled(hclog.Warn) }
func (h *hclogger) IsError() bool { return h.enabled(hclog.Error) }

func (h *hclogger) ImpliedArgs() []any { return h.implied }

func (h *hclogger) With(args ...any) hclog.Logger {
	c := *h
	c.log = h.log.With(args...)
	c.implied = append(append([]any(nil), h.implied...), args...)
	return &c
}

func (h *hclogger) Name() string { return h.name }

func (h *hclogger) Named(name string) hclog.Logger {
	if h.name != "" {
		name = h.name + "." + name
	}
	return h.ResetNamed(name)
}

func (h *hclogger) ResetNamed(name string) hclog.Logger {
	c := *h
	c.name = name
	return &c
}

// SetLevel does nothing: the level is the slog handler's.
func (h *hclogger) SetLevel(hclog.Level) {}

func (h *hclogger) GetLevel() hclog.Level {
	for _, l := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Warn} {
		if h.enabled(l) {
			return l
		}
	}
	return hclog.Error
}

func (h *hclogger) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(h.StandardWriter(o), "", 0)
}

func (h *hclogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	level := hclog.Info
	if o != nil && o.ForceLevel != hclog.NoLevel {
		level = o.ForceLevel
	}
	return lineWriter{h, level}
}

type lineWriter struct {
	h     *hclogger
	level hclog.Level
}

func (w lineWriter) Write(p []byte) (int, error) {
	w.h.Log(w.level, string(bytes.TrimSpace(p)))
	return len(p), nil
}
