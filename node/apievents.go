package node

import (
	"cmp"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
)

// Event implements admin.Finder.
func (a *api) Event(id, name string) (admin.Event, error) {
	if name != "" {
		if _, err := a.instance(name); err != nil {
			return admin.Event{}, err
		}
	}
	return a.found(id, name)
}

// Search implements admin.Finder.
func (a *api) Search(id, name string, by admin.Actor) (admin.Event, error) {
	r, err := a.searchable(name)
	if err != nil {
		return admin.Event{}, err
	}
	s, err := a.newSearch(r, id)
	if err == nil {
		err = a.searches.begin(s)
	}
	if err != nil {
		return admin.Event{}, err
	}
	a.log.Info("searching for an event", "connector", r.name, "event", id, "by", by.By, "reason", by.Reason)
	return a.found(id, r.name)
}

// EndSearch implements admin.Finder.
func (a *api) EndSearch(id string, by admin.Actor) (admin.Event, error) {
	name, err := a.searches.end(id)
	if err != nil {
		return admin.Event{}, err
	}
	a.log.Info("search for an event ended", "connector", name, "event", id, "by", by.By, "reason", by.Reason)
	return a.found(id, name)
}

// searchable is the connector whose source is to be searched.
func (a *api) searchable(name string) (*instance, error) {
	if all := a.manager.all(); name == "" && len(all) == 1 {
		name = all[0].name
	} else if name == "" {
		return nil, invalid("there are %d connectors: say which one's source is to be searched", len(all))
	}
	r, err := a.instance(name)
	if err == nil && r.config == nil {
		err = invalid("connector %s can't be built from its configuration, so its source can't be searched", name)
	}
	return r, err
}

// finder is a worker that remembers events.
type finder interface {
	Find(id string) connector.Finding
}

// found says what is known of an event in one connector, or in all.
func (a *api) found(id, name string) (admin.Event, error) {
	out := admin.Event{ID: id, Node: a.cfg.Node.ID, Connectors: []admin.ConnectorEvent{}}
	for _, r := range a.manager.all() {
		if name != "" && r.name != name {
			continue
		}
		e := admin.ConnectorEvent{Connector: r.name, Where: admin.EventNotSeen, Known: admin.EventsKnown{Off: true}}
		if f, ok := r.connector.(finder); ok {
			tellFinding(&e, f.Find(id))
		}
		status := r.connector.Status()
		if e.State = string(status.State); status.LastError != nil {
			e.Error = status.LastError.Code + ": " + status.LastError.Message
		}
		if s := a.searches.of(r.name, id); s != nil {
			e.Search = s.shown()
			if hit := s.result(); hit != nil && e.Where == admin.EventNotSeen {
				if err := a.tellHit(&e, r, hit, status.Position); err != nil {
					return out, err
				}
			}
		}
		out.Connectors = append(out.Connectors, e)
	}
	return out, nil
}

func tellFinding(e *admin.ConnectorEvent, f connector.Finding) {
	e.Where = string(f.Where)
	e.Known = admin.EventsKnown{Since: timeOrNil(f.Since.UTC()), Events: f.Known, Off: f.Off}
	if f.Where != connector.NotSeen {
		e.Written = written(f.Commit)
	}
	for _, p := range f.Published {
		e.Published = append(e.Published, shownPlace(p))
	}
	if f.Where == connector.Waiting {
		e.Behind = &f.Ahead
	}
	if a := f.Unpublished; a != nil {
		e.Unpublished = &admin.UnpublishedEvent{Row: a.Row.N + 1, Action: a.Action, Cause: a.Cause, Message: a.Message,
			At: a.At}
		if a.Topic != "" {
			deadLetter := shownPlace(recent.Found{Topic: a.Topic, Partition: a.Partition, Offset: a.Offset, At: a.At})
			e.Unpublished.DeadLetter = &deadLetter
		}
	}
}

func written(m position.Commit) *admin.Written {
	w := &admin.Written{GTID: m.GTID.String(), File: m.File, Pos: m.Pos, CommittedAt: timeOrNil(m.Committed)}
	if m.Snapshot != nil {
		w.SnapshotRow = m.Snapshot.Rows
	}
	return w
}

func shownPlace(f recent.Found) admin.PartitionOffset {
	out := admin.PartitionOffset{Topic: f.Topic, Partition: f.Partition, At: f.At}
	if f.Offset >= 0 {
		out.Offset = &f.Offset
	}
	return out
}

// tellHit says of an event that was found in the binlog whether it is published,
// which the position and the decisions tell.
func (a *api) tellHit(e *admin.ConnectorEvent, r *instance, hit *hit, at position.Position) error {
	e.Written = written(hit.commit)
	row := hit.commit.Row(hit.row)
	decided, err := (&positions{store: a.store, name: r.name, counts: countsOf(r.config)}).RowDecisions()
	if err != nil {
		return err
	}
	for _, d := range decided {
		if d.Row == row {
			e.Where = admin.EventUnpublished
			e.Unpublished = &admin.UnpublishedEvent{Row: row.N + 1, Action: string(d.Action), Cause: d.Cause,
				Message: cmp.Or(d.Message, d.Reason), At: d.At}
			return nil
		}
	}
	if at.CoversRow(row) || !row.GTID.IsZero() && at.PartialOf(row.GTID).Of(hit.nth.Kind) > hit.nth.N {
		e.Where = admin.EventPassed
		return nil
	}
	e.Where = admin.EventWaiting
	if hit.before.Set != nil && at.Set != nil {
		n := hit.before.Set.Beyond(at.Set)
		e.Behind = &n
	}
	return nil
}

// timeOf is a time as it is shown.
func timeOf(t time.Time) *time.Time { return timeOrNil(t.UTC()) }
