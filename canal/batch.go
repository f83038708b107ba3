package canal

import (
	"errors"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// rowOverhead is the memory of one value beside its bytes: the interface and a
// box for it.
const rowOverhead = 16 + 16

// batch collects the rows of one committed transaction and hands them on, in
// parts when there are more than one part may hold.
type batch struct {
	w         *eventHandler
	commitPos position.Commit
	limit     int // bytes of a part
	rows      []schema.Row
	bytes     int
	first     uint64
}

func (b *batch) add(r schema.Row, bytes int) error {
	if len(b.rows) > 0 && (len(b.rows) >= b.w.limits.partRows || b.bytes+bytes > b.limit) {
		if err := b.emit(false); err != nil {
			return err
		}
	}
	b.rows = append(b.rows, r)
	b.bytes += bytes
	return nil
}

func (b *batch) emit(final bool) error {
	inserted := uint64(0)
	for i := range b.rows {
		if b.rows[i].Op == schema.Insert {
			inserted++
		}
	}
	b.w.stats.inserts.Add(inserted)
	if final {
		b.commitPos.Columns = b.w.tableVersions.known.changed()
	}
	err := b.w.emit(txn.Transaction{Commit: b.commitPos, Rows: b.rows, FirstRow: b.first, Final: final, Bytes: b.bytes})
	b.first += uint64(len(b.rows))
	b.rows, b.bytes = nil, 0
	return err
}

func (b *batch) end() error { return b.emit(true) }

// isOurs reports whether an error needs no more words.
func isOurs(err error) bool {
	var e *Error
	return errors.As(err, &e) || errors.Is(err, ErrClosed)
}
