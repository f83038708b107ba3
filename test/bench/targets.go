package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// target is a figure that the project has set itself.
type target struct {
	what   string
	want   float64
	better int // 1: at least; -1: at most
	unit   string
	digits int
	got    func(l *lab) (float64, bool)
}

// ratioOf is the median of one contestant's metric over another's.
func ratioOf(scenario, metric, first, other string) func(*lab) (float64, bool) {
	return func(l *lab) (float64, bool) {
		if !l.results.has(scenario, first, metric) || !l.results.has(scenario, other, metric) {
			return 0, false
		}
		return l.results.median(scenario, first, metric) / l.results.median(scenario, other, metric), true
	}
}

func value(scenario, metric, contestant string) func(*lab) (float64, bool) {
	return func(l *lab) (float64, bool) {
		return l.results.median(scenario, contestant, metric), l.results.has(scenario, contestant, metric)
	}
}

func targets() []target {
	return []target{
		{"catch-up, all rows, against Debezium's defaults", 8, 1, "×", 1, ratioOf(catchUp, "all", oursExactly, debDefault)},
		{"catch-up, all rows, against Debezium tuned", 8, 1, "×", 1, ratioOf(catchUp, "all", oursExactly, debTuned)},
		{"catch-up, first rows after a cold start, against Debezium's defaults", 12, 1, "×", 1,
			ratioOf(catchUp, "cold", oursExactly, debDefault)},
		{"catch-up, exactly_once of at_least_once", 0.9, 1, "×", 2, ratioOf(catchUp, "all", oursExactly, oursAtLeast)},
		{"CPU of a row, of that of Debezium's defaults", 0.1, -1, "×", 2, ratioOf(catchUp, "cpu", oursExactly, debDefault)},
		{"resident in catch-up", 64, -1, "MiB", 0, value(catchUp, "peak", oursExactly)},
		{"foreign rows, one-row transactions, against mysqlbinlog --raw", 2.5, 1, "×", 1,
			ratioOf("foreign", "single", oursExactly, mysqlbinlog)},
		{"foreign rows, bulk, against mysqlbinlog --raw", 1.2, 1, "×", 1,
			ratioOf("foreign", "bulk", oursExactly, mysqlbinlog)},
		{"foreign rows, one-row transactions, against Debezium's defaults", 4, 1, "×", 1,
			ratioOf("foreign", "single", oursExactly, debDefault)},
		{"latency at 1,000 rows/s, exactly_once, p50", 7, -1, "ms", 1, value("latency 1000", "p50", oursExactly)},
		{"latency at 1,000 rows/s, exactly_once, p99", 25, -1, "ms", 1, value("latency 1000", "p99", oursExactly)},
		{"latency at 1,000 rows/s, at_least_once, p50", 3, -1, "ms", 1, value("latency 1000", "p50", oursAtLeast)},
		{"latency at 1,000 rows/s, at_least_once, p99", 10, -1, "ms", 1, value("latency 1000", "p99", oursAtLeast)},
		{"latency at 1,000 rows/s, at_least_once p50 of that of Debezium tuned", 1. / 3, -1, "×", 2,
			ratioOf("latency 1000", "p50", oursAtLeast, debTuned)},
		{"CPU when idle", 0.5, -1, "% of a core", 2, value("latency 1000", "idle", oursExactly)},
		{"resident at 1,000 rows/s", 64, -1, "MiB", 0, value("latency 1000", "rss", oursExactly)},
		{"first event after the start", 0.5, -1, "s", 2, value("start", "first", oursExactly)},
		{"resident through the large transaction", 192, -1, "MiB", 0, value("large", "peak", oursExactly)},
		{"catch-up with 100 outbox tables, of that with one", 0.9, 1, "×", 2, variantRatio("tables")},
		{"catch-up with a large GTID set, of that with a small one", 0.9, 1, "×", 2, func(l *lab) (float64, bool) {
			small, ok := value("gtids", "plain", oursExactly)(l)
			large, _ := value("gtids", "gtids", oursExactly)(l)
			return large / small, ok
		}},
	}
}

func variantRatio(name string) func(*lab) (float64, bool) {
	return func(l *lab) (float64, bool) {
		plain, ok := value("shapes", "plain", oursExactly)(l)
		other, _ := value("shapes", name, oursExactly)(l)
		return other / plain, ok
	}
}

// targets is the table of what is aimed at and what was measured.
func (l *lab) targets() string {
	var b strings.Builder
	b.WriteString("| Aim | | Measured | |\n|---|---|---|---|\n")
	for _, t := range targets() {
		got, ok := t.got(l)
		if !ok {
			continue
		}
		sign, met := "≥", got >= t.want
		if t.better < 0 {
			sign, met = "≤", got <= t.want
		}
		word := "met"
		if !met {
			word = "**missed**"
		}
		digits := t.digits
		if t.want != float64(int(t.want)) {
			digits = max(digits, 1)
		}
		fmt.Fprintf(&b, "| %s | %s %s %s | %s %s | %s |\n", t.what, sign, figure(t.want, digits), t.unit,
			figure(got, t.digits), t.unit, word)
	}
	return b.String()
}

// settings prints options in a fixed order.
func settings(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ", ")
}
