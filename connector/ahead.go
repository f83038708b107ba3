package connector

import (
	"context"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// ahead is a source that is opened while the sink still opens, at the replicated
// position: after an orderly hand-over that is where the sink will say to begin.
// A take-over then waits for the longer of the two rather than for both.
type ahead struct {
	from   position.Position
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{} // closed when source and err are set
	source Source
	err    error
}

// openAhead begins to open the source; it returns nil, which may be used as well,
// when no position is stored. The caller drops it.
func (t *session) openAhead(ctx context.Context) *ahead {
	from, ok := t.positions.Position()
	if !ok || len(from.Partials) > 0 || from.Snapshot != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{from: from, log: t.log, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.source, a.err = t.sources.Open(ctx, from)
	}()
	return a
}

// take returns the source, or why it can't be opened, if it begins at from. Else ok
// is false, and the source is dropped.
func (a *ahead) take(from position.Position) (source Source, ok bool, err error) {
	if a == nil {
		return nil, false, nil
	}
	if !samePlace(a.from, from) {
		a.drop()
		return nil, false, nil
	}
	<-a.done
	a.cancel()
	source, a.source = a.source, nil
	return source, true, a.err
}

// drop waits for the opening to end and closes what was not taken. What went wrong
// doesn't matter: the source is opened anew where it is needed.
func (a *ahead) drop() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
	if a.source == nil {
		return
	}
	if err := a.source.Close(); err != nil {
		a.log.Warn("closing a source that was opened in vain", "error", err)
	}
	a.source = nil
}

// samePlace reports whether a source that was opened at a does for b as well, with
// the same transaction to compare.
func samePlace(a, b position.Position) bool {
	return a.Covers(b) && b.Covers(a) && len(a.Partials)+len(b.Partials) == 0 &&
		a.Server == b.Server && a.Last == b.Last && a.Committed.Equal(b.Committed)
}
