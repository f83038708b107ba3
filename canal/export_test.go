package canal

import (
	"bytes"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// EventHandler feeds events to the reader without a connection.
type EventHandler struct {
	w     *eventHandler
	stats stats
}

// NewEventHandler makes a event handler; columns answers for information_schema, of a server
// that has come as far as reached.
func NewEventHandler(cfg Config, flavor position.Flavor, from position.Position,
	columns func(schema.Name) ([]schema.ColumnInfo, error), emit func(txn.Transaction) error, reached ...position.Position,
) *EventHandler {
	w := &EventHandler{}
	w.w = newEventHandler(cfg.withDefaults(), flavor, from, emit, &w.stats)
	w.w.tableVersions.columns = func(n schema.Name) (a asked, err error) {
		a.columns, err = columns(n)
		a.charset = "utf8mb4"
		if len(reached) > 0 {
			a.at = reached[0]
		}
		return a, err
	}
	return w
}

// Follow has the event handler carry the columns of a position through DDL; changes tells whether
// a table may be changed further on.
func (w *EventHandler) Follow(columns string, changes func(schema.Name) (bool, error)) {
	w.w.tableVersions.known = newColumns(ddl.Source{Version: 80400}, w.w.tables.match, columns)
	w.w.tableVersions.changes = changes
}

// Await makes the event handler compare a transaction first; proven is called when the
// walk can go on.
func (w *EventHandler) Await(g position.GTID, committed time.Time, executed *position.Set, proven func()) {
	w.w.proof = &proof{gtid: g, committed: committed, executed: executed, proven: proven}
}

// What ends a dump that only compares.
var (
	ErrProven = errProven
	ErrAbsent = errAbsent
)

// SetSize tells how large all files are.
func (w *EventHandler) SetSize(n uint64) {
	w.w.size = func(string) (uint64, error) { return n, nil }
}

// Handle takes one event. It is overwritten afterwards, as the memory of the
// connection's reader is: nothing may have been kept of it.
func (w *EventHandler) Handle(raw []byte) error {
	lent := bytes.Clone(raw)
	err := w.w.handle(lent, false)
	for i := range lent {
		lent[i] = 0xa5
	}
	return err
}

// HandleLent takes one event and leaves it alone.
func (w *EventHandler) HandleLent(raw []byte) error { return w.w.handle(raw, false) }

// Close removes the spool.
func (w *EventHandler) Close() error {
	w.w.inner.close()
	return w.w.hold.reset(0)
}

// Counts returns the counters: inserts, updates, deletes, transactions, rolled back.
func (w *EventHandler) Counts() [5]uint64 {
	s := &w.stats
	return [5]uint64{s.inserts.Load(), s.updates.Load(), s.deletes.Load(), s.transactions.Load(), s.rolledBack.Load()}
}

// Held is the number of bytes of the open transaction, and how many of them are
// in memory.
func (w *EventHandler) Held() (all, memory int64) {
	for _, e := range w.w.hold.events {
		memory += int64(len(e.raw))
	}
	return w.w.hold.bytes, memory
}

// Queue is the queue between reading and Next.
type Queue = queue

// NewQueue makes a queue.
func NewQueue(limit int) *Queue { return newQueue(limit) }

// Put adds to a queue.
func (q *queue) Put(t txn.Transaction) error { return q.put(t) }

// Close closes a queue.
func (q *queue) Close() { q.close() }

// Fail ends a queue.
func (q *queue) Fail(err error) { q.fail(err) }

// Next takes from a queue.
var QueueNext = (*queue).next

// Classify maps an error.
func Classify(err error) error { return classify(err, Disconnected, "reading the binlog") }

// Ended is closed when all goroutines of a stream have ended.
func Ended(s *Stream) <-chan struct{} { return s.ended }

// Packets reads the packets of a connection.
type Packets = packets

// NewPackets makes a reader that expects a sequence number first.
var NewPackets = newPackets

// SetLimit bounds the packets that belong together, and returns the limit before.
func (p *packets) SetLimit(n int) (before int) {
	before, p.limit = p.limit, n
	return before
}

// Next takes a packet.
func (p *packets) Next() ([]byte, bool, error) { return p.next() }

// TableVersion decodes the rows behind a table map.
type TableVersion = tableVersion

// NewTableVersion makes a shape out of the event with the table map; one of head describes
// the format. Nil wants all columns.
func NewTableVersion(head [][]byte, tableMapEvent []byte, wanted []int) (*TableVersion, error) {
	s := tableVersions{flavor: position.MySQL, columns: func(schema.Name) (asked, error) { return asked{}, nil }}
	if wanted != nil {
		s.needed = func(*schema.Table) []int { return wanted }
	}
	for _, e := range head {
		if replication.EventType(e[4]) != replication.FORMAT_DESCRIPTION_EVENT {
			continue
		}
		var err error
		if s.format, err = parseFormat(e); err != nil {
			return nil, err
		}
	}
	m, err := parseTableMapHead(tableMapEvent[headerLen:], s.format.idSize(replication.TABLE_MAP_EVENT))
	if err != nil {
		return nil, err
	}
	name := schema.Name{Database: string(m.db), Table: string(m.tab)}
	return s.of(&tableMap{table: &table{name: name, outbox: true}, body: m.rest})
}

// Direct reports whether go-mysql is left out.
func (sh *tableVersion) Direct() bool { return sh.isDirect }

// LeaveToGoMySQL has go-mysql read the rows.
func (sh *tableVersion) LeaveToGoMySQL() { sh.isDirect = false }

// IsDirect reports whether a type is read without go-mysql.
var IsDirect = isDirect

// Rows decodes an event.
func (sh *tableVersion) Rows(raw []byte) (rows []schema.Row, err error) {
	err = sh.rows(raw, 1<<20, func(r schema.Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// Tally is a tally, for tests that have a EventHandler look for a place.
type Tally struct{ t *tally }

// Seek has the event handler look for a place behind from on a server that is at end. rows gets
// what Locate hands out.
func (w *EventHandler) Seek(at BinlogOffset, from, end position.Position, rows func(*schema.Row)) *Tally {
	t := &tally{place: at, end: end, rows: rows, cut: -1}
	t.out.Before = from
	w.w.tally = t
	return &Tally{t}
}

// Located reports whether the place is found, and where.
func (t *Tally) Located() (Located, bool) { return t.t.out, t.t.located }

// ParseServerSet reads what a server says.
var ParseServerSet = parseServerSet
