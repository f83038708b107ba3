package router

import (
	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Converters turn events into the bytes of records. They are safe for concurrent use.
type Converters struct {
	Key    converter.Converter // key.converter
	Value  converter.Converter // value.converter
	Header converter.Converter // header.converter
}

// Encode serialises ev into a. The error is an *Error with CodeConvert; the arena then
// still holds the half-made bytes until its Reset.
func (c *Converters) Encode(a *txn.Arena, ev *Event) (txn.Record, error) {
	rec := txn.Record{Topic: ev.Topic, Partition: ev.Partition, Timestamp: ev.Timestamp}
	var err error
	if rec.Key, err = encode(a, c.Key, ev.Key); err != nil {
		return txn.Record{}, &Error{Code: CodeConvert, Table: ev.Table, Reason: "key", Err: err}
	}
	if rec.Value, err = encode(a, c.Value, ev.Value); err != nil {
		return txn.Record{}, &Error{Code: CodeConvert, Table: ev.Table, Reason: "value", Err: err}
	}
	first := len(a.Headers)
	for i := range ev.Headers {
		h := &ev.Headers[i]
		value, err := encode(a, c.Header, h.Datum)
		if err != nil {
			a.Headers = a.Headers[:first]
			return txn.Record{}, &Error{Code: CodeConvert, Table: ev.Table, Reason: "header " + h.Name, Err: err}
		}
		a.Headers = append(a.Headers, txn.Header{Key: h.Name, Value: value})
	}
	rec.Headers = a.Headers[first:len(a.Headers):len(a.Headers)]
	return rec, nil
}

func encode(a *txn.Arena, c converter.Converter, d Datum) ([]byte, error) {
	out, isNull, err := c.Append(a.Room(), d.Schema, d.Value)
	if err != nil || isNull {
		return nil, err
	}
	return a.Keep(out), nil
}
