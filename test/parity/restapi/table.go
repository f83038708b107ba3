package restapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// inPath are the parts of a path that are names.
var inPath = []struct {
	match *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`\?.*`), ""},
	{regexp.MustCompile(`/connectors/[a-z]+`), "/connectors/{name}"},
	{regexp.MustCompile(`/tasks/[0-9a-z]+/`), "/tasks/{n}/"},
	{regexp.MustCompile(`/connector-plugins/[A-Za-z.]+`), "/connector-plugins/{class}"},
	{regexp.MustCompile(`/admin/loggers/[a-z.]+`), "/admin/loggers/{logger}"},
}

// Table returns, in Markdown, for every route that was compared whether it answers
// as Connect does, and what not and why.
func Table() string {
	type row struct {
		route string
		steps int
		// diffs are what and why, each with the steps that show it.
		diffs []string
		names map[string][]string
	}
	var rows []*row
	differences := Differences()
	for _, s := range Steps() {
		route := s.Path
		for _, p := range inPath {
			route = p.match.ReplaceAllString(route, p.with)
		}
		if strings.Contains(route, "nosuch") {
			route = "(no such path)"
		}
		route = s.Method + " " + route
		i := slices.IndexFunc(rows, func(r *row) bool { return r.route == route })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &row{route: route, names: map[string][]string{}})
		}
		r := rows[i]
		r.steps++
		if d, ok := differences[s.Name]; ok {
			if r.names[d.Why] == nil {
				r.diffs = append(r.diffs, d.Why)
			}
			r.names[d.Why] = append(r.names[d.Why], fmt.Sprintf("%s: %s", s.Name, strings.Join(d.Found, ", ")))
		}
	}
	var b strings.Builder
	b.WriteString("| Route | Requests compared | Different |\n|---|---|---|\n")
	for _, r := range rows {
		what := "no"
		for i, why := range r.diffs {
			if i == 0 {
				what = ""
			} else {
				what += ". "
			}
			what += fmt.Sprintf("%s (*%s*)", why, strings.Join(r.names[why], "; "))
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", r.route, r.steps, what)
	}
	return b.String()
}
