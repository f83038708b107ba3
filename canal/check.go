package canal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// plan is how to go on from a position on a certain server.
type plan struct {
	// from is what to ask the server for: the position itself but for what origins
	// that do not count have.
	from position.Position
	// lost are transactions that the server lacks and that are to be accepted.
	lost *position.Set
	// lostTransactions are those of the position that are accepted as lost, now or earlier. They
	// are asked for: a server that was rebuilt gives their numbers to others, and would
	// pass over those without a word.
	lostTransactions *position.Set
	// proof is the transaction to compare first; nil when there is none to.
	proof *proof
	// without is from without that transaction.
	without position.Position
}

// check makes sure that the server goes on where the position ends: nothing that
// we have is missing there, and nothing that we need is gone. The server's own
// checks are weaker: it lets a reader skip transactions that got a number the
// reader already knows.
func check(s *session, server *Server, cfg Config, from position.Position) (plan, error) {
	p := plan{from: from}
	switch {
	case server.LogBin == "OFF":
		return p, errNoBinlog()
	case server.BinlogFormat != "" && server.BinlogFormat != "ROW":
		// Single sessions may still choose another one. But by default nothing may go
		// where it can't be seen: what triggers and functions write is not in a
		// statement at all.
		return p, newError(WrongMode, nil, "the server has binlog_format=%s: statements can't be published, nor what "+
			"triggers write behind them; set binlog_format=ROW", server.BinlogFormat)
	case cfg.Flavor != "" && cfg.Flavor != server.Flavor:
		return p, newError(BadConfig, nil, "the configuration says %s, the server at %s is %s (%s)", cfg.Flavor,
			cfg.address(), server.Flavor, server.Version)
	case from.Flavor != "" && from.Flavor != server.Flavor,
		from.HasGTID() && from.Set.Flavor() != server.Flavor:
		return p, newError(WrongHistory, nil, "the position is of a %s server, %s is %s", cmpFlavor(from), cfg.address(),
			server.Flavor)
	}
	if err := s.logged(server, cfg); err != nil {
		return p, err
	}
	switch {
	case !from.HasGTID():
		return p, checkFile(s, server, from)
	case server.Flavor == position.MariaDB && cfg.Origins != nil:
		return p, newError(BadConfig, nil, "transactions can be chosen by their origin on MySQL only: MariaDB's GTIDs do "+
			"not say which server UUID they come from")
	}
	var err error
	if server.Flavor == position.MariaDB {
		err = checkMariaDB(s, server, from)
	} else {
		p.from, p.lost, err = checkGTID(s, server, cfg, from)
		p.askForLostTransactions(cfg)
	}
	if err == nil {
		p.prove(server, cfg, from)
	}
	return p, err
}

// askForLostTransactions takes the transactions that are accepted as lost out of what the
// server is told not to send.
func (p *plan) askForLostTransactions(cfg Config) {
	gone := position.NewSet(position.MySQL)
	for _, set := range []*position.Set{cfg.Accepted, p.lost} {
		if set != nil {
			gone.AddSet(set)
		}
	}
	if gone = gone.Intersect(p.from.Set); !gone.IsEmpty() {
		p.from.Set = p.from.Set.Subtract(gone)
		p.lostTransactions = gone
	}
}

func cmpFlavor(p position.Position) position.Flavor {
	if p.HasGTID() {
		return p.Set.Flavor()
	}
	return p.Flavor
}

func checkGTID(s *session, server *Server, cfg Config, from position.Position) (ask position.Position,
	lost *position.Set, err error) {
	if server.GTIDMode != "ON" { // the server refuses to position by GTID in any other mode
		return from, nil, newError(WrongMode, nil,
			"the position is a GTID set but the server has gtid_mode=%s; set gtid_mode=ON, or start again from a file and "+
				"position", server.GTIDMode)
	}
	ours := from.Set.Clone()
	for i := range from.Partials {
		ours.Add(from.Partials[i].GTID) // its first rows are published
	}
	if cfg.Origins != nil {
		if err := cfg.decidable(ours, server.Executed); err != nil {
			return from, nil, err
		}
		ours = ours.Of(cfg.counts)
		// Of the others the server need send nothing, and it must not miss any.
		ask = from
		ask.Set = from.Set.Of(cfg.counts)
		ask.Set.AddSet(server.Executed.Of(func(id uuid.UUID) bool { return !cfg.counts(id) }))
	} else {
		ask = from
	}
	if lost, err = missing(s, server, cfg, ours); err != nil {
		return ask, nil, err
	}
	if err := returned(server, cfg, from); err != nil {
		return ask, nil, err
	}
	if server.Purged == nil {
		return ask, lost, nil
	}
	return ask, lost, purged(server.Purged.Of(cfg.counts), from)
}

// missing looks for published transactions that the server lacks. Those of the
// server's own it has lost itself: it is going to give their numbers to others.
// Those of other servers have been lost with their server, or are yet to come.
func missing(s *session, server *Server, cfg Config, ours *position.Set) (lost *position.Set, err error) {
	lacks := ours.Subtract(server.Executed)
	if !lacks.Of(server.isOwn).IsEmpty() {
		return nil, behind(lacks)
	}
	if cfg.Accepted != nil {
		lacks = lacks.Subtract(cfg.Accepted)
	}
	if lacks.IsEmpty() {
		return nil, nil
	}
	if why := s.mayGet(server, lacks); why != "" {
		return nil, lagging(lacks, why)
	}
	if cfg.OnLostTransactions == nil {
		e := newError(LostTransactions, nil, "the server lacks transactions of other servers that were already published: "+
			"%s; the primary that had them is gone and no other server got them. "+
			"Bring them to this server, or accept that their events have no rows (source.lost_transactions=accept)", lacks)
		e.Difference = lacks.String()
		return nil, e
	}
	return lacks, nil
}

func (s *Server) isOwn(origin uuid.UUID) bool { return strings.EqualFold(origin.String(), s.UUID) }

func behind(lacks *position.Set) *Error {
	e := newError(Behind, nil, "the server lacks transactions that were already published: %s; it has lost them "+
		"(failover, restore or reset) "+
		"and will give their numbers to others, so going on would skip those", lacks)
	e.Difference = lacks.String()
	return e
}

// returned looks for accepted lost transactions that the server has after all. Either the
// failed primary is back and has given their numbers to others, which a reader
// that knows these numbers would never get, or its last transactions were brought
// over.
func returned(server *Server, cfg Config, from position.Position) error {
	if cfg.Accepted == nil {
		return nil
	}
	back := cfg.Accepted.Intersect(from.Set).Intersect(server.Executed)
	if back.IsEmpty() {
		return nil
	}
	return cameBack(back.String())
}

func cameBack(set string) *Error {
	e := newError(Diverged, nil, "the server now has transactions %s, which were accepted as lost: either their numbers "+
		"were given to others, whose rows are not published then, "+
		"or they were brought back; set a position with them if they are the same, without them if they are others", set)
	e.Difference = set
	return e
}

func lagging(lacks *position.Set, why string) error {
	e := newError(Lagging, nil, "the server has not applied all that was already published: %s is missing; %s", lacks, why)
	e.Difference = lacks.String()
	return e
}

func isReplica(server *Server) string {
	return "it is a replica (" + server.ReadOnly + "=ON) and may get them yet"
}

// mayGet says why transactions of other servers may still come, empty when nothing
// speaks for it.
func (s *session) mayGet(server *Server, lacks *position.Set) string {
	if server.ReadOnly != "" {
		return isReplica(server)
	}
	r, err := s.channels(server)
	if err != nil {
		return "" // no right to see it, or no replica
	}
	for i := range r.RowNumber() {
		set, err := r.GetStringByName(i, "Retrieved_Gtid_Set")
		if err != nil {
			continue
		}
		got, err := parseServerSet(position.MySQL, strings.Clone(set))
		if err == nil && !lacks.Intersect(got).IsEmpty() {
			return "it has received some of it and has not applied it yet"
		}
	}
	return ""
}

func purged(gone *position.Set, from position.Position) error {
	if gone == nil {
		return nil
	}
	missing := gone.Subtract(from.Set)
	if missing.IsEmpty() {
		return nil
	}
	e := newError(Purged, nil, "the server has purged binlogs that were not read yet: transactions %s are missing",
		missing)
	e.Difference = missing.String()
	return e
}

func checkMariaDB(s *session, server *Server, from position.Position) error {
	if lacks := from.Set.Subtract(server.Executed); !lacks.IsEmpty() {
		// Whose they are does not tell here who may give their numbers to others: it
		// is the domain that counts, whoever writes.
		if server.ReadOnly != "" {
			return lagging(lacks, isReplica(server))
		}
		e := behind(lacks)
		if server.LooseGTIDs {
			e.msg += "; or else, since gtid_strict_mode is OFF, a server that did not know these numbers has written lower " +
				"ones after them: " +
				"then nothing is lost, and a position at the server's gtid_binlog_pos goes on; set gtid_strict_mode=ON against it"
		}
		return e
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
	if from.Server != "" && !strings.EqualFold(from.Server, server.Name()) {
		return newError(WrongHistory, nil, "the position %s is of server %s, this is %s; a position by file cannot move "+
			"between servers", from, from.Server, server.Name())
	}
	if last := from.Last; !last.IsZero() && last.Flavor() == server.Flavor && server.Executed != nil &&
		!server.Executed.Has(last) {
		e := newError(Behind, nil, "the server does not have %s, the last transaction that was published: it was reset or "+
			"restored, and its %s is another file of that name", last, from.File)
		e.Difference = last.String()
		return e
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
	return nil //nolint:nilerr // names that don't compare are of another series
}

// anonymousIn looks for an anonymous transaction. There is next to nothing to
// look at in such a file: all transactions with GTIDs in it are known.
func (s *session) anonymousIn(file string, at uint64) error {
	const page = 1000
	for {
		n, found := 0, uint64(0)
		var r mysql.Result
		s.wire.allow(maxEvent, answerTimes*s.wait)
		// Row by row: an event may show a statement of any length.
		err := s.conn.ExecuteSelectStreaming(fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT %d", quoted(file), at,
			page), &r, func(row []mysql.FieldValue) error {
			s.wire.allow(maxEvent, answerTimes*s.wait)
			n++
			if len(row) < 5 {
				return errors.New("an event is shown in too few columns")
			}
			if string(row[2].AsString()) == "Anonymous_Gtid" && found == 0 {
				found = row[1].AsUint64()
			}
			at = max(at, row[4].AsUint64())
			return nil
		}, nil)
		switch {
		case err != nil && mysql.ErrorCode(err.Error()) == mysql.ER_ERROR_WHEN_EXECUTING_COMMAND:
			return newError(WrongHistory, plainCause(err),
				"no event of the server's binlog begins at %s:%d, where the position ends: it is of another binlog, or wrong; "+
					"set a position by its GTID set", file, at)
		case err != nil:
			return classify(err, Disconnected, "asking the server for the events of "+file)
		case found > 0:
			e := newError(AnonymousTransaction, nil, "there is a transaction without GTID that was not read yet, and that a "+
				"position by GTID set passes over: "+
				"the server ran with gtid_mode other than ON; start again from this file and position, or accept the loss with a "+
				"new position")
			e.File, e.Pos = file, found
			return e
		case n < page:
			return nil
		}
	}
}
