package router

import (
	"container/list"
	"strconv"
	"strings"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// envelope starts the record for the value when additional fields go into it: the
// payload first. Its schema is made once for a payload schema, or once for a
// version, and carries the route value of the first such row in its name; that is
// visible with schemas.enable and copied from Debezium.
func (r *Router) envelope(ev *Event, row *schema.Row, p *plan, payloadPrint string) (*converter.Struct, error) {
	key := payloadPrint
	var version *int
	if r.cfg.SchemaVersion != "" {
		if p.version < 0 {
			return nil, p.lacking(r.cfg.SchemaVersion)
		}
		if err := p.typed(p.version, converter.Int32,
			"the schema version column must be a 32-bit integer in Connect (INT)"); err != nil {
			return nil, err
		}
		v, err := p.value(p.version, row.After, row.Op)
		if err != nil {
			return nil, err
		}
		key = "version none"
		if n, ok := v.(int64); ok {
			number := int(n)
			version = &number
			key = "version " + strconv.FormatInt(n, 10)
		}
	}
	s := r.envelopes.get(key)
	if s == nil {
		var err error
		if s, err = r.newEnvelope(ev.Value.Schema, row, p); err != nil {
			return nil, err
		}
		s.Version = version
		s = r.envelopes.put(key, s)
	}
	st := &converter.Struct{Schema: s, Values: make([]any, len(s.Fields))}
	return st, p.put(st, "payload", r.cfg.Payload, ev.Value)
}

func (r *Router) newEnvelope(payload *converter.Schema, row *schema.Row, p *plan) (*converter.Schema, error) {
	if payload == nil {
		return nil, p.fail(CodeEnvelopeSchema, r.cfg.Payload,
			"an expanded empty array has no schema to put into the envelope")
	}
	route, err := r.routeValue(row, p)
	if err != nil {
		return nil, err
	}
	s := &converter.Schema{Kind: converter.Record, Name: envelopeName(p.row.ValueName, route)}
	s.Fields = append(s.Fields, converter.Field{Name: "payload", Schema: payload})
	for _, pl := range p.placements {
		if pl.Where != PlaceEnvelope {
			continue
		}
		if pl.index < 0 {
			if r.cfg.MissingAdditional == MissingIgnore && !r.cfg.missingEnvelopeFails {
				continue
			}
			return nil, p.lacking(pl.Column)
		}
		s.Fields = append(s.Fields, converter.Field{Name: pl.name(), Schema: p.row.Columns[pl.index].Schema})
	}
	return s, nil
}

// envelopeName puts the route value before the last part of the row's schema name.
func envelopeName(row, route string) string {
	if dot := strings.LastIndexByte(row, '.'); dot >= 0 {
		return row[:dot] + "." + route + row[dot:]
	}
	return route + "." + row
}

// put sets a field of the envelope with the checks of Connect's Struct.put: the
// schema may have been made for another row.
func (p *plan) put(st *converter.Struct, field, column string, d Datum) error {
	i := st.Schema.Field(field)
	if i < 0 {
		return p.fail(CodeEnvelopeSchema, column, "the envelope's schema was made when the table had no such column")
	}
	if !fits(st.Schema.Fields[i].Schema, d.Value) {
		if d.Value == nil {
			return p.fail(CodeNullValue, column, "null in an envelope field that does not allow it")
		}
		return p.fail(CodeEnvelopeSchema, column, "the value does not fit the envelope's schema, which was made for an "+
			"earlier row")
	}
	st.Values[i] = d.Value
	return nil
}

// fits is Connect's ConnectSchema.validateValue.
func fits(s *converter.Schema, v any) bool {
	if v == nil {
		return s.Optional
	}
	switch v := v.(type) {
	case int64:
		return s.Kind >= converter.Int8 && s.Kind <= converter.Int64
	case float32:
		return s.Kind == converter.Float32
	case float64:
		return s.Kind == converter.Float64
	case bool:
		return s.Kind == converter.Boolean
	case string:
		return s.Kind == converter.String
	case []byte:
		return s.Kind == converter.Bytes || s.Kind == converter.String
	case converter.Decimal:
		return s.Name == converter.DecimalName
	case []any:
		if s.Kind != converter.Array {
			return false
		}
		for _, e := range v {
			if !fits(s.Elem, e) {
				return false
			}
		}
		return true
	case *converter.Struct:
		return s.Kind == converter.Record &&
			(s == v.Schema || string(s.Fingerprint(nil)) == string(v.Schema.Fingerprint(nil)))
	default:
		return false
	}
}

// schemaCache keeps the schemas used last, as Debezium's LRU caches do.
type schemaCache struct {
	limit int
	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List // of cachedSchema, the one used last in front
}

type cachedSchema struct {
	key    string
	schema *converter.Schema
}

func newSchemaCache(limit int) *schemaCache {
	return &schemaCache{limit: limit, byKey: make(map[string]*list.Element), order: list.New()}
}

func (c *schemaCache) get(key string) *converter.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(cachedSchema).schema
}

// put keeps s, unless another goroutine was first, and returns the kept one.
func (c *schemaCache) put(key string, s *converter.Schema) *converter.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		return e.Value.(cachedSchema).schema
	}
	c.byKey[key] = c.order.PushFront(cachedSchema{key, s})
	if c.order.Len() > c.limit {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.byKey, oldest.Value.(cachedSchema).key)
	}
	return s
}
