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
		Args:  cobra.NoArgs,
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

func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
