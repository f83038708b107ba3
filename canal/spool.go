package canal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const spoolPattern = "transaction-*.spool"

// spoolDir is the folder for the transactions that are too large for memory. A
// stream has one open transaction and so one file at most. Its file is removed
// when the transaction ends, and what a killed process left at the next start.
type spoolDir struct{ path string }

// clean removes what an earlier process left.
func (d *spoolDir) clean() error {
	left, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for left-over spool files: %w", err)
	}
	for _, f := range left {
		if ok, _ := filepath.Match(spoolPattern, f.Name()); !ok { // the pattern is a good one
			continue
		}
		if err := os.Remove(filepath.Join(d.path, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a left-over spool file: %w", err)
		}
	}
	return nil
}

func (d *spoolDir) create() (*spool, error) {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.path, spoolPattern)
	if err != nil {
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

// spool is a file of rows events: per event the index of its table map, the
// length and the bytes. Table maps stay in memory.
type spool struct {
	file *os.File
	w    *bufio.Writer
	size int64
}

const spoolHead = 4 + 4

func (s *spool) add(tm int, raw []byte) error {
	var head [spoolHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(tm))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(raw)))
	if _, err := s.w.Write(head[:]); err != nil {
		return fmt.Errorf("writing the spool file: %w", err)
	}
	if _, err := s.w.Write(raw); err != nil {
		return fmt.Errorf("writing the spool file: %w", err)
	}
	s.size += spoolHead + int64(len(raw))
	return nil
}

// truncate cuts the file back to an earlier size.
func (s *spool) truncate(size int64) error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("writing the spool file: %w", err)
	}
	if err := s.file.Truncate(size); err != nil {
		return fmt.Errorf("cutting the spool file: %w", err)
	}
	if _, err := s.file.Seek(size, io.SeekStart); err != nil {
		return fmt.Errorf("cutting the spool file: %w", err)
	}
	s.size = size
	return nil
}

// close removes the file.
func (s *spool) close() error {
	name := s.file.Name()
	err := s.file.Close()
	if rerr := os.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("removing the spool file: %w", err)
	}
	return nil
}

type spoolReader struct {
	maps []*tableMap
	r    *bufio.Reader
	left int64
}

// reader starts at the beginning; nothing may be added after it. maps are what add was
// given the indexes of.
func (s *spool) reader(maps []*tableMap) (*spoolReader, error) {
	if err := s.w.Flush(); err != nil {
		return nil, fmt.Errorf("writing the spool file: %w", err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the spool file: %w", err)
	}
	return &spoolReader{maps: maps, r: bufio.NewReaderSize(s.file, 256<<10), left: s.size}, nil
}

// next returns io.EOF after the last event; any other end is an error.
func (r *spoolReader) next() (*tableMap, []byte, error) {
	if r.left == 0 {
		return nil, nil, io.EOF
	}
	var head [spoolHead]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, nil, fmt.Errorf("reading the spool file: %w", noEOF(err))
	}
	i, n := int(binary.LittleEndian.Uint32(head[:])), int64(binary.LittleEndian.Uint32(head[4:]))
	if i >= len(r.maps) || n > r.left-spoolHead {
		return nil, nil, errors.New("reading the spool file: it was changed by somebody else")
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r.r, raw); err != nil {
		return nil, nil, fmt.Errorf("reading the spool file: %w", noEOF(err))
	}
	r.left -= spoolHead + n
	return r.maps[i], raw, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
