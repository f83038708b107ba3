package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/admin"
)

func newRows(p *program) *cobra.Command {
	c := group("rows", "Look at rows that could not be published, and decide about one")
	r := p.remote(c)
	c.AddCommand(
		&cobra.Command{Use: "list NAME", Short: "List the decisions about single rows, and what was skipped or " +
			"dead-lettered last", Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			answer, err := r.get(c.Context(), unpublishedRowsPath(args[0]))
			if err != nil {
				return err
			}
			list, err := decode[admin.UnpublishedRows](answer)
			if err != nil {
				return err
			}
			return r.print(answer, func(w io.Writer) error { return writeUnpublished(w, list) })
		}},
		r.decide("skip", "skip", "Go on without a row"),
		r.decide("dead-letter", "dead_letter", "Publish a row to the dead-letter topic"),
	)
	return c
}

func unpublishedRowsPath(name string) string {
	return "/v1/connectors/" + url.PathEscape(name) + "/unpublished-rows"
}

func (r *remote) decide(subcommand, action, short string) *cobra.Command {
	var transaction string
	var row uint64
	c := r.writes(&cobra.Command{
		Use: subcommand + " NAME", Short: short, Args: cobra.ExactArgs(1),
		Long: short + ", and no other: the one that a failed connector names in its last error. The connector\n" +
			"goes on by itself. The decision holds on every node, until the position has passed the row.",
	})
	f := c.Flags()
	f.StringVar(&transaction, "transaction", "", "`GTID` of the transaction, or file:pos of its end where there is none")
	f.Uint64Var(&row, "row", 0, "`number` of the row among the transaction's outbox rows, from 1")
	c.RunE = func(c *cobra.Command, args []string) error {
		if transaction == "" || row == 0 {
			return &usageError{err: errors.New(subcommand +
				" wants --transaction and --row, as the connector's last error has them")}
		}
		answer, err := r.write(c.Context(), http.MethodPost, unpublishedRowsPath(args[0]),
			map[string]any{"transaction": transaction, "row": row, "action": action})
		if err != nil {
			return err
		}
		d, err := decode[admin.RowDecision](answer)
		if err != nil {
			return err
		}
		return r.print(answer, func(w io.Writer) error { return writeDecisions(w, []admin.RowDecision{d}) })
	}
	return c
}

func writeDecisions(w io.Writer, all []admin.RowDecision) error {
	lines := []string{"TRANSACTION\tROW\tACTION\tCAUSE\tBY\tREASON\tAT\tPASSED"}
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%s\t%t", d.Transaction, d.Row, d.Action, d.Cause, d.By,
			d.Reason, d.At.UTC().Format("2006-01-02T15:04:05Z"), d.Passed))
	}
	return columns(w, lines...)
}

func writeUnpublished(w io.Writer, list admin.UnpublishedRows) error {
	if err := writeDecisions(w, list.Decisions); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nrows not published by this node since it started: %d\n",
		list.Unpublished.Rows); err != nil {
		return err
	}
	if len(list.Unpublished.Last) == 0 {
		return nil
	}
	lines := []string{"TRANSACTION\tROW\tTABLE\tACTION\tCAUSE\tAT"}
	for _, a := range list.Unpublished.Last {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s", a.Transaction, a.Row, a.Table, a.Action, a.Cause,
			a.At.UTC().Format("2006-01-02T15:04:05Z")))
	}
	return columns(w, lines...)
}
