package canal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// maxOpenTables bounds the table maps of one statement. MySQL joins 61 tables at
// most; triggers add some.
const maxOpenTables = 4096

// eventHandler turns the events of one connection into committed transactions. It looks
// at headers, GTIDs, table maps and the ends of transactions; rows of foreign
// tables are passed over without a look at them.
//
// It is owned by the goroutine that reads the connection. After an error it is
// in no state to go on.
type eventHandler struct {
	flavor position.Flavor
	byGTID bool // the position is a GTID set: a transaction without GTID is an error
	limits limits
	log    *slog.Logger
	emit   func(txn.Transaction) error
	stats  *stats

	format *format
	file   string
	// created is when file was begun, 0 when that is not known; see position.Position.
	created uint32
	pos     uint64 // after the event at hand
	before  uint64 // before it
	// lost says that pos is not known: before the event at hand the server has passed
	// over so much that its 32 bits do not tell. The next file tells.
	lost bool
	// size is how large a file is by now; nil where nothing is passed over. sized is the
	// last answer.
	size  func(file string) (uint64, error)
	sized fileSize
	// skipTo is where a position by file beyond 4 GiB lies: the dump command
	// can't name it, so the file is read from its start and passed over.
	skipTo uint64

	// proof is the last published transaction while it is awaited, partials those
	// that are published in part until they have come.
	proof    *proof
	partials []position.Partial
	origins  origins
	// lostTransactions are transactions of the position that nobody has; nil means none.
	lostTransactions *position.Set

	// tally is set where a place is looked for, and nothing is handed on. length is the size
	// of the last event that is not inside of another.
	tally  *tally
	length uint32

	watermark *watermark // nil unless somebody looks for what has become of rows

	// jumped is asked once, when the first file of a dump is later than the one of
	// the position. Nil where that means nothing.
	jumped func(start string) error

	// turns says that the position goes on to the next file by itself: without
	// GTIDs an idle server would purge the file that it stands at the end of. Not
	// while a transaction that is published in part is still to come.
	turns bool

	ddl queryEvent // the statement at hand

	// askSuspects asks the server what may write an outbox table unseen; nil where there is
	// nobody to ask. suspects is its answer until the next DDL, nil when it is not known.
	askSuspects func() (map[string]string, error)
	suspects    map[string]string

	begun bool // an event has come
	// found is called when the first event comes that is not made up for the dump or
	// the head of a file. Nil means nobody asks.
	found         func()
	tables        *tables
	tableVersions tableVersions
	group         group
	hold          hold
	inner         payload
	// refusePartial stops at partial updates.
	refusePartial bool
	// inside is set in a compressed transaction, payload its header: the only one
	// that can be seen when the transaction is passed over.
	inside  bool
	payload header
	owned   bool // the event at hand may be kept
}

type limits struct {
	spool        int64
	partRows     int
	partBytes    int
	uncompressed int64
}

func newEventHandler(cfg Config, flavor position.Flavor, from position.Position, emit func(txn.Transaction) error,
	st *stats) *eventHandler {
	w := &eventHandler{
		flavor: flavor, byGTID: from.HasGTID(), log: cfg.Logger, emit: emit, stats: st,
		limits: limits{spool: cfg.SpoolThreshold, partRows: cfg.PartRows, partBytes: cfg.PartBytes,
			uncompressed: cfg.MaxUncompressed},
		tables: newTables(cfg.Tables.Match),
		file:   from.File, pos: from.Pos, created: from.Created,
		tableVersions: tableVersions{flavor: flavor, needed: cfg.Needed, invalid: cfg.InvalidText, keys: cfg.Updates,
			maxSize: cfg.MaxUncompressed},
		partials: from.Partials, refusePartial: cfg.RefusePartialUpdates,
		origins:   origins{counts: cfg.Origins},
		watermark: cfg.watermark, tally: cfg.tally,
		turns: !from.HasGTID() && len(from.Partials) == 0 && cfg.tally == nil,
	}
	if !w.byGTID && needsSkip(from) {
		w.skipTo, w.pos = from.Pos, 4
	}
	w.hold = hold{dir: &spoolDir{path: cfg.SpoolDir}, limit: cfg.SpoolThreshold}
	return w
}

// needsSkip reports whether a position by file is beyond what COM_BINLOG_DUMP can name.
func needsSkip(p position.Position) bool { return p.Pos > 1<<32-1 }

// handle takes one event as it came from the server, checksum included if there
// is one. Unless owned says otherwise nothing of raw is kept. Panics of what it calls
// become errors.
func (w *eventHandler) handle(raw []byte, owned bool) (err error) {
	w.owned = owned
	defer func() {
		if r := recover(); r != nil {
			// The panic's text may hold data.
			w.log.Error("a binlog event broke its reader", slog.String("panic", fmt.Sprintf("%T", r)))
			err = w.fail(Undecodable, nil, "a binlog event is not as its type demands")
		}
	}()
	h, err := parseHeader(raw)
	if err != nil {
		return w.fail(Undecodable, err, "reading an event header")
	}
	if int64(h.size) != int64(len(raw)) {
		return w.fail(Undecodable, nil, "an event of %d bytes says that it has %d", len(raw), h.size)
	}
	if h.kind == replication.FORMAT_DESCRIPTION_EVENT {
		return w.formatDescription(h, raw)
	}
	if w.format == nil && h.kind != replication.ROTATE_EVENT {
		if h.kind == replication.HEARTBEAT_EVENT || h.kind == replication.HEARTBEAT_LOG_EVENT_V2 {
			return nil
		}
		return w.fail(Undecodable, nil, "event type %d came before any format description", h.kind)
	}
	raw, err = w.withoutChecksum(h, raw)
	if err != nil {
		return err
	}
	w.advance(h)
	if w.found != nil && !opens(h.kind) {
		w.found()
		w.found = nil
	}
	if !w.begun && w.proof == nil {
		w.begun = true
		w.stats.first.CompareAndSwap(0, time.Now().UnixNano())
	}
	if err := w.dispatch(h, raw); err != nil {
		return err
	}
	w.watermark.reached(w, h)
	return nil
}

// opens reports whether events of this kind come before the server has found the
// place where to begin.
func opens(kind replication.EventType) bool {
	switch kind {
	case replication.ROTATE_EVENT, replication.FORMAT_DESCRIPTION_EVENT, replication.PREVIOUS_GTIDS_EVENT,
		replication.MARIADB_GTID_LIST_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT,
		replication.MARIADB_START_ENCRYPTION_EVENT:
		return true
	}
	return false
}

// withoutChecksum cuts the CRC32 off. We ask the server for none, so this is for
// servers that don't listen.
func (w *eventHandler) withoutChecksum(h header, raw []byte) ([]byte, error) {
	has := w.format != nil && w.format.crc
	if w.format == nil && len(raw) >= headerLen+8+crcLen {
		// The rotate event before the first format description: only its own
		// bytes tell.
		body := raw[:len(raw)-crcLen]
		has = crc32.ChecksumIEEE(body) == binary.LittleEndian.Uint32(raw[len(body):])
	}
	if !has {
		return raw, nil
	}
	if len(raw) < headerLen+crcLen {
		return nil, w.fail(Undecodable, nil, "event type %d is too short for its checksum", h.kind)
	}
	return raw[:len(raw)-crcLen], nil
}

// advance moves the position to the end of an event. The header has 32 bits of
// it, which wrap in files over 4 GiB; MariaDB 11.4 leaves them zero inside
// transactions.
func (w *eventHandler) advance(h header) {
	w.before, w.length = w.pos, h.size
	switch {
	case h.artificial() || h.kind == replication.HEARTBEAT_EVENT || h.kind == replication.HEARTBEAT_LOG_EVENT_V2 ||
		h.kind == replication.ROTATE_EVENT:
	case h.pos != 0:
		p := w.pos&^(1<<32-1) | uint64(h.pos)
		if p < w.pos {
			p += 1 << 32
		}
		// In the file a checksum may follow that is not sent.
		if p-w.pos > uint64(h.size)+crcLen && w.size != nil && !w.lost {
			w.lost = w.mayBeFurther(p)
		}
		w.pos = p
	default:
		w.pos += uint64(h.size)
	}
}

// fileSize is how large a binlog was, and when.
type fileSize struct {
	file string
	size uint64
	at   time.Time
}

// mayBeFurther reports whether the file is so large that an event which seems to be at
// pos may be 4 GiB behind that. It is not asked for each gap: no file grows so fast.
func (w *eventHandler) mayBeFurther(pos uint64) bool {
	if s := &w.sized; s.file != w.file || time.Since(s.at) > time.Second {
		size, err := w.size(w.file)
		if err != nil {
			w.log.Info("the place in the binlog is not known until the next file, since the server does not list its binlogs",
				slog.Any("error", err))
			size = 1<<64 - 1
		}
		*s = fileSize{w.file, size, time.Now()}
	}
	return w.sized.size >= pos+1<<32
}

func (w *eventHandler) formatDescription(h header, raw []byte) error {
	f, err := parseFormat(raw)
	if err != nil {
		return w.fail(Undecodable, err, "reading the format of the binlog")
	}
	w.dropUnfinished("a new binlog began")
	// The events of a restarted server have the same format but for its version;
	// a new version may lay them out anew.
	if w.format == nil || !bytes.Equal(w.format.lengths, f.lengths) {
		w.tables.forget()
	}
	w.tables.closeStatement()
	w.format, w.tableVersions.format = f, f
	// Where the dump begins within a file its format description is sent again,
	// without a position.
	w.pos = max(w.pos, uint64(h.pos))
	w.tally.event(w, h)
	return w.identify(h)
}

func (w *eventHandler) rotate(h header, body []byte) error {
	file, pos, err := parseRotate(body)
	if err != nil {
		return w.fail(Undecodable, err, "reading the name of the next binlog")
	}
	w.dropUnfinished("the binlog was rotated")
	if w.skipTo > 0 {
		if file != w.file {
			return w.fail(WrongHistory, nil, "binlog %s ends before position %d, where to go on", w.file, w.skipTo)
		}
		return nil // the server says where the dump begins, at 4
	}
	order, err := position.CompareFiles(w.file, file)
	later := err == nil && order < 0
	ask := w.jumped
	w.jumped = nil
	if ask != nil && later {
		if err := ask(file); err != nil {
			return err
		}
	}
	if h.artificial() && file == w.file && pos == w.pos&(1<<32-1) {
		return nil
	}
	if file != w.file {
		w.created = 0
	}
	w.file, w.pos, w.lost = file, max(pos, 4), false
	w.stats.sent.Store(&place{w.file, w.pos})
	w.log.Info("reading binlog", slog.String("file", file), slog.Uint64("position", w.pos))
	return nil
}

// dispatch handles one event without checksum, from the wire or from a
// compressed transaction.
func (w *eventHandler) dispatch(h header, raw []byte) error {
	body := raw[headerLen:]
	w.tally.event(w, h)
	if isRows(h.kind) {
		return w.rows(h, raw)
	}
	switch h.kind {
	case replication.TABLE_MAP_EVENT:
		return w.tableMap(body)
	case replication.XID_EVENT:
		return w.commit(h)
	case replication.QUERY_EVENT, replication.MARIADB_QUERY_COMPRESSED_EVENT, replication.EXECUTE_LOAD_QUERY_EVENT:
		return w.query(h, body)
	case replication.XA_PREPARE_LOG_EVENT:
		return w.xaPrepare(h, body)
	case replication.INCIDENT_EVENT:
		return w.fail(Incident, nil, "the server says that its binlog lost events here (incident event)")
	case replication.INTVAR_EVENT, replication.RAND_EVENT, replication.USER_VAR_EVENT, replication.ROWS_QUERY_EVENT,
		replication.BEGIN_LOAD_QUERY_EVENT, replication.APPEND_BLOCK_EVENT, replication.DELETE_FILE_EVENT,
		replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT, replication.IGNORABLE_EVENT,
		replication.MARIADB_ANNOTATE_ROWS_EVENT:
		return nil
	}
	if w.inside {
		return w.fail(Undecodable, nil, "event type %d inside a compressed transaction", h.kind)
	}
	return w.outer(h, body)
}

// outer handles the events that can't be part of a compressed transaction.
func (w *eventHandler) outer(h header, body []byte) error {
	switch h.kind {
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT:
		e, err := parseGTID(h.kind, body)
		return w.begin(h, e, err)
	case replication.GTID_TAGGED_LOG_EVENT:
		e, err := parseTagged(body)
		return w.begin(h, e, err)
	case replication.MARIADB_GTID_EVENT:
		e, err := parseMariaGTID(h, body)
		return w.begin(h, e, err)
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return w.compressed(h, body)
	case replication.ROTATE_EVENT:
		return w.rotate(h, body)
	case replication.STOP_EVENT:
		w.dropUnfinished("the server stopped")
		return nil
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
		w.stats.lag.Store(0) // the server has nothing more to send
		at := w.pos
		if further := h.pos - uint32(w.pos); further < 1<<31 { // of 64 bits it has the lower 32
			at += uint64(further)
		}
		if !w.lost {
			w.stats.sent.Store(&place{w.file, at})
		}
		if w.tally != nil {
			return w.tally.idle(w, h)
		}
		return w.provenIdle(h)
	case replication.PREVIOUS_GTIDS_EVENT, replication.START_EVENT_V3,
		replication.SLAVE_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT, replication.MARIADB_GTID_LIST_EVENT,
		replication.MARIADB_START_ENCRYPTION_EVENT:
		return nil
	}
	if h.flags&replication.LOG_EVENT_IGNORABLE_F != 0 {
		return nil // the server vouches for it
	}
	return w.fail(Undecodable, nil, "event type %d is not known; it might hold rows", h.kind)
}

func (w *eventHandler) tableMap(body []byte) error {
	m, err := parseTableMapHead(body, w.format.idSize(replication.TABLE_MAP_EVENT))
	if err != nil {
		return w.fail(Undecodable, err, "reading a table map")
	}
	if len(w.tables.open) >= maxOpenTables {
		return w.fail(Undecodable, nil, "a statement has more than %d tables", maxOpenTables)
	}
	if err := w.tables.note(m); err != nil {
		return w.fail(BadConfig, err, "whether a table is an outbox table can't be told")
	}
	return nil
}

// rowsRef reads what a rows event begins with.
func (w *eventHandler) rowsRef(kind replication.EventType, body []byte) (id uint64, endOfStatement bool, err error) {
	r := reader{b: body}
	size := w.format.idSize(kind)
	id = r.uint(size)
	flags := r.uint(2)
	if r.bad {
		return 0, false, w.fail(Undecodable, nil, "a rows event of %d bytes is too short", len(body))
	}
	return id, flags&replication.RowsEventStmtEndFlag != 0, nil
}

// foreign tells whether a rows event is of a table that is no outbox table.
func (w *eventHandler) foreign(kind replication.EventType, id uint64) (tm *tableMap, foreign bool, err error) {
	tm, known := w.tables.find(id)
	if !known {
		if id == 1<<(8*w.format.idSize(kind))-1 || id == 0x00ffffff {
			return nil, true, nil // a dummy event that only ends the statement
		}
		return nil, false, w.fail(Undecodable, nil, "a rows event is of table id %d, which no table map told", id)
	}
	return tm, tm == nil, nil
}

func (w *eventHandler) rows(h header, raw []byte) error {
	id, end, err := w.rowsRef(h.kind, raw[headerLen:])
	if err != nil {
		return err
	}
	tm, foreign, err := w.foreign(h.kind, id)
	if err != nil {
		return err
	}
	if !w.group.open {
		return w.fail(Undecodable, nil, "a rows event came outside of any transaction")
	}
	if !foreign {
		if err := w.outboxRows(h.kind, tm, raw); err != nil {
			return err
		}
	}
	if end {
		w.tables.closeStatement()
	}
	return nil
}

func (w *eventHandler) outboxRows(kind replication.EventType, tm *tableMap, raw []byte) error {
	if w.group.pass != handOn {
		return nil
	}
	switch kind {
	case replication.WRITE_ROWS_EVENTv0, replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2,
		replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:
	case replication.DELETE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		w.group.deletes++
		if w.watermark == nil {
			return nil
		}
	default:
		w.group.updates++
		if w.refusePartial && kind == replication.PARTIAL_UPDATE_ROWS_EVENT && w.group.fault == nil {
			w.group.fault = w.partialUpdate(tm, "updates are not to be passed over")
		}
		if w.watermark != nil && kind == replication.PARTIAL_UPDATE_ROWS_EVENT && w.group.fault == nil {
			w.group.fault = w.partialUpdate(tm, "whether that changed its primary key, and with it its turn among the "+
				"snapshot rows, can't be told. "+
				"Set binlog_row_value_options='' there and begin again, or begin without the rows that stand in the tables "+
				"(source.start=current)")
		}
		if !w.tableVersions.keys || !isUpdate(kind) {
			return nil
		}
	}
	if w.skipTo > 0 {
		return nil // before the position where to go on
	}
	if holds, err := w.tally.holds(w, tm, kind); !holds || err != nil {
		return err
	}
	if !w.owned && !w.inside {
		raw = bytes.Clone(raw)
	}
	if err := w.hold.add(tm, raw); err != nil {
		return w.fail(SpoolFailed, err, "holding the rows of an open transaction")
	}
	return nil
}

// partialUpdate is decided at the commit, as all that is wrong with a transaction.
func (w *eventHandler) partialUpdate(tm *tableMap, why string) error {
	e := newError(PartialUpdate, nil, "a row of outbox table %s was updated, and logged in part only "+
		"(binlog_row_value_options=PARTIAL_JSON); %s", tm.table.name, why)
	e.Table = tm.table.name.String()
	return w.fail(PartialUpdate, e, "")
}

// fail makes an error with the place where the event handler is. An *Error as the cause
// is completed rather than wrapped.
func (w *eventHandler) fail(k Kind, cause error, msg string, args ...any) error {
	var e *Error
	if !errors.As(cause, &e) {
		e = newError(k, cause, msg, args...)
	}
	if e.GTID.IsZero() {
		e.GTID = w.group.gtid.gtid
	}
	if e.File == "" {
		e.File, e.Pos = w.file, w.pos
	}
	return e
}
