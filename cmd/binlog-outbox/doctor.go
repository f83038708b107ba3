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
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// diagnosis is the answer of doctor as JSON.
type diagnosis struct {
	// Status is the worst of all checks: ok, warning or failed.
	Status     node.CheckStatus    `json:"status"`
	Node       []node.Check        `json:"node"`
	Connectors []connectorChecking `json:"connectors"`
}

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
				one.Checks = node.ExamineConnector(status, one.Name)
			}
			ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
			one.Checks = append(one.Checks, p.probe(ctx, cfg, &cfg.Connectors[i])...)
			cancel()
			d.Connectors = append(d.Connectors, one)
		}
		if err == nil {
			for _, other := range status.Connectors {
				if !d.has(other.Name) { // it came over REST
					d.Connectors = append(d.Connectors, connectorChecking{Name: other.Name,
						Checks: node.ExamineConnector(status, other.Name)})
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
	all := d.Node
	for _, c := range d.Connectors {
		all = append(all, c.Checks...)
	}
	d.Status = node.Worst(all)
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

func (r *remote) nodeStatus(ctx context.Context) (admin.Status, error) {
	answer, err := r.get(ctx, "/v1/status")
	if err != nil {
		return admin.Status{}, err
	}
	return decode[admin.Status](answer)
}

// examine asks the running node about itself and its cluster.
func (r *remote) examine(ctx context.Context) []node.Check {
	s, err := r.nodeStatus(ctx)
	if err != nil {
		c := node.Check{Name: "answers", Status: node.CheckFailed, Detail: err.Error(),
			Fix: "start it, or name its admin server with --server"}
		if _, ok := errors.AsType[*answerError](err); ok {
			c.Fix = "log in with --user and --password-file, or with --cert and --key"
		}
		return []node.Check{c}
	}
	out := append([]node.Check{{Name: "answers", Status: node.CheckOK,
		Detail: fmt.Sprintf("%s, version %s, %s", s.Node, cmp.Or(s.Version, "unknown"), s.Role)}}, node.Examine(s)...)
	answer, err := r.get(ctx, "/v1/cluster")
	var cluster ha.Status
	if err == nil {
		cluster, err = decode[ha.Status](answer)
	}
	if err != nil {
		return append(out, node.Check{Name: "cluster", Status: node.CheckUnknown, Detail: err.Error()})
	}
	return append(out, node.ExamineCluster(cluster))
}
