package node

import (
	"context"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// veiled is log without what references of the connector's settings stand for: errors
// of servers name their addresses.
func veiled(log *slog.Logger, c *config.Connector) *slog.Logger {
	if !c.Veils() {
		return log
	}
	return slog.New(&veilingHandler{log.Handler(), c})
}

// unveiled is err without what references of the connector's settings stand for.
func unveiled(c *config.Connector, err error) error {
	if err == nil || !c.Veils() {
		return err
	}
	return &veiledError{text: c.Veil(err.Error()), err: err}
}

// veiledError says text in place of err, whose kind it keeps.
type veiledError struct {
	text string
	err  error
}

func (e *veiledError) Error() string { return e.text }
func (e *veiledError) Unwrap() error { return e.err }

// veilingHandler hides in texts and errors what references stand for.
type veilingHandler struct {
	slog.Handler
	connector *config.Connector
}

// Handle implements slog.Handler.
func (h *veilingHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.connector.Veil(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h *veilingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	hidden := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		hidden[i] = h.attr(a)
	}
	return &veilingHandler{h.Handler.WithAttrs(hidden), h.connector}
}

// WithGroup implements slog.Handler.
func (h *veilingHandler) WithGroup(name string) slog.Handler {
	return &veilingHandler{h.Handler.WithGroup(name), h.connector}
}

func (h *veilingHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.connector.Veil(v.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, g := range v.Group() {
			group = append(group, h.attr(g))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		switch any := v.Any().(type) {
		case error:
			a.Value = slog.StringValue(h.connector.Veil(any.Error()))
		case []string:
			hidden := make([]string, len(any))
			for i, text := range any {
				hidden[i] = h.connector.Veil(text)
			}
			a.Value = slog.AnyValue(hidden)
		}
	}
	return a
}
