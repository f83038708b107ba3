package offset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What Java's serialisation writes (java.io.ObjectStreamConstants).
const (
	streamHeader = "\xac\xed\x00\x05"

	tcNull      = 0x70
	tcReference = 0x71
	tcClassDesc = 0x72
	tcObject    = 0x73
	tcArray     = 0x75
	tcBlockData = 0x77
	tcEndBlock  = 0x78

	baseHandle = 0x7e0000
)

var (
	errCut    = errors.New("the file ends early: it was not written as a whole")
	errNotMap = errors.New("the file is not one of a Connect worker (offset.storage.file.filename): it holds no " +
		"java.util.HashMap of byte arrays")
)

// Entry is one offset of a store. A nil Value is one that was deleted.
type Entry struct{ Key, Value []byte }

// ReadFile reads what a standalone worker or Debezium Server has written to
// offset.storage.file.filename: a java.util.HashMap<byte[], byte[]>, serialised. An empty
// file, which a worker makes at its first start, has nothing.
func ReadFile(data []byte) ([]Entry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	j := javaReader{b: data}
	entries, err := j.hashMap()
	if j.cut {
		return nil, errCut
	}
	return entries, err
}

// javaReader reads the one kind of object that is expected here.
type javaReader struct {
	b   []byte
	cut bool
	// handles are the classes that were described so far, by the order in which objects
	// and classes were given numbers; empty for objects.
	handles []string
}

func (j *javaReader) take(n int) []byte {
	if j.cut || n < 0 || n > len(j.b) {
		j.cut = true
		return make([]byte, min(max(n, 0), 8))
	}
	out := j.b[:n]
	j.b = j.b[n:]
	return out
}

func (j *javaReader) byte() byte   { return j.take(1)[0] }
func (j *javaReader) short() int   { return int(binary.BigEndian.Uint16(j.take(2))) }
func (j *javaReader) int() int     { return int(int32(binary.BigEndian.Uint32(j.take(4)))) }
func (j *javaReader) text() string { return string(j.take(j.short())) }

func (j *javaReader) hashMap() ([]Entry, error) {
	if string(j.take(len(streamHeader))) != streamHeader || j.byte() != tcObject {
		return nil, errNotMap
	}
	class, err := j.class()
	if err != nil {
		return nil, err
	}
	if class != "java.util.HashMap" {
		return nil, errNotMap
	}
	j.handles = append(j.handles, "") // the map itself
	j.take(8)                         // its load factor and threshold
	if j.byte() != tcBlockData || j.byte() != 8 {
		return nil, errNotMap
	}
	j.take(4) // its capacity
	var out []Entry
	for n := j.int(); n > 0 && !j.cut; n-- {
		var e Entry
		if e.Key, err = j.bytes(); err == nil {
			e.Value, err = j.bytes()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if !j.cut && j.byte() != tcEndBlock {
		return nil, errNotMap
	}
	return out, nil
}

// bytes reads a byte[], or null as nil.
func (j *javaReader) bytes() ([]byte, error) {
	switch j.byte() {
	case tcNull:
		return nil, nil
	case tcArray:
	default:
		return nil, errNotMap
	}
	class, err := j.class()
	if err != nil {
		return nil, err
	}
	if class != "[B" {
		return nil, errNotMap
	}
	j.handles = append(j.handles, "")
	return append([]byte{}, j.take(j.int())...), nil
}

// class reads the description of a class, or a reference to one.
func (j *javaReader) class() (string, error) {
	switch j.byte() {
	case tcReference:
		i := j.int() - baseHandle
		if i < 0 || i >= len(j.handles) || j.handles[i] == "" {
			return "", errNotMap
		}
		return j.handles[i], nil
	case tcClassDesc:
	default:
		return "", errNotMap
	}
	name := j.text()
	j.take(8) // its version
	j.handles = append(j.handles, name)
	j.take(1) // flags
	for n := j.short(); n > 0 && !j.cut; n-- {
		if kind := j.byte(); kind == 'L' || kind == '[' {
			return "", errNotMap // a field of a kind that these two classes don't have
		}
		j.text()
	}
	if j.byte() != tcEndBlock || j.byte() != tcNull { // no annotations, no parent
		return "", errNotMap
	}
	return name, nil
}

// Find looks in a store for the offset of a connector. Nil means that there is none. Of
// several entries the last one counts. A key without a Server is that of any.
func Find(entries []Entry, key Key) []byte {
	var found []byte
	for _, e := range entries {
		if k, ok := ParseKey(e.Key); ok && (k == key || key.Server == "" && k.Connector == key.Connector) {
			found = e.Value
		}
	}
	return found
}

// NotFound says that a store has no offset of a connector, and of which it has some.
func NotFound(entries []Entry, key Key) error {
	var others []string
	for _, e := range entries {
		if k, ok := ParseKey(e.Key); ok && e.Value != nil && !slices.Contains(others, k.String()) {
			others = append(others, k.String())
		}
	}
	if others == nil {
		return fmt.Errorf("there is no offset of connector %s, nor of any other of Debezium's for MySQL", key)
	}
	return fmt.Errorf("there is no offset of connector %s; there are some of %s", key, strings.Join(others, ", "))
}
