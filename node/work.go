package node

import (
	"context"
	"sync"
)

// job is one instance at work.
type job struct {
	instance *instance
	end      context.CancelFunc
	done     chan struct{}
}

func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// work runs the connectors under one leadership until drain or leadership ends, and
// returns when all have ended. A connector that has changed begins when the one
// before it has drained; the others go on meanwhile.
func (m *manager) work(drain, leadership context.Context, term uint64) {
	m.reconcile() // a new leader must not begin with what its predecessor has replaced
	runAll(drain, leadership, term, m.list)
}

// runAll does so with the instances that list returns, again when its channel is closed.
func runAll(drain, leadership context.Context, term uint64, list func() ([]*instance, <-chan struct{})) {
	var wg sync.WaitGroup
	defer wg.Wait()
	jobs := map[string]*job{}
	for {
		instances, changed := list()
		wanted := map[string]*instance{}
		for _, r := range instances {
			wanted[r.name] = r
		}
		for name, j := range jobs {
			if wanted[name] != j.instance {
				j.end()
			}
			if wanted[name] == nil && j.over() {
				delete(jobs, name)
			}
		}
		for _, r := range instances {
			before := jobs[r.name]
			if before != nil && before.instance == r {
				continue
			}
			ctx, end := context.WithCancel(drain)
			j := &job{instance: r, end: end, done: make(chan struct{})}
			jobs[r.name] = j
			wg.Go(func() {
				defer end()
				defer close(j.done)
				if before != nil {
					<-before.done
				}
				defer r.standby()
				r.connector.Run(ctx, leadership, term)
			})
		}
		select {
		case <-changed:
		case <-drain.Done():
			return
		case <-leadership.Done():
			return
		}
	}
}

// followRestarts restarts the connectors whose restarts the store counts, until ctx
// ends: they may have been asked for at any node.
func (m *manager) followRestarts(ctx context.Context) {
	seen := map[string]uint64{}
	for {
		changed := m.changes.next()
		for _, r := range m.all() {
			st, _ := m.store.Connector(r.name)
			if n, known := seen[r.name]; known && n != st.Restarts {
				r.connector.Restart()
			}
			seen[r.name] = st.Restarts
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
