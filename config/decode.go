package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/converter"
)

// source is where a value came from, and what was written there when that was a
// reference.
type source struct {
	origin Origin
	// raw is the text as written, when it held a reference; else empty.
	raw string
	// value is what raw was resolved to; empty for secrets, which are resolved when
	// they are needed.
	value string
	// remote is set for what came over the network (Setting.Remote).
	remote bool
}

// decoder writes nodes into the structs, later ones over earlier ones.
type decoder struct {
	table    map[string]field // by general path
	resolver *Resolver
	// remote resolves the references of what came over the network; nil refuses them.
	remote *Resolver
	// keep leaves references unresolved, keepRemote those of what came over the network.
	keep, keepRemote bool
	origins          map[string]source
	failed           map[string]bool // paths that have a problem already
	problems         Problems
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
)

// generalPath turns "connectors[3].source.host" into "connectors[].source.host".
func generalPath(path string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(path, '[')
		if open < 0 {
			b.WriteString(path)
			return b.String()
		}
		b.WriteString(path[:open+1])
		path = path[open+1:]
		if end := strings.IndexByte(path, ']'); end >= 0 {
			path = path[end:]
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) problem(path string, at Origin, format string, args ...any) {
	d.failed[path] = true
	d.problems = append(d.problems, Problem{Origin: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// decode writes n into v, which is the setting at path.
func (d *decoder) decode(path string, v reflect.Value, n *node) {
	if n.kind == nullNode {
		return // "key:" with nothing behind it keeps the default
	}
	switch {
	case v.Kind() == reflect.Struct && v.Type() != secretType:
		d.section(path, v, n)
	case v.Kind() == reflect.Slice:
		d.list(path, v, n)
	case v.Kind() == reflect.Map:
		d.stringMap(path, v, n)
	default:
		d.scalar(path, v, n)
	}
}

func (d *decoder) section(path string, v reflect.Value, n *node) {
	if n.kind == scalarNode {
		// A converter may be written as its type alone.
		if f, ok := v.Addr().Interface().(*converter.Options); ok {
			d.decode(join(path, "type"), reflect.ValueOf(f).Elem().FieldByName("Type"), n)
			return
		}
	}
	if n.kind != mappingNode {
		d.problem(path, n.at, "a section is wanted here, not %s", n.kind)
		return
	}
	d.origins[path] = source{origin: n.at}
	for _, e := range n.keys {
		name := join(path, e.name)
		f := fieldByKey(v, e.name)
		if !f.IsValid() {
			d.problem(name, e.at, "unknown key%s", d.suggest(path, v, e.name))
			continue
		}
		if _, ok := d.origins[name]; !ok {
			d.origins[name] = source{origin: e.at}
		}
		d.decode(name, f, e.value)
	}
}

func (d *decoder) list(path string, v reflect.Value, n *node) {
	if n.kind == scalarNode && n.flat && v.Type().Elem().Kind() == reflect.String {
		n = splitFlat(n)
	}
	if n.kind != listNode {
		d.problem(path, n.at, "a list is wanted here, not %s; write [a, b]", n.kind)
		return
	}
	d.origins[path] = source{origin: n.at}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(n.items)))
	for i, item := range n.items {
		d.decode(index(path, i), d.grow(path, v), item)
	}
}

// grow appends an element with its defaults to the list at path.
func (d *decoder) grow(path string, v reflect.Value) reflect.Value {
	item := reflect.New(v.Type().Elem()).Elem()
	setDefaults(d.table, path+"[]", item)
	v.Set(reflect.Append(v, item))
	return v.Index(v.Len() - 1)
}

func splitFlat(n *node) *node {
	list := &node{kind: listNode, at: n.at}
	if strings.TrimSpace(n.text) == "" {
		return list
	}
	for part := range strings.SplitSeq(n.text, ",") {
		list.items = append(list.items, &node{kind: scalarNode, text: strings.TrimSpace(part), at: n.at, remote: n.remote})
	}
	return list
}

func (d *decoder) stringMap(path string, v reflect.Value, n *node) {
	if n.kind == scalarNode && n.flat {
		m := &node{kind: mappingNode, at: n.at}
		for _, part := range splitFlat(n).items {
			key, value, _ := strings.Cut(part.text, "=")
			m.keys = append(m.keys, entry{strings.TrimSpace(key), n.at, &node{kind: scalarNode, text: strings.TrimSpace(value),
				at: n.at, remote: n.remote}})
		}
		n = m
	}
	if n.kind != mappingNode {
		d.problem(path, n.at, "pairs are wanted here, not %s; write {name: value}", n.kind)
		return
	}
	d.origins[path] = source{origin: n.at}
	m := reflect.MakeMapWithSize(v.Type(), len(n.keys))
	for _, e := range n.keys {
		var text string
		d.scalar(join(path, e.name), reflect.ValueOf(&text).Elem(), e.value)
		m.SetMapIndex(reflect.ValueOf(e.name), reflect.ValueOf(text))
	}
	v.Set(m)
}

func (d *decoder) scalar(path string, v reflect.Value, n *node) {
	if n.kind != scalarNode {
		d.problem(path, n.at, "%s is wanted here, not %s", wanted(v.Type()), n.kind)
		return
	}
	from := source{origin: n.at, remote: n.remote}
	text, resolver, keep := n.text, d.resolver, d.keep
	if n.remote {
		resolver, keep = d.remote, d.keep || d.keepRemote
	}
	if HasReference(text) {
		from.raw = text
		switch secret := v.Type() == secretType; {
		case n.remote && !secret && !d.table[generalPath(path)].login:
			d.problem(path, n.at, "a connector that comes over the REST API may refer to files and variables in passwords, "+
				"keys and users only; write the value itself")
			return
		case !secret && !keep:
			var err error
			if text, err = resolver.Resolve(text); err != nil {
				d.problem(path, n.at, "%v", err)
				return
			}
			from.value = text
		}
	}
	d.origins[path] = from
	if from.raw != "" && keep && v.Kind() != reflect.String && v.Type() != secretType {
		return // nothing to parse yet; the default stands in
	}
	if err := setScalar(v, text, resolver); err != nil {
		if from.raw != "" {
			// What a reference stands for may be a secret.
			err = fmt.Errorf("what %s stands for is not %s", from.raw, wanted(v.Type()))
		}
		d.problem(path, n.at, "%v", err)
	}
}

// setScalar parses text as the type of v. Its errors quote the text.
func setScalar(v reflect.Value, text string, resolver *Resolver) error {
	bad := func() error { return fmt.Errorf("%q is not %s", text, wanted(v.Type())) }
	if s, ok := v.Addr().Interface().(*Secret); ok {
		*s = Secret{text: text, resolver: resolver}
		return nil
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return bad()
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		if v.Type() == durationType {
			d, err := time.ParseDuration(text)
			if err != nil {
				return bad()
			}
			v.SetInt(int64(d))
			return nil
		}
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return bad()
		}
		v.SetInt(i)
	case reflect.Uint32:
		u, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return bad()
		}
		v.SetUint(u)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return bad()
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("no way to read a %s", v.Type())
	}
	return nil
}

// wanted names a type in messages.
func wanted(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 30s or 500ms"
	case t == reflect.TypeFor[Size]():
		return "a number of bytes such as 64MiB"
	case t == secretType || t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Uint32:
		return "a whole number from 0 to 4294967295"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Map:
		return "pairs"
	default:
		return "a whole number"
	}
}

// fieldByKey returns the field of the struct v whose YAML key is key.
func fieldByKey(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == key && key != "" {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func keysOf(v reflect.Value) []string {
	var keys []string
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// suggest says what an unknown key may have meant: a neighbour that is spelled
// nearly so, the same key in another section, or Debezium's word for a setting.
func (d *decoder) suggest(path string, v reflect.Value, name string) string {
	if near := Nearest(name, keysOf(v)); near != "" {
		// Else a key that is required would be asked for in another line.
		d.failed[join(path, near)] = true
		return fmt.Sprintf("; did you mean %q?", near)
	}
	general := generalPath(path)
	for _, f := range fields() {
		for _, replaced := range f.replaced() {
			option, isRouter := strings.CutPrefix(replaced, "transforms.*.")
			if replaced == name || isRouter && (name == option || strings.HasSuffix(name, "."+option)) {
				return fmt.Sprintf("; it is Debezium's or Kafka Connect's name of %s here (\"config convert\" turns a whole "+
					"file over)", f.path)
			}
		}
	}
	for _, f := range fields() {
		if strings.HasSuffix(f.path, "."+name) && f.path != join(general, name) {
			return fmt.Sprintf("; did you mean %s?", f.path)
		}
	}
	return "; \"binlog-outbox config reference\" lists all keys"
}
