package canal

import (
	"bytes"
	"context"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// snapshotReader works through the rows that stood in the outbox tables at the start: each of
// them comes exactly once, in the order of its table's primary key, also those that
// are deleted meanwhile, and none that was inserted later, which the stream will
// bring. It takes no lock, writes nothing, and keeps no transaction open.
//
// The start is a place G in the binlog; nothing else happens there. Rows are
// selected in chunks, each by a statement of its own, at whatever time. A chunk says
// what is there; the binlog since G says which of that was there at G:
//
//   - what was inserted since G is left out;
//   - what was deleted since G and not inserted since G stood there at G. Its last
//     image is kept, and put into the chunk in whose range its key is. If the chunk
//     holds the key as well, the row was deleted after it had been selected.
//
// For that the binlog is read at least as far as the server stood after the SELECT,
// which is beyond all that the SELECT can have seen: a row can be seen once its
// transaction is committed in the engine, and it is written to the binlog before.
// A primary key that is changed is a delete and an insert.
//
// So how far the rows are done is said by G and the last key alone. Whoever goes on
// from there reads the binlog from G again and knows what is to be known. Keys before
// the last one are done: a row that stood there at G was handed on, be it out of its
// chunk or as a deleted one.
//
// It is for one goroutine.
type snapshotReader struct {
	tables       []*snapshotTable // in the order of their names
	source       snapshotSource
	changeBuffer *changeBuffer
	emit         func(txn.Transaction) error
	begin        func(*snapshotTable) // a table
	at           position.Snapshot

	current int
	passed  []byte // place of the last key that is done in the current table; nil before the first
}

// snapshotSource is what the snapshot reader asks the server for.
type snapshotSource interface {
	// chunk selects the first rows behind after, all when it is nil, in the order
	// of the key; last is true when none come behind them.
	chunk(ctx context.Context, t *snapshotTable, after []string) (rows []selectedRow, last bool, err error)
	// catchUp hands f what the binlog holds of outbox tables, at least as far as the
	// server stands now. It goes on where the last call ended; the first begins at G.
	catchUp(ctx context.Context, f func([]schema.Row) error) error
	// sortable encodes keys so that comparing bytes is comparing keys.
	sortable(ctx context.Context, t *snapshotTable, keys [][]string) ([][]byte, error)
	// whole refuses the last image of a deleted row that lacks a column.
	whole(t *snapshotTable, table *schema.Table, image []any) error
}

// snapshotTable is one outbox table.
type snapshotTable struct {
	name  schema.Name
	index int
	key   *snapshotKey
}

// selectedRow is a row that a SELECT brought, as schema.Row has it.
type selectedRow struct {
	table *schema.Table
	key   []string
	image []any
	size  int
}

func (s *snapshotReader) run(ctx context.Context) error {
	for i, t := range s.tables {
		at := schema.Name{Database: s.at.Database, Table: s.at.Table}
		if before(t.name, at) {
			continue
		}
		if t.name != at {
			s.at = position.Snapshot{Database: t.name.Database, Table: t.name.Table, Begun: s.at.Begun, Rows: s.at.Rows}
		}
		s.current = i
		s.begin(t)
		if err := s.table(ctx, t); err != nil {
			return err
		}
		if err := s.changeBuffer.change(func(e *entries) error { return e.forget(i) }); err != nil {
			return bufferFailed(err)
		}
	}
	// Once more, for tables that are gone: of what is done nothing is noted any more.
	s.current = len(s.tables)
	s.begin(&snapshotTable{index: s.current})
	if err := s.source.catchUp(ctx, func(changes []schema.Row) error { return s.note(ctx, changes) }); err != nil {
		return err
	}
	end := position.Snapshot{Begun: s.at.Begun, Rows: s.at.Rows, Done: true}
	return s.emit(txn.Transaction{Commit: position.Commit{Snapshot: &end}, Final: true})
}

func bufferFailed(err error) error {
	return newError(SpoolFailed, err, "keeping what became of the snapshot rows")
}

// before is the order in which tables are worked through.
func before(a, b schema.Name) bool {
	return a.Database < b.Database || a.Database == b.Database && a.Table < b.Table
}

func (s *snapshotReader) table(ctx context.Context, t *snapshotTable) error {
	after, err := t.key.load(s.at.Key)
	if err != nil {
		return newError(SchemaMismatch, err, "going on with the snapshot rows of %s: its primary key has changed; set a "+
			"position to go on without the rest", t.name)
	}
	s.passed = nil
	if after != nil {
		if s.passed, err = s.place(ctx, t, after); err != nil {
			return err
		}
	}
	for {
		rows, last, err := s.source.chunk(ctx, t, after)
		if err != nil {
			return err
		}
		if err := s.source.catchUp(ctx, func(changes []schema.Row) error { return s.note(ctx, changes) }); err != nil {
			return err
		}
		var to []byte // nil is the end of the table
		if len(rows) > 0 && !last {
			after = rows[len(rows)-1].key
			if to, err = s.place(ctx, t, after); err != nil {
				return err
			}
		}
		if err := s.hand(ctx, t, rows, to); err != nil || last {
			return err
		}
		s.passed = to
	}
}

func (s *snapshotReader) place(ctx context.Context, t *snapshotTable, key []string) ([]byte, error) {
	places, err := s.source.sortable(ctx, t, [][]string{key})
	if err != nil {
		return nil, err
	}
	return places[0], nil
}

// note takes in changes of outbox tables.
func (s *snapshotReader) note(ctx context.Context, changes []schema.Row) error {
	if len(changes) == 0 {
		return nil
	}
	gone := map[int][]goneRow{}
	err := s.changeBuffer.change(func(e *entries) error {
		for i := range changes {
			if err := s.noteOne(e, &changes[i], gone); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for index, rows := range gone {
		if err := s.keep(ctx, s.tables[index], rows); err != nil {
			return err
		}
	}
	return nil
}

// noteOne adds the deleted rows that stood there at the start to gone.
func (s *snapshotReader) noteOne(e *entries, row *schema.Row, gone map[int][]goneRow) error {
	index := s.find(row.Table.Name)
	if index < s.current {
		return nil // done, or made after the tables were listed, and so after the start
	}
	t := s.tables[index]
	var deleted, inserted []string
	var err error
	if row.Before != nil {
		if deleted, err = t.key.of(row.Table, row.Before); err != nil {
			return err
		}
	}
	if row.After != nil {
		if inserted, err = t.key.of(row.Table, row.After); err != nil {
			return err
		}
	}
	if row.Op == schema.Update && bytes.Equal(exact(deleted), exact(inserted)) {
		return nil
	}
	if deleted != nil && !e.inserted(index, deleted) {
		gone[index] = append(gone[index], goneRow{key: deleted, image: row.Before, table: row.Table})
	}
	if inserted != nil {
		if err := e.insert(index, inserted); err != nil {
			return bufferFailed(err)
		}
	}
	return nil
}

func (s *snapshotReader) find(name schema.Name) int {
	for i, t := range s.tables {
		if t.name == name {
			return i
		}
	}
	return -1
}

// keep keeps the deleted rows whose turn is yet to come.
func (s *snapshotReader) keep(ctx context.Context, t *snapshotTable, rows []goneRow) error {
	keys := make([][]string, len(rows))
	for i := range rows {
		keys[i] = rows[i].key
	}
	places, err := s.source.sortable(ctx, t, keys)
	if err != nil {
		return err
	}
	return s.changeBuffer.change(func(e *entries) error {
		for i := range rows {
			if t.index == s.current && s.passed != nil && bytes.Compare(places[i], s.passed) <= 0 {
				continue
			}
			if err := s.source.whole(t, rows[i].table, rows[i].image); err != nil {
				return err
			}
			rows[i].sort = places[i]
			if err := e.remove(t.index, rows[i]); err != nil {
				return bufferFailed(err)
			}
		}
		return nil
	})
}

// hand hands on what stood there at the start between the last key that is done and
// to: the selected rows but for those inserted since, and the deleted ones.
func (s *snapshotReader) hand(ctx context.Context, t *snapshotTable, rows []selectedRow, to []byte) error {
	var stood []selectedRow
	var gone goneRow
	var more bool
	err := s.changeBuffer.look(func(e *entries) (err error) {
		for _, r := range rows {
			if !e.inserted(t.index, r.key) {
				stood = append(stood, r)
			}
		}
		gone, more, err = e.nextGone(t.index, s.passed, to)
		return err
	})
	if err != nil {
		return bufferFailed(err)
	}
	var places [][]byte
	if more {
		keys := make([][]string, len(stood))
		for i := range stood {
			keys[i] = stood[i].key
		}
		if places, err = s.source.sortable(ctx, t, keys); err != nil {
			return err
		}
	}
	for len(stood) > 0 || more {
		order := -1 // of the next selected row to the next deleted one
		if more {
			order = 1
			if len(stood) > 0 {
				order = bytes.Compare(places[0], gone.sort)
			}
		}
		if order <= 0 {
			if err := s.row(t, stood[0]); err != nil {
				return err
			}
			if stood = stood[1:]; more {
				places = places[1:]
			}
		} else if err := s.row(t, selectedRow{table: gone.table, key: gone.key, image: gone.image,
			size: sizeOf(gone.image)}); err != nil {
			return err
		}
		if order >= 0 {
			err := s.changeBuffer.look(func(e *entries) (err error) {
				gone, more, err = e.nextGone(t.index, gone.sort, to)
				return err
			})
			if err != nil {
				return bufferFailed(err)
			}
		}
	}
	return s.step(t, rows, to)
}

// row hands one row on. It is a transaction of its own, so that a row that is
// refused holds nothing back.
func (s *snapshotReader) row(t *snapshotTable, r selectedRow) error {
	s.at.Key = t.key.stored(r.key)
	s.at.Rows++
	at := s.at
	return s.emit(txn.Transaction{
		Commit: position.Commit{Snapshot: &at}, Rows: []schema.Row{{Table: r.table, Op: schema.Read, After: r.image}},
		Final: true, Bytes: r.size,
	})
}

// sizeOf is the approximate memory of an image.
func sizeOf(image []any) int {
	n := len(image) * rowOverhead
	for _, v := range image {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// step moves the key over rows at the end of a chunk that were left out.
func (s *snapshotReader) step(t *snapshotTable, rows []selectedRow, to []byte) error {
	if to == nil {
		return nil
	}
	key := t.key.stored(rows[len(rows)-1].key)
	if bytes.Equal(exact(key), exact(s.at.Key)) {
		return nil
	}
	s.at.Key = key
	at := s.at
	return s.emit(txn.Transaction{Commit: position.Commit{Snapshot: &at}, Final: true})
}
