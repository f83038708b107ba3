package canal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// BinlogOffset is a place in the binlog that may lie within a transaction, as Debezium notes it.
type BinlogOffset struct {
	// Set is what was committed before. Nil means that File and Pos count.
	Set *position.Set
	// File and Pos are where the transaction begins, or the end of the last one. Within a
	// transaction without BEGIN, which an XA transaction is, they are the end of the rows
	// event at hand. File may be empty when there is a Set.
	File string
	Pos  uint64
	// Events of the transaction are done, its BEGIN is the first of them. Every event
	// counts, whatever it is of. A compressed transaction has those that it is inflated to.
	Events uint64
	// Rows of the next event are done. When they are 0, Events were counted while that event
	// was at hand, and when it has rows, they are done: a heartbeat notes that.
	Rows uint64
	// Second is when the transaction of the last row was committed, in seconds since 1970;
	// 0 when that is not known.
	Second int64
	// Annotations says that MariaDB's annotate events count: they come for those who ask.
	Annotations bool
	// Counts tells the outbox tables whose rows are read by whoever notes the place; nil
	// means all.
	Counts func(schema.Name) (bool, error)
}

// within reports whether anything of a transaction may be done at the place.
func (p BinlogOffset) within() bool { return p.Events > 1 || p.Rows > 0 }

// Located is where a BinlogOffset is.
type Located struct {
	// Before is the end of the last transaction before the place.
	Before position.Position
	// Within is set when the place is inside of a transaction.
	Within *Within
}

// Within is a transaction that is read in part.
type Within struct {
	// Commit is that of the whole transaction.
	Commit position.Commit
	// More says that outbox rows of the transaction come after the place.
	More bool
	// Prepared is the first half of an XA transaction.
	Prepared bool
}

// Locate finds a place of others. rows gets the outbox rows of the transaction that the
// place is within which come before it, and which are neither rolled back nor undone; it is
// called by one goroutine, before Locate returns, and does not keep what it gets.
//
// byGTID says that Before is to be a GTID set also where the place has none. cfg needs a
// ServerID and a SpoolDir of its own; Locate leaves as little trace as Scan does. Errors are
// as those of Open; WrongHistory says that the place is none of this server's.
func Locate(ctx context.Context, cfg Config, at BinlogOffset, byGTID bool, rows func(*schema.Row)) (Located, error) {
	// Columns are not looked at, so none is needed.
	cfg.Needed = func(*schema.Table) []int { return nil }
	from, end, err := whence(ctx, cfg, at, byGTID)
	if err != nil {
		return Located{}, err
	}
	if at.Set != nil && !at.within() {
		_, err := Scan(ctx, cfg, from, from, nil)
		return Located{Before: from}, err
	}
	t := &tally{place: at, end: end, rows: rows, cut: -1}
	t.out.Before = from
	cfg.tally = t
	cfg.Heartbeat = min(cmp.Or(cfg.Heartbeat, defaultHeartbeat), locateBeat)
	cfg = cfg.traceless()
	if t.past() {
		return Located{}, t.absent()
	}
	stream, err := Open(ctx, cfg, from)
	if err != nil {
		return Located{}, err
	}
	_, err = stream.Next(ctx)
	_ = stream.Close() // ends what writes t
	if t.located {
		if t.out.Before.File != "" {
			t.out.Before.Server = stream.server.Name()
		}
		return t.out, nil
	}
	return Located{}, err
}

// locateBeat is how soon an idle server says that nothing more comes.
const locateBeat = 2 * time.Second

// whence is where to read from so as to find a place, and how far the server is.
func whence(ctx context.Context, cfg Config, at BinlogOffset, byGTID bool) (from, end position.Position, err error) {
	cfg = cfg.withDefaults()
	if end, err = CurrentPosition(ctx, cfg); err != nil {
		return from, end, err
	}
	from = position.Position{Flavor: end.Flavor, Server: end.Server, Set: at.Set}
	if at.Set != nil {
		from.Server = ""
		return from, end, nil
	}
	if len(cfg.Others) > 0 {
		return from, end, newError(WrongMode, nil, "there are several hosts, and the place is a binlog file and "+
			"offset, which are one server's own: name the host that they are of alone, for as long as this takes")
	}
	from.File, from.Pos = at.File, at.Pos
	from.Set, err = onHost(ctx, cfg, func(s *session) (*position.Set, error) {
		server, err := s.inspect()
		if err != nil {
			return nil, err
		}
		if err := checkFile(s, server, from); err != nil {
			return nil, err
		}
		if size, err := s.sizeOf(at.File); err == nil && needsSkip(position.Position{Pos: size}) {
			return nil, newError(WrongHistory, nil, "binlog %s has more than 4 GiB, and an event's place there can't be "+
				"told apart from another one 4 GiB before it", at.File)
		}
		switch {
		case !byGTID:
			return nil, nil
		case server.Flavor == position.MariaDB:
			return s.startOf(at.File)
		default:
			return s.previousGTIDs(at.File)
		}
	})
	from.Pos = 4
	return from, end, err
}

// previousGTIDs is the set with which a binlog of MySQL begins.
func (s *session) previousGTIDs(file string) (*position.Set, error) {
	r, err := s.query("the beginning of "+file, "SHOW BINLOG EVENTS IN '"+quoted(file)+"' LIMIT 3")
	if err != nil {
		return nil, err
	}
	for i := range r.RowNumber() {
		if text(r, i, 2) == "Previous_gtids" {
			return parseServerSet(position.MySQL, text(r, i, 5))
		}
	}
	return nil, newError(WrongMode, nil, "binlog %s does not say which GTIDs came before it", file)
}

// errLocated ends the reading when the place is found.
var errLocated = errors.New("the place is found")

// tally finds a BinlogOffset. The event handler tells it of every event and transaction, and hands nothing
// on. It belongs to the event handler's goroutine. A nil *tally takes no notes.
type tally struct {
	place BinlogOffset
	end   position.Position // what the server had at first
	rows  func(*schema.Row)

	out     Located
	located bool
	// met says that an event ends where File and Pos are.
	met bool
	// beat is the place of the last heartbeat.
	beat *uint32

	// Of the transaction at hand:
	begun    bool
	began    [2]uint64 // where its BEGIN begins, without and with a checksum
	index, n uint64    // of the event at hand, and of events so far
	atRows   bool      // event number place.Events has rows
	loose    bool      // there are rows without a BEGIN
	unclear  bool      // whether they are before the place can't be told
	prepared bool
	times    map[int64]bool
	tallyCommit
	cut int // number of the held event of which place.Rows count alone; -1 for none
}

// tallyCommit is what a rollback to a savepoint takes back.
type tallyCommit struct {
	held   int // rows events before the place
	beyond int // and behind it
}

func (t *tally) commitPos() tallyCommit {
	if t == nil {
		return tallyCommit{}
	}
	return t.tallyCommit
}

func (t *tally) rollBack(m tallyCommit) {
	if t != nil {
		t.tallyCommit = m
	}
}

// begin notes the BEGIN of a transaction, which is the event at hand.
func (t *tally) begin(w *eventHandler) {
	if t == nil {
		return
	}
	t.begun, t.index, t.n = true, 0, 1
	size := uint64(w.length)
	t.began = [2]uint64{w.pos - size, w.pos - size - crcLen}
}

// event counts one event.
func (t *tally) event(w *eventHandler, h header) {
	if t == nil {
		return
	}
	t.index = t.n
	t.n++
	if w.file == t.place.File && w.pos == t.place.Pos {
		t.met = true
	}
	if isRows(h.kind) {
		t.atRows = t.atRows || t.begun && t.index == t.place.Events
		t.loose = t.loose || !t.begun
	}
	if h.seconds != 0 {
		if t.times == nil {
			t.times = map[int64]bool{}
		}
		t.times[int64(h.seconds)] = true
	}
}

// holds reports whether a rows event of an outbox table is held: whether rows of it are
// before the place.
func (t *tally) holds(w *eventHandler, tm *tableMap, kind replication.EventType) (bool, error) {
	if t == nil {
		return true, nil
	}
	counts := kind < replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1 // which Debezium does not know
	if counts && t.place.Counts != nil {
		var err error
		if counts, err = t.place.Counts(tm.table.name); err != nil {
			return false, w.fail(BadConfig, err, "whether Debezium has read a table can't be told")
		}
	}
	last, before := t.index == t.place.Events, t.index <= t.place.Events
	if !t.begun {
		t.unclear = t.unclear || w.inside || w.file != t.place.File
		last, before = w.pos == t.place.Pos, w.pos <= t.place.Pos
	}
	if !before || !counts {
		t.beyond++
		return false, nil
	}
	if last && t.place.Rows > 0 {
		t.cut = t.held
	}
	t.held++
	return true, nil
}

// ends looks at the transaction at hand at its end. It returns errLocated when the place is
// found.
func (t *tally) ends(w *eventHandler, commitPos position.Commit) error {
	defer t.next()
	if t.place.Set == nil {
		order, err := position.CompareFiles(w.file, t.place.File)
		if err != nil {
			return w.fail(WrongHistory, err, "looking for %s", t.place.File)
		}
		before := order < 0 || order == 0 && w.pos <= t.place.Pos
		switch {
		case before && (w.pos != t.place.Pos || order < 0 || t.place.within()):
			return t.passed(commitPos)
		case before:
			return t.found(commitPos, nil)
		case !t.met && t.place.Pos > 4:
			return t.nowhere(w)
		case !t.place.within():
			t.located = true // it begins here
			return errLocated
		}
	}
	if !t.begun && (!t.loose || t.place.Events > 1) {
		return t.passed(commitPos) // DDL
	}
	if err := t.judge(w, commitPos); err != nil {
		return err
	}
	if err := t.decode(w); err != nil {
		return err
	}
	return t.found(commitPos, &Within{Commit: commitPos, More: t.beyond > 0, Prepared: t.prepared})
}

// next makes ready for another transaction.
func (t *tally) next() {
	*t = tally{place: t.place, end: t.end, rows: t.rows, out: t.out, located: t.located, met: t.met, beat: t.beat, cut: -1}
}

// idle looks at what was read when the server has nothing more: at a second heartbeat at the
// same place, since it sends one for what it passes over, too.
func (t *tally) idle(w *eventHandler, h header) error {
	idle := t.beat != nil && *t.beat == h.pos
	if t.beat = &h.pos; !idle {
		return nil
	}
	switch order, err := position.CompareFiles(w.file, t.place.File); {
	case t.place.within():
		return t.absent()
	case err != nil:
		return t.nowhere(w)
	case order < 0 || order == 0 && w.pos < t.place.Pos:
		return nil
	case !t.met && t.place.Pos > 4:
		return t.nowhere(w)
	}
	t.located = true
	return errLocated
}

func (t *tally) nowhere(w *eventHandler) error {
	return w.fail(WrongHistory, nil, "no event of binlog %s ends at %d: the place is of another server, or of "+
		"another binlog of that name", t.place.File, t.place.Pos)
}

func (t *tally) passed(commitPos position.Commit) error {
	t.out.Before.Advance(commitPos)
	if t.past() {
		return t.absent()
	}
	return nil
}

func (t *tally) found(commitPos position.Commit, in *Within) error {
	if in == nil {
		t.out.Before.Advance(commitPos)
	}
	t.out.Within, t.located = in, true
	return errLocated
}

// past reports that the server had no transaction that the place can be in.
func (t *tally) past() bool { return t.place.within() && t.out.Before.Covers(t.end) }

func (t *tally) absent() error {
	return newError(WrongHistory, nil, "the place is inside of a transaction after %s, and the server has none "+
		"after that: it is of another server, or this one has lost it", t.out.Before)
}

// judge refuses a transaction that is not the one of the place.
func (t *tally) judge(w *eventHandler, commitPos position.Commit) error {
	p := &t.place
	other := func(why string) error {
		return w.fail(WrongHistory, nil, "transaction %s is the first one behind what the place says is read as a "+
			"whole, and the place can't be inside of it: %s. "+
			"The place is of another server whose binlog has another order, or of another history",
			position.Row{GTID: commitPos.GTID, File: w.file, Pos: w.pos}.TransactionID(), why)
	}
	timely := p.Second == commitPos.Committed.Unix() || t.times[p.Second]
	if !t.begun {
		switch {
		case t.unclear:
			return other("it is an XA transaction, where only file and pos tell how much was read, and they do not")
		case p.Second != 0 && !timely:
			return other("it was committed at another time")
		}
		return nil
	}
	at := uint32(p.Pos)
	same := w.file == p.File && (at == uint32(t.began[0]) || at == uint32(t.began[1]))
	switch {
	case p.Events >= t.n:
		return other("it has fewer events")
	case p.Rows > 0 && !t.atRows:
		return other("there are no rows at the place")
	case w.file == p.File && p.Pos > t.began[0] && p.Pos < w.pos:
		return other("the place counts from the middle of it, as Debezium does when a transaction is larger than its " +
			"binlog.buffer.size")
	case p.Rows > 0 && p.Second != 0 && !timely:
		return other("it was committed at another time")
	case (p.Rows == 0 || p.Second == 0) && p.Set != nil && !same:
		return other("it begins elsewhere, and no row tells that it is the one")
	}
	return nil
}

// decode hands out the rows before the place.
func (t *tally) decode(w *eventHandler) error {
	n := -1
	return w.hold.each(func(tm *tableMap, raw []byte) error {
		n++
		sh, err := w.tableVersions.of(tm)
		if err != nil {
			return err
		}
		left := uint64(1<<64 - 1)
		if n == t.cut {
			left = t.place.Rows
		}
		err = sh.rows(raw, w.limits.uncompressed, func(row schema.Row) error {
			if left == 0 {
				t.beyond++
				return nil
			}
			left--
			t.rows(&row)
			return nil
		})
		if err == nil && n == t.cut && left > 0 {
			err = w.fail(WrongHistory, nil, "the place is behind %d rows of an event that has fewer: it is of another "+
				"server", t.place.Rows)
		}
		return err
	})
}
