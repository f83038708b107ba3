package restapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Compare says how got differs in form from want, which Connect gave to the step:
// in the status, the place of what was created, the keys of the JSON, and the states
// of connectors and tasks. What else stands behind the keys is each one's own.
func Compare(s *Step, want, got Answer) []string {
	var out []string
	if want.Status != got.Status {
		out = append(out, fmt.Sprintf("status %d, not %d", got.Status, want.Status))
	}
	if want.Location != got.Location {
		out = append(out, fmt.Sprintf("location %q, not %q", got.Location, want.Location))
	}
	// Where JAX-RS answers by itself it leaves the type out.
	if want.ContentType != "" && want.ContentType != got.ContentType {
		out = append(out, fmt.Sprintf("type %q, not %q", got.ContentType, want.ContentType))
	}
	a, b := forms(s, want), forms(s, got)
	for _, path := range slices.Sorted(maps.Keys(a)) {
		if !b[path] {
			out = append(out, "lacks "+path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b)) {
		if !a[path] {
			out = append(out, "has "+path)
		}
	}
	return out
}

// forms are the paths of all that is not null in an answer. An empty list or object
// has the path of what could be in it, no more.
func forms(s *Step, a Answer) map[string]bool {
	out := map[string]bool{}
	var v any
	if a.Body == nil || json.Unmarshal(a.Body, &v) != nil {
		return out
	}
	if m, ok := v.(map[string]any); ok && s.Names {
		list := make([]any, 0, len(m))
		for _, one := range m {
			list = append(list, one)
		}
		v = list
	}
	walk("$", v, out)
	return out
}

func walk(path string, v any, out map[string]bool) {
	switch v := v.(type) {
	case []any:
		out[path+"[]"] = true
		for _, one := range v {
			walk(path+"[]", one, out)
		}
	case map[string]any:
		out[path+"{}"] = true
		for key, one := range v {
			if text, ok := one.(string); ok && key == "state" {
				out[path+"."+key+" "+text] = true
				continue
			}
			walk(path+"."+key, one, out)
		}
	default: // null too: the key is there
		out[path] = true
	}
}
