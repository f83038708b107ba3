package connector

import (
	"slices"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// manyKinds is from how many kinds on they are looked up rather than gone through.
const manyKinds = 8

// Counter counts the rows of the transaction at hand by table and operation. That
// number stays what it is when a later session reads the transaction again, from another
// server or with other tables; the number among all its rows does not.
type Counter struct {
	kinds []position.KindRows
	index map[position.Kind]int // of kinds when they are many, else empty

	// The kind of the last row: mostly the next one's, too.
	table *schema.Table
	op    schema.Op
	at    int
}

// Reset begins a transaction.
func (c *Counter) Reset() {
	c.kinds, c.table, c.op = c.kinds[:0], nil, 0
	clear(c.index)
}

// Next counts row and returns its kind and its number in that, from 0.
func (c *Counter) Next(row *schema.Row) (position.Kind, uint64) {
	if c.op != row.Op || c.table != row.Table {
		c.at = c.find(kindOf(row))
		c.table, c.op = row.Table, row.Op
	}
	k := &c.kinds[c.at]
	k.N++
	return k.Kind, k.N - 1
}

// find returns where a kind is in kinds.
func (c *Counter) find(kind position.Kind) int {
	if len(c.index) == 0 {
		if i := slices.IndexFunc(c.kinds, func(k position.KindRows) bool { return k.Kind == kind }); i >= 0 {
			return i
		}
	} else if i, ok := c.index[kind]; ok {
		return i
	}
	c.kinds = append(c.kinds, position.KindRows{Kind: kind})
	switch n := len(c.kinds); {
	case n > manyKinds && len(c.index) > 0:
		c.index[kind] = n - 1
	case n > manyKinds:
		c.index = make(map[position.Kind]int, 2*n)
		for i := range c.kinds {
			c.index[c.kinds[i].Kind] = i
		}
	}
	return len(c.kinds) - 1
}

// Counted returns what was counted so far; it does not change any more.
func (c *Counter) Counted() []position.KindRows { return slices.Clone(c.kinds) }

func kindOf(row *schema.Row) position.Kind {
	k := position.Kind{Op: opNames[row.Op]}
	if row.Table != nil {
		k.Database, k.Table = row.Table.Name.Database, row.Table.Name.Table
	}
	return k
}

// opNames are stored with positions.
var opNames = map[schema.Op]string{schema.Insert: "insert", schema.Update: "update", schema.Delete: "delete",
	schema.Read: "read"}

// published is what is published of a transaction that comes again. The nil value
// has nothing.
type published map[position.Kind]uint64

// publishedAt returns what is published in part at a position, by transaction. Without
// GTIDs the first transaction after it is the one.
func publishedAt(from position.Position) map[position.GTID]published {
	out := map[position.GTID]published{}
	for i := range from.Partials {
		part := &from.Partials[i]
		rows := published{}
		for _, k := range part.Rows {
			rows[k.Kind] = k.N
		}
		out[part.GTID] = rows
	}
	return out
}

// has reports whether row n of a kind, from 0, is among it.
func (p published) has(kind position.Kind, n uint64) bool { return n < p[kind] }
