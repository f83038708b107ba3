package canal

import (
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// check makes sure that the server goes on where the position ends: nothing that
// we have is missing there, and nothing that we need is gone. The server's own
// checks are weaker: it lets a reader skip transactions that got a number the
// reader already knows.
func check(s *session, server *Server, cfg Config, from position.Position) error {
	switch {
	case server.LogBin == "OFF":
		return errNoBinlog()
	case cfg.Flavor != "" && cfg.Flavor != server.Flavor:
		return newError(BadConfig, nil, "the configuration says %s, the server at %s is %s (%s)", cfg.Flavor, cfg.address(), server.Flavor, server.Version)
	case from.Flavor != "" && from.Flavor != server.Flavor,
		from.HasGTID() && from.Set.Flavor() != server.Flavor:
		return newError(WrongHistory, nil, "the position is of a %s server, %s is %s", cmpFlavor(from), cfg.address(), server.Flavor)
	case !from.HasGTID():
		return checkFile(s, server, from)
	case server.Flavor == position.MariaDB:
		return checkMariaDB(s, server, from)
	}
	return checkGTID(server, from)
}

func cmpFlavor(p position.Position) position.Flavor {
	if p.HasGTID() {
		return p.Set.Flavor()
	}
	return p.Flavor
}

func checkGTID(server *Server, from position.Position) error {
	if server.GTIDMode != "ON" { // the server refuses to position by GTID in any other mode
		return newError(WrongMode, nil, "the position is a GTID set but the server has gtid_mode=%s; set gtid_mode=ON, or start again from a file and position", server.GTIDMode)
	}
	if err := behind(server, from); err != nil {
		return err
	}
	return purged(server.Purged, from)
}

func behind(server *Server, from position.Position) error {
	lacks := from.Set.Subtract(server.Executed)
	if lacks.IsEmpty() {
		return nil
	}
	e := newError(Behind, nil, "the server lacks transactions that were already published: %s; it has lost them (failover, restore or reset) "+
		"and will give their numbers to others, so going on would skip those", lacks)
	e.Difference = lacks.String()
	return e
}

func purged(gone *position.Set, from position.Position) error {
	if gone == nil {
		return nil
	}
	missing := gone.Subtract(from.Set)
	if missing.IsEmpty() {
		return nil
	}
	e := newError(Purged, nil, "the server has purged binlogs that were not read yet: transactions %s are missing", missing)
	e.Difference = missing.String()
	return e
}

func checkMariaDB(s *session, server *Server, from position.Position) error {
	if err := behind(server, from); err != nil {
		return err
	}
	logs, err := s.binlogs()
	if err != nil || len(logs) == 0 {
		return nil //nolint:nilerr // without the right to list binlogs the server's own check must do
	}
	if server.Purged, err = s.startOf(logs[0].Name); err != nil {
		return err
	}
	return purged(server.Purged, from)
}

// checkFile checks a position by file, which is good for one server only.
func checkFile(s *session, server *Server, from position.Position) error {
	if from.File == "" {
		return newError(BadConfig, nil, "the position names neither a GTID set nor a file")
	}
	if from.Server != "" && server.UUID != "" && !strings.EqualFold(from.Server, server.UUID) {
		return newError(WrongHistory, nil, "the position %s is of server %s, this is %s; a position by file cannot move between servers", from, from.Server, server.UUID)
	}
	logs, err := s.binlogs()
	if err != nil {
		return err
	}
	for i, l := range logs {
		order, err := position.CompareFiles(from.File, l.Name)
		switch {
		case err != nil:
			return newError(WrongHistory, err, "looking for %s among the server's binlogs", from.File)
		case order < 0:
			if i > 0 {
				continue // a gap in the numbers: later ones tell no more
			}
			e := newError(Purged, nil, "the server has purged binlog %s, its oldest is %s", from.File, l.Name)
			e.Difference = from.File
			return e
		case order == 0 && from.Pos > l.Size:
			e := newError(Behind, nil, "binlog %s ends at %d on the server, before position %d", l.Name, l.Size, from.Pos)
			e.Difference = from.String()
			return e
		case order == 0:
			return nil
		}
	}
	e := newError(Behind, nil, "the server has no binlog %s (yet)", from.File)
	e.Difference = from.File
	return e
}

// jumped looks into the binlogs between a position and the file in which the
// server began a dump by GTID set. The server begins in the newest file before
// which everything is known to the reader, and anonymous transactions, written
// while gtid_mode was not ON, are known to nobody: it would pass over them
// without a word.
func (s *session) jumped(from position.Position, start string) error {
	logs, err := s.binlogs()
	if err != nil {
		return err
	}
	for _, l := range logs {
		after, err := position.CompareFiles(l.Name, from.File)
		if err != nil || after < 0 {
			continue
		}
		before, err := position.CompareFiles(l.Name, start)
		if err != nil || before >= 0 {
			break
		}
		at := uint64(4)
		if after == 0 {
			at = max(from.Pos, 4)
		}
		if err := s.anonymousIn(l.Name, at); err != nil {
			return err
		}
	}
	return nil
}

// anonymousIn looks for an anonymous transaction. There is next to nothing to
// look at in such a file: all transactions with GTIDs in it are known.
func (s *session) anonymousIn(file string, at uint64) error {
	const page = 1000
	for {
		r, err := s.query("the events of "+file, fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT %d", quoted(file), at, page))
		if err != nil {
			return err
		}
		for i := range r.RowNumber() {
			if text(r, i, 2) == "Anonymous_Gtid" {
				pos, _ := r.GetUint(i, 1)
				e := newError(AnonymousTransaction, nil, "there is a transaction without GTID that was not read yet, and that a position by GTID set passes over: "+
					"the server ran with gtid_mode other than ON; start again from this file and position, or accept the loss with a new position")
				e.File, e.Pos = file, pos
				return e
			}
			if end, _ := r.GetUint(i, 4); end > at {
				at = end
			}
		}
		if r.RowNumber() < page {
			return nil
		}
	}
}
