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

func newSetAside(p *program) *cobra.Command {
	c := group("set-aside", "Look at rows that could not be published, and decide about one")
	r := p.remote(c)
	c.AddCommand(
		&cobra.Command{Use: "list NAME", Short: "List the decisions about single rows, and what was set aside last", Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			answer, err := r.get(c.Context(), asidePath(args[0]))
			if err != nil {
				return err
			}
			list, err := decode[admin.SetAsides](answer)
			if err != nil {
				return err
			}
			return r.print(answer, func(w io.Writer) error { return writeAsides(w, list) })
		}},
		r.decide("skip", "skip", "Go on without a row"),
		r.decide("dead-letter", "dead_letter", "Publish a row to the topic of dead letters"),
	)
	return c
}

func asidePath(name string) string { return "/v1/connectors/" + url.PathEscape(name) + "/set-aside" }

func (r *remote) decide(verb, action, short string) *cobra.Command {
	var transaction string
	var row uint64
	c := r.writes(&cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		Long: short + ", and no other: the one that a failed connector names in its last error. The connector\n" +
			"goes on by itself. The decision holds on every node, until the position has passed the row.",
	})
	f := c.Flags()
	f.StringVar(&transaction, "transaction", "", "`GTID` of the transaction, or file:pos of its end where there is none")
	f.Uint64Var(&row, "row", 0, "`number` of the row among the transaction's outbox rows, from 1")
	c.RunE = func(c *cobra.Command, args []string) error {
		if transaction == "" || row == 0 {
			return &usageError{err: errors.New(verb + " wants --transaction and --row, as the connector's last error has them")}
		}
		answer, err := r.write(c.Context(), http.MethodPost, asidePath(args[0]), map[string]any{"transaction": transaction, "row": row, "action": action})
		if err != nil {
			return err
		}
		d, err := decode[admin.AsideDecision](answer)
		if err != nil {
			return err
		}
		return r.print(answer, func(w io.Writer) error { return writeDecisions(w, []admin.AsideDecision{d}) })
	}
	return c
}

func writeDecisions(w io.Writer, all []admin.AsideDecision) error {
	lines := []string{"TRANSACTION\tROW\tACTION\tCAUSE\tBY\tREASON\tAT\tPASSED"}
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%s\t%t", d.Transaction, d.Row, d.Action, d.Cause, d.By, d.Reason, d.At.UTC().Format("2006-01-02T15:04:05Z"), d.Passed))
	}
	return columns(w, lines...)
}

func writeAsides(w io.Writer, list admin.SetAsides) error {
	if err := writeDecisions(w, list.Decisions); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\nrows set aside on this node since it started: %d\n", list.SetAside.Rows); err != nil {
		return err
	}
	if len(list.SetAside.Last) == 0 {
		return nil
	}
	lines := []string{"TRANSACTION\tROW\tTABLE\tACTION\tCAUSE\tAT"}
	for _, a := range list.SetAside.Last {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s", a.Transaction, a.Row, a.Table, a.Action, a.Cause, a.At.UTC().Format("2006-01-02T15:04:05Z")))
	}
	return columns(w, lines...)
}
