package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// prober asks the servers of a connector for what it needs of them, as node.Probe does.
type prober func(ctx context.Context, cfg *config.Config, c *config.Connector) []node.Check

// validation is the answer of validate as JSON.
type validation struct {
	Valid      bool                `json:"valid"`
	Errors     []problemJSON       `json:"errors"`
	Connectors []connectorChecking `json:"connectors"`
}

type problemJSON struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

type connectorChecking struct {
	Name   string       `json:"name"`
	Checks []node.Check `json:"checks,omitempty"`
}

func newValidate(p *program) *cobra.Command {
	probe := false
	c := &cobra.Command{
		Use:   "validate [CONNECTOR.json ...]",
		Short: "Check the configuration, and with --probe the servers too",
		Long: "Check the configuration. All problems are listed at once, with their place. With --probe\n" +
			"the servers are asked too, which changes nothing there.\n\n" +
			"Exit codes: 0 all is well, 1 a server would not do, 78 the configuration is bad.",
		RunE: func(c *cobra.Command, args []string) error { return p.validate(c.Context(), args, probe) },
	}
	c.Flags().BoolVar(&probe, "probe", false, "ask MySQL and Kafka for what the connectors need, and print a checklist")
	c.Flags().DurationVar(&p.timeout, "timeout", 30*time.Second, "how `long` asking may take")
	return c
}

func (p *program) validate(ctx context.Context, args []string, probe bool) error {
	asJSON, err := p.json()
	if err != nil {
		return err
	}
	cfg, err := p.load(args)
	if problems, ok := errors.AsType[config.Problems](err); ok && asJSON {
		if err := p.printJSON(validation{Errors: problemsJSON(problems), Connectors: []connectorChecking{}}); err != nil {
			return err
		}
		return &silentError{exitConfig}
	}
	if err != nil {
		return err
	}
	answer := validation{Valid: true, Errors: []problemJSON{}, Connectors: []connectorChecking{}}
	for i := range cfg.Connectors {
		answer.Connectors = append(answer.Connectors, connectorChecking{Name: cfg.Connectors[i].Name})
	}
	if probe {
		ctx, cancel := context.WithTimeout(ctx, p.timeout)
		defer cancel()
		for i := range cfg.Connectors {
			answer.Connectors[i].Checks = p.probe(ctx, cfg, &cfg.Connectors[i])
		}
	}
	return p.tell(answer, asJSON)
}

// tell prints the answer; a failed check is a failure.
func (p *program) tell(answer validation, asJSON bool) error {
	failed := false
	for _, c := range answer.Connectors {
		for _, check := range c.Checks {
			failed = failed || check.Status == node.CheckFailed
		}
	}
	var err error
	if asJSON {
		err = p.printJSON(answer)
	} else {
		_, err = fmt.Fprint(p.stdout, answer.text())
	}
	if err == nil && failed {
		err = &silentError{exitFailed}
	}
	return err
}

// text is the answer for people.
func (a validation) text() string {
	var b strings.Builder
	names := make([]string, len(a.Connectors))
	for i, c := range a.Connectors {
		names[i] = c.Name
	}
	fmt.Fprintf(&b, "The configuration is valid: %s.\n", count(len(names), "connector", strings.Join(names, ", ")))
	for _, c := range a.Connectors {
		if len(c.Checks) == 0 {
			continue
		}
		b.WriteByte('\n')
		writeChecks(&b, c.Name, c.Checks)
	}
	return b.String()
}

// writeChecks writes a checklist for people under a heading.
func writeChecks(b *strings.Builder, heading string, checks []node.Check) {
	b.WriteString(heading + "\n")
	for _, check := range checks {
		fmt.Fprintf(b, "  %-7s  %s", check.Status, check.Name)
		if check.Detail != "" {
			b.WriteString(": " + check.Detail)
		}
		if check.Fix != "" {
			b.WriteString("; " + check.Fix)
		}
		if check.Runbook != "" {
			b.WriteString(" (" + check.Runbook + ")")
		}
		b.WriteByte('\n')
	}
}

// count writes "no connectors", "1 connector (a)" or "2 connectors (a, b)".
func count(n int, what, list string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return fmt.Sprintf("1 %s (%s)", what, list)
	default:
		return fmt.Sprintf("%d %ss (%s)", n, what, list)
	}
}

func problemsJSON(problems config.Problems) []problemJSON {
	out := make([]problemJSON, len(problems))
	for i, p := range problems {
		out[i] = problemJSON{File: p.Origin.File, Line: p.Origin.Line, Column: p.Origin.Column, Key: p.Origin.Key,
			Path: p.Path, Message: p.Message}
	}
	return out
}
