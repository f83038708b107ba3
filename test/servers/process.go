package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a running program. Its methods may be called from several goroutines.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended and was reaped
	err  error         // how it ended; read after done
}

// startProcess starts cmd with its output appended to the file logPath.
func startProcess(cmd *exec.Cmd, logPath string, detached bool) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = sysProcAttr(detached)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal fires when the starting *thread* ends, and Go
		// ends threads as it likes. This one is kept until the program has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %v to process %d: %w", sig, p.cmd.Process.Pid, err)
	}
	return nil
}

// stop asks the program to end and, after grace, makes it end, which is an error.
func (p *process) stop(grace time.Duration) error {
	if p.ended() {
		return nil
	}
	// A paused program would not see SIGTERM.
	for _, sig := range []os.Signal{syscall.SIGCONT, syscall.SIGTERM} {
		if err := p.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("process %d did not end within %s of SIGTERM", p.cmd.Process.Pid, grace), p.kill())
	}
}

// kill ends the program at once and waits until it has ended.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// run runs a program to its end and answers with its output in the error.
func run(ctx context.Context, cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("running %s: %w: %s", cmd.Path, err, lastLines(out.String(), 15))
	}
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// tail answers the last n lines of a file, as far as its last 64 KiB hold them.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 64<<10 {
		if _, err := f.Seek(-64<<10, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), n)
}
