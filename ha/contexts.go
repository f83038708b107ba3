package ha

import (
	"context"
	"time"
)

// both is ctx, ending with other as well.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}

// sleep waits, and reports whether ctx has lasted so long.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// within waits for f, which takes no context, as long as ctx lasts. f goes on after that.
func within[T any](ctx context.Context, f func() T) (out T, err error) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case out = <-done:
		return out, nil
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
}
