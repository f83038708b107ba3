package recent

import (
	"math"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// chunkRows is how many events a chunk holds.
const chunkRows = 4096

// chunk holds events as differences from what many of them share: 14 bytes for an
// event and 17 for a transaction. What can't be said as a difference begins a new
// entry of the shared tables, or a new chunk.
type chunk struct {
	base int64 // milliseconds; when the first event became durable, or earlier

	rows    int
	ids     []ID
	offsets []uint32 // from places' base
	places  []uint16 // index, and begins when the event is the first of its transaction

	transactions int
	seqs         []int32 // from the origin's
	ends         []int32 // binlog positions, from the origin's
	commits      []int32 // microseconds from the origin's
	times        []uint32
	origins      []uint8

	shared []place
	recent [256]uint16 // index+1 into shared, by partition
	index  map[placeKey]uint16
	from   []origin
	near   int // origin of the last transaction
}

const begins = 1 << 15

// placeKey names a partition, and whether the offsets in it are known.
type placeKey struct {
	topic     string
	partition int32
	known     bool
}

type place struct {
	placeKey
	offset int64
}

// origin is what transactions nearby share.
type origin struct {
	gtid      position.GTID // Seq is that of the first transaction
	file      string
	pos       uint64
	committed int64 // microseconds since 1970
	dated     bool
	// initial is set for rows from before the start; pos is then their number.
	initial *position.Snapshot
}

func newChunk() *chunk {
	return &chunk{
		ids: make([]ID, chunkRows), offsets: make([]uint32, chunkRows), places: make([]uint16, chunkRows),
		seqs: make([]int32, chunkRows), ends: make([]int32, chunkRows), commits: make([]int32, chunkRows),
		times: make([]uint32, chunkRows), origins: make([]uint8, chunkRows), index: map[placeKey]uint16{},
	}
}

func (c *chunk) reset() {
	c.rows, c.transactions, c.near = 0, 0, 0
	clear(c.shared)
	clear(c.from)
	clear(c.index)
	c.shared, c.from, c.recent = c.shared[:0], c.from[:0], [256]uint16{}
}

// since and until are when the first and the last event became durable.
func (c *chunk) since() time.Time { return c.at(0) }
func (c *chunk) until() time.Time { return c.at(max(0, c.transactions-1)) }

func (c *chunk) at(transaction int) time.Time {
	return time.UnixMilli(c.base + int64(c.times[transaction])).UTC()
}

// begin notes the transaction of the events that follow. It reports false when the
// chunk has no room for it.
func (c *chunk) begin(m *position.Commit, at time.Time) bool {
	passed := at.UnixMilli() - c.base
	if passed < 0 || passed > math.MaxUint32 {
		if c.rows > 0 {
			return false
		}
		c.base, passed = at.UnixMilli(), 0
	}
	o, ok := c.near, len(c.from) > 0 && c.from[c.near].reaches(m)
	for i := 0; !ok && i < len(c.from); i++ {
		o, ok = i, c.from[i].reaches(m)
	}
	if !ok {
		if len(c.from) > math.MaxUint8 {
			return false
		}
		o = len(c.from)
		c.from = append(c.from, newOrigin(m))
	}
	c.near = o
	from, n := &c.from[o], c.transactions
	c.seqs[n] = int32(m.GTID.Seq - from.gtid.Seq)
	c.ends[n] = int32(endOf(m) - from.pos)
	c.commits[n] = 0
	if from.dated {
		c.commits[n] = int32(m.Committed.UnixMicro() - from.committed)
	}
	c.times[n], c.origins[n] = uint32(passed), uint8(o)
	c.places[c.rows] = begins
	c.transactions++
	return true
}

func newOrigin(m *position.Commit) origin {
	o := origin{gtid: m.GTID, file: strings.Clone(m.File), pos: endOf(m), dated: !m.Committed.IsZero()}
	if in := m.Snapshot; in != nil {
		o.initial = &position.Snapshot{Database: in.Database, Table: in.Table, Begun: in.Begun}
	}
	o.gtid.Tag = strings.Clone(o.gtid.Tag)
	if o.dated {
		o.committed = m.Committed.UnixMicro()
	}
	return o
}

// endOf is where a transaction ends, or the number of a row from before the start.
func endOf(m *position.Commit) uint64 {
	if m.Snapshot != nil {
		return m.Snapshot.Rows
	}
	return m.Pos
}

// sameStep reports whether both are of one table's rows from before one start, or
// neither.
func sameStep(a, b *position.Snapshot) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Begun == b.Begun && a.Database == b.Database && a.Table == b.Table
}

// reaches reports whether a transaction can be said as a difference from o.
func (o *origin) reaches(m *position.Commit) bool {
	g := m.GTID
	g.Seq = o.gtid.Seq
	return g == o.gtid && m.GTID.IsZero() == o.gtid.IsZero() && m.File == o.file && m.Committed.IsZero() != o.dated &&
		sameStep(m.Snapshot, o.initial) && fits(int64(m.GTID.Seq-o.gtid.Seq)) && fits(int64(endOf(m)-o.pos)) &&
		(!o.dated || fits(m.Committed.UnixMicro()-o.committed))
}

func fits(n int64) bool { return n >= math.MinInt32 && n <= math.MaxInt32 }

// add notes an event of the transaction that began last. The chunk has room.
func (c *chunk) add(p *Published) {
	n := c.rows
	i := c.place(p)
	c.ids[n] = p.ID
	c.places[n] |= i
	c.offsets[n] = uint32(p.Offset - c.shared[i].offset)
	c.rows++
	if c.rows < chunkRows {
		c.places[c.rows] = 0
	}
}

// place returns the entry of the event's partition.
func (c *chunk) place(p *Published) uint16 {
	key := placeKey{p.Topic, p.Partition, p.Offset >= 0}
	recent := &c.recent[uint8(p.Partition)]
	if i := *recent; i > 0 && c.shared[i-1].placeKey == key && c.shared[i-1].reaches(p.Offset) {
		return i - 1
	}
	i, ok := c.index[key]
	if !ok || !c.shared[i].reaches(p.Offset) {
		i = uint16(len(c.shared)) // below chunkRows
		key.topic = strings.Clone(key.topic)
		c.shared = append(c.shared, place{key, p.Offset})
		c.index[key] = i
	}
	*recent = i + 1
	return i
}

func (p *place) reaches(offset int64) bool {
	return !p.known || offset >= p.offset && offset-p.offset <= math.MaxUint32
}

// find appends what is known of an event, the last first.
func (c *chunk) find(id ID, limit int, out []Found) []Found {
	for n := c.rows - 1; n >= 0 && len(out) < limit; n-- {
		if c.ids[n] == id {
			out = append(out, c.found(n))
		}
	}
	return out
}

func (c *chunk) found(n int) Found {
	t := -1
	for _, p := range c.places[:n+1] {
		if p&begins != 0 {
			t++
		}
	}
	o, p := &c.from[c.origins[t]], &c.shared[c.places[n]&^begins]
	f := Found{
		Commit: position.Commit{GTID: o.gtid, File: o.file, Pos: o.pos + uint64(int64(c.ends[t]))},
		Topic:  p.topic, Partition: p.partition, Offset: -1, At: c.at(t),
	}
	if o.initial != nil {
		in := *o.initial
		in.Rows, f.Commit.Pos = f.Commit.Pos, 0
		f.Commit.Snapshot = &in
	}
	if !o.gtid.IsZero() {
		f.Commit.GTID.Seq += uint64(int64(c.seqs[t]))
		f.Commit.First = f.Commit.GTID.Seq
	}
	if o.dated {
		f.Commit.Committed = time.UnixMicro(o.committed + int64(c.commits[t])).UTC()
	}
	if p.known {
		f.Offset = p.offset + int64(c.offsets[n])
	}
	return f
}
