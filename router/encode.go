package router

import (
	"github.com/binlog-outbox/binlog-outbox/converter"
)

// Encoder turns events into the bytes of records. It is safe for concurrent use.
type Encoder struct {
	Key    converter.Converter // key.converter
	Value  converter.Converter // value.converter
	Header converter.Converter // header.converter
}

// DefaultEncoder has Kafka Connect's defaults for headers and StringConverter for
// key and value, as outbox connectors commonly run.
func DefaultEncoder() Encoder {
	return Encoder{Key: converter.StringConverter{}, Value: converter.StringConverter{}, Header: converter.SimpleHeaderConverter{}}
}

// Record is a serialised event. Key and Value are nil for null, which differs from
// empty; Timestamp and Partition are as in Event. The bytes belong to the Arena
// they were made in.
type Record struct {
	Topic     string
	Partition int32
	Key       []byte
	Value     []byte
	Timestamp int64
}

// Encode serialises ev into a. Its headers are appended to headers, whose element
// may be any struct of a string Key and bytes Value, so that a sink's own type can
// be filled without a copy; a nil Value is a null header. The error is an *Error
// with CodeConvert; the arena then still holds the half-made bytes until its Reset.
func Encode[H ~struct {
	Key   string
	Value []byte
}](e *Encoder, a *Arena, headers []H, ev *Event) (Record, []H, error) {
	rec := Record{Topic: ev.Topic, Partition: ev.Partition, Timestamp: ev.Timestamp}
	var err error
	if rec.Key, err = a.encode(e.Key, ev.Key); err != nil {
		return Record{}, headers, &Error{Code: CodeConvert, Table: ev.Table, Reason: "key", Err: err}
	}
	if rec.Value, err = a.encode(e.Value, ev.Value); err != nil {
		return Record{}, headers, &Error{Code: CodeConvert, Table: ev.Table, Reason: "value", Err: err}
	}
	for i := range ev.Headers {
		h := &ev.Headers[i]
		value, err := a.encode(e.Header, h.Datum)
		if err != nil {
			return Record{}, headers, &Error{Code: CodeConvert, Table: ev.Table, Reason: "header " + h.Name, Err: err}
		}
		headers = append(headers, H{Key: h.Name, Value: value})
	}
	return rec, headers, nil
}

// Sizes of an arena's chunks, and how many of them Reset keeps.
const (
	arenaChunk = 256 << 10
	arenaKeep  = 16
)

// Arena holds the bytes of many records in few allocations. It belongs to one
// goroutine at a time. Everything made in it is valid until Reset. The zero value
// is ready to use.
type Arena struct {
	chunk []byte   // the one being filled
	full  [][]byte // filled ones
	free  [][]byte // ones to fill next
	large int      // bytes outside chunks
}

// Reset gives up everything made in the arena and keeps some memory for what comes
// next. Nobody may use the old bytes any more.
func (a *Arena) Reset() {
	for _, c := range a.full {
		if len(a.free) < arenaKeep {
			a.free = append(a.free, c[:0])
		}
	}
	clear(a.full)
	a.full, a.chunk, a.large = a.full[:0], a.chunk[:0], 0
}

// Size is the number of bytes that the arena holds, for bounding a batch.
func (a *Arena) Size() int {
	return len(a.full)*arenaChunk + len(a.chunk) + a.large
}

// encode appends behind what the chunk holds. A value that does not fit there moves
// to memory of its own, by the converter's append; a nearly full chunk is left
// alone first, so that this is rare.
func (a *Arena) encode(c converter.Converter, d Datum) ([]byte, error) {
	if cap(a.chunk)-len(a.chunk) < arenaChunk/16 {
		a.next()
	}
	tail := a.chunk[len(a.chunk):]
	out, isNull, err := c.Append(tail, d.Schema, d.Value)
	if err != nil || isNull {
		return nil, err
	}
	if len(out) == 0 {
		return []byte{}, nil
	}
	if cap(out) == cap(tail) && &out[0] == &tail[:1][0] {
		a.chunk = a.chunk[:len(a.chunk)+len(out)]
	} else {
		a.large += cap(out)
	}
	return out[:len(out):len(out)], nil
}

func (a *Arena) next() {
	if a.chunk != nil {
		a.full = append(a.full, a.chunk)
	}
	if n := len(a.free); n > 0 {
		a.chunk, a.free = a.free[n-1], a.free[:n-1]
		return
	}
	a.chunk = make([]byte, 0, arenaChunk)
}
