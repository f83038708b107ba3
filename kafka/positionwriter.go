package kafka

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

const (
	// maxDeltas bounds the records between two full positions, so that the last
	// positionTail offsets hold one: each transaction takes two offsets, its record
	// and its commit marker.
	maxDeltas    = 200
	positionTail = 500
	// maxDelta bounds a delta in bytes when transactions don't count on.
	maxDelta = 16 << 10
	// smallPosition is the size of a full position below which a delta saves
	// nothing.
	smallPosition = 1024
)

// positionWriter makes the position records of one opening: the cost of a batch
// does not grow with the size of the GTID set.
type positionWriter struct {
	session string
	every   time.Duration
	limit   int // bytes of a value; 0 is none

	fulls  int
	full   position.Position // the last one written
	at     time.Time         // when
	size   int               // in bytes
	deltas int               // since then
}

// next returns key and value of the record for a batch that ends at pos. It must be
// called once for each batch, in order. t is shortened where the record would become too
// large with all that it names.
func (w *positionWriter) next(now time.Time, pos position.Position, t *trace) (key, value []byte, err error) {
	if w.mayDiffer(now, pos) {
		since := pos.Set.Subtract(w.full.Set)
		bare := pos
		bare.Set = nil
		value, beside, err := w.fit(t, func(beside json.RawMessage) any {
			return deltaRecord{Base: w.id(), Since: since, Position: bare, Trace: beside}
		})
		if err != nil || len(value)-beside <= maxDelta {
			w.deltas++
			return []byte(deltaKey), value, err
		}
	}
	w.fulls++
	value, beside, err := w.fit(t, func(beside json.RawMessage) any {
		return fullRecord{ID: w.id(), Position: pos, Trace: beside}
	})
	w.full, w.at, w.size, w.deltas = pos, now, len(value)-beside, 0
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

func (w *positionWriter) id() string { return w.session + "-" + strconv.Itoa(w.fulls) }

// mayDiffer reports whether it will do to write what pos has more than the last full
// position. A set that has lost something (an operator's) is written whole.
func (w *positionWriter) mayDiffer(now time.Time, pos position.Position) bool {
	return w.fulls > 0 && w.size >= smallPosition && w.deltas < maxDeltas && now.Sub(w.at) < w.every &&
		pos.Set != nil && w.full.Set != nil && pos.Flavor != position.MariaDB && pos.Set.Contains(w.full.Set)
}
