package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// undo ends a fault.
type undo func(ctx context.Context) error

func nothing(context.Context) error { return nil }

// pick returns the node that a step is for.
func (s *Stage) pick(ctx context.Context, step plan.Step) *node {
	leader := s.leader(ctx)
	if step.Target == plan.Leader && leader != nil {
		return leader
	}
	var others []*node
	for _, n := range s.nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	return others[step.Number%len(others)]
}

// begin begins a fault and returns what ends it, and against what it is.
func (s *Stage) begin(ctx context.Context, step plan.Step) (end undo, on string, err error) {
	switch step.Kind {
	case plan.KillBroker, plan.PauseBroker, plan.SleepBroker:
		k := s.kafka.Brokers[step.Number%len(s.kafka.Brokers)]
		on = fmt.Sprintf("broker %d", k.NodeID())
		if step.Kind == plan.KillBroker {
			return k.Restart, on, k.Kill()
		}
		return func(context.Context) error { return k.Resume() }, on, k.Pause()
	case plan.KillMySQL:
		m := s.source()
		return m.Restart, m.Addr(), m.Kill()
	case plan.PauseMySQL:
		m := s.source()
		return func(context.Context) error { return m.Resume() }, m.Addr(), m.Pause()
	case plan.SwitchSource:
		on, err = s.switchOver(ctx)
		return nothing, on, err
	case plan.Leaderless:
		return s.leaderless(ctx, step)
	case plan.SlowBrokers:
		rate := float64(60_000 + step.Number%140_000)
		return func(ctx context.Context) error { return s.quota(ctx, nil) }, fmt.Sprintf("%.0f bytes/s", rate),
			s.quota(ctx, &rate)
	case plan.Outage:
		return s.outage, "all servers", s.killServers()
	case plan.LateRequests, plan.LostRequests, plan.StallRequests:
		for _, n := range s.nodes {
			n.requests.Decide(kproxy.Rules(rand.New(rand.NewPCG(uint64(step.Number), uint64(n.number))), rules(step.Kind)...))
		}
		return func(context.Context) error {
			for _, n := range s.nodes {
				n.requests.Decide(nil)
			}
			return nil
		}, "all nodes", nil
	}
	n := s.pick(ctx, step)
	end, err = s.beginAt(n, step)
	return end, n.name, err
}

// beginAt begins a fault of one node.
func (s *Stage) beginAt(n *node, step plan.Step) (undo, error) {
	switch step.Kind {
	case plan.KillNode:
		return func(context.Context) error { return n.start() }, n.kill()
	case plan.StopNode:
		_, err := n.terminate(15 * time.Second)
		return func(context.Context) error { return n.start() }, err
	case plan.PauseNode, plan.SleepNode:
		return func(context.Context) error { return n.resume() }, n.pause()
	case plan.CutPeers:
		var links []*servers.Proxy
		for _, other := range s.nodes {
			if other != n {
				links = append(links, n.peers[other.name], other.peers[n.name])
			}
		}
		return hole(links), nil
	case plan.CutOnePeer:
		other := s.nodes[(n.number+1+step.Number%(len(s.nodes)-1))%len(s.nodes)]
		return hole([]*servers.Proxy{n.peers[other.name], other.peers[n.name]}), nil
	case plan.CutSource:
		return cut([]*servers.Proxy{n.source}, step.Number), nil
	case plan.ResetSource:
		n.source.Cut()
		return nothing, nil
	case plan.CutKafka:
		return cut(s.brokerLinks(n), step.Number), nil
	case plan.ResetKafka:
		for _, p := range s.brokerLinks(n) {
			p.Cut()
		}
		return nothing, nil
	case plan.SlowKafka:
		set := func(d time.Duration) {
			for _, p := range s.brokerLinks(n) {
				p.Latency(d)
			}
		}
		set(time.Duration(10+step.Number%120) * time.Millisecond)
		return func(context.Context) error { set(0); return nil }, nil
	case plan.FullDisk:
		return s.fillDisk(n)
	case plan.SilentHosts:
		return s.silence(n, step.Number)
	case plan.Strangers:
		return s.strangers(n), nil
	}
	return nothing, fmt.Errorf("nobody knows how to do %q", step.Kind)
}

// hole swallows what goes over the links. What was swallowed is lost, so the
// connections are cut when it is over.
func hole(links []*servers.Proxy) undo {
	for _, p := range links {
		p.Blackhole(true)
	}
	return func(context.Context) error {
		for _, p := range links {
			p.Blackhole(false)
			p.Cut()
		}
		return nil
	}
}

// cut breaks links in one of two ways: nobody answers, or everybody refuses.
func cut(links []*servers.Proxy, number int) undo {
	if number%2 == 0 {
		return hole(links)
	}
	for _, p := range links {
		p.Refuse(true)
		p.Cut()
	}
	return func(context.Context) error {
		for _, p := range links {
			p.Refuse(false)
		}
		return nil
	}
}

// brokerLinks are the proxies between a node and the brokers.
func (s *Stage) brokerLinks(n *node) (links []*servers.Proxy) {
	for _, k := range s.kafka.Brokers {
		links = append(links, k.Proxy(listenerOf(n)))
	}
	return links
}

// rules are what a kind of fault does to requests.
func rules(kind plan.Kind) []kproxy.Rule {
	const ms = time.Millisecond
	rule := func(key kmsg.Key, action kproxy.Action, chance float64, least, most time.Duration) kproxy.Rule {
		return kproxy.Rule{Key: key, Action: action, Chance: chance, Least: least, Most: most}
	}
	switch kind {
	case plan.LateRequests:
		return []kproxy.Rule{
			rule(kmsg.EndTxn, kproxy.Late, .07, ms, 30*ms), rule(kmsg.EndTxn, kproxy.Copy, .03, ms, 60*ms),
			rule(kmsg.EndTxn, kproxy.Lose, .01, 0, 0),
			rule(kmsg.EndTxn, kproxy.Slow, .05, 5*ms, 250*ms), rule(kmsg.Produce, kproxy.Slow, .05, 5*ms, 50*ms),
		}
	case plan.StallRequests:
		least := requestTimeout
		return []kproxy.Rule{
			rule(kmsg.EndTxn, kproxy.Stall, .03, least, least+60*ms), rule(kmsg.InitProducerID, kproxy.Stall, .2, least,
				least+60*ms),
			rule(kmsg.EndTxn, kproxy.Slow, .02, 500*ms, 1500*ms),
		}
	}
	var all []kproxy.Rule
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.AddPartitionsToTxn, kmsg.InitProducerID, kmsg.EndTxn} {
		few := .004
		if key == kmsg.InitProducerID {
			few = .04
		}
		all = append(all, rule(key, kproxy.Slow, 5*few, 5*ms, 250*ms), rule(key, kproxy.Lose, few, 0, 0),
			rule(key, kproxy.Drop, few, 0, 0),
			rule(key, kproxy.Late, few, ms, 30*ms), rule(key, kproxy.Copy, few/2, ms, 60*ms))
	}
	return all
}

func (s *Stage) killServers() error {
	var errs []error
	for _, k := range s.kafka.Brokers {
		errs = append(errs, k.Kill())
	}
	for _, m := range s.sources {
		errs = append(errs, m.Kill())
	}
	return errors.Join(errs...)
}

// outage ends an outage, after it has seen that the leader's readiness and metrics
// say that nothing works while each node says that it lives.
func (s *Stage) outage(ctx context.Context) error {
	var errs []error
	leader := s.leader(ctx)
	if leader == nil {
		errs = append(errs, errors.New("while the servers are gone the nodes should still have a leader"))
	}
	for _, n := range s.nodes {
		if code, err := n.get(ctx, "/livez"); err != nil || code != http.StatusOK {
			errs = append(errs, fmt.Errorf("while the servers are gone /livez of node %s says %d: %w", n.name, code, err))
		}
		if n != leader {
			continue
		}
		if code, err := n.get(ctx, "/readyz"); err != nil || code != http.StatusServiceUnavailable {
			errs = append(errs, fmt.Errorf("while the servers are gone /readyz of the leader %s says %d: %w", n.name, code, err))
		}
		metrics, err := n.metrics(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for name, value := range metrics {
			if value != 0 && (strings.HasPrefix(name, "binlog_outbox_connector_streaming{") ||
				strings.HasPrefix(name, "binlog_outbox_source_connected{")) {
				errs = append(errs, fmt.Errorf("while the servers are gone the leader %s says %s %v", n.name, name, value))
			}
		}
	}
	var group errgroup.Group
	for _, k := range s.kafka.Brokers {
		group.Go(func() error { return k.Restart(ctx) })
	}
	for _, m := range s.sources {
		group.Go(func() error { return m.Restart(ctx) })
	}
	return errors.Join(append(errs, group.Wait())...)
}

// switchOver makes the other source the primary, as a name that moves does.
func (s *Stage) switchOver(ctx context.Context) (string, error) {
	from := s.primary.Load()
	to := (from + 1) % int32(len(s.sources))
	began := time.Now()
	if err := servers.SwitchOver(ctx, s.sources[from], s.sources[to]); err != nil {
		return "", fmt.Errorf("switching the source over: %w", err)
	}
	s.logf("the switch-over itself took %v", time.Since(began).Round(time.Millisecond))
	s.primary.Store(to)
	for _, n := range s.nodes {
		n.source.Target(s.source().Addr())
		n.source.Cut()
	}
	return s.source().Addr(), nil
}

// fillDisk fills the file system of a node's data until nothing fits any more. The
// node may end by that.
func (s *Stage) fillDisk(n *node) (undo, error) {
	n.mu.Lock()
	n.down = true // it may end
	n.mu.Unlock()
	filler := filepath.Join(n.data(), "filler")
	f, err := os.Create(filler)
	if err != nil {
		return nothing, err
	}
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	end := func(context.Context) error {
		if err := os.Remove(filler); err != nil {
			return err
		}
		n.mu.Lock()
		n.down = false
		n.mu.Unlock()
		return n.start()
	}
	return end, errors.Join(f.Close())
}
