package router

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/javaregex"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Router routes rows. It is safe for concurrent use; what it keeps between rows is
// the work done once for each table shape, the topics of route values, and, as
// Debezium does, the envelope schemas it has made.
type Router struct {
	cfg                                   Config
	hasEnvelope                           bool
	skipInserts, skipUpdates, skipDeletes bool
	topics                                *topics
	context                               []Header
	textSchema                            *converter.Schema

	last  atomic.Pointer[plan]
	mu    sync.Mutex
	plans map[*schema.Table]*plan

	envelopes *schemaCache // by payload schema, or by version
	inferred  *schemaCache // schemas of expanded payloads, by themselves
}

// Table shapes are few; a new one comes with each DDL statement.
const maxPlans = 1024

// maxSchemas is the size of Debezium's own cache of envelope schemas.
const maxSchemas = 10_000

// New checks the whole configuration and returns a router for it. The error joins
// all problems; each names the Debezium option and the value.
//
// Some problems are refused here that Debezium only meets at the first row:
// unknown placements, a replacement that names no group of the expression, two
// envelope fields of one name.
func New(cfg Config) (*Router, error) {
	if cfg.Quirks {
		cfg.Modes.Quirks = true
	}
	var errs []error
	if len(cfg.Additional) > 0 {
		more, err := ParsePlacements(strings.Join(cfg.Additional, ","))
		cfg.Placements = append(slices.Clip(cfg.Placements), more...)
		errs = append(errs, err)
	}
	errs = append(errs, cfg.validate()...)
	t, err := newTopics(cfg.RouteRegex, cfg.RouteTopic)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	r := &Router{
		cfg: cfg, topics: t, plans: make(map[*schema.Table]*plan),
		textSchema: &converter.Schema{Kind: converter.String},
		envelopes:  newSchemaCache(maxSchemas), inferred: newSchemaCache(maxSchemas),
		skipInserts: cfg.Skips("c"), skipUpdates: cfg.Skips("u"), skipDeletes: cfg.Skips("d"),
	}
	for _, p := range cfg.Placements {
		r.hasEnvelope = r.hasEnvelope || p.Where == PlaceEnvelope
	}
	for _, h := range cfg.Context {
		r.context = append(r.context, Header{h.Name, Datum{r.textSchema, h.Value}})
	}
	return r, nil
}

// Info is what a row does not say itself.
type Info struct {
	// Timestamp is the record's timestamp when no column gives one, in
	// milliseconds since the epoch. Debezium uses the clock of the connector at
	// the time of reading.
	Timestamp int64
}

// Route maps one row to ev, which it overwrites. The outcome is Failed exactly
// when the error, always an *Error, is not nil; ev is valid only when it is Routed.
// ev refers to the row's values.
func (r *Router) Route(ev *Event, row *schema.Row, info Info) (Outcome, error) {
	ev.reset()
	if row == nil || row.Table == nil {
		return Failed, &Error{Code: CodeBadRow, Reason: "the row has no table"}
	}
	ev.Table = row.Table.Name
	switch row.Op {
	case schema.Insert:
		if r.skipInserts {
			return DroppedSkipped, nil
		}
	case schema.Read:
	case schema.Delete:
		if r.skipDeletes {
			return DroppedSkipped, nil
		}
		return DroppedDelete, nil
	case schema.Update:
		return r.routeUpdate(ev, row, info)
	default:
		return Failed, &Error{Code: CodeBadRow, Table: row.Table.Name, Reason: "the row's operation is not known"}
	}
	return r.route(ev, row, r.planFor(row.Table), nil, info)
}

func (r *Router) routeUpdate(ev *Event, row *schema.Row, info Info) (Outcome, error) {
	if r.skipUpdates {
		return DroppedSkipped, nil
	}
	p := r.planFor(row.Table)
	changed, err := p.keyChanged(row)
	if err != nil {
		return Failed, err
	}
	if changed {
		old, err := p.oldKey(row)
		if err != nil {
			return Failed, err
		}
		return r.route(ev, row, p, old, info)
	}
	if r.cfg.OnUpdate == UpdateFatal {
		return Failed, &Error{
			Code: CodeUpdate, Table: row.Table.Name,
			Reason: "an outbox row was updated, and table.op.invalid.behavior is fatal",
		}
	}
	return DroppedUpdate, nil
}

// oldKey is the record of the key before an update.
func (p *plan) oldKey(row *schema.Row) (*converter.Struct, error) {
	old := &converter.Struct{Schema: p.row.Key}
	key := 0
	for _, i := range p.row.Table.PrimaryKey {
		if i < 0 || i >= len(p.row.Columns) {
			continue
		}
		v, err := p.read(&p.row.KeyColumns[key], i, row.Before, row.Op)
		key++
		if err != nil {
			return nil, err
		}
		old.Values = append(old.Values, v)
	}
	return old, nil
}

func (r *Router) planFor(t *schema.Table) *plan {
	if p := r.last.Load(); p != nil && p.row.Table == t {
		return p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.plans[t]
	if !ok {
		if len(r.plans) >= maxPlans {
			clear(r.plans)
		}
		p = r.newPlan(t)
		r.plans[t] = p
	}
	r.last.Store(p)
	return p
}

// value reads column i of a row image.
func (p *plan) value(i int, image []any, op schema.Op) (any, error) {
	return p.read(&p.row.Columns[i], i, image, op)
}

func (p *plan) read(col *converter.Column, i int, image []any, op schema.Op) (any, error) {
	if i >= len(image) {
		return nil, p.fail(CodeBadRow, col.Name, "the row has fewer values than its table has columns")
	}
	v, err := col.Value(image[i], op)
	if err != nil {
		code := CodeBadValue
		if errors.Is(err, converter.ErrNotLogged) {
			code = CodeNotLogged
		}
		return nil, &Error{Code: code, Table: p.row.Table.Name, Column: col.Name, Err: err}
	}
	return v, nil
}

// get is value with the schema's default in place of null, as Connect's Struct.get.
func (p *plan) get(i int, row *schema.Row) (Datum, error) {
	v, err := p.value(i, row.After, row.Op)
	if err != nil {
		return Datum{}, err
	}
	s := p.row.Columns[i].Schema
	return Datum{s, s.Or(v)}, nil
}

func (p *plan) fail(code Code, column, reason string) error {
	return &Error{Code: code, Table: p.row.Table.Name, Column: column, Reason: reason}
}

// lacking is the error at the place where Debezium meets the missing column.
func (p *plan) lacking(column string) error {
	return p.fail(CodeMissingColumn, column, "the table lacks the column")
}

// typed checks that column i has the kind that its role needs.
func (p *plan) typed(i int, kind converter.Kind, role string) error {
	if s := p.row.Columns[i].Schema; s == nil || s.Kind != kind {
		return p.fail(CodeColumnType, p.row.Columns[i].Name, role)
	}
	return nil
}

// route does the work in the order in which EventRouter does it: it decides which
// of several problems is the one reported.
func (r *Router) route(ev *Event, row *schema.Row, p *plan, oldKey *converter.Struct, info Info) (Outcome, error) {
	if p.row.Err != nil {
		return Failed, p.undecided()
	}
	if len(p.missing) > 0 && !r.cfg.Quirks {
		return Failed, p.missingError()
	}
	if p.payload < 0 {
		return Failed, p.lacking(r.cfg.Payload)
	}
	if err := r.timestamp(ev, row, p, info); err != nil {
		return Failed, err
	}
	if p.id < 0 {
		return Failed, p.lacking(r.cfg.ID)
	}
	id, err := p.get(p.id, row)
	if err != nil {
		return Failed, err
	}
	ev.ID = id
	if ev.Value, err = p.get(p.payload, row); err != nil {
		return Failed, err
	}
	if oldKey != nil {
		ev.Headers = append(ev.Headers, Header{"__debezium.oldkey", Datum{p.row.Key, oldKey}})
	}
	ev.Headers = append(ev.Headers, r.context...)
	if err := p.header(ev, "id", p.row.Columns[p.id].Name, id); err != nil {
		return Failed, err
	}
	payloadPrint := p.payloadPrint
	if r.cfg.ExpandJSON {
		if payloadPrint, err = r.expand(ev, p); err != nil {
			return Failed, err
		}
	}
	empty := isEmpty(ev.Value.Value)
	var envelope *converter.Struct
	if r.hasEnvelope {
		if envelope, err = r.envelope(ev, row, p, payloadPrint); err != nil {
			return Failed, err
		}
	}
	if err := r.place(ev, row, p, envelope); err != nil {
		return Failed, err
	}
	if empty && r.cfg.TombstoneOnEmpty {
		ev.Value = Datum{}
	} else if envelope != nil {
		ev.Value = Datum{envelope.Schema, envelope}
	}
	return r.address(ev, row, p)
}

// maxTimestamp is the last millisecond that a number of nanoseconds since 1970 holds.
// Clients that count in them, as sarama, would send what is left of a later time.
const maxTimestamp = math.MaxInt64 / 1_000_000

// address sets the key, the topic, and checks partition and timestamp, which
// Debezium leaves to the producer.
func (r *Router) address(ev *Event, row *schema.Row, p *plan) (Outcome, error) {
	if p.key < 0 {
		return Failed, p.lacking(r.cfg.Key)
	}
	var err error
	if ev.Key, err = p.get(p.key, row); err != nil {
		return Failed, err
	}
	route, err := r.routeValue(row, p)
	if err != nil {
		return Failed, err
	}
	if ev.Topic, err = r.topics.name(route); err != nil {
		code := CodeInvalidTopic
		if errors.Is(err, javaregex.ErrTooLong) {
			code = CodeRouteRegex
		}
		return Failed, p.fail(code, r.cfg.RouteBy, err.Error())
	}
	if ev.Timestamp < NoTimestamp {
		return Failed, p.fail(CodeInvalidTimestamp, r.cfg.Timestamp,
			"the timestamp is before 1970, which Kafka does not take")
	}
	if ev.Timestamp > maxTimestamp {
		return Failed, p.fail(CodeInvalidTimestamp, r.cfg.Timestamp,
			"the timestamp is after the year 2262; a broker takes none so far ahead unless told to, and would get another one")
	}
	return Routed, nil
}

func (r *Router) routeValue(row *schema.Row, p *plan) (string, error) {
	if p.route < 0 {
		return "", p.lacking(r.cfg.RouteBy)
	}
	if err := p.typed(p.route, converter.String, "the route column must be a text"); err != nil {
		return "", err
	}
	v, err := p.value(p.route, row.After, row.Op)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", p.fail(CodeNullRouteValue, r.cfg.RouteBy, "the route column is NULL")
	}
	text, err := converter.Text(p.row.Columns[p.route].Schema, v)
	if err != nil {
		return "", &Error{Code: CodeBadValue, Table: p.row.Table.Name, Column: r.cfg.RouteBy, Err: err}
	}
	return text, nil
}

// timestamp follows EventRouter: the column must be a DATETIME in one of
// Debezium's forms; NULL falls back, a default does not count.
func (r *Router) timestamp(ev *Event, row *schema.Row, p *plan, info Info) error {
	ev.Timestamp = info.Timestamp
	if r.cfg.Timestamp == "" {
		return nil
	}
	if p.timestamp < 0 {
		return p.lacking(r.cfg.Timestamp)
	}
	const role = "the timestamp column must be a DATETIME in one of Debezium's own forms"
	if err := p.typed(p.timestamp, converter.Int64, role); err != nil {
		return err
	}
	v, err := p.value(p.timestamp, row.After, row.Op)
	if err != nil || v == nil {
		return err
	}
	n, ok := v.(int64)
	if !ok {
		return p.fail(CodeBadValue, r.cfg.Timestamp, "the value is not a number")
	}
	switch p.row.Columns[p.timestamp].Schema.Name {
	case converter.TimestampName:
		ev.Timestamp = n
	case converter.MicroTimestampName:
		ev.Timestamp = n / 1000
	case converter.NanoTimestampName:
		ev.Timestamp = n / 1_000_000
	default:
		return p.fail(CodeColumnType, r.cfg.Timestamp, role)
	}
	return nil
}

// header appends a header, as Connect checks it: null needs an optional schema.
func (p *plan) header(ev *Event, name, column string, d Datum) error {
	if d.Value == nil && d.Schema != nil && !d.Schema.Optional {
		return p.fail(CodeNullValue, column, "null in a header whose schema does not allow it")
	}
	ev.Headers = append(ev.Headers, Header{name, d})
	return nil
}

// place processes the additional fields in the order of the configuration.
func (r *Router) place(ev *Event, row *schema.Row, p *plan, envelope *converter.Struct) error {
	for i := range p.placements {
		pl := &p.placements[i]
		if pl.index < 0 {
			if r.cfg.MissingAdditional == MissingIgnore {
				continue
			}
			return p.lacking(pl.Column)
		}
		switch pl.Where {
		case PlaceHeader:
			d, err := p.get(pl.index, row)
			if err != nil {
				return err
			}
			if err := p.header(ev, pl.name(), pl.Column, d); err != nil {
				return err
			}
		case PlaceEnvelope:
			d, err := p.get(pl.index, row)
			if err != nil {
				return err
			}
			if err := p.put(envelope, pl.name(), pl.Column, d); err != nil {
				return err
			}
		case PlacePartition:
			if err := r.partition(ev, row, p, pl); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Router) partition(ev *Event, row *schema.Row, p *plan, pl *placed) error {
	if err := p.typed(pl.index, converter.Int32,
		"the partition column must be a 32-bit integer in Connect (INT)"); err != nil {
		return err
	}
	v, err := p.value(pl.index, row.After, row.Op)
	if err != nil {
		return err
	}
	ev.Partition = NoPartition
	if v == nil {
		return nil
	}
	n, ok := v.(int64)
	if !ok || n < 0 || n > math.MaxInt32 {
		return p.fail(CodeInvalidPartition, pl.Column, "the partition is not a number from 0 on")
	}
	ev.Partition = int32(n)
	return nil
}

// isEmpty reports a null payload or one of blanks and controls only. Bytes, even
// none, are never empty, as their Java text never is.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		for i := range len(v) {
			if v[i] > ' ' {
				return false
			}
		}
		return true
	default:
		return false
	}
}
