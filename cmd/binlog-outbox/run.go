package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// Without GOMEMLIMIT the collector keeps to this, as far as live data allows. The
// queues are bounded well below it; it keeps garbage from doubling what a large
// transaction needs.
const memoryLimit = 128 << 20

// runDaemon works until ctx ends.
func runDaemon(ctx context.Context, cfg *config.Config, comp *compiler, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
	d, err := newDaemon(cfg, comp, log, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	log.Info("starting", "node", cfg.Node.ID, "version", version().Version, "connectors", len(cfg.Connectors))
	err = d.run(ctx)
	log.Info("stopped", "error", err)
	return err
}

// newLogger writes one event a line; text on a terminal and JSON elsewhere, unless
// the configuration says which.
func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // validated with the configuration
	levels := map[string]slog.Level{}
	for name, text := range cfg.Levels {
		var l slog.Level
		_ = l.UnmarshalText([]byte(text))
		levels[name] = l
	}
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if cfg.Format == "text" || cfg.Format == "auto" && isTerminal(w) {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(&leveled{Handler: h, level: level, levels: levels})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// leveled lets each component have a level of its own, by the attribute component.
type leveled struct {
	slog.Handler
	level  slog.Level
	levels map[string]slog.Level
}

// Enabled reports whether an event of this level is written.
func (h *leveled) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// WithAttrs looks for the component among the attributes.
func (h *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if l, ok := h.levels[strings.ToLower(a.Value.String())]; ok && a.Key == "component" {
			c.level = l
		}
	}
	return &c
}

// WithGroup keeps the level.
func (h *leveled) WithGroup(name string) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithGroup(name)
	return &c
}
