package config

import (
	"strconv"
	"strings"
)

// Environ is a layer of environment variables ("NAME=value", as os.Environ gives
// them). A setting's variable is BINLOG_OUTBOX_ and its path in capitals:
//
//	BINLOG_OUTBOX_NODE_DATA_DIR                 node.data_dir
//	BINLOG_OUTBOX_CONNECTORS_0_SOURCE_PASSWORD  connectors[0].source.password
//	BINLOG_OUTBOX_KAFKA_BROKERS                 kafka.brokers of every connector
//
// BINLOG_OUTBOX_DATA_DIR and BINLOG_OUTBOX_DELIVERY are short for node.data_dir
// and kafka.delivery. Lists are separated by commas. An empty variable counts as
// not set, and unknown ones are left alone: Kubernetes puts variables of its own
// into every container, named after the services of the namespace.
func Environ(environ []string) Layer {
	return func(b *builder) {
		set := map[string]string{}
		for _, e := range environ {
			if name, value, ok := strings.Cut(e, "="); ok && value != "" && strings.HasPrefix(name, EnvPrefix) {
				set[strings.TrimPrefix(name, EnvPrefix)] = value
			}
		}
		b.environ(set)
	}
}

func (b *builder) environ(set map[string]string) {
	apply := func(name, path string) {
		if value, ok := set[name]; ok {
			b.set(Setting{Path: path, Value: value, Origin: Origin{File: "environment", Key: EnvPrefix + name}})
		}
	}
	apply("DATA_DIR", "node.data_dir")
	all := envFields()
	for _, f := range all {
		if f.connector == "" {
			apply(f.name, f.path)
		}
	}
	// Variables may also make connectors, one after the other.
	count := len(b.config.Connectors)
	for hasPrefix(set, "CONNECTORS_"+strconv.Itoa(count)+"_") {
		count++
	}
	for i := range count {
		path, name := index("connectors", i)+".", "CONNECTORS_"+strconv.Itoa(i)+"_"
		apply("DELIVERY", path+"kafka.delivery")
		for _, f := range all {
			// A name given to every connector would be the same name.
			if f.connector != "" && f.connector != "name" {
				apply(f.name, path+f.connector)
			}
		}
		for _, f := range all {
			if f.connector != "" {
				apply(name+f.name, path+f.connector)
			}
		}
	}
}

func hasPrefix(set map[string]string, prefix string) bool {
	for name := range set {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// envField is a setting that a variable can give. For the settings of a connector
// connector is the path within it, and name is without CONNECTORS_<n>_.
type envField struct{ name, path, connector string }

func envFields() []envField {
	var out []envField
	for _, f := range fields() {
		connector, _ := strings.CutPrefix(f.path, "connectors[].")
		switch {
		case !f.leaf() || strings.Contains(connector, "[]"):
		case connector != f.path:
			out = append(out, envField{name: envName(connector), path: f.path, connector: connector})
		default:
			out = append(out, envField{name: envName(f.path), path: f.path})
		}
	}
	return out
}

func envName(path string) string {
	return strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}
