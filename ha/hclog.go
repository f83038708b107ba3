package ha

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// newRaftLogger returns a logger for raft that writes to log. quiet turns warnings
// into Debug, for a node that is alone: there every start is a "heartbeat timeout".
func newRaftLogger(log *slog.Logger, quiet bool) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Output: io.Discard, Level: hclog.Error})
	l.RegisterSink(&raftSink{log, quiet})
	return l
}

// raftSink hands raft's messages to our slog.Logger. Raft's Info is our Debug:
// elections and connections are its inner life, what matters of it the node logs
// itself.
type raftSink struct {
	log   *slog.Logger
	quiet bool
}

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

func (s *raftSink) level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		if s.quiet {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case hclog.Info:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

// Accept implements hclog.SinkAdapter. args are the message's, and those of With.
func (s *raftSink) Accept(_ string, l hclog.Level, msg string, args ...any) {
	if repeats[msg] && l > hclog.Debug {
		l = hclog.Debug
	}
	ctx, level := context.Background(), s.level(l)
	if !s.log.Enabled(ctx, level) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 { // hclog formats these late
			args = slices.Clone(args)
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.log.Log(ctx, level, "raft: "+msg, args...) //nolint:sloglint // the message is raft's own
}
