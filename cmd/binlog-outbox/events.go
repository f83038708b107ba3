package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/admin"
)

func newEvents(p *program) *cobra.Command {
	return group("events", "Find events", newFindEvent(p))
}

func newFindEvent(p *program) *cobra.Command {
	var name string
	var search, end bool
	c := &cobra.Command{
		Use: "find EVENT-ID", Short: "Say where an event is: written, waiting, published, skipped or dead-lettered",
		Args: cobra.ExactArgs(1),
		Long: "Say where an event is, by the id that its outbox row has (binary ids as UUID or in hexadecimal\n" +
			"digits): the transaction that wrote it, and its places in Kafka. The leader remembers the last\n" +
			"events that it published (connectors[].events.recent). --search looks for an older one in the binlogs\n" +
			"that the source still has, which takes a while and is told on stderr; it goes on when this command is\n" +
			"interrupted. Exit code 3: the event was not seen.",
	}
	r := p.remote(c)
	c.Flags().StringVar(&name, "connector", "", "`name` of the connector; default: all")
	c.Flags().BoolVar(&search, "search", false, "search the source's binlogs if the event is not remembered")
	c.Flags().BoolVar(&end, "end", false, "end the search for this event")
	c.Flags().StringVar(&r.reason, "reason", "", "`why`, for the log; default: the command")
	c.RunE = func(c *cobra.Command, args []string) error {
		if r.reason == "" {
			r.reason = "command events find"
		}
		path := "/v1/events/" + url.PathEscape(args[0])
		var answer json.RawMessage
		var err error
		if end {
			answer, err = r.write(c.Context(), http.MethodDelete, path+"/search", nil)
		} else {
			answer, err = r.findEvent(c.Context(), path, name, search)
		}
		if err != nil {
			return err
		}
		return r.tellEvent(answer)
	}
	return c
}

// findEvent asks for an event, and has it searched for if it must be and may be.
func (r *remote) findEvent(ctx context.Context, path, name string, search bool) (json.RawMessage, error) {
	query := ""
	if name != "" {
		query = "?connector=" + url.QueryEscape(name)
	}
	answer, err := r.get(ctx, path+query)
	if err != nil || !search {
		return answer, err
	}
	e, err := decode[admin.Event](answer)
	if err != nil || seen(e) {
		return answer, err
	}
	body := map[string]any{}
	if name != "" {
		body["connector"] = name
	}
	if answer, err = r.write(ctx, http.MethodPost, path+"/search", body); err != nil {
		return nil, err
	}
	for {
		if e, err = decode[admin.Event](answer); err != nil {
			return nil, err
		}
		running := false
		for _, c := range e.Connectors {
			if s := c.Search; s != nil && s.State == admin.SearchRunning {
				running = true
				r.p.warn("searching: " + progressOf(s))
			}
		}
		if !running {
			return answer, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if answer, err = r.get(ctx, path+query); err != nil {
			return nil, err
		}
	}
}

func progressOf(s *admin.Search) string {
	const mib = 1 << 20
	text := fmt.Sprintf("%d of about %d MiB, %d transactions", s.Bytes/mib, s.OfBytes/mib, s.Transactions)
	if s.At != nil {
		text += ", committed up to " + stamp(*s.At)
	}
	return text
}

func seen(e admin.Event) bool {
	for _, c := range e.Connectors {
		if c.Where != admin.EventNotSeen {
			return true
		}
	}
	return false
}

// tellEvent prints where an event is.
func (r *remote) tellEvent(answer json.RawMessage) error {
	e, err := decode[admin.Event](answer)
	if err != nil {
		return err
	}
	if err := r.print(answer, func(w io.Writer) error {
		var lines []string
		for _, c := range e.Connectors {
			lines = append(lines, eventLines(&c)...)
		}
		return columns(w, lines...)
	}); err != nil {
		return err
	}
	if !seen(e) {
		return &silentError{exitNotFound}
	}
	return nil
}

var whereTexts = map[string]string{
	admin.EventPublished: "published", admin.EventWaiting: "not published yet",
	admin.EventUnpublished: "skipped or dead-lettered",
	admin.EventPassed: "passed: the position has it behind it, so that it was published, or stood before the " +
		"connector's start; its place in Kafka is no longer known",
	admin.EventNotSeen: "not seen",
}

func eventLines(c *admin.ConnectorEvent) []string {
	out := []string{"connector " + c.Connector + "\t" + whereTexts[c.Where]}
	add := func(what, text string) { out = append(out, "  "+what+"\t"+text) }
	if w := c.Written; w != nil {
		add("written", writtenText(w))
	}
	for _, p := range c.Published {
		add("in Kafka", placeText(p))
	}
	if a := c.Unpublished; a != nil {
		add("skipped or dead-lettered", fmt.Sprintf("%s at %s: %s: %s", a.Action, stamp(a.At), a.Cause, a.Message))
		if a.DeadLetter != nil {
			add("dead letter", placeText(*a.DeadLetter))
		}
	}
	if c.Where == admin.EventWaiting {
		if c.Behind != nil {
			add("waits behind", strconv.FormatUint(*c.Behind, 10)+" transactions")
		}
		add("connector is", c.State)
		if c.Error != "" {
			add("since", c.Error)
		}
	}
	if c.Where == admin.EventNotSeen {
		add("known are", knownText(c.Known))
		if c.Search == nil {
			add("older ones", "are found with --search")
		}
	}
	if s := c.Search; s != nil {
		add("search", s.State+" ("+progressOf(s)+") "+s.Detail)
	}
	return out
}

func writtenText(w *admin.Written) string {
	if w.SnapshotRow > 0 {
		return fmt.Sprintf("before the start: snapshot row %d", w.SnapshotRow)
	}
	text := w.GTID
	if w.File != "" {
		if text != "" {
			text += " "
		}
		text += "at " + w.File + ":" + strconv.FormatUint(w.Pos, 10)
	}
	if w.CommittedAt != nil {
		text += ", committed " + stamp(*w.CommittedAt)
	}
	return text
}

func placeText(p admin.PartitionOffset) string {
	offset := "unknown"
	if p.Offset != nil {
		offset = strconv.FormatInt(*p.Offset, 10)
	}
	return fmt.Sprintf("%s partition %d offset %s, since %s", p.Topic, p.Partition, offset, stamp(p.At))
}

func knownText(k admin.EventsKnown) string {
	switch {
	case k.Off:
		return "none: events.recent is 0"
	case k.Since == nil:
		return "none"
	}
	return fmt.Sprintf("%d events, all that were published since %s", k.Events, stamp(*k.Since))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
