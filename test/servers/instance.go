package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// ErrExternal is returned when a server that the environment names, and that this
// process has not started, is to be stopped, paused or restarted.
var ErrExternal = errors.New("servers: not started by this process, so it can't be stopped, paused or restarted")

const (
	startTimeout = 2 * time.Minute // machines under test are often overloaded
	stopGrace    = time.Minute
	pollInterval = 20 * time.Millisecond

	// A Kafka broker that comes up on a busy machine after kill -9 gives up now and
	// then, when its controller resigns before the broker has registered. What runs
	// servers in earnest starts them again, and so does Restart.
	restartTries = 4
)

// instance is what MySQL and Kafka have in common: one program, its folder, its
// ports. All methods may be called from several goroutines.
type instance struct {
	name     string
	folder   *folder
	ports    map[string]*port
	detached bool
	command  func() *exec.Cmd
	ready    func(context.Context) error
	onClose  func() error // optional

	mu     sync.Mutex
	proc   *process
	closed bool
}

// launch starts the program and waits until it is ready.
func (s *instance) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	proc, err := startProcess(s.command(), s.LogPath(), s.detached)
	if err != nil {
		return err
	}
	s.proc = proc
	if err := s.folder.writeState(state{PID: proc.cmd.Process.Pid, Ports: s.portNumbers()}); err != nil {
		return errors.Join(err, proc.kill())
	}
	if err := poll(ctx, pollInterval, proc.done, s.ready); err != nil {
		err = errors.Join(err, proc.kill())
		return fmt.Errorf("starting %s: %w\n%s", s.name, err, tail(s.LogPath(), 20))
	}
	return nil
}

func (s *instance) portNumbers() map[string]int {
	numbers := make(map[string]int, len(s.ports))
	for name, p := range s.ports {
		numbers[name] = p.number
	}
	return numbers
}

// reserve takes the port of that role: the wanted one or, when that is 0, the one
// of the last start in this folder if it is free, or any.
func (s *instance) reserve(ctx context.Context, role string, wanted int) error {
	if wanted == 0 {
		if last := readState(s.folder.path).Ports[role]; last != 0 {
			if p, err := reservePort(ctx, last); err == nil {
				s.ports[role] = p
				return nil
			}
		}
	}
	p, err := reservePort(ctx, wanted)
	if err != nil {
		return err
	}
	s.ports[role] = p
	return nil
}

// running answers the process to act on. The caller holds mu.
func (s *instance) running() (*process, error) {
	switch {
	case s.folder == nil:
		return nil, ErrExternal
	case s.closed:
		return nil, fmt.Errorf("servers: %s is closed", s.name)
	case s.proc == nil:
		return nil, fmt.Errorf("servers: %s was not started", s.name)
	}
	return s.proc, nil
}

func (s *instance) with(do func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.running()
	if err != nil {
		return err
	}
	return do(p)
}

// Stop ends the server in order and waits until it has ended. Its data stays until
// Close, so that Restart can go on with it. A stopped server stays stopped.
func (s *instance) Stop() error {
	return s.with(func(p *process) error { return p.stop(stopGrace) })
}

// Kill ends the server as kill -9 does and waits until it has ended.
func (s *instance) Kill() error { return s.with((*process).kill) }

// Pause stops the server's clock (SIGSTOP): connections stay open, nothing answers.
func (s *instance) Pause() error {
	return s.with(func(p *process) error { return p.signal(syscall.SIGSTOP) })
}

// Resume lets a paused server go on.
func (s *instance) Resume() error {
	return s.with(func(p *process) error { return p.signal(syscall.SIGCONT) })
}

// Restart starts the server again with the same data and ports, after ending it in
// order if it still runs, and waits until it is ready. A server that ends by itself
// on the way is started again a few times.
func (s *instance) Restart(ctx context.Context) error {
	return s.with(func(p *process) error {
		if err := p.stop(stopGrace); err != nil {
			return err
		}
		var errs []error
		for range restartTries {
			err := s.launch(ctx)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
			if !errors.Is(err, errEnded) {
				break
			}
		}
		return errors.Join(errs...)
	})
}

// Close stops the server and gives its ports and, when it was a temporary one, its
// data folder back. Closing twice, or a server that the environment names, does
// nothing.
func (s *instance) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.folder == nil || s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	switch {
	case s.proc == nil:
	case s.folder.temp:
		errs = append(errs, s.proc.kill()) // nobody will read the data again
	default:
		errs = append(errs, s.proc.stop(stopGrace))
	}
	if s.onClose != nil {
		errs = append(errs, s.onClose())
	}
	errs = append(errs, s.folder.release())
	for _, p := range s.ports {
		p.release()
	}
	return errors.Join(errs...)
}

// Done answers a channel that is closed when the running server ends, for whatever
// reason; a Restart has another. Nil when the environment names the server.
func (s *instance) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	return s.proc.done
}

// PID is the server's process id, 0 when the environment names the server.
func (s *instance) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// External says that the environment names the server.
func (s *instance) External() bool { return s.folder == nil }

// Dir is the folder with the server's data and log, empty when the environment
// names the server.
func (s *instance) Dir() string {
	if s.folder == nil {
		return ""
	}
	return s.folder.path
}

// LogPath is the file that the server writes its log to, empty when the environment
// names the server.
func (s *instance) LogPath() string {
	if s.folder == nil {
		return ""
	}
	return s.folder.join("server.log")
}
