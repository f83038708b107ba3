package rules

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const folder = "../../deploy/prometheus"

func promtool(t *testing.T, args ...string) string {
	t.Helper()
	cmd, err := servers.Promtool(t.Context(), t.Output(), args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestRulesAreValid(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(folder, "rules.yml"))
}

// Each alert fires when it should, and none does when all is well.
func TestAlertsFire(t *testing.T) {
	promtool(t, "test", "rules", filepath.Join(folder, "rules_test.yml"))
}

// The dashboard's queries parse, as rules of a file.
func TestDashboardQueriesAreValid(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/binlog-outbox.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string            `json:"record"`
		Expr   string            `json:"expr"`
		Labels map[string]string `json:"labels"`
	}
	var rules []rule
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", ".+", "$connector", ".+")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("query:%d", len(rules)), fill.Replace(q.Expr),
				map[string]string{"panel": p.Title}})
		}
	}
	if len(rules) < 20 {
		t.Fatalf("the dashboard has %d queries", len(rules))
	}
	file, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := promtool(t, "check", "rules", path); !strings.Contains(out, fmt.Sprintf("%d rules found", len(rules))) {
		t.Errorf("promtool says: %s", out)
	}
}
