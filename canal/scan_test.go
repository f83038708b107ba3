package canal_test

import (
	"errors"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// TestScan: it reads from one place to another and no further, says where it ended, and
// ends where it is told to.
func TestScan(t *testing.T) {
	noLeaks(t)
	source := canaltest.StartOutbox(t, 20)
	at := func(gtids string) position.Position {
		t.Helper()
		set, err := position.ParseSet(position.MySQL, canaltest.SID+":"+gtids)
		if err != nil {
			t.Fatal(err)
		}
		return position.Position{Flavor: position.MySQL, Set: set}
	}
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		from, to string
		take     int // so many, then no more; or the error
		err      error
		want     int
		end      string
	}{
		"a part":         {"1-5", "1-15", 100, nil, 10, "1-15"},
		"nothing":        {"1-5", "1-5", 100, nil, 0, "1-5"},
		"less":           {"1-5", "1-4", 100, nil, 0, "1-5"},
		"until told":     {"1-5", "1-20", 3, nil, 3, "1-8"},
		"without an end": {"1-5", "", 15, nil, 15, "1-20"},
		"failed":         {"1-5", "1-20", 3, failed, 3, "1-8"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.to == "" {
				source.Commit(1) // or there is none to end at
			}
			cfg := canal.Config{
				Host: "127.0.0.1", Port: source.Port(), User: canaltest.User, Password: canaltest.Password, ServerID: 8,
				Tables: canal.Tables{Match: isOutbox}, SpoolDir: t.TempDir(),
			}
			var to position.Position
			if test.to != "" {
				to = at(test.to)
			}
			got := 0
			end, err := canal.Scan(t.Context(), cfg, at(test.from), to, func(
				tx *txn.Transaction, read canal.Status,
			) (bool, error) {
				if got == test.take {
					return false, test.err
				}
				got++
				if len(tx.Rows) != 1 || read.ReceivedBytes == 0 {
					t.Errorf("%+v after %d bytes", tx, read.ReceivedBytes)
				}
				return true, nil
			})
			if !errors.Is(err, test.err) || got != test.want || end.Set.String() != at(test.end).Set.String() {
				t.Errorf("%d transactions up to %s, %v; want %d, up to %s", got, end.Set, err, test.want, test.end)
			}
		})
	}
	if _, err := canal.Scan(t.Context(), canal.Config{Host: "127.0.0.1", Port: 1, ServerID: 8,
		Tables: canal.Tables{Match: isOutbox}, SpoolDir: t.TempDir()}, at("1-5"), at("1-5"), nil); err == nil {
		t.Error("a source that is away is not noticed where there is nothing to read")
	}
}
