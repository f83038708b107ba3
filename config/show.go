package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Show returns the configuration as YAML that can be read again: what was set,
// or with effective also what is in force by default. What was written as a
// reference is shown as it was written, and other secrets as "***".
func (c *Config) Show(effective bool) ([]byte, error) {
	return yaml.MarshalWithOptions(c.Tree(effective), yaml.IndentSequence(true))
}

// Tree returns what Show prints, as nested yaml.MapSlice, []any and plain values.
func (c *Config) Tree(effective bool) yaml.MapSlice {
	s := shower{config: c, effective: effective, table: fieldTable()}
	tree, _ := s.show("", reflect.ValueOf(c).Elem()).(yaml.MapSlice)
	return tree
}

// ConnectorSettings returns what was set of the connector at place i of the list,
// with paths within the connector: texts, numbers, []string and map[string]string.
// References are as they were written, and other secrets are Mask.
func (c *Config) ConnectorSettings(i int) []Setting {
	s := shower{config: c, table: fieldTable()}
	base := index("connectors", i)
	var out []Setting
	walk(base, reflect.ValueOf(&c.Connectors[i]).Elem(), func(path string, v reflect.Value) {
		if s.set(path, v) {
			out = append(out, Setting{Path: strings.TrimPrefix(path, base+"."), Value: s.leaf(path, v),
				Origin: c.origins[path].origin})
		}
	})
	return out
}

type shower struct {
	config    *Config
	effective bool
	table     map[string]field
}

// show returns the value to print, or nil for nothing.
func (s *shower) show(path string, v reflect.Value) any {
	switch {
	case isSection(v.Type()):
		var out yaml.MapSlice
		for i := range v.NumField() {
			key := v.Type().Field(i).Tag.Get("yaml")
			if key == "" {
				continue
			}
			if value := s.show(join(path, key), v.Field(i)); value != nil {
				out = append(out, yaml.MapItem{Key: key, Value: value})
			}
		}
		if out == nil {
			return nil
		}
		return out
	case v.Kind() == reflect.Slice && isSection(v.Type().Elem()):
		var out []any
		for i := range v.Len() {
			out = append(out, s.show(index(path, i), v.Index(i)))
		}
		if out == nil {
			return nil
		}
		return out
	case !s.effective && !s.set(path, v):
		return nil
	default:
		return s.leaf(path, v)
	}
}

// set reports whether the setting was given a value. For a Config that was put
// together in Go that is: any value but the default.
func (s *shower) set(path string, v reflect.Value) bool {
	if s.config.origins != nil {
		_, ok := s.config.origins[path]
		return ok
	}
	def := reflect.New(v.Type()).Elem()
	setDefaults(s.table, generalPath(path), def)
	return !reflect.DeepEqual(v.Interface(), def.Interface())
}

func (s *shower) leaf(path string, v reflect.Value) any {
	if raw := s.config.origins[path].raw; raw != "" {
		if v.Type() == secretType {
			return v.Interface().(Secret).Reference()
		}
		return raw
	}
	switch value := v.Interface().(type) {
	case Secret:
		return value.Reference()
	case time.Duration:
		return durationText(value)
	case Size:
		return value.String()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice:
		out := make([]string, v.Len())
		for i := range out {
			if out[i] = v.Index(i).String(); s.config.origins[index(path, i)].raw != "" {
				out[i] = s.config.origins[index(path, i)].raw
			}
		}
		return out
	case reflect.Map:
		out := map[string]string{}
		for _, key := range v.MapKeys() {
			out[key.String()] = v.MapIndex(key).String()
			if raw := s.config.origins[join(path, key.String())].raw; raw != "" {
				out[key.String()] = raw
			}
		}
		return out
	default:
		return v.Interface()
	}
}

// durationText writes 90s as "1m30s" and 60s as "1m", not "1m0s".
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// defaultText is how the reference writes a default.
func defaultText(f field) string {
	t := typeOf(f.path)
	switch {
	case f.def != "":
		return f.def
	case f.required:
		return ""
	case t == durationType:
		return "0s"
	case t.Kind() == reflect.Bool:
		return "false"
	case t.Kind() == reflect.Slice:
		return "[]"
	case t.Kind() == reflect.Map:
		return "{}"
	case t.Kind() == reflect.String || t == secretType:
		return strconv.Quote("")
	default:
		return "0"
	}
}
