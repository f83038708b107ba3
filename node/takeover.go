package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// IgnoreDebeziumOffset is the flag of run that begins without Debezium's position.
const IgnoreDebeziumOffset = "ignore-debezium-offset"

// maxOffsets bounds a worker's file of offsets, which has some hundred bytes for each
// connector.
const maxOffsets = 64 << 20

// inherited is the position that Debezium has left of this connector, with which one that
// has none of its own begins; nil when there is none to be looked for. Rows would be lost or
// repeated without it.
func (s *sources) inherited(ctx context.Context) (*position.Position, error) {
	path := s.cfg.Source.DebeziumOffsets
	if path == "" {
		return nil, nil
	}
	key := offset.Key{Connector: s.cfg.Name, Server: s.cfg.TopicPrefix}
	data, err := readOffsets(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []offset.Entry
	if err == nil {
		entries, err = offset.ReadFile(data)
	}
	if err != nil {
		return nil, &inheritError{name: s.cfg.Name, where: path, unread: true, err: err}
	}
	stored := offset.Find(entries, key)
	if stored == nil {
		return nil, nil
	}
	return s.inherit(ctx, path, stored)
}

func (s *sources) inherit(ctx context.Context, where string, stored []byte) (*position.Position, error) {
	at, err := offset.Parse(stored)
	var found adoption
	if err == nil {
		found, err = s.adopt(ctx, at, nil)
		if _, refused := errors.AsType[*offsetError](err); err != nil && !refused {
			return nil, err
		}
	}
	if err != nil {
		return nil, &inheritError{name: s.cfg.Name, where: where, err: err}
	}
	s.canal.Logger.Warn("beginning where Debezium has stopped; if it did not stop in good order, what it published after it noted that comes again",
		"offset", where, "position", found.to.String(), "notes", found.notes)
	return &found.to, nil
}

func readOffsets(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return io.ReadAll(io.LimitReader(f, maxOffsets))
}

// inheritError is a position of Debezium's that can't be taken over.
type inheritError struct {
	name, where string
	// unread is set when it can't be told whether there is one.
	unread bool
	err    error
}

func (e *inheritError) Error() string {
	if e.unread {
		return fmt.Sprintf("whether Debezium has a position of connector %s in %s can't be told (%v): give this process the right to read it, have Debezium write it anew, or run with --%s", e.name, e.where, e.err, IgnoreDebeziumOffset)
	}
	return fmt.Sprintf("Debezium has a position of connector %s in %s, and there is none here: to begin without it would lose or repeat rows. It can't be taken over by itself (%v). "+
		"Set one with \"offset import\" or \"offset set\" while the connector is stopped, or run with --%s (docs/migrate-from-debezium.md)", e.name, e.where, e.err, IgnoreDebeziumOffset)
}
func (e *inheritError) Unwrap() error { return e.err }
func (*inheritError) Retryable() bool { return false }
func (*inheritError) ErrCode() string { return "debezium_offset_found" }
