package canal

import (
	"bytes"
	"errors"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// group is the transaction being read. Its rows are in eventHandler.hold.
type group struct {
	// known is true from the GTID event on, open from BEGIN on (or what stands
	// for it). A statement in a group that is not open commits by itself.
	known bool
	open  bool
	gtid  gtidEvent
	pass  passing
	// fault is what makes the transaction unreadable, should it commit.
	fault      error
	savepoints savepoints
	updates    uint64
	deletes    uint64
	unlogged   []unlogged
}

// unlogged is a statement that changed an outbox table without row events.
type unlogged struct {
	statement *schema.Statement
	table     string
	what      string
}

// begin starts a group at its GTID event.
func (w *eventHandler) begin(h header, e gtidEvent, err error) error {
	if err != nil {
		return w.fail(Undecodable, err, "reading a GTID event")
	}
	if w.group.open {
		return w.fail(Undecodable, nil, "transaction %s begins before the one before it has ended", e.gtid)
	}
	if w.group.known {
		// Nothing but passed-over events: there is nothing to undo either. It ended
		// before this event.
		after := w.pos
		w.pos = w.before
		if err := w.finish(h); err != nil {
			return err
		}
		w.pos = after
	}
	if e.gtid.IsZero() && w.byGTID {
		return w.anonymous()
	}
	w.group.known, w.group.gtid = true, e
	if w.lostTransactions != nil && w.lostTransactions.Has(e.gtid) {
		return w.fail(Diverged, cameBack(e.gtid.String()), "")
	}
	if err := w.admit(h, e); err != nil {
		return err
	}
	// MariaDB's GTID event is the BEGIN, except before single statements.
	w.group.open = h.kind == replication.MARIADB_GTID_EVENT && e.flags&mariaStandalone == 0
	if w.group.open {
		w.tally.begin(w)
	}
	if limit := w.limits.spool; e.length > uint64(limit) && w.group.pass == handOn {
		// The server announces more than fits: most of it goes to disk anyway.
		w.hold.limit = min(limit, 1<<20)
	}
	return nil
}

// admit decides whether a transaction is handed on, passed over or dropped.
func (w *eventHandler) admit(h header, e gtidEvent) error {
	if w.proof != nil {
		return w.prove(h, e)
	}
	if err := w.resumed(e); err != nil {
		return err
	}
	if e.gtid.SID != w.origins.last {
		if err := w.origin(e.gtid); err != nil {
			return err
		}
	}
	if w.origins.lastOut {
		w.group.pass = passOver
		w.stats.filtered.Add(1)
	}
	return nil
}

func (w *eventHandler) anonymous() error {
	return w.fail(AnonymousTransaction, nil, "a transaction without GTID came, though the position is a GTID set: the "+
		"server runs or ran with gtid_mode other than ON; "+
		"set gtid_mode=ON, or start again from a file and position")
}

// implicit starts a group without a GTID event, as servers before MySQL 5.7 with
// GTIDs off write them.
func (w *eventHandler) implicit() error {
	if w.group.known {
		return nil
	}
	if w.byGTID {
		return w.anonymous()
	}
	w.group.known = true
	return nil
}

// query handles statements: the ends of transactions, DDL, and what should not
// be there.
func (w *eventHandler) query(h header, body []byte) error {
	q, err := parseQuery(h.kind, body)
	if err == nil && h.kind == replication.MARIADB_QUERY_COMPRESSED_EVENT {
		q.sql, err = inflateMaria(q.sql, w.limits.uncompressed)
	}
	if err != nil {
		return w.fail(Undecodable, err, "reading a query event")
	}
	if err := w.implicit(); err != nil {
		return err
	}
	switch string(q.sql) {
	case "BEGIN":
		return w.open()
	case "COMMIT":
		return w.commit(h)
	}
	s := schema.Scan(q.sql, string(q.database))
	w.ddl = q
	if h.kind == replication.EXECUTE_LOAD_QUERY_EVENT && s.Kind != schema.LoadData {
		s = schema.Statement{Kind: schema.LoadData, Everything: true, WritesRows: true}
	}
	return w.statement(h, &s)
}

func (w *eventHandler) open() error {
	if w.group.open && (w.flavor != position.MariaDB || !w.hold.empty()) {
		return w.fail(Undecodable, nil, "a transaction begins inside another")
	}
	w.group.open = true
	w.tally.begin(w)
	return nil
}

func (w *eventHandler) statement(h header, s *schema.Statement) error {
	switch s.Kind {
	case schema.Begin:
		return w.open()
	case schema.XAStart:
		w.group.open = true // on MariaDB the GTID event has opened it
		return nil
	case schema.Commit, schema.XACommitOnePhase:
		return w.commit(h)
	case schema.XACommit:
		// The rows, if there were any, stopped us at the PREPARE. A server that logs
		// them at the commit (MariaDB before 10.5) has them in this group.
		return w.commit(h)
	case schema.Rollback, schema.XARollback:
		return w.rollback(h)
	case schema.Savepoint:
		return w.savepoint(s.Name)
	case schema.RollbackTo:
		return w.rollbackTo(s.Name)
	case schema.ReleaseSavepoint, schema.XAEnd, schema.XAPrepare:
		return nil
	}
	if s.WritesRows {
		if err := w.statementFormat(s); err != nil {
			return err
		}
	}
	if s.Removes || s.Brings {
		w.rowsByDDL(s)
	}
	if s.Kind == schema.DDL || s.Everything {
		if err := w.tooLate(s); err != nil {
			return err
		}
		w.follow(h)
		w.tables.changed(s)
		w.suspects = nil
	}
	w.group.open = w.group.open || s.OpensTransaction
	if w.group.open {
		return nil // CREATE TABLE ... SELECT, temporary tables: the group goes on
	}
	return w.commit(h)
}

// follow carries the columns of tables through the statement at hand.
func (w *eventHandler) follow(h header) {
	if w.tableVersions.known == nil || w.group.pass == drop || w.skipTo > 0 {
		return // the position's columns are those behind it
	}
	s := w.ddl.statement(w.tableVersions.known.source)
	// A temporary table hides one that has its name.
	const threadSpecific = 0x4
	s.Failed = s.Failed || h.flags&threadSpecific != 0 && !bytes.Contains(bytes.ToUpper(s.SQL), []byte("TEMPORARY"))
	out := w.tableVersions.known.apply(s)
	for _, n := range out.Unknown {
		if outbox, err := w.tables.match(n.Database, n.Table); outbox || err != nil {
			w.log.Warn("a statement changed an outbox table in a way that is not followed; its columns will be asked of "+
				"the server",
				slog.String("table", n.String()), slog.String("reason", out.Reason), slog.String("file", w.file),
				slog.Uint64("position", w.pos))
		}
	}
}

// tooLate notices that rows before a change of their table were read with the
// columns after it: their names came from a server that had made the change
// already, and number and types did not give it away.
func (w *eventHandler) tooLate(s *schema.Statement) error {
	if !s.AltersColumns || w.group.pass == drop || w.skipTo > 0 {
		return nil
	}
	for _, tab := range w.tables.outbox {
		if !s.Touches(tab.name) {
			continue
		}
		for _, tm := range tab.maps {
			if tm.tableVersion == nil || !w.isBefore(tm.tableVersion.asOf) {
				continue
			}
			e := newError(SchemaMismatch, nil, "outbox table %s was changed here, and rows before the change have been read "+
				"with its present columns, since the binlog does not tell their names: "+
				"look whether what was published of this table up to here is right, then start the connector again; set "+
				"binlog_row_metadata=FULL so that the binlog tells the columns of its time", tab.name)
			e.Table = tab.name.String()
			return w.fail(SchemaMismatch, e, "")
		}
	}
	return nil
}

// isBefore reports whether the server had the transaction at hand when it was at p.
func (w *eventHandler) isBefore(p position.Position) bool {
	if p.Set != nil {
		return p.Set.Has(w.group.gtid.gtid)
	}
	order, err := position.CompareFiles(w.file, p.File)
	return p.File != "" && err == nil && (order < 0 || order == 0 && w.pos <= p.Pos)
}

// statementFormat notes a statement that wrote rows and touches an outbox table.
// Such rows can't be had; whether it matters is decided at the commit.
func (w *eventHandler) statementFormat(s *schema.Statement) error {
	name, touched := w.tables.touchesOutbox(s)
	switch {
	case !touched:
		return w.indirectly(s)
	case w.group.fault != nil || w.group.pass != handOn:
		return nil //nolint:nilerr // the fault is told at the commit
	case s.Deletes && !s.Everything:
		w.unlogged(s, name, "rows were deleted in statement format; that is passed over, as deletes are no events")
		return w.indirectly(s)
	case s.Updates && !s.Everything && !w.tableVersions.keys:
		w.unlogged(s, name, "rows were updated in statement format; that is passed over, as updates are to be skipped")
		return w.indirectly(s)
	}
	e := newError(StatementFormat, nil, "%s was written in statement format, so the binlog holds no rows to publish: "+
		"the session has binlog_format STATEMENT or MIXED; write outbox tables with binlog_format=ROW", name)
	e.Table = name
	w.group.fault = w.fail(StatementFormat, e, "")
	return nil
}

// rowsByDDL notes a statement by which rows come into an outbox table, or leave it, as a
// whole: those that come were not published and can't be, unless they lay in the table
// before, as with tools that change a table by means of a copy.
func (w *eventHandler) rowsByDDL(s *schema.Statement) {
	name, touched := w.tables.touchesOutbox(s)
	switch {
	case !touched || w.group.pass != handOn:
	case s.Brings:
		w.unlogged(s, name, "a table, partition or tablespace was put in place; rows that came with it and were not "+
			"published before never will be")
	case w.watermark != nil:
		w.unlogged(s, name, "rows were removed by TRUNCATE, DROP or the like")
	}
}

func (w *eventHandler) unlogged(s *schema.Statement, table, what string) {
	if w.skipTo == 0 {
		w.group.unlogged = append(w.group.unlogged, unlogged{s, table, what})
	}
}

// tell tells of the group's statements that changed outbox tables without row events.
func (w *eventHandler) tell() {
	for _, u := range w.group.unlogged {
		if w.watermark != nil {
			w.watermark.removed(u.statement)
			continue // the stream that comes after it will tell
		}
		w.stats.unlogged.Add(1)
		w.log.Warn("an outbox table was changed without row events", slog.String("what", u.what),
			slog.String("table", u.table),
			slog.String("gtid", w.group.gtid.gtid.String()), slog.String("file", w.file), slog.Uint64("position", w.pos))
	}
}

// xaPrepare ends the first half of an XA transaction, or with ONE PHASE the
// whole. Rows of the first half must wait for an XA COMMIT that may come days
// later, behind any number of other transactions and restarts; no position could
// say so. So they stop the stream, unless there are none.
func (w *eventHandler) xaPrepare(h header, body []byte) error {
	r := reader{b: body}
	onePhase := r.uint(1) != 0
	if r.bad {
		return w.fail(Undecodable, nil, "an XA PREPARE event of %d bytes is too short", len(body))
	}
	if onePhase {
		return w.commit(h)
	}
	if w.tally != nil {
		w.tally.prepared = true
		return w.finish(h)
	}
	if w.group.fault != nil && w.skipTo == 0 {
		return w.group.fault // the XA COMMIT will not show what it commits
	}
	rows, err := w.holdsRows()
	if err != nil {
		return w.fail(Undecodable, err, "reading the updates of a prepared XA transaction")
	}
	if rows {
		return w.fail(PreparedXA, nil, "an XA transaction with outbox rows was prepared: whether they are to be published "+
			"is not known before its XA COMMIT, "+
			"which no position can wait for; write outbox rows in plain transactions, or commit with XA COMMIT ... ONE PHASE")
	}
	w.group.updates, w.group.deletes = 0, 0
	if err := w.hold.reset(w.limits.spool); err != nil {
		return w.fail(SpoolFailed, err, "dropping the updates of a prepared XA transaction")
	}
	return w.finish(h)
}

var errHoldsRow = errors.New("a row that is published")

// holdsRows reports whether rows are held that are published if the transaction
// commits, or refused: anything but updates that leave the primary key alone, where those
// are not to be refused. It uses up what is held.
func (w *eventHandler) holdsRows() (bool, error) {
	err := w.hold.each(func(tm *tableMap, raw []byte) error {
		if !isUpdate(replication.EventType(raw[4])) || w.refusePartial {
			return errHoldsRow
		}
		sh, err := w.tableVersions.of(tm)
		if err != nil {
			return err
		}
		return sh.rows(raw, w.limits.uncompressed, func(row schema.Row) error {
			if sh.keyChanged(&row) {
				return errHoldsRow
			}
			return nil
		})
	})
	if errors.Is(err, errHoldsRow) {
		return true, nil
	}
	return false, err
}

// rollback ends a group whose changes are undone. Its GTID is used up all the same.
func (w *eventHandler) rollback(h header) error {
	if w.group.pass != drop {
		w.stats.rolledBack.Add(1)
	}
	w.group.fault, w.group.updates, w.group.deletes, w.group.unlogged = nil, 0, 0, nil
	w.tally.rollBack(tallyCommit{})
	if err := w.hold.reset(w.limits.spool); err != nil {
		return w.fail(SpoolFailed, err, "dropping the rows of a rolled back transaction")
	}
	return w.finish(h)
}

// dropUnfinished forgets a group that the binlog ends in the middle of: the
// server crashed while writing it, and rolled it back at its restart.
func (w *eventHandler) dropUnfinished(why string) {
	if !w.group.known {
		return
	}
	w.log.Warn("dropping a transaction that the binlog does not end", slog.String("gtid", w.group.gtid.gtid.String()),
		slog.String("reason", why))
	if w.group.pass != drop {
		w.stats.rolledBack.Add(1)
	}
	if err := w.hold.reset(w.limits.spool); err != nil {
		w.log.Warn("removing a spool file", slog.Any("error", err))
	}
	w.clearGroup()
}

func (w *eventHandler) clearGroup() {
	w.group = group{}
	w.tables.closeStatement()
}

// commit ends a group whose changes stay: its rows are decoded and handed on.
func (w *eventHandler) commit(h header) error {
	if !w.group.known {
		return w.fail(Undecodable, nil, "a commit came outside of any transaction")
	}
	if w.group.fault != nil && w.skipTo == 0 && w.tally == nil {
		return w.group.fault
	}
	return w.finish(h)
}

// finish hands on the group with what is held of it, and makes room for the next.
func (w *eventHandler) finish(h header) error {
	if w.skipTo > 0 {
		return w.skip()
	}
	if w.group.pass == drop {
		return w.dropped(h)
	}
	commitPos := w.commitPos(h)
	if w.tally != nil {
		err := w.tally.ends(w, commitPos)
		w.clearGroup()
		return errors.Join(err, w.hold.reset(w.limits.spool))
	}
	w.tell()
	if w.hold.empty() {
		commitPos.Columns = w.tableVersions.known.changed()
		if err := w.emit(txn.Transaction{Commit: commitPos, Final: true}); err != nil {
			return err
		}
	} else if err := w.decode(commitPos); err != nil {
		return err
	}
	if w.hold.limit != w.limits.spool || !w.hold.empty() {
		if err := w.hold.reset(w.limits.spool); err != nil {
			return w.fail(SpoolFailed, err, "after a large transaction")
		}
	}
	w.stats.committed(h, commitPos, w.group.updates, w.group.deletes)
	w.clearGroup()
	w.turns = !w.byGTID
	return nil
}

// dropped ends a group that is known already.
func (w *eventHandler) dropped(h header) error {
	awaited := w.proof != nil && w.proof.gtid == w.group.gtid.gtid
	if awaited {
		if err := w.proveEnd(h); err != nil {
			return err
		}
	}
	w.clearGroup()
	return nil
}

func (w *eventHandler) commitPos(h header) position.Commit {
	g := w.group.gtid
	if w.inside {
		h = w.payload
	}
	m := position.Commit{GTID: g.gtid, First: g.gtid.Seq, File: w.file, Pos: w.pos, Created: w.created,
		Committed: g.committed}
	if m.Committed.IsZero() {
		m.Committed = h.time()
	}
	if w.lost {
		m.File, m.Pos = "", 0
	}
	return m
}

// skip passes over a group that ends at or before the position where to go on.
func (w *eventHandler) skip() error {
	w.clearGroup()
	switch {
	case w.pos > w.skipTo:
		return w.fail(WrongHistory, nil, "position %d of binlog %s is not the end of a transaction", w.skipTo, w.file)
	case w.pos == w.skipTo:
		w.skipTo = 0
	}
	return nil
}

// decode turns the held events into rows and hands them on, in parts if they are many.
func (w *eventHandler) decode(commitPos position.Commit) error {
	b := batch{w: w, commitPos: commitPos, limit: w.limits.partBytes}
	if w.hold.spool == nil {
		b.limit = int(w.limits.spool) * 4 // what memory held as events it also holds as rows
	}
	err := w.hold.each(func(tm *tableMap, raw []byte) error {
		sh, err := w.tableVersions.of(tm)
		if err != nil {
			return err
		}
		overhead := len(sh.types) * rowOverhead
		size := len(raw)
		err = sh.rows(raw, w.limits.uncompressed, func(row schema.Row) error {
			n := overhead + size
			if row.Op == schema.Update {
				n += overhead
			}
			size = 0
			return b.add(row, n)
		})
		if err == nil || isOurs(err) {
			return err
		}
		e := newError(Undecodable, err, "decoding the rows of outbox table %s", sh.table.Name)
		e.Table = sh.table.Name.String()
		return e
	})
	if err != nil {
		if errors.Is(err, ErrClosed) {
			return err
		}
		return w.fail(SpoolFailed, err, "reading back a large transaction")
	}
	return b.end()
}
