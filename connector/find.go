package connector

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Whereabouts is what becomes of an event.
type Whereabouts string

// What may have become of an event. NotSeen says that it is none of those that are
// remembered: it may be older, or not read yet.
const (
	Published   Whereabouts = "published"
	Waiting     Whereabouts = "waiting"
	Unpublished Whereabouts = "unpublished"
	NotSeen     Whereabouts = "not_seen"
)

// maxFound is how many places of one event are told.
const maxFound = 10

// Finding is what the connector remembers of an event.
type Finding struct {
	Where Whereabouts
	// Commit is the event's transaction; the zero value for NotSeen.
	Commit position.Commit
	// Published are its places, the last first and at most 10: of one whose id is in
	// the outbox, or was published, more than once there are several.
	Published []recent.Found
	// Ahead is how many transactions with events will be durable before the one that
	// waits, as far as they were read; 0 when it is in the batch that is on its way.
	Ahead       uint64
	Unpublished *recent.Unpublished
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
	if c.recent == nil {
		return Finding{Where: NotSeen, Off: true}
	}
	var ids []recent.ID
	for _, s := range Spellings(id) {
		ids = append(ids, c.recent.ID(s))
	}
	f := Finding{Where: NotSeen}
	f.Since, f.Known = c.recent.Known()
	// In the order in which an event moves, so that it is not missed on its way.
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	waiting := stream != nil && stream.pipe.find(ids, &f)
	for _, id := range ids {
		if a, ok := c.recent.FindUnpublished(id); ok {
			f.Where, f.Commit, f.Unpublished, waiting = Unpublished, a.Commit, &a, false
		}
		f.Published = append(f.Published, c.recent.Find(id, maxFound)...)
	}
	if len(f.Published) > 0 && !waiting {
		f.Published = f.Published[:min(len(f.Published), maxFound)]
		if f.Unpublished == nil || f.Published[0].At.After(f.Unpublished.At) {
			f.Where, f.Commit, f.Unpublished = Published, f.Published[0].Commit, nil
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

// identify makes the ids of events. It belongs to the reader of a session.
type identify struct {
	enc    Identifier
	recent *recent.Index
	text   []byte
}

// newIdentify returns nil when events are not remembered.
func newIdentify(enc Encoder, t *recent.Index) *identify {
	i, ok := enc.(Identifier)
	if !ok || t == nil {
		return nil
	}
	return &identify{enc: i, recent: t}
}

// of returns the id of the row that was encoded last.
func (i *identify) of(row *schema.Row) recent.ID {
	i.text = i.enc.AppendID(i.text[:0], row)
	return i.recent.ID(i.text)
}

// holds reports whether one of recs is of one of the events. It looks at nothing else of
// a record: the sink writes their places meanwhile.
func holds(recs []txn.Record, ids []recent.ID) bool {
	for i := range recs {
		if e := recs[i].Event; e != 0 && slices.Contains(ids, recent.ID(e)) {
			return true
		}
	}
	return false
}

// find looks for an event among those that are not durable yet.
func (p *pipe) find(ids []recent.ID, f *Finding) bool {
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
				f.Where, f.Commit, f.Ahead = Waiting, g.Commit, ahead
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

// resumeRecent tells the index where a session begins. When that is further than what was
// told of as published, others have published, or a commit went well whose answer was
// lost: what is known begins anew.
func (t *session) resumeRecent(from position.Position) {
	if int64(from.Seq) > t.remembered {
		t.recent.Begin(time.Now())
	}
	t.remembered = int64(from.Seq)
}

// remember notes where the records of the first done groups of a batch are, and what
// was skipped or dead-lettered.
func (t *session) remember(b *batch, done int, now time.Time) {
	if t.recent == nil {
		return
	}
	group, record := 0, 0
	t.recent.Add(now, txn.Count(b.Groups[:done]), func(int) recent.Published { // in their order
		for record == len(b.Groups[group].Records) {
			group, record = group+1, 0
		}
		g := &b.Groups[group]
		r := &g.Records[record]
		record++
		return recent.Published{
			ID: recent.ID(r.Event), Commit: &g.Commit, Topic: r.Topic, Partition: r.PartitionOffset.Partition,
			Offset: r.PartitionOffset.Offset,
		}
	})
	for i := range b.unpublished {
		a := &b.unpublished[i]
		if a.group >= done {
			break
		}
		if a.id == 0 {
			continue
		}
		g := &b.Groups[a.group]
		out := recent.Unpublished{
			ID: a.id, Row: a.row, Commit: g.Commit, Action: string(a.action), Cause: a.cause, Message: a.message, At: now,
			Partition: -1, Offset: -1,
		}
		if a.record >= 0 {
			r := &g.Records[a.record]
			out.Topic, out.Partition, out.Offset = r.Topic, r.PartitionOffset.Partition, r.PartitionOffset.Offset
		}
		t.recent.AddUnpublished(out)
	}
}
