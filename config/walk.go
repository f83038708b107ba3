package config

import (
	"reflect"
	"strings"
)

// walk calls visit for every setting (not section) in v, in the order of the
// structs, with its path.
func walk(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	switch {
	case isSection(v.Type()):
		for i := range v.NumField() {
			if key := v.Type().Field(i).Tag.Get("yaml"); key != "" {
				walk(join(path, key), v.Field(i), visit)
			}
		}
	case v.Kind() == reflect.Slice && isSection(v.Type().Elem()):
		for i := range v.Len() {
			walk(index(path, i), v.Index(i), visit)
		}
	default:
		visit(path, v)
	}
}

func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && t != secretType }

// typeOf returns the type of the setting or section at a general path; nil when
// there is none.
func typeOf(general string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for part := range strings.SplitSeq(general, ".") {
		key, isItem := strings.CutSuffix(part, "[]")
		if t.Kind() != reflect.Struct {
			return nil
		}
		f := fieldByKey(reflect.New(t).Elem(), key)
		if !f.IsValid() {
			return nil
		}
		if t = f.Type(); isItem {
			t = t.Elem()
		}
	}
	return t
}

// leaf reports whether f is a setting and not a section or a list of sections.
func (f field) leaf() bool {
	t := typeOf(f.path)
	return t != nil && !isSection(t) && (t.Kind() != reflect.Slice || !isSection(t.Elem()))
}
