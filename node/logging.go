package node

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// rootLogger is the level of all that has none of its own.
const rootLogger = "root"

// NewLogger writes one event a line; text on a terminal and JSON elsewhere, unless
// the configuration says which.
func NewLogger(cfg config.Log, w io.Writer) *slog.Logger {
	l := &levels{now: time.Now, configured: map[string]slog.Level{rootLogger: parseLevel(cfg.Level)}}
	for name, text := range cfg.Levels {
		l.configured[strings.ToLower(name)] = parseLevel(text)
	}
	opts := &slog.HandlerOptions{Level: slog.LevelDebug}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if cfg.Format == "text" || cfg.Format == "auto" && IsTerminal(w) {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(&leveled{Handler: h, levels: l, name: rootLogger})
}

// parseLevel reads a level that was validated with the configuration.
func parseLevel(text string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(text))
	return level
}

func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// levels are the levels of all loggers of the process, which may be changed while
// it runs. It is safe for concurrent use.
type levels struct {
	now func() time.Time

	mu         sync.RWMutex
	configured map[string]slog.Level
	seen       map[string]bool
	changed    map[string]change
}

// change is a level in place of the configured one, until a time if that is not zero.
type change struct {
	level     slog.Level
	until, at time.Time
}

func (c change) over(now time.Time) bool { return !c.until.IsZero() && now.After(c.until) }

// see notes that there is a logger of this name.
func (l *levels) see(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[name] = true
}

// of returns the level of a logger and until when it holds.
func (l *levels) of(name string, now time.Time) change {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, n := range []string{name, rootLogger} {
		if c, ok := l.changed[n]; ok && !c.over(now) {
			return c
		}
		if level, ok := l.configured[n]; ok {
			return change{level: level}
		}
	}
	return change{}
}

// set changes a level; it reports whether there is such a logger.
func (l *levels) set(name string, c change) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.configured[name]; !known && !l.seen[name] {
		return false
	}
	if l.changed == nil {
		l.changed = map[string]change{}
	}
	l.changed[name] = c
	return true
}

// names are the loggers that there are, the root first.
func (l *levels) names() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := maps.Clone(l.seen)
	if all == nil {
		all = map[string]bool{}
	}
	for name := range l.configured {
		all[name] = true
	}
	delete(all, rootLogger)
	return append([]string{rootLogger}, slices.Sorted(maps.Keys(all))...)
}

// levelsOf are the levels of a logger of NewLogger; others have none.
func levelsOf(log *slog.Logger) *levels {
	if h, ok := log.Handler().(*leveled); ok {
		return h.levels
	}
	return &levels{}
}

// leveled lets each component have a level of its own, by the attribute component.
type leveled struct {
	slog.Handler
	levels *levels
	name   string
}

// Enabled reports whether an event of this level is written.
func (h *leveled) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.levels.of(h.name, h.levels.now()).level
}

// WithAttrs looks for the component among the attributes.
func (h *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.Handler = h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == "component" {
			c.name = strings.ToLower(a.Value.String())
			c.levels.see(c.name)
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
