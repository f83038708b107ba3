package node

import (
	"cmp"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Status tells the admin server about the node and all its connectors.
func (a *api) Status() admin.Status {
	raft := a.store.Status()
	s := admin.Status{
		Node: a.cfg.Node.ID, Version: Version().Version, Role: string(raft.Role), Leader: raft.LeaderID, Term: raft.Term,
		Connectors: []admin.Connector{},
	}
	for _, r := range a.manager.all() {
		s.Connectors = append(s.Connectors, a.status(r))
	}
	return s
}

// Checks tells what readiness depends on: the cluster on every node, and where
// this node leads, that each connector that should run does.
func (a *api) Checks() []admin.Check {
	raft := a.store.Status()
	checks := []admin.Check{{Name: "cluster", OK: raft.Ready, Detail: raft.Error}}
	if !raft.Ready && raft.Error == "" {
		checks[0].Detail = "no leader is known"
	}
	if raft.Role != ha.Leader {
		return checks
	}
	for _, r := range a.manager.all() {
		c := a.status(r)
		how, why := Judge(&c)
		check := admin.Check{Name: "connector " + c.Name, OK: how == CheckOK}
		if !check.OK || c.Phase != connector.Streaming {
			check.Detail = why
		}
		checks = append(checks, check)
	}
	return checks
}

// status is one connector as this node knows it.
func (a *api) status(r *instance) admin.Connector {
	var delivery config.Delivery
	if r.config != nil {
		delivery = r.config.Kafka.Delivery
	}
	s := connectorStatus(r.connector.Status(), delivery)
	if s.LastError != nil {
		e := *s.LastError // the connector's own stays as it is
		e.Message = r.veil(e.Message)
		s.LastError = &e
	}
	stored, _ := a.store.Connector(r.name)
	s.Wanted = stored.RunState
	s.Wanted.State = cmp.Or(s.Wanted.State, ha.Running)
	return s
}

func connectorStatus(s connector.Status, delivery config.Delivery) admin.Connector {
	out := admin.Connector{
		Name: s.Name, State: string(s.State), Phase: s.Phase, Since: s.Since, Delivery: string(delivery),
		Published: s.Published, Sessions: s.Sessions, Queue: admin.Queue{Records: s.QueueRecords, Bytes: s.QueueBytes},
		Position: shownPosition(s.Position), UnseenTopics: s.UnseenTopics,
		Backlog: s.Backlog, LastError: s.LastError,
	}
	if len(s.Takeover) > 0 {
		out.Takeover = map[string]float64{}
		for _, p := range s.Takeover {
			out.Takeover[p.Name] = p.Took.Seconds()
		}
	}
	if s.LagKnown {
		lag := s.Lag.Seconds()
		out.LagSeconds = &lag
	}
	out.Unpublished = shownUnpublished(s)
	if src := s.Source; src != nil {
		out.Source = &admin.Source{
			Connected: src.Connected, Flavor: string(src.Server.Flavor), ServerUUID: src.Server.UUID,
			ServerVersion: src.Server.Version,
			BinlogFile:    src.Last.File, BinlogPosition: src.Last.Pos, LagSeconds: src.Lag.Seconds(),
			LastEventAge: time.Since(src.Heard).Seconds(), EventTime: timeOrNil(src.LastEvent),
			Inserts: src.Inserts, Updates: src.Updates, Deletes: src.Deletes, Transactions: src.Transactions,
		}
		if in := src.Snapshot; in != nil {
			out.Source.Snapshot = &admin.Snapshot{
				Table: tableOrNone(in.Table), Tables: in.Tables, DoneTables: in.Done, Rows: in.Rows, EstimatedRows: in.Estimate,
				Finished: in.Finished,
			}
		}
	}
	return out
}

func shownPosition(p position.Position) admin.Position {
	out := admin.Position{File: p.File, Pos: p.Pos, LastGTID: p.Last.String(), EventTime: timeOrNil(p.Committed),
		Sequence: p.Seq}
	if p.Set != nil {
		out.GTIDSet = p.Set.String()
	}
	if in := p.Snapshot; in != nil {
		out.Snapshot = &admin.SnapshotPosition{Database: in.Database, Table: in.Table, Key: in.Key, Rows: in.Rows}
	}
	return out
}

func tableOrNone(n schema.Name) string {
	if n.Table == "" {
		return ""
	}
	return n.String()
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
