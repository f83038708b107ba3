package router

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Encoder makes records of rows: the Router and the Converters of one connector. It
// counts the rows that are not published by rule. One goroutine uses it at a time,
// but for Heartbeat.
type Encoder struct {
	*Router
	// PassedOver, if set, is told of the table of an update that OnUpdate lets pass.
	PassedOver func(table schema.Name)

	converters Converters
	heartbeat  *Heartbeat
	dropped    map[Outcome]prometheus.Counter
	event      Event
}

// NewEncoder returns an Encoder. Its heartbeat records go to heartbeats, a topic
// prefix, and cfg.TopicPrefix. reg may be nil.
func NewEncoder(cfg Config, c Converters, heartbeats string, reg prometheus.Registerer) (*Encoder, error) {
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	filtered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "binlog_outbox_events_filtered_total",
		Help: "Row changes of outbox tables that are not published by rule, by reason.",
	}, []string{"reason"})
	if reg != nil {
		reg.MustRegister(filtered)
	}
	e := &Encoder{
		Router: r, converters: c, heartbeat: NewHeartbeat(heartbeats, cfg.TopicPrefix),
		dropped: map[Outcome]prometheus.Counter{},
	}
	for _, o := range []Outcome{DroppedDelete, DroppedUpdate, DroppedSkipped} {
		e.dropped[o] = filtered.WithLabelValues(strings.TrimPrefix(o.String(), "dropped_"))
	}
	return e, nil
}

// Encode returns the record of row, which lives in a until its Reset; ok is false
// when the row is dropped. The error is an *Error.
func (e *Encoder) Encode(a *txn.Arena, row *schema.Row) (rec txn.Record, ok bool, err error) {
	outcome, err := e.Route(&e.event, row, Info{Timestamp: time.Now().UnixMilli()})
	if err != nil {
		return txn.Record{}, false, err
	}
	if outcome != Routed {
		if c := e.dropped[outcome]; c != nil {
			c.Inc()
		}
		if outcome == DroppedUpdate && e.PassedOver != nil {
			e.PassedOver(row.Table.Name)
		}
		return txn.Record{}, false, nil
	}
	rec, err = e.converters.Encode(a, &e.event)
	return rec, err == nil, err
}

// Heartbeat makes a heartbeat record. It may be called from any goroutine.
func (e *Encoder) Heartbeat(a *txn.Arena, at time.Time) (txn.Record, error) {
	return e.converters.Encode(a, e.heartbeat.Event(at.UnixMilli()))
}

// AppendID appends the event id of the row that was encoded last, as consumers see it;
// nothing when it has none.
func (e *Encoder) AppendID(dst []byte, row *schema.Row) []byte {
	id := e.event.ID.Value
	if id == nil {
		id = e.ID(row) // the row was refused before it was read
	}
	switch v := id.(type) {
	case nil:
		return dst
	case string:
		return append(dst, v...)
	case []byte:
		return append(dst, v...)
	default:
		return fmt.Append(dst, v) // numbers, as people write them
	}
}

// Check returns an error that names all columns that an outbox table lacks.
func (e *Encoder) Check(t *schema.Table) error {
	err := e.Router.Check(t)
	var lacks *Error
	if errors.As(err, &lacks) {
		return fmt.Errorf("outbox table %s: %s", t.Name, lacks.Reason)
	}
	return err
}
