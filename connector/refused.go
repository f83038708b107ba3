package connector

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// CodeConfig is the code of LastError when a connector's configuration can't be
// taken on this node.
const CodeConfig = "config_invalid"

// Refused stands for a connector that can't be built: it does nothing, and fails
// with the reason where it should run. Its methods are safe for concurrent use.
type Refused struct {
	name string
	err  LastError

	mu    sync.Mutex
	state State
	since time.Time
}

// NewRefused returns a connector that has failed with err before it began. reg
// should add the connector's name as a label; it may be nil.
func NewRefused(name string, err error, reg prometheus.Registerer) *Refused {
	now := time.Now()
	r := &Refused{name: name, err: LastError{Code: CodeConfig, Message: err.Error(), At: now}, state: Unassigned,
		since: now}
	if reg != nil {
		reg.MustRegister(&collector{status: r.Status})
	}
	return r
}

// Run is in the failed state until drain or leadership ends.
func (r *Refused) Run(drain, leadership context.Context, _ uint64) {
	r.set(Failed)
	defer r.set(Unassigned)
	select {
	case <-drain.Done():
	case <-leadership.Done():
	}
}

func (r *Refused) set(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.since = s, time.Now()
}

// Status returns the state and, on every node, what is wrong.
func (r *Refused) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.err
	return Status{Name: r.name, State: r.state, Since: r.since, LastError: &last}
}

// Restart does nothing: only another configuration helps.
func (r *Refused) Restart() {}
