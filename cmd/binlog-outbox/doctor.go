package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// diagnosis is the answer of doctor as JSON.
type diagnosis struct {
	// Status is the worst of all checks: ok, warning or failed.
	Status     node.CheckStatus    `json:"status"`
	Node       []node.Check        `json:"node"`
	Connectors []connectorChecking `json:"connectors"`
}

// What doctor takes for a warning. The alerts of deploy/prometheus look at the same
// with a history, which one look lacks.
const (
	muchLag       = time.Minute
	littleReserve = 6 * time.Hour
)

func newDoctor(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [CONNECTOR.json ...]",
		Short: "Ask MySQL, Kafka and the running node what is wrong, and say what to do",
		Long: "Ask MySQL and Kafka what validate --probe asks, and the running node for its cluster and its\n" +
			"connectors, which changes nothing. Each finding says what to do and names the runbook, if there\n" +
			"is one. Ask the node that leads for the state of connectors: others don't run them.\n\n" +
			"Exit codes: 0 all is well, 5 there are warnings, 1 something failed, 78 the configuration is bad.",
	}
	r := p.remote(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		asJSON, err := p.json()
		if err != nil {
			return err
		}
		cfg, err := p.load(args)
		if err != nil {
			return err
		}
		d := diagnosis{Node: r.examine(c.Context())}
		status, err := r.nodeStatus(c.Context())
		for i := range cfg.Connectors {
			one := connectorChecking{Name: cfg.Connectors[i].Name}
			if err == nil {
				one.Checks = examineConnector(status, one.Name)
			}
			ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
			one.Checks = append(one.Checks, p.probe(ctx, cfg, &cfg.Connectors[i])...)
			cancel()
			d.Connectors = append(d.Connectors, one)
		}
		if err == nil {
			for _, other := range status.Connectors {
				if !d.has(other.Name) { // it came over REST
					d.Connectors = append(d.Connectors, connectorChecking{Name: other.Name, Checks: examineConnector(status, other.Name)})
				}
			}
		}
		return p.diagnose(d, asJSON)
	}
	return c
}

func (d *diagnosis) has(name string) bool {
	for _, c := range d.Connectors {
		if c.Name == name {
			return true
		}
	}
	return false
}

// diagnose prints the findings; the worst is the exit code.
func (p *program) diagnose(d diagnosis, asJSON bool) error {
	d.Status = worst(d.Node)
	for _, c := range d.Connectors {
		d.Status = worse(d.Status, worst(c.Checks))
	}
	var err error
	if asJSON {
		err = p.printJSON(d)
	} else {
		var b strings.Builder
		writeChecks(&b, "node", d.Node)
		for _, c := range d.Connectors {
			b.WriteByte('\n')
			writeChecks(&b, c.Name, c.Checks)
		}
		_, err = fmt.Fprint(p.stdout, b.String())
	}
	switch {
	case err != nil:
		return err
	case d.Status == node.CheckFailed:
		return &silentError{exitFailed}
	case d.Status == node.CheckWarning:
		return &silentError{exitUnhealthy}
	}
	return nil
}

func worst(checks []node.Check) node.CheckStatus {
	out := node.CheckOK
	for _, c := range checks {
		out = worse(out, c.Status)
	}
	return out
}

func worse(a, b node.CheckStatus) node.CheckStatus {
	rank := map[node.CheckStatus]int{node.CheckOK: 0, node.CheckUnknown: 1, node.CheckWarning: 1, node.CheckFailed: 2}
	if rank[b] <= rank[a] {
		return a
	}
	if b == node.CheckUnknown {
		return node.CheckWarning
	}
	return b
}

func (r *remote) nodeStatus(ctx context.Context) (admin.Status, error) {
	answer, err := r.get(ctx, "/v1/status")
	if err != nil {
		return admin.Status{}, err
	}
	return decode[admin.Status](answer)
}

const runbooks = "docs/runbooks/BinlogOutbox"

// examine asks the running node about itself and its cluster.
func (r *remote) examine(ctx context.Context) []node.Check {
	s, err := r.nodeStatus(ctx)
	if err != nil {
		c := node.Check{Name: "answers", Status: node.CheckFailed, Detail: err.Error(), Fix: "start it, or name its admin server with --server"}
		if _, ok := errors.AsType[*answerError](err); ok {
			c.Fix = "log in with --user and --password-file, or with --cert and --key"
		}
		return []node.Check{c}
	}
	out := []node.Check{{Name: "answers", Status: node.CheckOK, Detail: fmt.Sprintf("%s, version %s, %s", s.Node, cmp.Or(s.Version, "unknown"), s.Role)}}
	if own := node.Version().Version; own != s.Version {
		out = append(out, node.Check{Name: "version", Status: node.CheckWarning, Detail: fmt.Sprintf("the node runs %s, this program is %s", s.Version, own), Fix: "restart the node, if it was to be upgraded"})
	}
	leader := node.Check{Name: "leader", Status: node.CheckOK, Detail: s.Leader}
	if s.Leader == "" {
		leader = node.Check{Name: "leader", Status: node.CheckFailed, Detail: "there is none, so that nothing is published", Fix: "bring a majority of the nodes back", Runbook: runbooks + "NoLeader.md"}
	}
	out = append(out, leader)
	answer, err := r.get(ctx, "/v1/cluster")
	var cluster admin.Cluster
	if err == nil {
		cluster, err = decode[admin.Cluster](answer)
	}
	if err != nil {
		return append(out, node.Check{Name: "cluster", Status: node.CheckUnknown, Detail: err.Error()})
	}
	return append(out, quorum(cluster))
}

// quorum says how many voters are reached, which only the leader knows.
func quorum(c admin.Cluster) node.Check {
	voters, reached, known := 0, 0, false
	var away []string
	for _, m := range c.Members {
		if !m.Voter {
			continue
		}
		voters++
		known = known || m.Reachable != nil
		if m.ID == c.Node || m.Reachable != nil && *m.Reachable {
			reached++
		} else {
			away = append(away, m.ID)
		}
	}
	out := node.Check{Name: "quorum", Status: node.CheckOK, Detail: fmt.Sprintf("%d of %d voters", reached, voters)}
	switch {
	case c.Error != "":
		return node.Check{Name: "quorum", Status: node.CheckFailed, Detail: c.Error, Fix: "see the runbook", Runbook: runbooks + "NoLeader.md"}
	case !known && voters > 1:
		return node.Check{Name: "quorum", Status: node.CheckOK, Detail: fmt.Sprintf("%d voters; which are reached only the leader knows: ask %s", voters, cmp.Or(c.Leader, "it when there is one"))}
	case reached == voters:
		return out
	case reached <= voters/2:
		out.Status, out.Fix, out.Runbook = node.CheckFailed, "bring "+strings.Join(away, ", ")+" back", runbooks+"NoLeader.md"
	default:
		out.Status, out.Runbook = node.CheckWarning, runbooks+"QuorumThin.md"
		out.Fix = fmt.Sprintf("bring %s back: without it %d more may be lost", strings.Join(away, ", "), reached-voters/2-1)
	}
	return out
}

// examineConnector says what the node knows of one of its connectors.
func examineConnector(s admin.Status, name string) []node.Check {
	for i := range s.Connectors {
		if s.Connectors[i].Name == name {
			return connectorChecks(s, &s.Connectors[i])
		}
	}
	return []node.Check{{Name: "running", Status: node.CheckWarning, Detail: "the node does not have it", Fix: "restart the node with this configuration"}}
}

func connectorChecks(s admin.Status, c *admin.Connector) []node.Check {
	out := []node.Check{stateCheck(s, c)}
	if l := c.LagSeconds; l != nil {
		lag := node.Check{Name: "lag", Status: node.CheckOK, Detail: span(*l)}
		if *l > muchLag.Seconds() {
			lag.Status, lag.Fix, lag.Runbook = node.CheckWarning, "look at the last error, and whether Kafka or the source is slow", runbooks+"LagHigh.md"
		}
		out = append(out, lag)
	}
	if b := c.Backlog; b != nil {
		text := "not known"
		if b.Transactions != nil {
			text = fmt.Sprintf("%d transactions", *b.Transactions)
		} else if b.Bytes != nil {
			text = fmt.Sprintf("%d bytes", *b.Bytes)
		}
		out = append(out, node.Check{Name: "backlog", Status: node.CheckOK, Detail: text + " not read yet"})
		out = append(out, headroom(b)...)
	}
	if len(c.UnseenTopics) > 0 {
		out = append(out, node.Check{Name: "open transactions", Status: node.CheckWarning,
			Detail: "what is left open in a partition without a leader can't be seen in " + strings.Join(c.UnseenTopics, ", ") + ", so that rows may come twice or be lost when a broker fails",
			Fix:    "grant READ on the topics, and use brokers that answer DescribeProducers"})
	}
	if n := c.SetAside.Rows; n > 0 {
		out = append(out, node.Check{Name: "rows set aside", Status: node.CheckWarning, Detail: fmt.Sprintf("%d since the process started", n),
			Fix: "see binlog-outbox set-aside list " + c.Name, Runbook: runbooks + "RowsSetAside.md"})
	}
	return out
}

func stateCheck(s admin.Status, c *admin.Connector) node.Check {
	out := node.Check{Name: "running", Status: node.CheckOK, Detail: c.State}
	if c.Phase != "" {
		out.Detail += ", " + c.Phase
	}
	if e := c.LastError; e != nil {
		out.Detail += ": " + e.Code + ": " + e.Message
	}
	switch {
	case c.State == "failed":
		out.Status, out.Fix, out.Runbook = node.CheckFailed, "do what the error says, then binlog-outbox connector restart "+c.Name, runbooks+"ConnectorFailed.md"
	case c.State == "unassigned":
		out.Detail = "not here"
		if s.Role == "leader" || s.Leader == "" {
			out.Status = node.CheckWarning
		} else {
			out.Detail += ": " + s.Leader + " leads, ask it"
		}
	case c.State == "paused" || c.State == "stopped":
		out.Status, out.Fix = node.CheckWarning, "binlog-outbox connector resume "+c.Name
		if c.Wanted.Reason != "" {
			out.Detail += fmt.Sprintf(" by %s: %s", c.Wanted.By, c.Wanted.Reason)
		}
	case c.LastError != nil:
		out.Status, out.Fix, out.Runbook = node.CheckWarning, "it goes on by itself when that has passed", runbooks+"NotStreaming.md"
	}
	return out
}

// headroom says how long the source keeps what is needed next.
func headroom(b *admin.Backlog) []node.Check {
	if b.HeadroomSeconds == nil {
		return nil
	}
	out := node.Check{Name: "binlog headroom", Status: node.CheckOK, Detail: span(*b.HeadroomSeconds)}
	const fix = "keep binlogs longer on the source (binlog_expire_logs_seconds), and get the connector going"
	switch {
	case *b.HeadroomSeconds <= 0:
		out.Status, out.Detail = node.CheckFailed, "none: the source may have purged what is needed next"
	case *b.HeadroomSeconds < littleReserve.Seconds():
		out.Status = node.CheckWarning
	}
	if out.Status != node.CheckOK {
		out.Fix, out.Runbook = fix, runbooks+"BinlogPurgeRisk.md"
	}
	return []node.Check{out}
}

func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}
