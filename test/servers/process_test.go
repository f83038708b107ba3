package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// TestServersEndWithTheirParent kills a program that has started a server.
func TestServersEndWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("no other system can do it")
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil || !serves(pid, dir) {
		t.Fatalf("the child says %q", line)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = poll(ctx, pollInterval, nil, func(context.Context) error {
		if serves(pid, dir) {
			return errors.New("the server lives")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// The next one to need a folder clears up.
	f, err := openFolder(t.Context(), "", "next")
	if err != nil {
		t.Fatal(err)
	}
	defer f.release()
	if exists(dir) {
		t.Errorf("%s is left", dir)
	}
}

func TestStopDetachedLooksAtTheProcess(t *testing.T) {
	dir := t.TempDir()
	// A process id that was given to somebody else since: this test's.
	f := &folder{path: dir}
	if err := f.writeState(state{PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	was, err := StopDetached(t.Context(), dir)
	if was || err != nil {
		t.Errorf("stopped %v, %v", was, err)
	}
}

func TestBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	failure := errors.New("half way")
	err := build(t.Context(), dir, func(tmp string) error {
		if err := os.WriteFile(filepath.Join(tmp, "half"), nil, 0o644); err != nil {
			t.Error(err)
		}
		return failure
	})
	if !errors.Is(err, failure) || exists(dir) {
		t.Fatalf("a failed build answers %v and leaves something: %v", err, exists(dir))
	}
	// A process that was killed at it left a part.
	if err := os.MkdirAll(filepath.Join(dir+".tmp", "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	var fills atomic.Int32
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			err := build(t.Context(), dir, func(tmp string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(tmp, "whole"), nil, 0o644)
			})
			if err != nil || !exists(filepath.Join(dir, "whole")) || exists(filepath.Join(dir, "half")) {
				t.Errorf("built badly: %v", err)
			}
		})
	}
	group.Wait()
	if fills.Load() != 1 {
		t.Errorf("filled %d times", fills.Load())
	}
}

func TestPorts(t *testing.T) {
	p, err := reservePort(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.number < lowestPort || p.number > highestPort {
		t.Errorf("port %d", p.number)
	}
	if _, err := reservePort(t.Context(), p.number); !errors.Is(err, errLocked) {
		t.Errorf("a reserved port is given again: %v", err)
	}
	p.release()
	again, err := reservePort(t.Context(), p.number)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}
