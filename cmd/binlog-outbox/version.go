package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/node"
)

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built from",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			asJSON, err := p.json()
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(node.Version())
			}
			_, err = fmt.Fprintln(p.stdout, node.Version())
			return err
		},
	}
}

// noArgs refuses arguments as a wrong command line.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, not %q", c.Name(), args[0])}
	}
	return nil
}

func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
