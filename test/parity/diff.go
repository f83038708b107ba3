package parity

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Diff says what is different between two results, empty when nothing is. Whether a
// task has failed counts, and how in Debezium's words.
func Diff(want, got Result) string {
	switch {
	case firstLine(want.Refused) != firstLine(got.Refused):
		return fmt.Sprintf("refused %q, want %q", got.Refused, want.Refused)
	case want.Failed != got.Failed:
		return fmt.Sprintf("failed %q, want %q", got.Failed, want.Failed)
	default:
		return DiffRecords(want.Records, got.Records)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// DiffRecords compares records partition by partition.
func DiffRecords(want, got []Record) string {
	type place struct {
		topic     string
		partition int32
	}
	split := func(list []Record) map[place][]Record {
		m := map[place][]Record{}
		for _, r := range list {
			p := place{r.Topic, r.Partition}
			m[p] = append(m[p], r)
		}
		return m
	}
	var out []string
	w, g := split(want), split(got)
	for p := range g {
		if _, ok := w[p]; !ok {
			w[p] = nil
		}
	}
	for p, wr := range w {
		gr := g[p]
		if len(wr) != len(gr) {
			out = append(out, fmt.Sprintf("%s/%d: %d records, want %d", p.topic, p.partition, len(gr), len(wr)))
		}
		for i := range min(len(wr), len(gr)) {
			if d := diffRecord(&wr[i], &gr[i]); d != "" {
				out = append(out, fmt.Sprintf("%s/%d record %d: %s", p.topic, p.partition, i, d))
			}
		}
	}
	slices.Sort(out)
	if len(out) > 12 {
		out = append(out[:12], fmt.Sprintf("and %d more", len(out)-12))
	}
	return strings.Join(out, "\n")
}

func diffRecord(want, got *Record) string {
	var out []string
	add := func(what string, w, g Bytes) {
		if !bytes.Equal(w, g) || (w == nil) != (g == nil) {
			out = append(out, fmt.Sprintf("%s\n     got %s\n    want %s", what, show(g), show(w)))
		}
	}
	add("key", want.Key, got.Key)
	add("value", want.Value, got.Value)
	if want.Time != got.Time {
		out = append(out, fmt.Sprintf("timestamp %d, want %d", got.Time, want.Time))
	}
	names := func(h []Header) (s []string) {
		for _, one := range h {
			s = append(s, one.Name)
		}
		return s
	}
	if !slices.Equal(names(want.Headers), names(got.Headers)) {
		out = append(out, fmt.Sprintf("headers %q, want %q", names(got.Headers), names(want.Headers)))
	} else {
		for i := range want.Headers {
			add("header "+want.Headers[i].Name, want.Headers[i].Value, got.Headers[i].Value)
		}
	}
	return strings.Join(out, "\n  ")
}

func show(b Bytes) string {
	if b == nil {
		return "null"
	}
	if len(b) > 700 {
		return fmt.Sprintf("%q... (%d bytes)", b[:700], len(b))
	}
	return fmt.Sprintf("%q", b)
}
