package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// newRoute makes what turns one connector's rows into records.
func newRoute(c *config.Connector, reg prometheus.Registerer) (*router.Encoder, error) {
	rc, err := routerConfig(c)
	if err != nil {
		return nil, err
	}
	by, err := newConverters(&c.Format, c.Debezium.Quirks)
	if err != nil {
		return nil, err
	}
	enc, err := router.NewEncoder(rc, by, c.Heartbeat.TopicPrefix, reg)
	if err != nil {
		return nil, err
	}
	if c.Heartbeat.Interval > 0 {
		// It is known now whether the converters can take them.
		if _, err := enc.Heartbeat(&txn.Arena{}, time.Now()); err != nil {
			return nil, fmt.Errorf("heartbeat.interval is set and the converters can't write heartbeat records: %w", err)
		}
	}
	return enc, nil
}

func routerConfig(c *config.Connector) (router.Config, error) {
	rc := router.Config{Options: c.Outbox, Modes: c.Values, TopicPrefix: c.TopicPrefix, Quirks: c.Debezium.Quirks}
	var err error
	if rc.Modes.Columns, err = columnRules(&c.Columns); err != nil {
		return rc, err
	}
	if c.Headers.Context {
		id, err := uuid.NewV7()
		if err != nil {
			return rc, fmt.Errorf("making the run id: %w", err)
		}
		rc.Context = router.ContextHeaders(c.TopicPrefix, id.String())
	}
	rc.Follow(c.Debezium.Compat)
	return rc, nil
}

// columnRules are nil when no column is left out or changed.
func columnRules(c *config.Columns) (*converter.ColumnRules, error) {
	if len(c.Include)+len(c.Exclude)+len(c.Changes) == 0 {
		return nil, nil
	}
	out := &converter.ColumnRules{}
	listed, err := config.ColumnMatcher(append(slices.Clone(c.Include), c.Exclude...))
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	switch {
	case len(c.Include) > 0:
		out.Includes = listed
	case len(c.Exclude) > 0:
		out.Includes = func(name string) (bool, error) {
			excluded, err := listed(name)
			return !excluded, err
		}
	}
	for i := range c.Changes {
		change, err := columnChange(&c.Changes[i])
		if err != nil {
			return nil, fmt.Errorf("columns.changes[%d]: %w", i, err)
		}
		out.Changes = append(out.Changes, change)
	}
	return out, nil
}

func columnChange(c *config.ColumnChange) (converter.ColumnChange, error) {
	matches, err := config.ColumnMatcher(c.Columns)
	if err != nil {
		return converter.ColumnChange{}, err
	}
	switch c.Action {
	case config.ColumnTruncate:
		return converter.TruncateColumns(matches, c.Length), nil
	case config.ColumnMask:
		return converter.MaskColumns(matches, c.Length), nil
	}
	salt, err := c.Salt.Resolve()
	if err != nil {
		return converter.ColumnChange{}, fmt.Errorf("salt: %w", err)
	}
	version := 2
	if c.Action == config.ColumnHash {
		version = 1
	}
	change, ok := converter.HashColumns(matches, c.Algorithm, salt, version)
	if !ok {
		return change, fmt.Errorf("algorithm %q is not one of %s", c.Algorithm, strings.Join(config.HashAlgorithms(), ", "))
	}
	return change, nil
}

func newConverters(f *config.Format, quirks bool) (out router.Converters, err error) {
	for _, part := range []struct {
		name string
		from converter.Options
		to   *converter.Converter
	}{{"key", f.Key, &out.Key}, {"value", f.Value, &out.Value}, {"header", f.Header, &out.Header}} {
		if *part.to, err = converter.New(part.from, quirks); err != nil {
			return out, fmt.Errorf("format.%s: %w", part.name, err)
		}
	}
	return out, nil
}

// updateLogEvery is how often updates that are passed over are logged at most.
const updateLogEvery = 10 * time.Second

// updateLog logs updates of outbox rows that are passed over, as on_update says.
type updateLog struct {
	log   *slog.Logger
	level slog.Level
	last  time.Time
	more  uint64 // since last
}

// newUpdateLog logs in the level that how stands for.
func newUpdateLog(log *slog.Logger, how string) *updateLog {
	if how == router.UpdateError {
		return &updateLog{log: log, level: slog.LevelError}
	}
	return &updateLog{log: log, level: slog.LevelWarn}
}

func (l *updateLog) note(table schema.Name) {
	now := time.Now()
	if l.more++; now.Sub(l.last) < updateLogEvery {
		return
	}
	l.log.Log(context.Background(), l.level, "rows of an outbox table were updated; that is passed over, as updates are "+
		"no events",
		slog.String("table", table.String()), slog.Uint64("updates", l.more))
	l.last, l.more = now, 0
}
