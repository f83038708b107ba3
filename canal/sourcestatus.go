package canal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// SourceStatus is how far a source has come and what of its binlog it still has. It
// costs the server a few reads of its own state and writes nothing.
type SourceStatus struct {
	// At is when the question was asked, by this host's clock: what Executed and
	// Binlogs say is at least as new.
	At time.Time
	// Server is server_uuid, empty on MariaDB.
	Server string
	// Several is set when there are several hosts: files and offsets are then good
	// for the host with this Server only.
	Several bool
	// Executed are the transactions of the server that count; nil without GTIDs.
	Executed *position.Set
	// Purged are those of them that are no longer in its binlogs; nil where the
	// server does not say (MariaDB).
	Purged *position.Set
	// Binlogs are the server's files, oldest first; the last one's size is where it
	// writes. None without the right to list them (REPLICATION CLIENT, on MariaDB
	// BINLOG MONITOR).
	Binlogs []Binlog
	// Retention is how long the server keeps a binlog after its last event; 0 means
	// for ever or unknown.
	Retention time.Duration
}

// PollStatus asks the host with the given address (Status.Address), or if that is
// empty the one of several that would be read from.
func PollStatus(ctx context.Context, cfg Config, address string) (*SourceStatus, error) {
	cfg = cfg.withDefaults()
	cfg.Logger = slog.New(slog.DiscardHandler) // it would say the same each time
	host, err := cfg.find(ctx, address)
	if err != nil {
		return nil, err
	}
	asked := &SourceStatus{At: time.Now(), Several: len(cfg.Others) > 0 || host.dial != ""}
	return asked, poll(ctx, cfg, host, asked)
}

func poll(ctx context.Context, cfg Config, host endpoint, out *SourceStatus) error {
	_, err := withSession(ctx, cfg.at(host), func(s *session) (struct{}, error) {
		server, err := s.inspect()
		if err != nil {
			return struct{}{}, err
		}
		out.Server, out.Retention = server.UUID, server.Retention
		if server.GTIDMode == "ON" {
			out.Executed, out.Purged = server.Executed, server.Purged
		}
		if server.Flavor == position.MySQL && out.Executed != nil && out.Purged != nil {
			out.Executed, out.Purged = out.Executed.Of(cfg.counts), out.Purged.Of(cfg.counts)
		}
		out.Binlogs, err = s.binlogs()
		var e *Error
		if errors.As(err, &e) && e.Kind == AccessDenied {
			err = nil // a right that is of use here only
		}
		return struct{}{}, err
	})
	return err
}

// find returns the endpoint with this address, or without one that which would be
// chosen.
func (c Config) find(ctx context.Context, address string) (endpoint, error) {
	if address != "" {
		c.Prefer = address
		if first := c.endpoints(ctx)[0]; first.String() == address {
			return first, nil
		}
	}
	return choose(ctx, c, nil)
}

// BytesBefore returns how much of the listed binlogs lies before a place, and how
// much after it. ok is false when the place is in none of them.
func (s *SourceStatus) BytesBefore(file string, pos uint64) (before, after uint64, ok bool) {
	for _, l := range s.Binlogs {
		switch {
		case l.Name == file:
			ok = true
			before += min(pos, l.Size)
			after += l.Size - min(pos, l.Size)
		case ok:
			after += l.Size
		default:
			before += l.Size
		}
	}
	return before, after, ok
}
