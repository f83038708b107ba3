package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// TestObserversDoNotDisturb: preview and the checklist read under server ids of their own,
// from the place that is asked for, and a start with the rows of the tables has them read
// no rows.
func TestObserversDoNotDisturb(t *testing.T) {
	source := canaltest.StartOutbox(t, 5)
	for _, start := range []config.Start{config.StartEarliest, config.StartSnapshotOnly} {
		yaml := strings.Replace(scriptedConnector(source, "127.0.0.1:1", ""), "start: earliest", "start: "+string(start), 1)
		cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, "node: {id: n1, data_dir: %q}\n%s", t.TempDir(), yaml)))
		if err != nil {
			t.Fatal(err)
		}
		for gtids, want := range map[string][]string{"": {"1", "2", "3", "4", "5"}, sid + ":1-3": {"4", "5"}} {
			var got []string
			err := Preview(t.Context(), cfg, &cfg.Connectors[0], config.StartEarliest, gtids,
				func(r *txn.Record, m *position.Commit) (bool, error) {
					if !strings.HasSuffix(m.GTID.String(), ":"+string(r.Value)) {
						t.Errorf("%s in %s", r.Value, m.GTID)
					}
					got = append(got, string(r.Value))
					return len(got) < len(want), nil
				})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("start %s, after %q: %q, %v; want %q", start, gtids, got, err, want)
			}
		}
		checks := Probe(t.Context(), cfg, &cfg.Connectors[0])
		if i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == "source: right to read the binlog" }); i < 0 ||
			checks[i].Status != CheckOK {
			t.Errorf("start %s: %+v", start, checks)
		}
	}
}
