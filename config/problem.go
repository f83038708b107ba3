package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Origin says where a setting was written.
type Origin struct {
	// File is the name of the file, or "environment".
	File string
	// Line and Column count from 1; 0 where there are none (JSON, environment).
	Line, Column int
	// Key is the name that the setting has there, when it is not our own path:
	// a Debezium key or the name of a variable.
	Key string
}

// String returns "file:line:column" or "file: key"; empty for the zero value.
func (o Origin) String() string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
	case o.File != "" && o.Key != "":
		return o.File + ": " + o.Key
	default:
		return o.File
	}
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Origin Origin
	// Path names the setting ("connectors[0].source.host"); empty for the whole file.
	Path string
	// Message says what is wrong and, after a semicolon, what to do.
	Message string
}

// String is one line: where, which setting, what, what to do.
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	for _, s := range []string{p.Origin.String(), p.Path, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems are all that is wrong with a configuration, in the order of the files.
// It is the error that Build returns; retrying without a change is of no use.
type Problems []Problem

// Error gives one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders by place and drops exact repetitions.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column),
			cmp.Compare(a.Path, b.Path),
		)
	})
	return slices.CompactFunc(p, func(a, b Problem) bool { return a == b })
}

// longestWord bounds what is compared with others: the time grows with the length.
const longestWord = 100

// Nearest returns the candidate that word is most likely a misspelling of, or "".
func Nearest(enumValue string, candidates []string) string {
	if len(enumValue) > longestWord {
		return ""
	}
	best, distance := "", max(2, len(enumValue)/3)+1
	for _, c := range candidates {
		if enumValue != "" && c != "" && (strings.HasPrefix(enumValue, c) || strings.HasPrefix(c, enumValue)) &&
			distance > 2 {
			best, distance = c, 2 // "warning" for warn
		}
		if d := EditDistance(strings.ToLower(enumValue), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// EditDistance counts insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment). Of texts of very different lengths, or long ones, it
// returns the difference of the lengths and a hundred.
func EditDistance(a, b string) int {
	if abs(len(a)-len(b)) > len(a)+2 || len(a) > longestWord || len(b) > longestWord {
		return abs(len(a)-len(b)) + longestWord
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
