package main

import (
	"fmt"
	"slices"
	"strings"
)

// results are all figures, by scenario, contestant and metric, in the order of runs.
type results map[key][]float64

type key struct{ scenario, contestant, metric string }

// metric is a column of a table.
type metric struct {
	name   string
	title  string
	digits int // behind the point
	// better is 1 when more is better, -1 when less is, 0 when it is not compared.
	better int
}

func (l *lab) note(scenario string, c contestant, metric string, value float64) {
	l.noteFor(scenario, c.name, metric, value)
}

func (l *lab) noteFor(scenario, contestant, metric string, value float64) {
	k := key{scenario, contestant, metric}
	l.results[k] = append(l.results[k], value)
	l.say("%-12s %-30s %-18s %.2f", scenario, contestant, metric, value)
}

func (r results) has(scenario, contestant, metric string) bool {
	return len(r[key{scenario, contestant, metric}]) > 0
}

// median is 0 when nothing was measured.
func (r results) median(scenario, contestant, metric string) float64 {
	list := r[key{scenario, contestant, metric}]
	if len(list) == 0 {
		return 0
	}
	return median(list)
}

// cell is the median and, of several runs, the spread.
func (r results) cell(scenario, contestant string, m metric) string {
	list := r[key{scenario, contestant, m.name}]
	switch len(list) {
	case 0:
		return ""
	case 1:
		return figure(list[0], m.digits)
	}
	return fmt.Sprintf("%s (%s–%s)", figure(median(list), m.digits), figure(slices.Min(list), m.digits),
		figure(slices.Max(list), m.digits))
}

// figure prints a figure with commas between thousands.
func figure(v float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, v)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest == "" {
		return whole
	}
	return whole + "." + rest
}

// table has a line for each contestant. Behind the figures of all but the first, in
// brackets, is how many times better the first one is.
func (l *lab) table(scenario string, contestants []string, metrics []metric) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, m := range metrics {
		fmt.Fprintf(&b, " %s |", m.title)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(metrics)))
	lines := 0
	for _, c := range contestants {
		if !slices.ContainsFunc(metrics, func(m metric) bool { return l.results.has(scenario, c, m.name) }) {
			continue
		}
		lines++
		fmt.Fprintf(&b, "| %s |", c)
		for _, m := range metrics {
			fmt.Fprintf(&b, " %s |", l.results.cell(scenario, c, m)+l.ratio(scenario, contestants[0], c, m))
		}
		b.WriteByte('\n')
	}
	if lines == 0 {
		return ""
	}
	return b.String()
}

func (l *lab) ratio(scenario, first, other string, m metric) string {
	if first == other || m.better == 0 || !l.results.has(scenario, first, m.name) ||
		!l.results.has(scenario, other, m.name) {
		return ""
	}
	return " [" + times(l.results.median(scenario, first, m.name), l.results.median(scenario, other, m.name), m.better) +
		"]"
}

func times(first, other float64, better int) string {
	if better < 0 {
		first, other = other, first
	}
	if other == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2g×", first/other)
}

// columns is table with a line for each metric.
func (l *lab) columns(scenario string, contestants []string, metrics []metric) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, c := range contestants {
		fmt.Fprintf(&b, " %s |", c)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(contestants)))
	for _, m := range metrics {
		fmt.Fprintf(&b, "| %s |", m.title)
		for _, c := range contestants {
			fmt.Fprintf(&b, " %s |", l.results.cell(scenario, c, m)+l.ratio(scenario, contestants[0], c, m))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
