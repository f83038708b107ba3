package canal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// wanted asks for the columns of the outbox tables, where a position does not have them.
func (s *Stream) wanted(ss *session, cfg Config, from position.Position) (map[schema.Name]*asked, error) {
	if from.Columns != "" || cfg.tally != nil {
		return nil, nil
	}
	cfg.progress("asking for the columns of the outbox tables")
	names, err := ss.outboxes(cfg)
	answers := map[schema.Name]*asked{}
	for _, n := range names[:min(len(names), maxKept)] {
		a, err := ss.ask(s.server, n, from.HasGTID())
		if err != nil {
			return nil, err
		}
		if len(a.columns) > 0 {
			answers[n] = &a
		}
	}
	return answers, err
}

// know finds out the columns of the outbox tables at the place where the stream begins:
// those that come with the position, else those that the server says and that nothing in
// the binlog changes from there on. A commit position in front of all others tells them, so
// that a restart before the next one knows them, too.
func (s *Stream) know(ctx context.Context, cfg Config, from position.Position, answers map[schema.Name]*asked) error {
	s.known = newColumns(s.server.ddlSource(), cfg.Tables.Match, from.Columns)
	var later []schema.Name // asked for when the server was further on
	for n, a := range answers {
		if a.at.IsZero() || !from.Covers(a.at) {
			later = append(later, n)
		}
	}
	var touched []schema.Name
	if len(later) > 0 {
		cfg.progress("looking for changes of the outbox tables in the binlog")
		var err error
		if touched, err = s.ahead(ctx, cfg, from, later); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return nil //nolint:nilerr // what is wrong there the stream meets as well
		}
	}
	for n, a := range answers {
		if info, err := schema.FromInformationSchema(n, a.columns); err == nil && !slices.Contains(touched, n) {
			s.known.learn(n, a, info)
		}
	}
	if s.learnt = s.known.changed(); s.learnt == "" || cfg.watermark != nil {
		return nil
	}
	return s.queue.put(txn.Transaction{Commit: position.Commit{Columns: s.learnt}, Final: true})
}

// maxKept is how many outbox tables are asked for before the first row. Others are when
// they are met.
const maxKept = 1000

// ahead reads the binlog from a place to its present end and returns those of the tables
// that a statement there may change. So what the server says of the others now held at
// that place, too.
func (s *Stream) ahead(ctx context.Context, cfg Config, from position.Position,
	names []schema.Name) ([]schema.Name, error) {
	// As mysqlbinlog does: the server ends the dump at the end of its binlog, and
	// nobody else's is ended for it.
	cfg.ServerID, cfg.toEnd = 0, true
	d := newDialer(cfg.Dialer)
	defer d.close()
	defer context.AfterFunc(ctx, d.close)()
	out, err := guarded(func() (*dump, error) {
		return startDump(cfg, d, s.server.Flavor, from, s.sameServer, s.waiting(cfg, from))
	})
	if err != nil {
		return nil, classify(err, Unreachable, "reading the binlog ahead from "+from.String())
	}
	l := sideReader{source: s.server.ddlSource(), names: names, found: out.found}
	out.run(l.handle) // in this goroutine: until the end
	_ = out.conn.Close()
	if !errors.Is(out.err, errEndOfBinlog) {
		return nil, ctxOr(ctx, classify(out.err, Disconnected, "reading the binlog ahead"))
	}
	return l.touched, nil
}

var errEndOfBinlog = errors.New("the binlog ends here")

// sideReader looks for statements that change tables.
type sideReader struct {
	source  ddl.Source
	crc     bool // events end with a checksum
	names   []schema.Name
	touched []schema.Name
	found   func()
}

func (l *sideReader) handle(raw []byte, _ bool) error {
	h, err := parseHeader(raw)
	if err != nil {
		return fmt.Errorf("reading an event header: %w", err)
	}
	if !opens(h.kind) {
		l.found()
	}
	switch h.kind {
	case replication.FORMAT_DESCRIPTION_EVENT:
		f, err := parseFormat(raw)
		if err != nil {
			return err
		}
		l.crc = f.crc
		return nil
	case replication.QUERY_EVENT, replication.MARIADB_QUERY_COMPRESSED_EVENT:
	default:
		return nil
	}
	if l.crc && len(raw) >= headerLen+crcLen {
		raw = raw[:len(raw)-crcLen]
	}
	q, err := parseQuery(h.kind, raw[headerLen:])
	if err == nil && h.kind == replication.MARIADB_QUERY_COMPRESSED_EVENT {
		q.sql, err = inflateMaria(q.sql, answerBytes)
	}
	if err != nil {
		return err
	}
	if string(q.sql) == "BEGIN" || string(q.sql) == "COMMIT" {
		return nil
	}
	s := schema.Scan(q.sql, string(q.database))
	if s.Kind != schema.DDL && !s.Everything {
		return nil
	}
	for _, n := range l.names {
		if s.Touches(n) && !slices.Contains(l.touched, n) && l.changes(&q, n) {
			l.touched = append(l.touched, n)
		}
	}
	if len(l.touched) == len(l.names) {
		return errEndOfBinlog // there is nothing more to find
	}
	return nil
}

// changes reports whether a statement may change the columns of a table, whatever they are:
// most change an index, rows or partitions.
func (l *sideReader) changes(q *queryEvent, n schema.Name) bool {
	c := ddl.NewCatalog()
	c.Tables[n] = &ddl.Table{}
	out := c.Apply(l.source, q.statement(l.source))
	return out.Everything || slices.Contains(out.Changed, n) || slices.Contains(out.Unknown, n)
}

// nonBlocking is the flag of dump commands by which the server ends the dump at the end.
const nonBlocking = 1

func (c Config) dumpFlags() uint16 {
	flags := c.annotations()
	if c.toEnd {
		flags |= nonBlocking
	}
	return flags
}

// endOfDump is what the end of a dump means.
func (d *dump) endOfDump() error {
	if d.toEnd {
		return errEndOfBinlog
	}
	return nil // the end of the connection follows
}
