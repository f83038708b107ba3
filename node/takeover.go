package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// IgnoreDebeziumOffset is the flag of run that begins without Debezium's position.
const IgnoreDebeziumOffset = "ignore-debezium-offset"

// maxOffsets bounds a worker's file of offsets, which has some hundred bytes for each
// connector.
const maxOffsets = 64 << 20

// debeziumWasHere returns an error when a Connect worker has kept an offset of a
// connector: to begin as if nothing had been published would lose or repeat rows.
func debeziumWasHere(c *config.Connector) error {
	path := c.Source.DebeziumOffsets
	if path == "" {
		return nil
	}
	data, err := readOffsets(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e := &offsetError{name: c.Name, file: path, err: err}
	if err == nil {
		found := false
		if e.offset, found = debezium.FindOffset(data, c.Name); !found {
			return nil
		}
	}
	return e
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

// offsetError is a position of Debezium's that nobody has taken over.
type offsetError struct {
	name, file string
	offset     debezium.Offset
	// err is set when it can't be told whether there is one.
	err error
}

func (e *offsetError) Error() string {
	if e.err != nil {
		return fmt.Sprintf("whether Debezium has a position of this connector in %s can't be told (%v): give this process the right to read it, or run with --%s", e.file, e.err, IgnoreDebeziumOffset)
	}
	place := fmt.Sprintf("--file %s --pos %d", e.offset.File, e.offset.Pos)
	if e.offset.GTIDs != "" {
		place = "--gtid-set " + e.offset.GTIDs
	}
	return fmt.Sprintf("Debezium has a position of this connector in %s, and there is none here: to begin without it would lose or repeat rows. Stop Debezium's connector; then \"connector stop %s\", \"offset set %s %s\" and \"connector resume %s\" "+
		"take it over (its last transaction may come again), or run with --%s (README, \"Coming from Debezium\")", e.file, e.name, e.name, place, e.name, IgnoreDebeziumOffset)
}
func (e *offsetError) Unwrap() error { return e.err }
func (*offsetError) Retryable() bool { return false }
func (*offsetError) ErrCode() string { return "debezium_offset_found" }
