package node

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/connector"
)

// TestJudge: which states are well, which go by themselves, and which wait for somebody.
func TestJudge(t *testing.T) {
	failure, source := &connector.LastError{Code: "unreachable", Message: "away"}, &admin.Source{Connected: true}
	for name, test := range map[string]struct {
		c    admin.Connector
		want CheckStatus
		well bool
	}{
		"streaming":     {admin.Connector{State: "running", Phase: connector.Streaming, Source: source}, CheckOK, true},
		"snapshot rows": {admin.Connector{State: "running", Phase: connector.SnapshotRows, Source: source}, CheckOK, true},
		"finished":      {admin.Connector{State: "running", Phase: connector.Finished}, CheckOK, true},
		"paused":        {admin.Connector{State: "paused"}, CheckOK, true},
		"paused late":   {admin.Connector{State: "paused", LastError: failure}, CheckOK, true},
		"stopped":       {admin.Connector{State: "stopped"}, CheckOK, true},
		"elsewhere":     {admin.Connector{State: "unassigned"}, CheckOK, true},
		"starting":      {admin.Connector{State: "running", Phase: "opening sink"}, CheckUnknown, true},
		"retrying": {admin.Connector{State: "running", Phase: "waiting to retry", LastError: failure}, CheckWarning,
			false},
		"without a dump": {admin.Connector{State: "running", Phase: connector.Streaming, Source: &admin.Source{}},
			CheckWarning, false},
		"failed": {admin.Connector{State: "failed", LastError: failure}, CheckFailed, false},
	} {
		got, why := Judge(&test.c)
		if got != test.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", name, got, why, test.want)
		}
		if well := Well(admin.Status{Leader: "n1", Connectors: []admin.Connector{test.c}}); well != test.well {
			t.Errorf("%s: well %v", name, well)
		}
	}
	if Well(admin.Status{}) {
		t.Error("without a leader all is well")
	}
}

// TestLimitsAreOne: the page and the alerts have the limits of this package.
func TestLimitsAreOne(t *testing.T) {
	number := func(d float64) string { return fmt.Sprintf("%g", d) }
	hours := func(d float64) string { return fmt.Sprintf("%g \\* 3600", d) }
	for file, patterns := range map[string][]string{
		"../admin/page/judge.js": {
			"lagLimit = " + number(lagLimit.Seconds()) + ";", "purgeLimit = " + hours(purgeLimit.Hours()) + ";",
			"statusLimit = " + number(statusPollLimit.Seconds()) + ";",
			`left < purgeLimit && !\(left >= \(backlog\.retention_seconds \?\? Infinity\) / 2\)`,
		},
		"../deploy/prometheus/rules.yml": {
			`source_lag_seconds\) > ` + number(lagLimit.Seconds()) + "\n", `headroom_seconds\) < ` + hours(purgeLimit.Hours()) +
				"\n",
			`headroom_seconds / binlog_outbox_source_binlog_retention_seconds\) > 0\.5\n`,
			`polled_timestamp_seconds\) > ` + number(statusPollLimit.Seconds()) + "\n",
		},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range patterns {
			if !regexp.MustCompile(p).Match(text) {
				t.Errorf("%s has not %s", file, p)
			}
		}
	}
}
