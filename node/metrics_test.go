package node

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/binlog-outbox/binlog-outbox/config"
)

var writePage = flag.Bool("write", false, "write docs/metrics.md anew")

// testDaemon builds a whole node that talks to nobody.
func testDaemon(t *testing.T, reg Registry) *Node {
	t.Helper()
	dir := t.TempDir()
	cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, `
node: {id: n1, data_dir: %q}
admin: {listen: ""}
connectors:
  - name: orders
    source: {host: 127.0.0.1, port: 1, user: cdc, table: shop.outbox, start: earliest}
    kafka: {brokers: ["127.0.0.1:1"]}
`, dir)))
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg, Options{Metrics: reg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// recorder remembers the descriptions of everything that is registered, also of
// what has no value yet.
type recorder struct {
	*prometheus.Registry
	descs map[string]bool
}

func (r *recorder) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for d := range ch {
		r.descs[d.String()] = true
	}
	return r.Registry.Register(c)
}

func (r *recorder) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

var descText = regexp.MustCompile(`^Desc\{fqName: "(binlog_outbox_[^"]*)", help: "(.*)", unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// metricsPage is docs/metrics.md as the code has it.
func metricsPage(t *testing.T) string {
	t.Helper()
	r := &recorder{prometheus.NewRegistry(), map[string]bool{}}
	testDaemon(t, r)
	var rows []string
	for d := range r.descs {
		m := descText.FindStringSubmatch(d)
		if m == nil {
			continue // Go's and the process's own
		}
		var labels []string
		for _, l := range strings.Split(m[3], ",") {
			if name, _, ok := strings.Cut(l, "="); ok {
				labels = append(labels, "`"+name+"`")
			}
		}
		for _, l := range strings.Split(m[4], ",") {
			if l = strings.Trim(l, "{} "); l != "" {
				labels = append(labels, "`"+l+"`")
			}
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", m[1], strings.Join(labels, ", "),
			strings.ReplaceAll(m[2], `\"`, `"`)))
	}
	slices.Sort(rows)
	return "# Metrics\n\nMade from the code by `go generate ./node`. Beside these, `/metrics` has the `go_*` and " +
		"`process_*` series.\n\n" +
		"| name | labels | meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
}

func TestMetricNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	testDaemon(t, reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "binlog_outbox_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// docs/metrics.md names every metric that the code can give, and no other.
func TestMetricsPageIsCurrent(t *testing.T) {
	page := metricsPage(t)
	path := filepath.Join("..", "docs", "metrics.md")
	if *writePage {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Error("docs/metrics.md is stale; run: go generate ./node")
	}
}
