package connector

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/trail"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Whereabouts is what becomes of an event.
type Whereabouts string

// What may have become of an event. NotSeen says that it is none of those that are
// remembered: it may be older, or not read yet.
const (
	Published Whereabouts = "published"
	Waiting   Whereabouts = "waiting"
	WasAside  Whereabouts = "set_aside"
	NotSeen   Whereabouts = "not_seen"
)

// maxFound is how many places of one event are told.
const maxFound = 10

// Finding is what the connector remembers of an event.
type Finding struct {
	Where Whereabouts
	// Mark is the event's transaction; the zero value for NotSeen.
	Mark position.Mark
	// Published are its places, the last first and at most 10: of one whose id is in
	// the outbox, or was published, more than once there are several.
	Published []trail.Found
	// Ahead is how many transactions with events will be durable before the one that
	// waits, as far as they were read; 0 when it is in the batch that is on its way.
	Ahead uint64
	Aside *trail.Aside
	// Since is from when on all that was published is remembered, Known how many events
	// are. Off is set when none are.
	Since time.Time
	Known int
	Off   bool
}

// Find looks for an event by its id, which is given as people write it: text, or for
// binary ids a UUID or hexadecimal digits. It costs milliseconds and may be called at
// any time; only where the connector runs it knows more than nothing.
func (c *Connector) Find(id string) Finding {
	if c.trail == nil {
		return Finding{Where: NotSeen, Off: true}
	}
	var ids []trail.ID
	for _, s := range Spellings(id) {
		ids = append(ids, c.trail.ID(s))
	}
	f := Finding{Where: NotSeen}
	f.Since, f.Known = c.trail.Known()
	// In the order in which an event moves, so that it is not missed on its way.
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	waiting := stream != nil && stream.pipe.find(ids, &f)
	for _, id := range ids {
		if a, ok := c.trail.FindAside(id); ok {
			f.Where, f.Mark, f.Aside, waiting = WasAside, a.Mark, &a, false
		}
		f.Published = append(f.Published, c.trail.Find(id, maxFound)...)
	}
	if len(f.Published) > 0 && !waiting {
		f.Published = f.Published[:min(len(f.Published), maxFound)]
		if f.Aside == nil || f.Published[0].At.After(f.Aside.At) {
			f.Where, f.Mark, f.Aside = Published, f.Published[0].Mark, nil
		}
	}
	return f
}

// Spellings are the bytes that an event's id may have which somebody writes so: as it
// is, a UUID in either case or as the 16 bytes that it stands for, and the bytes that
// hexadecimal digits stand for.
func Spellings(id string) [][]byte {
	out := [][]byte{[]byte(id)}
	add := func(b []byte) {
		if !slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, b) }) {
			out = append(out, b)
		}
	}
	if u, err := uuid.Parse(id); err == nil && len(id) == 36 {
		add([]byte(u.String()))
		add([]byte(strings.ToUpper(u.String())))
		add(u[:])
	}
	if b, err := hex.DecodeString(strings.TrimPrefix(id, "0x")); err == nil && len(b) > 0 {
		add(b)
	}
	return out
}

// identify makes the ids of events. It belongs to the reader of a term.
type identify struct {
	enc   Identifier
	trail *trail.Trail
	text  []byte
}

// newIdentify returns nil when events are not remembered.
func newIdentify(enc Encoder, t *trail.Trail) *identify {
	i, ok := enc.(Identifier)
	if !ok || t == nil {
		return nil
	}
	return &identify{enc: i, trail: t}
}

// of returns the id of the row that was encoded last.
func (i *identify) of(row *schema.Row) trail.ID {
	i.text = i.enc.AppendID(i.text[:0], row)
	return i.trail.ID(i.text)
}

// holds reports whether one of recs is of one of the events. It looks at nothing else of
// a record: the sink writes their places meanwhile.
func holds(recs []txn.Record, ids []trail.ID) bool {
	for i := range recs {
		if e := recs[i].Event; e != 0 && slices.Contains(ids, trail.ID(e)) {
			return true
		}
	}
	return false
}

// find looks for an event among those that are not durable yet.
func (p *pipe) find(ids []trail.ID, f *Finding) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ahead uint64
	for _, b := range []*batch{p.taken, p.filling} {
		if b == nil {
			continue
		}
		for i := range b.Groups {
			g := &b.Groups[i]
			if holds(g.Records, ids) {
				f.Where, f.Mark, f.Ahead = Waiting, g.Mark, ahead
				if b == p.taken {
					f.Ahead = 0 // the batch is durable as a whole
				}
				return true
			}
			if len(g.Records) > 0 {
				ahead++
			}
		}
	}
	return false
}

// resumeTrail tells the trail where a term begins. When that is further than what was
// told of as published, others have published, or a commit went well whose answer was
// lost: what is known begins anew.
func (t *term) resumeTrail(from position.Position) {
	if int64(from.Seq) > t.remembered {
		t.trail.Begin(time.Now())
	}
	t.remembered = int64(from.Seq)
}

// remember notes where the records of the first done groups of a batch are, and what
// was set aside.
func (t *term) remember(b *batch, done int, now time.Time) {
	if t.trail == nil {
		return
	}
	group, record := 0, 0
	t.trail.Add(now, txn.Count(b.Groups[:done]), func(int) trail.Published { // in their order
		for record == len(b.Groups[group].Records) {
			group, record = group+1, 0
		}
		g := &b.Groups[group]
		r := &g.Records[record]
		record++
		return trail.Published{
			ID: trail.ID(r.Event), Mark: &g.Mark, Topic: r.Topic, Partition: r.Place.Partition, Offset: r.Place.Offset,
		}
	})
	for i := range b.asides {
		a := &b.asides[i]
		if a.group >= done {
			break
		}
		if a.id == 0 {
			continue
		}
		g := &b.Groups[a.group]
		out := trail.Aside{
			ID: a.id, Row: a.row, Mark: g.Mark, Action: string(a.action), Cause: a.cause, Message: a.message, At: now,
			Partition: -1, Offset: -1,
		}
		if a.record >= 0 {
			r := &g.Records[a.record]
			out.Topic, out.Partition, out.Offset = r.Topic, r.Place.Partition, r.Place.Offset
		}
		t.trail.SetAside(out)
	}
}
