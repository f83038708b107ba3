package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/judge"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// node is one connector node with its links to everything else. Its methods may be
// called from several goroutines.
type node struct {
	name   string
	number int
	binary string
	dir    string // configuration, data and log
	listen string // address for peers
	small  bool   // its data are on a small file system of their own

	source *servers.Proxy            // towards MySQL
	peers  map[string]*servers.Proxy // towards each peer
	// requests stands before all brokers, for faults of single requests; it is behind
	// the brokers' own proxies.
	requests *kproxy.Proxy

	mu      sync.Mutex
	process *harness.Process
	admin   string // address of the running process
	life    int    // processes so far
	down    bool   // somebody has ended it on purpose
}

func (n *node) config() string  { return filepath.Join(n.dir, "node.yaml") }
func (n *node) data() string    { return filepath.Join(n.dir, "data") }
func (n *node) logPath() string { return filepath.Join(n.dir, "log") }

// start starts a process unless one runs.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil && !ended(n.process) {
		return nil
	}
	p, err := harness.Start(n.binary, []string{"run", "--config", n.config()}, n.logPath())
	if err != nil {
		return fmt.Errorf("starting node %s: %w", n.name, err)
	}
	n.process, n.admin, n.down = p, "", false
	n.life++
	return nil
}

func ended(p *harness.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// end ends the process by how.
func (n *node) end(how func(*harness.Process) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	return how(n.process)
}

func (n *node) kill() error { return n.end((*harness.Process).Kill) }

// terminate sends SIGTERM and makes an end after the grace, which is no error: what
// the node was about may be out of its reach.
func (n *node) terminate(grace time.Duration) (orderly bool, err error) {
	err = n.end(func(p *harness.Process) error {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if err := p.Terminate(ctx); err == nil {
			orderly = true
			return nil
		} else if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
		return p.Kill()
	})
	return orderly, err
}

func (n *node) pause() error { return n.running().Pause() }

// resume lets a paused process go on; one that has ended meanwhile is no error.
func (n *node) resume() error {
	if err := n.running().Resume(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (n *node) running() *harness.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// died returns an error when the process has ended by itself.
func (n *node) died() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil || n.down || !ended(n.process) {
		return nil
	}
	return fmt.Errorf("node %s has ended by itself; the end of its log:\n%s", n.name, lastLines(n.logPath(), 15))
}

// address is where the running process answers, with the number of its life.
func (n *node) address(ctx context.Context) (string, int, error) {
	n.mu.Lock()
	p, known, life := n.process, n.admin, n.life
	n.mu.Unlock()
	if known != "" {
		return known, life, nil
	}
	if p == nil || ended(p) {
		return "", life, errDown
	}
	address, err := p.Admin(ctx)
	if err != nil {
		return "", life, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life == life {
		n.admin = address
	}
	return address, life, nil
}

var errDown = errors.New("the node is down")

// status asks the node, within a second.
func (n *node) status(ctx context.Context) (harness.Status, int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	address, life, err := n.address(ctx)
	if err != nil {
		return harness.Status{}, life, err
	}
	s, err := harness.AskStatus(ctx, address)
	if err == nil && len(s.Connectors) != 1 {
		err = fmt.Errorf("node %s has %d connectors", n.name, len(s.Connectors))
	}
	return s, life, err
}

// usage reads what the process holds from its own metrics.
func (n *node) usage(ctx context.Context) (judge.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	metrics, err := n.metrics(ctx)
	if err != nil {
		return judge.Usage{}, err
	}
	return judge.Usage{
		Goroutines: int(metrics["go_goroutines"]), Files: int(metrics["process_open_fds"]),
		RSS: int64(metrics["process_resident_memory_bytes"]),
	}, nil
}

// get asks the node's admin server and returns the code of its answer.
func (n *node) get(ctx context.Context, path string) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	address, _, err := n.address(ctx)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// metrics reads all samples of the node's metrics, by name with labels.
func (n *node) metrics(ctx context.Context) (map[string]float64, error) {
	address, _, err := n.address(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := cutLast(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(name, "#") {
			out[name] = v
		}
	}
	return out, lines.Err()
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (n *node) close() error {
	var errs []error
	if p := n.running(); p != nil {
		errs = append(errs, p.Kill())
	}
	if n.small {
		errs = append(errs, unmount(n.data()))
	}
	for _, p := range n.peers {
		errs = append(errs, p.Close())
	}
	if n.source != nil {
		errs = append(errs, n.source.Close())
	}
	return errors.Join(append(errs, n.requests.Close())...)
}

func lastLines(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
