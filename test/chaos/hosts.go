package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// silence has MySQL or the brokers swallow all that a node sends, and what it dials
// with. Before that is over the node is told to end, and does.
func (s *Stage) silence(n *node, number int) (undo, error) {
	links := s.brokerLinks(n)
	if number%2 == 0 {
		links = []*servers.Proxy{n.source}
	}
	var errs []error
	for _, p := range links {
		errs = append(errs, p.Swallow(true))
	}
	return func(context.Context) error {
		orderly, err := n.terminate(endsWithin)
		if err == nil && !orderly {
			err = fmt.Errorf("node %s did not end within %v of SIGTERM while a host swallows its packets", n.name, endsWithin)
		}
		errs := []error{err}
		for _, p := range links {
			errs = append(errs, p.Swallow(false))
		}
		return errors.Join(append(errs, n.start())...)
	}, errors.Join(errs...)
}

// strangerCount is more than any bound of a port.
const strangerCount = 300

// strangers open connections to a node's peer port and say nothing; each that is
// closed is opened again. The node's own have to be made anew meanwhile. The strangers
// come from other addresses than its peers, and before they leave, the node must
// know its leader.
func (s *Stage) strangers(n *node) undo {
	ctx, leave := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range strangerCount {
		all.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%8))}}
			for ctx.Err() == nil {
				c, err := d.DialContext(ctx, "tcp", n.listen)
				if err != nil {
					sleep(ctx, 100*time.Millisecond) // the node may be down
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = c.Read(make([]byte, 1)) // until either side ends it
				stop()
				_ = c.Close()
				sleep(ctx, 20*time.Millisecond)
			}
		})
	}
	time.AfterFunc(500*time.Millisecond, func() {
		for _, other := range s.nodes {
			if other != n {
				n.peers[other.name].Cut()
				other.peers[n.name].Cut()
			}
		}
	})
	return func(ctx context.Context) error {
		defer all.Wait()
		defer leave()
		ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second,
			fmt.Errorf("while %d strangers are at its port, node %s has no leader", strangerCount, n.name))
		defer cancel()
		for {
			if st, _, err := n.status(ctx); err == nil && st.Leader != "" {
				return nil
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return context.Cause(ctx)
			}
		}
	}
}

// changeTables gives the nodes another set of tables, as an operator does who
// restarts one after the other, the leader at last: in the middle of a transaction
// that has rows of both sets, as far as one comes in time.
func (r *run) changeTables(ctx context.Context, step plan.Step) (undo, string, error) {
	leader := r.leader(ctx)
	if leader == nil {
		leader = r.nodes[step.Number%len(r.nodes)]
	}
	side := !r.side.Load()
	r.side.Store(side)
	for _, n := range r.nodes {
		if err := r.configure(n, true); err != nil {
			return nothing, "", err
		}
	}
	for _, n := range r.nodes {
		if n == leader {
			continue
		}
		if _, err := n.terminate(endsWithin); err != nil {
			return nothing, n.name, err
		}
		if err := n.start(); err != nil {
			return nothing, n.name, err
		}
		until(ctx, 5*time.Second, func() bool { st, _, err := n.status(ctx); return err == nil && st.Leader != "" })
	}
	links := r.brokerLinks(leader)
	slow := func(d time.Duration) {
		for _, p := range links {
			p.Latency(d)
		}
	}
	slow(40 * time.Millisecond)
	defer slow(0)
	mid := until(ctx, 20*time.Second, r.watch.inLarge)
	on := fmt.Sprintf("%s; side table %v, in mid-transaction %v", leader.name, side, mid)
	end := func(context.Context) error { return leader.start() }
	if step.Number%2 == 0 {
		return end, on + ", kill -9", leader.kill()
	}
	_, err := leader.terminate(endsWithin)
	return end, on + ", SIGTERM", err
}

// until asks again and again, for a time; false when the answer stayed no.
func until(ctx context.Context, patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) || !sleep(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return true
}

// endsWithin is how long a node may take to end after SIGTERM.
const endsWithin = 30 * time.Second
