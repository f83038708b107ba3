package ha

import (
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

const metricsPrefix = "binlog_outbox_"

// metrics of one node. The gauges read raft when they are scraped.
type metrics struct {
	reg               prometheus.Registerer
	own               *prometheus.Registry // has them all
	leadershipChanges prometheus.Counter
	applySeconds      prometheus.Histogram
}

func newMetrics(n *Node, reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		reg: reg, own: prometheus.NewRegistry(),
		leadershipChanges: prometheus.NewCounter(prometheus.CounterOpts{
			Name: metricsPrefix + "raft_leadership_changes_total",
			Help: "How often this node has won or lost the leadership.",
		}),
		applySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    metricsPrefix + "raft_apply_duration_seconds",
			Help:    "Time from proposing a write on this leader until it was committed and applied.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14), NativeHistogramBucketFactor: 1.1,
			NativeHistogramMaxBucketNumber: 160,
		}),
	}
	all := []prometheus.Collector{m.leadershipChanges, m.applySeconds}
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricsPrefix + "raft_" + name, Help: help},
			value))
	}
	gauge("is_leader", "1 when this node leads the cluster, else 0.", func() float64 {
		if n.raft.State() == raft.Leader {
			return 1
		}
		return 0
	})
	gauge("term", "Raft term of this node.", func() float64 { return float64(n.raft.CurrentTerm()) })
	gauge("commit_index", "Raft index of the last entry known to be committed.",
		func() float64 { return float64(n.raft.CommitIndex()) })
	gauge("applied_index", "Raft index of the last entry applied on this node.",
		func() float64 { return float64(n.raft.AppliedIndex()) })
	gauge("last_contact_seconds", "Time since this node heard of the leader: 0 on the leader, NaN if it never did.",
		func() float64 {
			if d := n.lastContact(); d >= 0 {
				return d.Seconds()
			}
			return math.NaN()
		})
	gauge("voters", "Number of voters in the cluster's configuration.", func() float64 { return float64(len(n.voters())) })
	gauge("reachable_voters", "Number of voters in contact with the leader, itself included; NaN on other nodes.",
		func() float64 {
			if n.raft.State() != raft.Leader {
				return math.NaN()
			}
			reachable := 0
			for _, v := range n.voters() {
				if n.reachable(v.ID) {
					reachable++
				}
			}
			return float64(reachable)
		})
	m.own.MustRegister(all...)
	if reg != nil {
		if err := reg.Register(m.own); err != nil {
			return m, fmt.Errorf("registering raft metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) unregister() {
	if m.reg != nil {
		m.reg.Unregister(m.own)
	}
}

// lastContact is the time since the leader was heard of: 0 on the leader,
// negative for never.
func (n *Node) lastContact() time.Duration {
	if n.raft.State() == raft.Leader {
		return 0
	}
	at := n.raft.LastContact()
	if at.IsZero() {
		return -1
	}
	return time.Since(at)
}

func (n *Node) voters() []raft.Server {
	var out []raft.Server
	for _, s := range n.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			out = append(out, s)
		}
	}
	return out
}
