package canal

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const changeBufferPattern = "snapshot-*.changes"

// changeBuffer keeps, for each outbox table, what the binlog tells since the start: the
// keys that were inserted, and the rows that stood there at the start and were
// deleted before their turn came. It is a file, since neither has a bound; the file
// is worth nothing to another process, which reads the binlog from the start again.
//
// It is owned by one goroutine.
type changeBuffer struct {
	db            *bbolt.DB
	path          string
	tableVersions []*schema.Table // of the rows that are kept
}

// openChangeBuffer removes what an earlier process left in dir.
func openChangeBuffer(dir string) (*changeBuffer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(dir, changeBufferPattern))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("removing a left-over file: %w", err)
		}
	}
	f, err := os.CreateTemp(dir, changeBufferPattern)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(f.Name(), 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true, NoFreelistSync: true,
		FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	return &changeBuffer{db: db, path: f.Name()}, nil
}

func (l *changeBuffer) close() error { return errors.Join(l.db.Close(), os.Remove(l.path)) }

// goneRow is a row that was deleted, with its place in the order of keys.
type goneRow struct {
	sort  []byte
	key   []string
	image []any
	table *schema.Table
}

// storedRow is the form of a goneRow in the file.
type storedRow struct {
	TableVersion int
	Key          []string
	Image        []storedValue
}

// storedValue is one value as schema.Row documents it.
type storedValue struct {
	Kind  byte
	Int   int64
	Float float64
	Text  string
}

const (
	storedNull = iota
	storedMissing
	storedInt
	storedUint
	storedFloat32
	storedFloat64
	storedText
	storedBytes
)

func (l *changeBuffer) tableVersion(t *schema.Table) int {
	for i, s := range l.tableVersions {
		if s == t {
			return i
		}
	}
	l.tableVersions = append(l.tableVersions, t)
	return len(l.tableVersions) - 1
}

func store(v any) (storedValue, error) {
	switch v := v.(type) {
	case nil:
		return storedValue{Kind: storedNull}, nil
	case int64:
		return storedValue{Kind: storedInt, Int: v}, nil
	case uint64:
		return storedValue{Kind: storedUint, Int: int64(v)}, nil
	case float32:
		return storedValue{Kind: storedFloat32, Float: float64(v)}, nil
	case float64:
		return storedValue{Kind: storedFloat64, Float: v}, nil
	case string:
		return storedValue{Kind: storedText, Text: v}, nil
	case []byte:
		return storedValue{Kind: storedBytes, Text: string(v)}, nil
	}
	if v == schema.Missing {
		return storedValue{Kind: storedMissing}, nil
	}
	return storedValue{}, fmt.Errorf("a value of Go type %T can't be kept", v)
}

func (v storedValue) value() any {
	switch v.Kind {
	case storedInt:
		return v.Int
	case storedUint:
		return uint64(v.Int)
	case storedFloat32:
		return float32(v.Float)
	case storedFloat64:
		return v.Float
	case storedText:
		return v.Text
	case storedBytes:
		return []byte(v.Text)
	case storedMissing:
		return schema.Missing
	}
	return nil
}

// change runs f on the change buffer's content; all that f changes is there afterwards, or
// nothing.
func (l *changeBuffer) change(f func(*entries) error) error {
	return l.db.Update(func(tx *bbolt.Tx) error { return f(&entries{changeBuffer: l, tx: tx}) })
}

// look is change for who only reads.
func (l *changeBuffer) look(f func(*entries) error) error {
	return l.db.View(func(tx *bbolt.Tx) error { return f(&entries{changeBuffer: l, tx: tx}) })
}

// entries is the change buffer's content within one change.
type entries struct {
	changeBuffer *changeBuffer
	tx           *bbolt.Tx
}

func (e *entries) bucket(kind byte, table int) *bbolt.Bucket {
	name := binary.BigEndian.AppendUint32([]byte{kind}, uint32(table))
	if b := e.tx.Bucket(name); b != nil || !e.tx.Writable() {
		return b
	}
	b, _ := e.tx.CreateBucket(name) // fails for a name that is there or empty only
	return b
}

// insert notes a key that was inserted after the start.
func (e *entries) insert(table int, key []string) error {
	return e.bucket('i', table).Put(exact(key), []byte{1}) // not nil: Get would not tell it from none
}

// inserted reports whether a key was inserted after the start.
func (e *entries) inserted(table int, key []string) bool {
	b := e.bucket('i', table)
	return b != nil && b.Get(exact(key)) != nil
}

// remove notes a row that stood there at the start and was deleted.
func (e *entries) remove(table int, r goneRow) error {
	s := storedRow{TableVersion: e.changeBuffer.tableVersion(r.table), Key: r.key,
		Image: make([]storedValue, len(r.image))}
	var err error
	for i, v := range r.image {
		if s.Image[i], err = store(v); err != nil {
			return err
		}
	}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(&s); err != nil {
		return err
	}
	return e.bucket('g', table).Put(r.sort, buf.Bytes())
}

// nextGone returns the first deleted row behind after and, unless to is nil, not
// behind to.
func (e *entries) nextGone(table int, after, to []byte) (row goneRow, found bool, err error) {
	b := e.bucket('g', table)
	if b == nil {
		return row, false, nil
	}
	c := b.Cursor()
	k, v := c.Seek(after)
	if k != nil && bytes.Equal(k, after) {
		k, v = c.Next()
	}
	if k == nil || to != nil && bytes.Compare(k, to) > 0 {
		return row, false, nil
	}
	var s storedRow
	if err := gob.NewDecoder(bytes.NewReader(v)).Decode(&s); err != nil {
		return row, false, err
	}
	row = goneRow{sort: bytes.Clone(k), key: s.Key, image: make([]any, len(s.Image)),
		table: e.changeBuffer.tableVersions[s.TableVersion]}
	for i := range s.Image {
		row.image[i] = s.Image[i].value()
	}
	return row, true, nil
}

// forget drops all of a table.
func (e *entries) forget(table int) error {
	for _, kind := range []byte{'i', 'g'} {
		name := binary.BigEndian.AppendUint32([]byte{kind}, uint32(table))
		if e.tx.Bucket(name) == nil {
			continue
		}
		if err := e.tx.DeleteBucket(name); err != nil {
			return err
		}
	}
	return nil
}
