package router

import (
	"strconv"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// RawFallback returns the key and the payload column of a row that can't be routed, as
// text or bytes without any converter; nil where the column is missing, NULL, or not
// to be read. They may be the row's own memory.
func (r *Router) RawFallback(row *schema.Row) (key, value []byte) {
	if row == nil || row.Table == nil {
		return nil, nil
	}
	p := r.planFor(row.Table)
	return p.rawFallback(p.key, row), p.rawFallback(p.payload, row)
}

func (p *plan) rawFallback(i int, row *schema.Row) []byte {
	if i < 0 || i >= len(row.After) {
		return nil
	}
	switch raw := row.After[i].(type) {
	case string:
		return []byte(raw)
	case []byte:
		if p.row.Table.Columns[i].Type != schema.JSON {
			return raw
		}
		text, err := converter.AppendJSONDocument(nil, raw, false)
		if err != nil {
			return nil
		}
		return text
	case int64:
		return strconv.AppendInt(nil, raw, 10)
	case uint64:
		return strconv.AppendUint(nil, raw, 10)
	case float32:
		return strconv.AppendFloat(nil, float64(raw), 'g', -1, 32)
	case float64:
		return strconv.AppendFloat(nil, raw, 'g', -1, 64)
	default: // NULL, or not in the row image
		return nil
	}
}
