package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// route turns rows into records: the router and the converters of one connector.
// One goroutine uses it at a time.
type route struct {
	router  *router.Router
	encoder router.Encoder
	event   router.Event
	dropped map[router.Outcome]prometheus.Counter
	updates updateLog
	// heartbeat is for another goroutine, with nothing of the above but encoder.
	heartbeat *router.Heartbeat
}

func newRoute(c *config.Connector, reg prometheus.Registerer) (*route, error) {
	rc, err := routerConfig(c)
	if err != nil {
		return nil, err
	}
	r, err := router.New(rc)
	if err != nil {
		return nil, err
	}
	enc, err := newEncoder(&c.Format, c.Debezium.Quirks)
	if err != nil {
		return nil, err
	}
	filtered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "binlog_outbox_events_filtered_total", Help: "Row changes of outbox tables that are not published by rule, by reason.",
	}, []string{"reason"})
	if reg != nil {
		reg.MustRegister(filtered)
	}
	out := &route{router: r, encoder: enc, dropped: map[router.Outcome]prometheus.Counter{}, heartbeat: router.NewHeartbeat(c.Heartbeat.TopicPrefix, c.TopicPrefix)}
	if c.Heartbeat.Interval > 0 {
		// It is known now whether the converters can take them.
		if _, err := out.Heartbeat(out.NewMemory(), time.Now()); err != nil {
			return nil, fmt.Errorf("heartbeat.interval is set and the converters can't write heartbeat records: %w", err)
		}
	}
	for _, o := range []router.Outcome{router.DroppedDelete, router.DroppedUpdate, router.DroppedSkipped} {
		out.dropped[o] = filtered.WithLabelValues(strings.TrimPrefix(o.String(), "dropped_"))
	}
	return out, nil
}

func routerConfig(c *config.Connector) (router.Config, error) {
	rc := router.Config{Options: c.Outbox, Modes: c.Values, TopicPrefix: c.TopicPrefix, Quirks: c.Debezium.Quirks}
	var err error
	if rc.Modes.Columns, err = columnRules(&c.Columns); err != nil {
		return rc, err
	}
	if c.Headers.Context {
		id, err := uuid.NewV7()
		if err != nil {
			return rc, fmt.Errorf("making the run id: %w", err)
		}
		rc.Context = router.ContextHeaders(c.TopicPrefix, id.String())
	}
	rc.Follow(c.Debezium.Compat)
	return rc, nil
}

// columnRules are nil when no column is left out or changed.
func columnRules(c *config.Columns) (*converter.ColumnRules, error) {
	if len(c.Include)+len(c.Exclude)+len(c.Changes) == 0 {
		return nil, nil
	}
	out := &converter.ColumnRules{}
	listed, err := config.ColumnMatcher(append(slices.Clone(c.Include), c.Exclude...))
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	switch {
	case len(c.Include) > 0:
		out.Includes = listed
	case len(c.Exclude) > 0:
		out.Includes = func(name string) (bool, error) {
			excluded, err := listed(name)
			return !excluded, err
		}
	}
	for i := range c.Changes {
		change, err := columnChange(&c.Changes[i])
		if err != nil {
			return nil, fmt.Errorf("columns.changes[%d]: %w", i, err)
		}
		out.Changes = append(out.Changes, change)
	}
	return out, nil
}

func columnChange(c *config.ColumnChange) (converter.ColumnChange, error) {
	matches, err := config.ColumnMatcher(c.Columns)
	if err != nil {
		return converter.ColumnChange{}, err
	}
	switch c.Action {
	case config.ColumnTruncate:
		return converter.TruncateColumns(matches, c.Length), nil
	case config.ColumnMask:
		return converter.MaskColumns(matches, c.Length), nil
	}
	salt, err := c.Salt.Resolve()
	if err != nil {
		return converter.ColumnChange{}, fmt.Errorf("salt: %w", err)
	}
	version := 2
	if c.Action == config.ColumnHash {
		version = 1
	}
	change, ok := converter.HashColumns(matches, c.Algorithm, salt, version)
	if !ok {
		return change, fmt.Errorf("algorithm %q is not one of %s", c.Algorithm, strings.Join(config.HashAlgorithms(), ", "))
	}
	return change, nil
}

func newEncoder(f *config.Format, quirks bool) (e router.Encoder, err error) {
	for _, part := range []struct {
		name string
		from converter.Options
		to   *converter.Converter
	}{{"key", f.Key, &e.Key}, {"value", f.Value, &e.Value}, {"header", f.Header, &e.Header}} {
		if *part.to, err = converter.New(part.from, quirks); err != nil {
			return e, fmt.Errorf("format.%s: %w", part.name, err)
		}
	}
	return e, nil
}

// needed are the columns that must be in a row image; only these are decoded.
func (r *route) needed(t *schema.Table) []int { return r.router.Columns(t) }

// check returns an error that names all columns that the table lacks.
func (r *route) check(t *schema.Table) error {
	err := r.router.Check(t)
	var lacks *router.Error
	if errors.As(err, &lacks) {
		return fmt.Errorf("outbox table %s: %s", t.Name, lacks.Reason)
	}
	return err
}

// memory holds the records of one batch.
type memory struct {
	bytes   router.Arena
	headers []kafka.Header
}

func (m *memory) Size() int { return m.bytes.Size() }

func (m *memory) Reset() {
	m.bytes.Reset()
	clear(m.headers)
	m.headers = m.headers[:0]
}

// NewMemory returns memory for the records of one batch.
func (*route) NewMemory() connector.Memory { return &memory{} }

// Encode routes and serialises one row.
func (r *route) Encode(mem connector.Memory, row *schema.Row) (kafka.Record, bool, error) {
	m := mem.(*memory)
	outcome, err := r.router.Route(&r.event, row, router.Info{Timestamp: time.Now().UnixMilli()})
	if err != nil {
		return kafka.Record{}, false, coded(err)
	}
	if outcome != router.Routed {
		if c := r.dropped[outcome]; c != nil {
			c.Inc()
		}
		if outcome == router.DroppedUpdate {
			r.updates.note(row.Table.Name, time.Now())
		}
		return kafka.Record{}, false, nil
	}
	before := len(m.headers)
	rec, headers, err := router.Encode(&r.encoder, &m.bytes, m.headers, &r.event)
	if err != nil {
		return kafka.Record{}, false, coded(err)
	}
	m.headers = headers
	return kafka.Record{
		Topic: rec.Topic, Partition: rec.Partition, Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp,
		Headers: headers[before:len(headers):len(headers)],
	}, true, nil
}

// updateLogEvery is how often updates that are passed over are logged at most.
const updateLogEvery = 10 * time.Second

// updateLog logs updates of outbox rows that are passed over, as on_update says.
type updateLog struct {
	log   *slog.Logger // nil for none
	level slog.Level
	last  time.Time
	more  uint64 // since last
}

func (l *updateLog) note(table schema.Name, now time.Time) {
	if l.log == nil {
		return
	}
	if l.more++; now.Sub(l.last) < updateLogEvery {
		return
	}
	l.log.Log(context.Background(), l.level, "rows of an outbox table were updated; that is passed over, as updates are no events",
		slog.String("table", table.String()), slog.Uint64("updates", l.more))
	l.last, l.more = now, 0
}

// logUpdates has passed over updates logged.
func (r *route) logUpdates(log *slog.Logger, how string) {
	r.updates = updateLog{log: log, level: slog.LevelWarn}
	if how == router.UpdateError {
		r.updates.level = slog.LevelError
	}
}

// Heartbeat makes a heartbeat record. It may be called while Encode is at work.
func (r *route) Heartbeat(mem connector.Memory, at time.Time) (kafka.Record, error) {
	rec, _, err := router.Encode[kafka.Header](&r.encoder, &mem.(*memory).bytes, nil, r.heartbeat.Event(at.UnixMilli()))
	if err != nil {
		return kafka.Record{}, coded(err)
	}
	return kafka.Record{Topic: rec.Topic, Partition: rec.Partition, Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp}, nil
}

// AppendID appends the event id of the row that was encoded last.
func (r *route) AppendID(dst []byte, row *schema.Row) []byte {
	id := r.event.ID.Value
	if id == nil {
		id = r.router.ID(row) // the row was refused before it was read
	}
	return appendID(dst, id)
}

// appendID appends an event's id as consumers see it.
func appendID(dst []byte, id any) []byte {
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

// Salvage returns the key and the payload of a row that Encode refuses, as they are.
func (r *route) Salvage(row *schema.Row) (key, value []byte) { return r.router.Salvage(row) }

// codedError gives a router's error the code that status and metrics show.
type codedError struct{ err *router.Error }

func (e codedError) Error() string   { return e.err.Error() }
func (e codedError) ErrCode() string { return string(e.err.Code) }
func (e codedError) Unwrap() error   { return e.err }

func coded(err error) error {
	var e *router.Error
	if errors.As(err, &e) {
		return codedError{e}
	}
	return err
}
