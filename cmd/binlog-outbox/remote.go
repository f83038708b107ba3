package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// columns writes lines whose cells are separated by tabs.
func columns(w io.Writer, lines ...string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		_, _ = fmt.Fprintln(t, l) // Flush says
	}
	return t.Flush()
}

func decode[T any](answer json.RawMessage) (out T, err error) {
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("reading the node's answer: %w", err)
	}
	return out, nil
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command,
		_ []string) error {
		return c.Help()
	}}
	c.AddCommand(subs...)
	return c
}

func newStatus(p *program) *cobra.Command {
	watch := false
	c := &cobra.Command{Use: "status", Short: "Print what a node and its connectors are at", Args: cobra.NoArgs,
		Long: "Print what a node and its connectors are at. The node that leads runs the connectors and knows\n" +
			"most of them. Exit code 5: there is no leader, or a connector is not well."}
	r := p.remote(c)
	c.Flags().BoolVar(&watch, "watch", false, "go on, once a second")
	c.RunE = func(c *cobra.Command, _ []string) error {
		for {
			answer, err := r.get(c.Context(), "/v1/status")
			if err == nil && watch && node.IsTerminal(p.stdout) {
				_, err = io.WriteString(p.stdout, "\x1b[H\x1b[2J")
			}
			if err == nil {
				err = r.status(answer)
			}
			var unwell *silentError
			if !watch || err != nil && !errors.As(err, &unwell) {
				return err
			}
			select {
			case <-time.After(time.Second):
			case <-c.Context().Done():
				return nil
			}
		}
	}
	return c
}

func (r *remote) status(answer json.RawMessage) error {
	s, err := decode[admin.Status](answer)
	if err != nil {
		return err
	}
	if err := r.print(answer, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "node %s (%s), leader %s, term %d\n\n", s.Node, s.Role, cmp.Or(s.Leader, "none"),
			s.Term); err != nil {
			return err
		}
		return writeConnectors(w, s.Connectors)
	}); err != nil {
		return err
	}
	if !node.Well(s) {
		return &silentError{exitUnhealthy}
	}
	return nil
}

func writeConnectors(w io.Writer, all []admin.Connector) error {
	lines := []string{"NAME\tSTATE\tWANTED\tPHASE\tLAG\tPUBLISHED\tERROR"}
	for _, c := range all {
		lag, failure := "-", "-"
		if c.LagSeconds != nil {
			lag = strconv.FormatFloat(*c.LagSeconds, 'f', 1, 64) + "s"
		}
		if c.LastError != nil {
			failure = c.LastError.Code + ": " + c.LastError.Message
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%d\t%s", c.Name, c.State, c.Wanted.State, cmp.Or(c.Phase, "-"),
			lag, c.Published, failure))
	}
	return columns(w, lines...)
}

func newConnector(p *program) *cobra.Command {
	c := group("connector", "Look at connectors, pause, resume, stop and restart them")
	r := p.remote(c)
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the connectors", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				answer, err := r.get(c.Context(), "/v1/connectors")
				if err != nil {
					return err
				}
				list, err := decode[struct{ Connectors []admin.Connector }](answer)
				if err != nil {
					return err
				}
				return r.print(answer, func(w io.Writer) error { return writeConnectors(w, list.Connectors) })
			}},
		&cobra.Command{Use: "describe NAME", Short: "Print all that a node knows of a connector", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				answer, err := r.get(c.Context(), "/v1/connectors/"+url.PathEscape(args[0]))
				if err != nil {
					return err
				}
				return r.describe(answer)
			}},
	)
	for _, a := range []struct{ subcommand, method, short string }{
		{"pause", http.MethodPut, "Stop publishing; the connector may go on at any time"},
		{"resume", http.MethodPut, "Go on after pause or stop"},
		{"stop", http.MethodPut, "Stop; its position may be set meanwhile"},
		{"restart", http.MethodPost, "Begin afresh, also after a failure"},
	} {
		c.AddCommand(r.writes(&cobra.Command{Use: a.subcommand + " NAME", Short: a.short, Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				answer, err := r.write(c.Context(), a.method, "/v1/connectors/"+url.PathEscape(args[0])+"/"+a.subcommand, nil)
				if err != nil {
					return err
				}
				one, err := decode[admin.Connector](answer)
				if err != nil {
					return err
				}
				return r.print(answer, func(w io.Writer) error { return writeConnectors(w, []admin.Connector{one}) })
			}}))
	}
	return c
}

// describe prints the whole answer; for people as YAML, which reads best.
func (r *remote) describe(answer json.RawMessage) error {
	return r.print(answer, func(io.Writer) error {
		as := *r.p
		as.output = "yaml"
		return (&remote{p: &as}).print(answer, nil)
	})
}

func newOffset(p *program) *cobra.Command {
	c := group("offset", "Look at the position of a connector, set it, take over Debezium's, start over")
	r := p.remote(c)
	c.AddCommand(
		&cobra.Command{Use: "get NAME", Short: "Print the position", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				answer, err := r.get(c.Context(), "/v1/connectors/"+url.PathEscape(args[0])+"/offset")
				if err != nil {
					return err
				}
				return r.describe(answer)
			}},
		r.offsetSet(), r.offsetImport(), r.offsetReset(),
	)
	return c
}

func (r *remote) offsetSet() *cobra.Command {
	var gtids, file, at string
	var pos uint64
	var now, earliest, dry bool
	c := r.writes(&cobra.Command{
		Use: "set NAME", Short: "Say where a stopped connector goes on", Args: cobra.ExactArgs(1),
		Long: "Say where a stopped connector goes on: after a GTID set, after a file and offset, at a time, or\n" +
			"at the beginning or end of the source's binlog. --dry-run tells what would come again and what\n" +
			"would be passed over. With exactly-once delivery this counts before what Kafka holds.",
	})
	f := c.Flags()
	f.StringVar(&gtids, "gtid-set", "", "`set` of the transactions that count as published")
	f.StringVar(&file, "file", "", "binlog `file`, with --pos")
	f.Uint64Var(&pos, "pos", 0, "`offset` in --file, after the last transaction that counts as published")
	f.StringVar(&at, "at", "", "`time` (RFC 3339): before the first transaction committed at or after it")
	f.BoolVar(&now, "now", false, "after all that the source has")
	f.BoolVar(&earliest, "earliest", false, "before all that the source still has")
	f.BoolVar(&dry, "dry-run", false, "only tell what would be done")
	c.RunE = func(c *cobra.Command, args []string) error {
		ways := 0
		for _, given := range []bool{gtids != "", file != "" && pos > 0, at != "", now, earliest} {
			if given {
				ways++
			}
		}
		if ways != 1 || (file != "") != (pos > 0) {
			return &usageError{err: errors.New("set wants one of --gtid-set, --file with --pos, --at, --now and --earliest")}
		}
		body := map[string]any{"dry_run": dry}
		switch {
		case gtids != "":
			body["gtid_set"] = gtids
		case file != "":
			body["file"], body["pos"] = file, pos
		case now:
			body["at"] = "now"
		case earliest:
			body["at"] = "earliest"
		default:
			body["at"] = at
		}
		return r.changeOffset(c, http.MethodPut, args[0], body)
	}
	return c
}

func (r *remote) offsetReset() *cobra.Command {
	dry := false
	c := r.writes(&cobra.Command{Use: "reset NAME", Short: "Have a stopped connector start over, as its source.start says",
		Args: cobra.ExactArgs(1)})
	c.Flags().BoolVar(&dry, "dry-run", false, "only tell what would be done")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.changeOffset(c, http.MethodDelete, args[0], map[string]any{"dry_run": dry})
	}
	return c
}

func (r *remote) changeOffset(c *cobra.Command, method, name string, body map[string]any) error {
	answer, err := r.write(c.Context(), method, "/v1/connectors/"+url.PathEscape(name)+"/offset", body)
	if err != nil {
		return err
	}
	change, err := decode[admin.OffsetChange](answer)
	if err != nil {
		return err
	}
	return r.print(answer, func(w io.Writer) error { return writeChange(w, change) })
}

func writeChange(w io.Writer, c admin.OffsetChange) error {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s\nto   %s\n", placeOf(c.Before, false), placeOf(c.After, c.Reset))
	if c.Repeated != nil && c.Skipped != nil {
		fmt.Fprintf(&b, "transactions that come again: %d, that are passed over: %d\n", *c.Repeated, *c.Skipped)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if c.DryRun {
		b.WriteString("nothing was changed; leave out --dry-run to do it\n")
	} else {
		b.WriteString("done; resume the connector\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func placeOf(p admin.Position, reset bool) string {
	switch {
	case reset:
		return "source.start"
	case p.GTIDSet != "":
		return p.GTIDSet
	case p.File != "":
		return fmt.Sprintf("%s:%d", p.File, p.Pos)
	default:
		return "nothing"
	}
}

// clusterCommands are those of cluster that ask a running node.
func (r *remote) clusterCommands() []*cobra.Command {
	add := r.writes(&cobra.Command{Use: "add NAME HOST:PORT",
		Short: "Add a running node, which gets its vote when it has caught up", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return r.changeCluster(c, http.MethodPost, "/v1/cluster/members", map[string]any{"id": args[0], "address": args[1]})
		}})
	force := false
	remove := r.writes(&cobra.Command{Use: "remove NAME", Short: "Remove a node", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return r.changeCluster(c, http.MethodDelete, "/v1/cluster/members/"+url.PathEscape(args[0]),
				map[string]any{"force": force})
		}})
	remove.Flags().BoolVar(&force, "force", false, "also when too few of the others are in contact")
	promote := r.writes(&cobra.Command{Use: "promote NAME", Short: "Give a node its vote at once",
		Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			return r.changeCluster(c, http.MethodPost, "/v1/cluster/members/"+url.PathEscape(args[0])+"/promote", nil)
		}})
	transfer := r.writes(&cobra.Command{Use: "transfer [NAME]",
		Short: "Hand the leadership to another node, the best one without a name", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{}
			if len(args) > 0 {
				body["to"] = args[0]
			}
			return r.changeCluster(c, http.MethodPost, "/v1/cluster/leader/transfer", body)
		}})
	members := &cobra.Command{Use: "members", Short: "List the nodes of the cluster", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := r.get(c.Context(), "/v1/cluster")
			if err != nil {
				return err
			}
			return r.cluster(answer)
		}}
	return []*cobra.Command{members, add, remove, promote, transfer, r.snapshotCommand()}
}

func (r *remote) changeCluster(c *cobra.Command, method, path string, body map[string]any) error {
	answer, err := r.write(c.Context(), method, path, body)
	if err != nil {
		return err
	}
	return r.cluster(answer)
}

func (r *remote) cluster(answer json.RawMessage) error {
	s, err := decode[ha.Status](answer)
	if err != nil {
		return err
	}
	return r.print(answer, func(w io.Writer) error {
		lines := []string{"NAME\tADDRESS\tVOTE\tLEADER\tREACHABLE"}
		for _, m := range s.Members {
			reachable := "-"
			if m.Reachable != nil {
				reachable = strconv.FormatBool(*m.Reachable)
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%t\t%t\t%s", m.ID, m.Address, m.Voter, m.Leader, reachable))
		}
		return columns(w, lines...)
	})
}

// snapshotCommand saves the replicated state; the file is there only when it is whole.
func (r *remote) snapshotCommand() *cobra.Command {
	return r.writes(&cobra.Command{Use: "snapshot FILE",
		Short: "Save what the node has of the replicated state, for restore", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if strings.TrimSpace(r.reason) == "" {
				return &usageError{err: errors.New("say why with --reason; it is kept in the audit list")}
			}
			partial := args[0] + ".partial"
			f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return fmt.Errorf("writing the snapshot: %w", err)
			}
			err = r.do(c.Context(), http.MethodGet, "/v1/cluster/snapshot", http.Header{admin.ReasonHeader: {r.reason},
				admin.ByHeader: {userName()}}, nil, f)
			if err == nil {
				err = f.Sync()
			}
			err = errors.Join(err, f.Close())
			if err == nil {
				err = os.Rename(partial, args[0])
			}
			if err != nil {
				return errors.Join(err, os.Remove(partial))
			}
			return nil
		}})
}

func newLoggers(p *program) *cobra.Command {
	var during time.Duration
	c := &cobra.Command{Use: "loggers", Short: "Print the log levels of a node, or set one", Args: cobra.NoArgs}
	r := p.remote(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := r.get(c.Context(), "/v1/loggers")
		if err != nil {
			return err
		}
		return r.loggers(answer)
	}
	set := r.writes(&cobra.Command{Use: "set NAME LEVEL", Short: "Set a level on this node, until it ends or for a time",
		Args: cobra.ExactArgs(2), RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{"level": args[1]}
			if during > 0 {
				body["for"] = during.String()
			}
			answer, err := r.write(c.Context(), http.MethodPut, "/v1/loggers/"+url.PathEscape(args[0]), body)
			if err != nil {
				return err
			}
			return r.loggers(answer)
		}})
	set.Flags().DurationVar(&during, "for", 0, "how `long`; without it, until the node ends")
	c.AddCommand(set)
	return c
}

func (r *remote) loggers(answer json.RawMessage) error {
	list, err := decode[struct{ Loggers []admin.Logger }](answer)
	if err != nil {
		return err
	}
	return r.print(answer, func(w io.Writer) error {
		lines := []string{"NAME\tLEVEL\tUNTIL"}
		for _, l := range list.Loggers {
			until := "-"
			if l.Until != nil {
				until = l.Until.Format(time.RFC3339)
			}
			lines = append(lines, l.Name+"\t"+l.Level+"\t"+until)
		}
		return columns(w, lines...)
	})
}

func newAudit(p *program) *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Print who has changed what, and why", Args: cobra.NoArgs}
	r := p.remote(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := r.get(c.Context(), "/v1/audit")
		if err != nil {
			return err
		}
		list, err := decode[struct{ Entries []ha.AuditEntry }](answer)
		if err != nil {
			return err
		}
		return r.print(answer, func(w io.Writer) error {
			lines := []string{"TIME\tBY\tACTION\tCONNECTOR\tREASON\tDETAIL"}
			for _, e := range list.Entries {
				lines = append(lines, strings.Join([]string{e.At.Format(time.RFC3339), e.By, e.Action, cmp.Or(e.Connector, "-"),
					e.Reason, e.Detail}, "\t"))
			}
			return columns(w, lines...)
		})
	}
	return c
}
