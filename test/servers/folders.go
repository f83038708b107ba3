package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cacheDir is where fetched programs are kept.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(dir, "binlog-outbox", "servers"), nil
}

// tempBase is where the data of servers without a folder of their own lives, and
// the marks of ports in use.
func tempBase() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("binlog-outbox-servers-%d", os.Getuid()))
}

// fileLock is an advisory lock between processes; the kernel frees it when its
// holder ends, however that happens.
type fileLock struct{ f *os.File }

// errLocked is returned by tryLock when somebody else holds the lock.
var errLocked = errors.New("locked by another process")

func tryLock(path string) (*fileLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return &fileLock{f}, nil
}

// lock waits for the lock as long as ctx allows.
func lock(ctx context.Context, path string) (*fileLock, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		l, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		}
	}
}

func (l *fileLock) unlock() { l.f.Close() }

// folder is where a server keeps its data, settings and log.
type folder struct {
	path string
	temp bool
	lock *fileLock
}

// openFolder takes dir, or a new temporary folder when dir is empty, for as long
// as the process lives or until release. Temporary folders that nobody holds any
// more are removed on the way: their process was killed.
func openFolder(ctx context.Context, dir, name string) (*folder, error) {
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		l, err := tryLock(filepath.Join(dir, "lock"))
		if err != nil {
			return nil, err
		}
		if pid := runningIn(dir); pid != 0 {
			l.unlock()
			return nil, fmt.Errorf("process %d already serves %s", pid, dir)
		}
		return &folder{path: dir, lock: l}, nil
	}
	base := filepath.Join(tempBase(), "data")
	all, err := lock(ctx, filepath.Join(tempBase(), "lock"))
	if err != nil {
		return nil, err
	}
	defer all.unlock()
	sweep(base)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, err
	}
	dir, err = os.MkdirTemp(base, name+"-")
	if err != nil {
		return nil, err
	}
	l, err := tryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	return &folder{path: dir, temp: true, lock: l}, nil
}

// sweep removes temporary folders without a holder. What can't be removed now is
// left to the next one.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "*"))
	for _, dir := range dirs {
		if l, err := tryLock(filepath.Join(dir, "lock")); err == nil {
			os.RemoveAll(dir)
			l.unlock()
		}
	}
}

func (f *folder) join(elem ...string) string {
	return filepath.Join(append([]string{f.path}, elem...)...)
}

func (f *folder) release() error {
	defer f.lock.unlock()
	if f.temp {
		return os.RemoveAll(f.path)
	}
	return nil
}

// state is what a folder remembers of its server between two starts.
type state struct {
	PID   int            `json:"pid"`
	Ports map[string]int `json:"ports"`
}

func readState(dir string) state {
	var s state
	if text, err := os.ReadFile(filepath.Join(dir, "server.json")); err == nil {
		// A file that can't be read means no more than other ports.
		_ = json.Unmarshal(text, &s)
	}
	return s
}

func (f *folder) writeState(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(f.join("server.json"), append(text, '\n'), 0o644)
}

// runningIn answers the process that serves the folder, 0 when none does.
func runningIn(dir string) int {
	if pid := readState(dir).PID; pid != 0 && serves(pid, dir) {
		return pid
	}
	return 0
}

// serves says whether the process exists and is a server of that folder: process ids
// are used again.
func serves(pid int, dir string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		args, err = exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	}
	return err == nil && strings.Contains(string(args), dir+string(filepath.Separator))
}

// StopDetached stops the server that serves the folder dir, whoever started it, and
// waits until it has ended. It says whether there was one.
func StopDetached(ctx context.Context, dir string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	pid := runningIn(dir)
	if pid == 0 {
		return false, nil
	}
	gone := func(context.Context) error {
		if runningIn(dir) != 0 {
			return fmt.Errorf("process %d still runs", pid)
		}
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return true, fmt.Errorf("stopping process %d: %w", pid, err)
	}
	patient, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := poll(patient, pollInterval, nil, gone); err == nil || ctx.Err() != nil {
		return true, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return true, fmt.Errorf("killing process %d: %w", pid, err)
	}
	return true, poll(ctx, pollInterval, nil, gone)
}

// copyTree copies the regular files and folders below from to the folder to, which
// may exist.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o750)
		}
		return copyFile(target, path)
	})
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	// ReadFrom lets the kernel copy, by reference where the file system can.
	if _, err := dst.ReadFrom(src); err != nil {
		dst.Close()
		return err
	}
	return dst.Close()
}
