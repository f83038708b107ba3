package connector

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/router"
)

// away is an encoder's error that passes.
type away struct{}

func (away) Error() string   { return "the registry is away" }
func (away) Retryable() bool { return true }
func (away) ErrCode() string { return "registry_away" }

// The packages' errors say by themselves what they are, however they are wrapped, and the
// outermost answer counts.
func TestErrorsSayWhatTheyAre(t *testing.T) {
	purged, cut := &canal.Error{Kind: canal.Purged}, &canal.Error{Kind: canal.Disconnected}
	fenced := &kafka.Error{Code: kafka.Fenced, Retry: true, Group: -1}
	tooLarge := &kafka.Error{Code: kafka.RecordTooLarge}
	for _, c := range []struct {
		err   error
		code  string
		retry bool
	}{
		{purged, "purged", false},
		{cut, "disconnected", true},
		{fmt.Errorf("opening: %w", purged), "purged", false},
		{errors.Join(errors.New("closing"), purged), "purged", false},
		{fenced, "fenced", true},
		{tooLarge, "record_too_large", false},
		{&RecordError{Err: tooLarge}, "record_too_large", false},
		{&DeadLetterError{Err: fenced}, "dead_letter_refused", false},
		{&RowError{Err: &router.Error{Code: router.CodeMissingColumn}}, string(router.CodeMissingColumn), false},
		{&RowError{Err: away{}}, "registry_away", true},
		{&RowError{Err: context.DeadlineExceeded}, "row_refused", false},
		{&PositionError{}, "position_regression", false},
		{&BeginAnew{Err: purged}, "purged", false},
		{errDrain, "drain_timeout", true},
		{fmt.Errorf("%w: %w", ErrSuperseded, errors.New("run 7")), "superseded", true},
		{fmt.Errorf("saving: %w", context.DeadlineExceeded), "timeout", true},
		{errors.New("what nobody has thought of"), "other", true},
	} {
		if got := code(c.err); got != c.code {
			t.Errorf("%v: code %s, want %s", c.err, got, c.code)
		}
		if got := retryable(c.err); got != c.retry {
			t.Errorf("%v: retryable %t, want %t", c.err, got, c.retry)
		}
	}
}
