package ha

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long to wait for another process to let go of the log: long
// enough for one that is ending, short enough not to look like a hang.
const lockWait = 300 * time.Millisecond

// Keys of the stable store.
const (
	keyCurrentTerm = "CurrentTerm" // raft's own
	keyOwner       = "BinlogOutboxNode"
)

// logStore is raft's log and stable store in one bbolt file. The first failed
// write ends its service: raft alone would step down, elect itself again in a
// cluster of one, and go on like that, while nothing can be stored.
type logStore struct {
	*raftboltdb.BoltStore
	path      string
	onFailure func(error)

	// beforeWrite is Config.BeforeWrite.
	beforeWrite func() error

	// running is set once raft's own goroutines use the store.
	running atomic.Bool

	mu     sync.Mutex
	failed error
}

func openLogStore(path string, onFailure func(error)) (s *logStore, err error) {
	options, release := boltOptions()
	defer func() {
		if err != nil {
			release()
		}
	}()
	defer catch(path, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := checkFile(path); err != nil {
		return nil, err
	}
	db, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: options, MsgpackUseNewTimeFormat: true})
	if err != nil {
		return nil, storeError(path, err)
	}
	return &logStore{BoltStore: db, path: path, onFailure: onFailure}, nil
}

// boltOptions returns bbolt's defaults with our limit for the lock. release
// closes the file where bbolt panicked on it and nobody has a handle any more.
// Closing alone would not give the lock back, for the mapping stays.
func boltOptions() (o *bbolt.Options, release func()) {
	opts := *bbolt.DefaultOptions
	opts.Timeout = lockWait
	var file *os.File
	opts.OpenFile = func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
		file, err = os.OpenFile(path, flag, mode)
		return file, err
	}
	return &opts, func() {
		if file != nil { // both fail where bbolt has closed it already
			_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			_ = file.Close()
		}
	}
}

// checkFile has bbolt check all of its pages before anybody relies on them: it
// otherwise finds a damaged page by a panic when it is first used.
func checkFile(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return storeError(path, err)
	}
	options, release := boltOptions()
	options.ReadOnly = true
	options.PreLoadFreelist = true
	defer func() {
		if err != nil {
			release()
		}
	}()
	defer catch(path, &err)
	db, err := bbolt.Open(path, 0o600, options)
	if err != nil {
		return storeError(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return storeError(path, fmt.Errorf("%w: the file has %d bytes of %d", ErrCorrupt, info.Size(), tx.Size()))
		}
		var found error
		for err := range tx.Check() { // to its end, or its goroutine stays
			if found == nil {
				found = storeError(path, fmt.Errorf("%w: %w", ErrCorrupt, err))
			}
		}
		return found
	})
}

// catch turns a panic of bbolt, and a read beyond the end of the mapped file,
// into an error.
func catch(path string, err *error) {
	if r := recover(); r != nil {
		*err = storeError(path, fmt.Errorf("%w: %v", ErrCorrupt, r))
	}
}

func storeError(path string, err error) error {
	var known *StoreError
	if errors.As(err, &known) {
		return err
	}
	e := &StoreError{Path: path, Err: err, Remedy: "look at the disk; restore the whole directory as it was at one " +
		"moment, or " + startAnew}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		e.Err, e.Remedy = ErrDataDirInUse, "stop the other process or give this one another data directory"
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch),
		errors.Is(err, bolterrors.ErrChecksum):
		e.Err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	case mentions(err, syscall.ENOSPC), mentions(err, syscall.EDQUOT), mentions(err, syscall.EFBIG):
		e.Remedy = "free space on this file system or give the node more, then start it again; nothing that was " +
			"acknowledged is lost"
	case errors.Is(err, os.ErrPermission):
		e.Remedy = "make the file readable and writable for this user"
	case errors.Is(err, syscall.EROFS):
		e.Remedy = "mount the file system writable"
	}
	return e
}

// mentions is errors.Is for causes that bbolt passes on as text only.
func mentions(err error, cause syscall.Errno) bool {
	return errors.Is(err, cause) || strings.Contains(err.Error(), cause.Error())
}

// guard runs one access and remembers the first failure. Later writes are
// refused without being tried: a disk that comes back half-way through must not
// bring a node back that others have already given up.
func (s *logStore) guard(write bool, access func() error) (err error) {
	s.mu.Lock()
	failed := s.failed
	s.mu.Unlock()
	if write && failed != nil {
		return failed
	}
	if write && s.beforeWrite != nil {
		store := access
		access = func() error {
			if err := s.beforeWrite(); err != nil {
				return err
			}
			return store()
		}
	}
	func() {
		defer catch(s.path, &err)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		err = access()
	}()
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return err
	}
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return err // after Close
	}
	err = storeError(s.path, err)
	s.mu.Lock()
	first := s.failed == nil
	if first {
		s.failed = err
	}
	s.mu.Unlock()
	if first {
		s.onFailure(err)
	}
	return err
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *logStore) StoreLogs(l []*raft.Log) error {
	return s.guard(true, func() error { return s.BoltStore.StoreLogs(l) })
}

// DeleteRange implements raft.LogStore.
func (s *logStore) DeleteRange(from, to uint64) error {
	return s.guard(true, func() error { return s.BoltStore.DeleteRange(from, to) })
}

// GetLog implements raft.LogStore.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	return s.guard(false, func() error { return s.BoltStore.GetLog(index, l) })
}

// Set implements raft.StableStore.
func (s *logStore) Set(k, v []byte) error {
	return s.guard(true, func() error { return s.BoltStore.Set(k, v) })
}

// SetUint64 implements raft.StableStore. When raft can't store its term it
// panics, in a goroutine of its own, where nobody can turn that into a message.
// The goroutine, raft's main one, is ended instead: it then answers and promises
// nothing any more, and the node ends with the error that onFailure was given.
func (s *logStore) SetUint64(k []byte, v uint64) error {
	err := s.guard(true, func() error { return s.BoltStore.SetUint64(k, v) })
	if err != nil && string(k) == keyCurrentTerm && s.running.Load() {
		runtime.Goexit()
	}
	return err
}

// bounds returns the first and last index of the log, zero when it is empty.
func (s *logStore) bounds() (first, last uint64, err error) {
	err = s.guard(false, func() (err error) {
		if first, err = s.FirstIndex(); err != nil {
			return err
		}
		last, err = s.LastIndex()
		return err
	})
	return first, last, err
}

// setOwner writes which node the file belongs to.
func (s *logStore) setOwner(uuid string) error { return s.Set([]byte(keyOwner), []byte(uuid)) }

// checkOwner refuses a file that was copied from another node: its votes are
// not this node's.
func (s *logStore) checkOwner(uuid string) error {
	owner, err := s.Get([]byte(keyOwner))
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return storeError(s.path, err)
	}
	if string(owner) != uuid {
		return &StoreError{
			Path: s.path, Err: fmt.Errorf("%w: the log is of node %q, %s says %q", ErrForeignState, owner, nodeFile, uuid),
			Remedy: "put this node's own file back, or " + startAnew,
		}
	}
	return nil
}

// check reads the entries from..to: all must be there and be readable. Raft
// would find out by a panic.
func (s *logStore) check(from, to uint64) error {
	var l raft.Log
	for i := from; i <= to; i++ {
		l = raft.Log{}
		err := s.GetLog(i, &l)
		if err == nil && l.Index != i {
			err = fmt.Errorf("entry %d says it is entry %d", i, l.Index)
		}
		if err == nil && l.Type == raft.LogCommand {
			_, err = decodeCommand(l.Data)
		}
		if errors.Is(err, ErrNewerFormat) {
			return &StoreError{Path: s.path, Err: fmt.Errorf("log entry %d: %w", i, err),
				Remedy: "run the release that wrote it, or a newer one"}
		}
		if err != nil {
			return storeError(s.path, fmt.Errorf("%w: log entry %d: %w", ErrCorrupt, i, err))
		}
	}
	return nil
}

// undoHalfBootstrap takes back what a crash in the middle of a first start has
// left: a term without any entry. A node that has voted is left alone.
func (s *logStore) undoHalfBootstrap() error {
	return s.guard(true, func() error {
		if _, err := s.BoltStore.GetUint64([]byte("LastVoteTerm")); !errors.Is(err, raftboltdb.ErrKeyNotFound) {
			return err
		}
		term, err := s.BoltStore.GetUint64([]byte(keyCurrentTerm))
		if errors.Is(err, raftboltdb.ErrKeyNotFound) || err == nil && term != 1 {
			return nil
		}
		return errors.Join(err, s.BoltStore.SetUint64([]byte(keyCurrentTerm), 0))
	})
}
