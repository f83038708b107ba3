package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
)

// EnvPrefix begins the name of every environment variable that sets something.
const EnvPrefix = "BINLOG_OUTBOX_"

// Layer is one source of settings. In Build a later layer wins over an earlier
// one; a list given again replaces the earlier list.
type Layer func(*builder)

// Setting is one value, for layers that are neither YAML nor environment.
type Setting struct {
	// Path is the setting, as in "connectors[0].source.host". An index one past
	// the end of a list makes a new element.
	Path string
	// Value is a string, which is parsed as the type of the setting, a []string
	// or a map[string]string. Strings may hold references.
	Value  any
	Origin Origin
	// Remote marks what came over the network, from somebody who need not have a
	// right to the files and the environment of this node: references stand in
	// secrets and users only, and are resolved by Builder.Remote, which also says
	// which files may be named.
	Remote bool
}

// Builder puts a Config together. Its zero value is ready for use.
type Builder struct {
	// Resolver reads what references refer to; nil is the process's own.
	Resolver *Resolver
	// Remote does so for settings that came over the network; nil refuses references
	// in them, and paths of files.
	Remote *Resolver
	// Blind reads nothing that secrets refer to, nothing that settings from the network
	// refer to, and looks for no file: for an answer to somebody who must not learn
	// what there is on this node.
	Blind bool
	// KeepReferences reads nothing that a reference refers to: texts keep the
	// reference, other types their default. It is for showing a configuration,
	// not for running it.
	KeepReferences bool
	// Checks are further rules for a connector, such as those of the router,
	// which this package does not know. They see only connectors that are in
	// order otherwise.
	Checks []Check
}

// Check looks at one connector. A FieldError in the chain of an error says which
// setting it is about; errors.Join gives several.
type Check func(*Connector) error

// FieldError is a problem with one setting.
type FieldError struct {
	// Path is the setting, within the connector: "outbox.route_regex".
	Path string
	Err  error
}

// Error implements error.
func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

type builder struct {
	Builder
	decoder

	config *Config
}

// File is a layer of YAML, read from a file when Build runs.
func File(path string) Layer {
	return func(b *builder) {
		data, err := os.ReadFile(path)
		if err != nil {
			b.problem("", Origin{File: path}, "reading the configuration: %v", reason(err))
			return
		}
		YAML(path, data)(b)
	}
}

// YAML is a layer of YAML text; name stands for the file in messages.
func YAML(name string, data []byte) Layer {
	return func(b *builder) {
		root, problems := parseYAML(name, data)
		b.problems = append(b.problems, problems...)
		if root != nil {
			b.decode("", reflect.ValueOf(b.config).Elem(), root)
		}
	}
}

// Settings is a layer of single values.
func Settings(list ...Setting) Layer {
	return func(b *builder) {
		for _, s := range list {
			b.set(s)
		}
	}
}

// Append is a layer of single values whose connectors come after those of the
// layers before: its "connectors[0]" is the next one.
func Append(list ...Setting) Layer {
	return func(b *builder) {
		base := len(b.config.Connectors)
		for _, s := range list {
			if rest, ok := strings.CutPrefix(s.Path, "connectors["); ok {
				number, rest, _ := strings.Cut(rest, "]")
				i, err := strconv.Atoi(number)
				if err != nil {
					b.problem(s.Path, s.Origin, "there is no connectors[%s]", number)
					continue
				}
				s.Path = index("connectors", base+i) + rest
			}
			b.set(s)
		}
	}
}

// IsSecret reports whether the setting at path is one whose value is never shown.
func IsSecret(path string) bool { return typeOf(generalPath(path)) == secretType }

// Build returns the configuration that layers make, on top of the defaults. The
// error is of type Problems and holds all that is wrong.
func Build(layers ...Layer) (*Config, error) { return (&Builder{}).Build(layers...) }

// Build is like the function Build.
func (o *Builder) Build(layers ...Layer) (*Config, error) {
	resolver := o.Resolver
	if resolver == nil {
		resolver = &Resolver{}
	}
	b := &builder{
		Builder: *o,
		decoder: decoder{
			table: fieldTable(), resolver: resolver, remote: cmp.Or(o.Remote, noReach), keep: o.KeepReferences,
			keepRemote: o.Blind,
			origins:    map[string]source{}, failed: map[string]bool{},
		},
		config: &Config{},
	}
	setDefaults(b.table, "", reflect.ValueOf(b.config).Elem())
	for _, layer := range layers {
		layer(b)
	}
	b.config.origins = b.origins
	b.config.veil(b.table)
	b.config.derive()
	b.validate()
	if len(b.problems) > 0 {
		return nil, b.problems.sorted()
	}
	return b.config, nil
}

func fieldTable() map[string]field {
	table := map[string]field{}
	for _, f := range fields() {
		table[f.path] = f
	}
	return table
}

// setDefaults writes the table's defaults into v, which is what path names.
// Lists are left empty.
func setDefaults(table map[string]field, path string, v reflect.Value) {
	if isSection(v.Type()) {
		for i := range v.NumField() {
			if key := v.Type().Field(i).Tag.Get("yaml"); key != "" {
				setDefaults(table, join(path, key), v.Field(i))
			}
		}
		return
	}
	if def := table[path].def; def != "" {
		// A test sets all defaults, so that a bad one can't reach a user.
		_ = setScalar(v, strings.Trim(def, `"`), nil)
	}
}

// NewConnector returns a connector with all defaults and no name.
func NewConnector() Connector {
	var c Connector
	setDefaults(fieldTable(), "connectors[]", reflect.ValueOf(&c).Elem())
	return c
}

// derive fills what follows from other settings.
func (c *Config) derive() {
	if c.Node.ID == "" {
		// Without a host name validation asks for node.id.
		c.Node.ID, _ = os.Hostname()
	}
	if c.Cluster.Advertise == "" {
		for _, p := range c.Cluster.ParsedPeers() {
			if p.ID == c.Node.ID {
				c.Cluster.Advertise = p.Address
			}
		}
	}
	for i := range c.Connectors {
		if c.Connectors[i].TopicPrefix == "" {
			c.Connectors[i].TopicPrefix = c.Connectors[i].Name
		}
	}
}

// set applies one Setting.
func (b *builder) set(s Setting) {
	v, err := b.find(s.Path)
	if err != nil {
		b.problem(s.Path, s.Origin, "%v", err)
		return
	}
	b.decode(s.Path, v, settingNode(s))
}

func settingNode(s Setting) *node {
	scalar := func(text string) *node {
		return &node{kind: scalarNode, text: text, at: s.Origin, remote: s.Remote}
	}
	switch value := s.Value.(type) {
	case []string:
		list := &node{kind: listNode, at: s.Origin}
		for _, item := range value {
			list.items = append(list.items, scalar(item))
		}
		return list
	case map[string]string:
		m := &node{kind: mappingNode, at: s.Origin}
		for key, item := range value {
			m.keys = append(m.keys, entry{key, s.Origin, scalar(item)})
		}
		return m
	default:
		n := scalar(fmt.Sprint(value))
		n.flat = true
		return n
	}
}

// find returns what path names, growing a list by one element if need be.
func (b *builder) find(path string) (reflect.Value, error) {
	v, at := reflect.ValueOf(b.config).Elem(), ""
	for part := range strings.SplitSeq(path, ".") {
		key, number, isList := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		if v.Kind() != reflect.Struct {
			return reflect.Value{}, fmt.Errorf("unknown setting; %s has no parts", at)
		}
		parent := v
		if v = fieldByKey(v, key); !v.IsValid() {
			return reflect.Value{}, fmt.Errorf("unknown setting%s", b.suggest(at, parent, key))
		}
		at = join(at, key)
		if !isList {
			continue
		}
		i, err := strconv.Atoi(number)
		if err != nil || v.Kind() != reflect.Slice || i < 0 || i > v.Len() {
			return reflect.Value{}, fmt.Errorf("there is no %s[%s]", at, number)
		}
		if i == v.Len() {
			b.grow(at, v)
		}
		v, at = v.Index(i), index(at, i)
	}
	return v, nil
}

// reason drops the name of the file from an error of os, which the message has.
func reason(err error) error {
	type wrapper interface{ Unwrap() error }
	if w, ok := err.(wrapper); ok && w.Unwrap() != nil {
		return w.Unwrap()
	}
	return err
}
