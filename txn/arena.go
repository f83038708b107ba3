package txn

// Sizes of an arena's chunks, and how many of them Reset keeps.
const (
	arenaChunk = 256 << 10
	arenaKeep  = 16
)

// Arena holds the bytes and headers of many records in few allocations. It belongs to
// one goroutine at a time. Everything made in it is valid until Reset. The zero value
// is ready to use.
type Arena struct {
	// Headers is room for headers: a record's are appended to it, and are a part of it.
	Headers []Header

	chunk []byte   // the one being filled
	full  [][]byte // filled ones
	free  [][]byte // ones to fill next
	large int      // bytes outside chunks
}

// Reset gives up everything made in the arena and keeps some memory for what comes
// next. Nobody may use the old bytes any more.
func (a *Arena) Reset() {
	for _, c := range a.full {
		if len(a.free) < arenaKeep {
			a.free = append(a.free, c[:0])
		}
	}
	clear(a.full)
	clear(a.Headers)
	a.Headers, a.full, a.chunk, a.large = a.Headers[:0], a.full[:0], a.chunk[:0], 0
}

// Size is the number of bytes that the arena holds, for bounding a batch.
func (a *Arena) Size() int {
	return len(a.full)*arenaChunk + len(a.chunk) + a.large
}

// Room returns an empty slice to append a value to, which is then given to Keep. A
// nearly full chunk is left alone, so that few values outgrow it.
func (a *Arena) Room() []byte {
	if cap(a.chunk)-len(a.chunk) < arenaChunk/16 {
		a.next()
	}
	return a.chunk[len(a.chunk):]
}

// Keep keeps what was appended to the slice that Room returned last. What did not fit
// there has moved to memory of its own. The result is not nil.
func (a *Arena) Keep(value []byte) []byte {
	if len(value) == 0 {
		return []byte{}
	}
	tail := a.chunk[len(a.chunk):cap(a.chunk)]
	if cap(value) == len(tail) && &value[0] == &tail[0] {
		a.chunk = a.chunk[:len(a.chunk)+len(value)]
	} else {
		a.large += cap(value)
	}
	return value[:len(value):len(value)]
}

func (a *Arena) next() {
	if a.chunk != nil {
		a.full = append(a.full, a.chunk)
	}
	if n := len(a.free); n > 0 {
		a.chunk, a.free = a.free[n-1], a.free[:n-1]
		return
	}
	a.chunk = make([]byte, 0, arenaChunk)
}
