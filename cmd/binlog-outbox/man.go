package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/binlog-outbox/binlog-outbox/node"
)

// newMan is for those who make packages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write a man page for each command into a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true // with SOURCE_DATE_EPOCH, pages of one release are the same
			return doc.GenManTree(root, &doc.GenManHeader{Title: "BINLOG-OUTBOX", Section: "1",
				Source: "binlog-outbox " + node.Version().Version, Manual: "binlog-outbox"}, args[0])
		},
	}
}
