package canal

import (
	"context"
	"log/slog"
	"time"
)

// watchRole asks, as long as ctx lives, whether the server that is read from still
// takes writes. When it does not and another host does, it ends the stream, so that
// the next opening goes there. A planned switch-over leaves the old primary's
// connections alone, and without this a stream would stay on what is a replica now.
func (s *Stream) watchRole(ctx context.Context, cfg Config, here endpoint) {
	tick := time.NewTicker(cfg.RoleCheck)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		// With connections of its own: what comes over them is no sign of life of
		// the dump.
		server, err := withSession(ctx, cfg.at(here), func(s *session) (*Server, error) { return s.inspect() })
		switch {
		case err != nil:
			continue // the dump's own heartbeats tell whether the server lives
		case server.identity() != s.server.identity():
			s.end(newError(ServerChanged, nil, "%s leads to server %s now, and led to %s", here, server.identity(),
				s.server.identity()))
			return
		case server.ReadOnly == "":
			said = false
			continue
		}
		// Somebody takes writes? Until then this server is as good as any.
		primary, err := choosePrimary(ctx, cfg)
		if err == nil {
			s.end(newError(Demoted, nil, "%s no longer takes writes (%s=ON), and %s does", here, server.ReadOnly, primary))
			return
		}
		if !said {
			said = true
			s.log.Warn("the server no longer takes writes, and no other host does yet; reading on",
				slog.String("server", here.String()), slog.String("setting", server.ReadOnly))
		}
	}
}

// choosePrimary returns a host that takes writes.
func choosePrimary(ctx context.Context, cfg Config) (endpoint, error) {
	cfg.PrimaryOnly, cfg.Progress = true, nil
	return choose(ctx, cfg, nil)
}

// end ends the stream with a reason of its own.
func (s *Stream) end(why *Error) {
	s.why.CompareAndSwap(nil, why)
	s.dialer.close()
}
