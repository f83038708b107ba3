package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a connector that was started. Its methods may be called from several
// goroutines.
type Process struct {
	cmd     *exec.Cmd
	logPath string
	logFrom int64 // where in the file this process's log begins
	done    chan struct{}
	err     error // how it ended; read after done
}

// Start runs the program with args. Its log is appended to the file logPath.
func Start(program string, args []string, logPath string) (*Process, error) {
	return StartCommand(exec.Command(program, args...), logPath)
}

// StartCommand does the same with a command that is not started yet, for an
// environment of its own.
func StartCommand(cmd *exec.Cmd, logPath string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, logPath: logPath, logFrom: info.Size(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = sysProcAttr()
	started := make(chan error, 1)
	go func() {
		// The parent-death signal fires when the starting thread ends, and Go ends
		// threads as it likes. This one is kept until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process as kill -9 does and waits until it has ended.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process's clock, as SIGSTOP does: connections stay, nothing is
// answered. Resume ends it.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Terminate sends SIGTERM and waits until the process has ended, which it must do
// with exit code 0.
func (p *Process) Terminate(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	code, err := p.Wait(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the end after SIGTERM: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("exit code %d after SIGTERM", code)
	}
	return nil
}

// Wait waits until the process has ended and returns its exit code, -1 if a
// signal ended it.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// PeakRSS is the most memory, in bytes, that was ever resident for the process.
// It can only be asked while the process runs, on Linux.
func (p *Process) PeakRSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("/proc/PID/status has no VmHWM")
}

// Log returns what this process has logged so far.
func (p *Process) Log() ([]byte, error) {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return nil, err
	}
	return b[min(p.logFrom, int64(len(b))):], nil
}

// Admin waits for the log line that gives the address of the admin server and
// returns it.
func (p *Process) Admin(ctx context.Context) (string, error) {
	var address string
	err := poll(ctx, p.done, func() (bool, error) {
		log, err := p.Log()
		if err != nil {
			return false, err
		}
		lines := bufio.NewScanner(bytes.NewReader(log))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "admin server is listening" {
				address = line.Address
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return "", fmt.Errorf("waiting for the admin server's address in the log: %w", err)
	}
	return address, nil
}

// Status is what the harness reads of GET /v1/status.
type Status struct {
	Node       string            `json:"node"`
	Role       string            `json:"role"`
	Leader     string            `json:"leader"`
	Term       uint64            `json:"term"`
	Connectors []ConnectorStatus `json:"connectors"`
}

// ConnectorStatus is one connector in Status.
type ConnectorStatus struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Phase     string `json:"phase"`
	Published uint64 `json:"published_records"`
	Sessions  uint64 `json:"sessions"`
	// Takeover are the seconds of each phase of the last session's beginning.
	Takeover map[string]float64 `json:"takeover_seconds"`
	Position struct {
		GTIDSet  string `json:"gtid_set"`
		Sequence uint64 `json:"sequence"`
		// Initial is there while snapshot rows are to come.
		Initial *struct {
			Rows uint64 `json:"rows"`
		} `json:"snapshot"`
	} `json:"position"`
	LastError *struct {
		Code    string     `json:"code"`
		Message string     `json:"message"`
		GTID    string     `json:"gtid"`
		RetryAt *time.Time `json:"retry_at"`
		// Transaction and Row are where the row is that is to blame, if one is.
		Transaction string `json:"transaction"`
		Row         uint64 `json:"row"`
	} `json:"last_error"`
}

// Connector asks for the status of the only connector of the process.
func (p *Process) Connector(ctx context.Context) (ConnectorStatus, error) {
	address, err := p.Admin(ctx)
	if err != nil {
		return ConnectorStatus{}, err
	}
	s, err := AskStatus(ctx, address)
	if err != nil {
		return ConnectorStatus{}, err
	}
	if len(s.Connectors) != 1 {
		return ConnectorStatus{}, fmt.Errorf("status has %d connectors, want 1", len(s.Connectors))
	}
	return s.Connectors[0], nil
}

// AskStatus asks an admin server for the status of its node.
func AskStatus(ctx context.Context, address string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/status", nil)
	if err != nil {
		return Status{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Status{}, fmt.Errorf("asking for the status: %w", err)
	}
	defer resp.Body.Close()
	var s Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return Status{}, fmt.Errorf("reading the status: %w", err)
	}
	return s, nil
}

// Await polls the connector's status until ok says so and returns it. The error at
// the end of ctx holds the last status.
func (p *Process) Await(ctx context.Context, what string, ok func(ConnectorStatus) bool) (ConnectorStatus, error) {
	var last ConnectorStatus
	err := poll(ctx, p.done, func() (bool, error) {
		s, err := p.Connector(ctx)
		if err != nil {
			return false, nil // not up yet
		}
		last = s
		return ok(s), nil
	})
	if err != nil {
		text, _ := json.Marshal(last)
		return last, fmt.Errorf("waiting until %s: %w; last status: %s", what, err, text)
	}
	return last, nil
}

// errEnded is returned when the process ends while something of it is waited for.
var errEnded = errors.New("the connector has ended")

const pollInterval = 20 * time.Millisecond

// poll calls f until it is done or fails, the process ends or ctx does.
func poll(ctx context.Context, ended <-chan struct{}, f func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			if ok, err := f(); ok || err != nil {
				return err
			}
			return errEnded
		case <-ticker.C:
		}
	}
}
