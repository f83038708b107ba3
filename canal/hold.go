package canal

import (
	"errors"
	"fmt"
	"io"
)

// hold keeps the outbox row events of the open transaction until its end is
// seen: in memory up to a limit, then in a file. It keeps raw events, so that
// nothing is decoded that may yet be rolled back, and so that it costs what the
// server sent and no more.
type hold struct {
	dir   *spoolDir
	limit int64 // bytes in memory

	events []heldEvent
	bytes  int64
	spool  *spool // nil while everything is in memory

	// maps are the table maps of what was added since the last reset, and mapBytes is
	// what they take with their shapes. They stay in memory.
	maps     []*tableMap
	mapBytes int
}

// heldEvent is one rows event: header and body without checksum, owned by the hold.
type heldEvent struct {
	tm  *tableMap
	raw []byte
}

// holdCommit is a place in the hold to which it can be cut back.
type holdCommit struct {
	events int
	bytes  int64
	spool  int64 // length of the spool, -1 when there was none
}

// add takes over raw.
func (h *hold) add(tm *tableMap, raw []byte) error {
	if tm.index >= len(h.maps) || h.maps[tm.index] != tm {
		if h.mapBytes += tm.size; h.mapBytes > maxTableMaps {
			return newError(TooLarge, nil, "the outbox tables of one transaction take more than %d MiB", maxTableMaps>>20)
		}
		tm.index = len(h.maps)
		h.maps = append(h.maps, tm)
	}
	if h.spool == nil && h.bytes+int64(len(raw)) > h.limit {
		if err := h.startSpool(); err != nil {
			return err
		}
	}
	h.bytes += int64(len(raw))
	if h.spool != nil {
		return h.spool.add(tm.index, raw)
	}
	h.events = append(h.events, heldEvent{tm: tm, raw: raw})
	return nil
}

// startSpool begins the file. What is in memory stays there: it is bounded, and
// commit positions in it stay valid.
func (h *hold) startSpool() error {
	s, err := h.dir.create()
	if err != nil {
		return fmt.Errorf("keeping a large transaction on disk: %w", err)
	}
	h.spool = s
	return nil
}

func (h *hold) empty() bool { return len(h.events) == 0 && h.spool == nil }

func (h *hold) commitPos() holdCommit {
	m := holdCommit{events: len(h.events), bytes: h.bytes, spool: -1}
	if h.spool != nil {
		m.spool = h.spool.size
	}
	return m
}

// cut forgets everything that came after the commit position.
func (h *hold) cut(m holdCommit) error {
	if h.spool != nil {
		if m.spool >= 0 {
			h.bytes = m.bytes
			return h.spool.truncate(m.spool)
		}
		if err := h.spool.close(); err != nil {
			return err
		}
		h.spool = nil
	}
	clear(h.events[m.events:])
	h.events, h.bytes = h.events[:m.events], m.bytes
	return nil
}

// each calls f for every held event in order. The raw slice is f's to keep.
func (h *hold) each(f func(tm *tableMap, raw []byte) error) error {
	for i := range h.events {
		if err := f(h.events[i].tm, h.events[i].raw); err != nil {
			return err
		}
		h.events[i] = heldEvent{}
	}
	if h.spool == nil {
		return nil
	}
	r, err := h.spool.reader(h.maps)
	if err != nil {
		return err
	}
	for {
		tm, raw, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(tm, raw); err != nil {
			return err
		}
	}
}

// reset empties the hold for the next transaction, which may hold limit bytes in memory.
func (h *hold) reset(limit int64) error {
	clear(h.events)
	h.events, h.bytes, h.limit = h.events[:0], 0, limit
	clear(h.maps)
	h.maps, h.mapBytes = h.maps[:0], 0
	// An array from a large transaction is not kept for the small ones.
	if cap(h.events) > 1<<12 {
		h.events = nil
	}
	if h.spool == nil {
		return nil
	}
	s := h.spool
	h.spool = nil
	return s.close()
}
