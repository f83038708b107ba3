package canal

import (
	"log/slog"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// origins tells the servers apart that a MySQL transaction may come from.
type origins struct {
	counts func(uuid.UUID) (bool, error) // nil means all
	// known are those seen before; nil means that nobody asks (MariaDB, positions
	// by file).
	known map[uuid.UUID]bool
	own   uuid.UUID // the server that is read from

	last    uuid.UUID // of the transaction before, since they come in runs
	lastOut bool      // it does not count
}

// know takes the origins of a position as known. The server that it was made on is
// known to write even when it had not written yet.
func (o *origins) know(from position.Position, server *Server) {
	if server.Flavor != position.MySQL || !from.HasGTID() {
		return
	}
	o.known = map[uuid.UUID]bool{}
	for _, id := range from.Set.Sources() {
		o.known[id] = true
	}
	if id, err := uuid.Parse(server.UUID); err == nil {
		o.own = id
		if from.Server == "" || from.Server == server.UUID {
			o.known[id] = true
		}
	}
}

// origin notes where a transaction comes from when that is another server than
// before.
func (w *eventHandler) origin(g position.GTID) error {
	o := &w.origins
	o.last = g.SID
	o.lastOut = false
	if o.counts != nil && !g.IsZero() {
		counts, err := o.counts(g.SID)
		if err != nil {
			return w.fail(BadConfig, err, "whether transactions of server %s count can't be told", g.SID)
		}
		o.lastOut = !counts
	}
	if o.known == nil || g.IsZero() || o.known[g.SID] {
		return nil
	}
	o.known[g.SID] = true
	w.stats.unknown.Add(1)
	attrs := []any{slog.String("gtid", g.String()), slog.Bool("published", !o.lastOut)}
	if g.SID == o.own {
		w.log.Info("the server that is read from now writes itself", attrs...)
		return nil
	}
	w.log.Warn("transactions of a server come that was not seen before: written on a replica by mistake, or a source "+
		"was added", attrs...)
	return nil
}
