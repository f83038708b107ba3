package node

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// leastRetention is what a weekend without anybody needs.
const leastRetention = 48 * time.Hour

// Probe asks the servers of a connector for what it needs of them: the source first,
// then Kafka. It changes nothing there. It returns a check for each thing asked, also
// when a server can't be reached, and gives up when ctx ends. node names this node.
func Probe(ctx context.Context, node *config.Config, c *config.Connector) []Check {
	out := append(probeSource(ctx, node, c), probeSink(ctx, node, c)...)
	for i := range out {
		out[i].Detail, out[i].Fix = c.Veil(out[i].Detail), c.Veil(out[i].Fix)
	}
	return out
}

func probeSink(ctx context.Context, node *config.Config, c *config.Connector) []Check {
	kc, err := kafkaConfig(node, c)
	if err != nil {
		return []Check{{Name: "Kafka: configuration", Status: CheckFailed, Detail: err.Error()}}
	}
	exactly := c.Kafka.Delivery == config.ExactlyOnce
	var topics []string
	if !strings.Contains(c.Outbox.RouteTopic, "$") {
		topics = append(topics, c.Outbox.RouteTopic) // all rows go there
	}
	var out []Check
	for _, f := range kafka.Probe(ctx, kc, exactly, topics) {
		status := map[kafka.Level]CheckStatus{kafka.OK: CheckOK, kafka.Warning: CheckWarning,
			kafka.Failed: CheckFailed}[f.Level]
		out = append(out, Check{Name: "Kafka: " + f.Subject, Status: status, Detail: f.Text, Fix: f.Remedy})
	}
	return out
}

func probeSource(ctx context.Context, node *config.Config, c *config.Connector) []Check {
	failed := func(name string, err error) Check {
		return Check{Name: "source: " + name, Status: CheckFailed, Detail: err.Error()}
	}
	look, err := observe(node, c, "probe", nil)
	if err != nil {
		return []Check{failed("configuration", err)}
	}
	cc, err := look.connect()
	if err != nil {
		return []Check{failed("configuration", err)}
	}
	server, err := canal.Inspect(ctx, cc)
	if err != nil {
		return []Check{failed("connection", err)}
	}
	out := []Check{{Name: "source: connection", Status: CheckOK, Detail: fmt.Sprintf("%s %s at %s:%d", server.Flavor,
		server.Version, cc.Host, cc.Port)}}
	out = append(out, tlsCheck(c.Source.TLS.Mode, cc.Host))
	out = append(out, serverChecks(server, c.Source.Positions)...)
	at, err := canal.CurrentPosition(ctx, cc)
	if err == nil {
		_, err = look.scan(ctx, at, at, nil)
	}
	if err != nil {
		out = append(out, failed("right to read the binlog", err))
	} else {
		out = append(out, Check{Name: "source: right to read the binlog", Status: CheckOK, Detail: "now at " + at.String()})
	}
	for _, name := range cc.Tables.List {
		out = append(out, tableCheck(ctx, cc, look.route, name))
	}
	if look.patterns {
		out = append(out, patternCheck(ctx, cc))
	}
	if c.Source.Start.WithRows() {
		out = append(out, initialCheck(ctx, cc, server.GTIDMode == "ON" && c.Source.Positions != config.PositionsFile))
	}
	return out
}

// tlsCheck tells what somebody between here and the server can do. Nobody is between on
// the same host.
func tlsCheck(mode config.SSLMode, host string) Check {
	c := Check{Name: "source: TLS", Status: CheckOK, Detail: string(mode)}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return c
	}
	const fix = "set source.tls.mode to verify_identity, with source.tls.ca"
	switch mode {
	case config.SSLDisabled:
		c.Detail += ": whoever is between here and the server reads and changes what it sends"
		c.Status, c.Fix = CheckWarning, fix
	case config.SSLPreferred:
		c.Detail += ": whoever is between here and the server can have it go without TLS"
		c.Status, c.Fix = CheckWarning, fix
	case config.SSLRequired:
		c.Detail += ": whoever is between here and the server can pass for the server, since its certificate is not checked"
		c.Status, c.Fix = CheckWarning, fix
	}
	return c
}

// initialCheck reads a row of each outbox table, as the start will.
func initialCheck(ctx context.Context, cc canal.Config, byGTID bool) Check {
	const name = "source: rows that stand in the tables"
	tables, rows, err := canal.CheckSnapshot(ctx, cc, byGTID)
	switch {
	case err != nil:
		return Check{
			Name: name, Status: CheckFailed, Detail: err.Error(),
			Fix: fmt.Sprintf("the tables need a primary key and an engine with transactions, and user %s SELECT on them; or "+
				"set source.start to current", cc.User),
		}
	case tables == 0:
		return Check{Name: name, Status: CheckWarning, Detail: "there is no such table yet"}
	}
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf("%d tables, about %d rows", tables, rows)}
}

// patternCheck shows which tables are outboxes by a pattern.
func patternCheck(ctx context.Context, cc canal.Config) Check {
	c := Check{Name: "source: tables by source.table_patterns", Status: CheckFailed}
	const shown = 10
	names, err := canal.Matching(ctx, cc)
	switch {
	case err != nil:
		c.Detail = err.Error()
	case len(names) == 0 && len(cc.Tables.List) > 0:
		c.Status, c.Detail = CheckWarning, "none matches, or user "+cc.User+" may not see it"
	case len(names) == 0:
		c.Detail, c.Fix = "none matches, or user "+cc.User+" may not see it",
			"a pattern is held against the whole of database.table"
	default:
		c.Status = CheckOK
		text := make([]string, 0, shown)
		for _, n := range names[:min(len(names), shown)] {
			text = append(text, n.String())
		}
		c.Detail = strings.Join(text, ", ")
		if len(names) > shown {
			c.Detail += fmt.Sprintf(" and %d more", len(names)-shown)
		}
	}
	return c
}

func serverChecks(s *canal.Server, mode config.PositionMode) []Check {
	setting := func(name, have string, fix string, good ...string) Check {
		c := Check{Name: "source: " + name, Status: CheckOK, Detail: have}
		if !slices.Contains(good, have) {
			c.Status, c.Fix = CheckFailed, fix
		}
		return c
	}
	out := []Check{
		setting("log_bin", s.LogBin, "start the server with --log-bin", "ON", "1"),
		setting("binlog_format", s.BinlogFormat, "SET PERSIST binlog_format = ROW; statements can't be published", "ROW"),
		setting("binlog_row_image", s.RowImage, "SET PERSIST binlog_row_image = FULL; columns that are not logged can't be "+
			"published", "FULL"),
	}
	gtid := setting("gtid_mode", s.GTIDMode,
		"switch GTIDs on: without them the position is lost at a failover of the server", "ON")
	if gtid.Status == CheckFailed && mode != config.PositionsGTID {
		gtid.Status = CheckWarning
	}
	out = append(out, gtid)
	if s.RowMetadata != "" {
		meta := setting("binlog_row_metadata", s.RowMetadata,
			"SET PERSIST binlog_row_metadata = FULL, so that each row carries its column names and DDL can't confuse them",
			"FULL")
		if meta.Status == CheckFailed {
			meta.Status = CheckWarning
		}
		out = append(out, meta)
	}
	durable := Check{Name: "source: durability", Status: CheckOK,
		Detail: fmt.Sprintf("sync_binlog=%s, innodb_flush_log_at_trx_commit=%s", s.SyncBinlog, s.FlushLog)}
	if s.SyncBinlog != "1" || s.FlushLog != "1" {
		durable.Status = CheckWarning
		durable.Fix = "set both to 1: otherwise a crash of the host may lose transactions that were published, and give " +
			"their numbers to others"
	}
	keep := Check{Name: "source: binlog retention", Status: CheckOK, Detail: "for ever"}
	if s.Retention > 0 {
		keep.Detail = s.Retention.String()
		if s.Retention < leastRetention {
			keep.Status, keep.Fix = CheckWarning, "keep binlogs longer than this connector may ever be away"
		}
	}
	return append(out, durable, keep)
}

func tableCheck(ctx context.Context, cc canal.Config, route *router.Encoder, name schema.Name) Check {
	c := Check{Name: "source: table " + name.String(), Status: CheckFailed,
		Fix: "create the table with the columns that the configuration names"}
	columns, err := canal.Columns(ctx, cc, name)
	if err == nil && len(columns) == 0 {
		name, columns, err = otherSpelling(ctx, cc, name)
	}
	switch {
	case err != nil:
		c.Detail, c.Fix = err.Error(), ""
		return c
	case len(columns) == 0:
		c.Detail = fmt.Sprintf("it does not exist, or user %s may not see it", cc.User)
		return c
	}
	t, err := schema.FromInformationSchema(name, columns)
	if err == nil {
		err = route.Check(t)
	}
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	return Check{Name: c.Name, Status: CheckOK, Detail: fmt.Sprintf("%d columns, %d of them used", len(t.Columns),
		len(route.Columns(t)))}
}
