package node

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	rulesFile     = "../deploy/prometheus/rules.yml"
	rulesTestFile = "../deploy/prometheus/rules_test.yml"
	dashboardFile = "../deploy/grafana/binlog-outbox.json"
	runbookFolder = "../docs/runbooks"
	runbookURL    = "https://github.com/binlog-outbox/binlog-outbox/blob/main/docs/runbooks/"
)

type rule struct {
	Record      string
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// known are the metrics of a node with their labels, and those that Prometheus and
// the rules add. Histograms are known by their series.
func known(t *testing.T) map[string][]string {
	t.Helper()
	r := &recorder{prometheus.NewRegistry(), map[string]bool{}}
	testDaemon(t, r)
	out := map[string][]string{}
	for _, name := range []string{"process_resident_memory_bytes", "process_cpu_seconds_total"} {
		out[name] = []string{"job", "instance"}
	}
	for d := range r.descs {
		m := descText.FindStringSubmatch(d)
		if m == nil {
			continue
		}
		labels := []string{"job", "instance"}
		for _, l := range strings.Split(m[3], ",") {
			name, _, _ := strings.Cut(l, "=")
			labels = append(labels, name)
		}
		labels = append(labels, strings.Split(strings.Trim(m[4], "{} "), ",")...)
		out[m[1]] = labels
		if strings.HasSuffix(m[1], "_seconds") {
			out[m[1]+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	return out
}

// checkExpression reports what of an expression can't give anything: what does not
// parse, metrics that no node has, and labels that such a metric has not.
func checkExpression(expr string, known map[string][]string) []string {
	parsed, err := metricsql.Parse(expr)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	labels := map[string]bool{}
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			name := filters[0].Value
			have, ok := known[name]
			if !ok || filters[0].Label != "__name__" {
				problems = append(problems, "no node has the metric "+name)
				continue
			}
			for _, l := range have {
				labels[l] = true
			}
			for _, f := range filters[1:] {
				if !slices.Contains(have, f.Label) {
					problems = append(problems, name+" has no label "+f.Label)
				}
			}
		}
	})
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		a, ok := e.(*metricsql.AggrFuncExpr)
		if !ok || a.Modifier.Op != "by" {
			return
		}
		for _, l := range a.Modifier.Args {
			if !labels[l] {
				problems = append(problems, "no metric in it has the label "+l)
			}
		}
	})
	return problems
}

// Every rule asks for something that a node gives.
func TestRulesAskForWhatThereIs(t *testing.T) {
	known := known(t)
	all := rules(t)
	if len(all) < 10 {
		t.Fatalf("there are %d rules", len(all))
	}
	for _, r := range all {
		for _, p := range checkExpression(r.Expr, known) {
			t.Errorf("%s%s: %s", r.Record, r.Alert, p)
		}
		if r.Alert == "" {
			continue
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["runbook_url"] != runbookURL+r.Alert+".md" {
			t.Errorf("%s: annotations %v", r.Alert, r.Annotations)
		}
	}
	for _, c := range []struct{ expr, want string }{
		{"sum(rate(", "unexpected token"},
		{"binlog_outbox_no_such_total > 0", "no node has the metric"},
		{`binlog_outbox_connector_state{status="failed"}`, "has no label status"},
		{"max by (conector) (binlog_outbox_connector_state)", "has the label conector"},
	} {
		if got := checkExpression(c.expr, known); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %v, want %s", c.expr, got, c.want)
		}
	}
}

// Each alert has a page that says what it means, where to look and what to do, no
// page is of an alert that is gone, and each alert is seen firing in a test.
func TestAlertsHaveRunbooksAndTests(t *testing.T) {
	tests, err := os.ReadFile(rulesTestFile)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(runbookFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		pages[strings.TrimSuffix(filepath.Base(f), ".md")] = true
	}
	known := known(t)
	metric := regexp.MustCompile(`binlog_outbox_\w+`)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !pages[r.Alert] {
			t.Errorf("%s has no page in docs/runbooks", r.Alert)
			continue
		}
		delete(pages, r.Alert)
		page, err := os.ReadFile(filepath.Join(runbookFolder, r.Alert+".md"))
		if err != nil {
			t.Fatal(err)
		}
		text := string(page)
		at := 0
		for _, part := range []string{"# " + r.Alert + "\n", "## What it means\n", "## Where to look\n", "## What to do\n"} {
			i := strings.Index(text[at:], part)
			if i < 0 {
				t.Errorf("%s: its page has no %q, or not in this order", r.Alert, strings.TrimSpace(part))
				break
			}
			at += i
		}
		for _, name := range metric.FindAllString(text, -1) {
			if known[name] == nil {
				t.Errorf("%s: its page names the metric %s, which no node has", r.Alert, name)
			}
		}
		if !strings.Contains(string(tests), `alertname="`+r.Alert+`"`) {
			t.Errorf("%s is seen firing by no test in %s", r.Alert, filepath.Base(rulesTestFile))
		}
	}
	if len(pages) > 0 {
		t.Errorf("pages without an alert: %v", slices.Sorted(maps.Keys(pages)))
	}
}

type panel struct {
	ID      int
	Type    string
	Title   string
	Panels  []panel
	Targets []struct{ Expr string }
}

// dashboardQueries are the expressions of the dashboard by panel, with Grafana's
// variables filled in.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID        string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "binlog-outbox" {
		t.Errorf("the dashboard's uid is %q: links to it would break", d.UID)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", ".+", "$connector", ".+")
	out := map[string][]string{}
	ids := map[int]bool{}
	var walk func([]panel)
	walk = func(ps []panel) {
		for _, p := range ps {
			if ids[p.ID] {
				t.Errorf("two panels have the id %d", p.ID)
			}
			ids[p.ID] = true
			for _, q := range p.Targets {
				out[p.Title] = append(out[p.Title], fill.Replace(q.Expr))
			}
			if p.Type != "row" && p.Type != "text" && len(p.Targets) == 0 {
				t.Errorf("panel %q asks for nothing", p.Title)
			}
			walk(p.Panels)
		}
	}
	walk(d.Panels)
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, v := range d.Templating.List {
		if m := values.FindStringSubmatch(v.Definition); m != nil {
			out["variable "+v.Name] = []string{"max by (" + m[2] + ") (" + fill.Replace(m[1]) + ")"}
		}
	}
	return out
}

func TestDashboardAsksForWhatThereIs(t *testing.T) {
	known := known(t)
	queries := dashboardQueries(t)
	if len(queries) < 20 || queries["variable connector"] == nil {
		t.Fatalf("%d panels and variables ask for something", len(queries))
	}
	for title, exprs := range queries {
		for _, e := range exprs {
			for _, p := range checkExpression(e, known) {
				t.Errorf("%s: %s: %s", title, e, p)
			}
		}
	}
}
