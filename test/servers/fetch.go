package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Kind is a kind of server.
type Kind string

// The servers that can be had.
const (
	KindMySQL   Kind = "mysql"
	KindMariaDB Kind = "mariadb"
	KindKafka   Kind = "kafka"
)

// Fetch gets what servers of that kind need, unless it is there, and tells log (nil
// for nobody) what it does. Starting a server does the same; Fetch is for doing it
// ahead of time. Several processes may call it at once.
func Fetch(ctx context.Context, kind Kind, log io.Writer) error {
	var err error
	switch kind {
	case KindMySQL, KindMariaDB:
		_, err = findDatabase(ctx, kind, log)
	case KindKafka:
		_, err = findKafka(ctx, log)
	default:
		err = fmt.Errorf("unknown kind of server %q", kind)
	}
	if err != nil {
		return fmt.Errorf("getting %s: %w", kind, err)
	}
	return nil
}

// build makes the folder dir, whole or not at all: fill gets an empty folder that
// takes its final name once fill has succeeded. It does nothing when dir exists,
// and only one process works on it at a time.
func build(ctx context.Context, dir string, fill func(tmp string) error) error {
	if exists(dir) {
		return nil
	}
	l, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer l.unlock()
	if exists(dir) {
		return nil
	}
	tmp := dir + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return os.Rename(tmp, dir)
}

func say(log io.Writer, format string, args ...any) {
	if log != nil {
		fmt.Fprintf(log, format+"\n", args...)
	}
}

// loader is the dynamic loader and the library folders of an unpacked tree.
type loader struct{ path, libraries string }

func findLoader(root string) (loader, error) {
	var l loader
	for _, pattern := range []string{"usr/lib/*-linux-gnu*/ld-linux-*.so.*", "lib/*-linux-gnu*/ld-linux-*.so.*"} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			l.path = found[0]
		}
	}
	if l.path == "" {
		return l, fmt.Errorf("%s holds no dynamic loader", root)
	}
	for _, pattern := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/mysql/private",
		"usr/lib/*-linux-gnu*/systemd"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, dir := range found {
			if l.libraries != "" {
				l.libraries += ":"
			}
			l.libraries += dir
		}
	}
	return l, nil
}
