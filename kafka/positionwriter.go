package kafka

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	// maxDeltas bounds the records between two full positions, so that the last
	// positionTail offsets hold one: each transaction takes two offsets, its record
	// and its commit marker.
	maxDeltas    = 200
	positionTail = 500
	// maxRuns bounds a delta's size when transactions don't count on.
	maxRuns = 256
	// smallPosition is the size of a full position below which a delta saves
	// nothing.
	smallPosition = 1024
)

// positionWriter makes the position records of one opening: the cost of a batch
// does not grow with the size of the GTID set.
type positionWriter struct {
	run   string
	every time.Duration
	limit int // bytes of a value; 0 is none

	fulls  int
	at     time.Time // of the last full record
	size   int       // of the last full record
	deltas int       // since then
	count  uint64    // transactions in the last full record's set
	since  runs
}

// next returns key and value of the record for a batch that ends at pos and goes
// over groups. It must be called once for each batch, in order. t is shortened where the
// record would become too large with all that it names.
func (w *positionWriter) next(now time.Time, groups []txn.Group, pos position.Position, t *trace) (key, value []byte, err error) {
	for i := range groups {
		if groups[i].Final() {
			w.since.add(groups[i].Mark)
		}
	}
	if !w.wantFull(now, pos) {
		w.deltas++
		pos.Set = nil
		value, _, err = w.fit(t, func(beside json.RawMessage) any {
			return deltaRecord{Base: w.id(), Since: w.since.list, Position: pos, Trace: beside}
		})
		return []byte(deltaKey), value, err
	}
	w.fulls++
	value, beside, err := w.fit(t, func(beside json.RawMessage) any {
		return fullRecord{ID: w.id(), Position: pos, Trace: beside}
	})
	w.at, w.size, w.deltas = now, len(value)-beside, 0
	w.since.reset()
	if pos.Set != nil {
		w.count = pos.Set.Count()
	}
	return []byte(fullKey), value, err
}

// fit encodes a record with as much of t as there is room for. beside is t's length.
func (w *positionWriter) fit(t *trace, record func(json.RawMessage) any) (value []byte, beside int, err error) {
	for {
		var raw json.RawMessage
		if t != nil {
			if raw, err = json.Marshal(t); err != nil {
				return nil, 0, fmt.Errorf("encoding position: %w", err)
			}
		}
		value, err = encodePosition(record(raw))
		if err != nil || w.limit == 0 || len(value) <= w.limit || t == nil || !t.shorten() {
			return value, len(raw), err
		}
	}
}

func (w *positionWriter) id() string { return w.run + "-" + strconv.Itoa(w.fulls) }

func (w *positionWriter) wantFull(now time.Time, pos position.Position) bool {
	return w.fulls == 0 || w.size < smallPosition || w.deltas >= maxDeltas || len(w.since.list) > maxRuns ||
		now.Sub(w.at) >= w.every || pos.Set == nil || pos.Flavor == position.MariaDB || !w.adds(pos.Set)
}

// adds reports whether the set has grown by exactly the transactions since the
// last full record. If it was changed otherwise (an operator, transactions that
// were there already) a delta would not tell, and the whole set is written.
func (w *positionWriter) adds(s *position.Set) bool {
	n := w.count
	for _, r := range w.since.list {
		n += r.GTID.Seq - r.First + 1
	}
	return s.Count() == n
}
