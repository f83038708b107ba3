package debezium

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// The classes of the connectors that are replaced.
const (
	MySQLClass   = "io.debezium.connector.mysql.MySqlConnector"
	MariaDBClass = "io.debezium.connector.mariadb.MariaDbConnector"
)

// sameKey is the key of Debezium's or Kafka Connect's that a connector JSON gives the
// setting at path with; empty where there is none with the same meaning.
func sameKey(path string) (string, config.Equivalent) {
	for _, e := range config.Equivalents() {
		if e.Path != path || strings.Contains(e.Key, ".converter.") {
			continue
		}
		if option, ok := strings.CutPrefix(e.Key, routerPrefix); ok {
			return "transforms.outbox." + option, e
		}
		return e.Key, e
	}
	if path == "name" {
		return "name", config.Equivalent{Kind: config.Verbatim}
	}
	return "", config.Equivalent{}
}

// Describe returns the keys of a connector JSON that stand for the settings of a
// connector (config.Config.ConnectorSettings), for programs that know Debezium's:
// those that mean the same, and the others with "binlog.outbox." before their path.
// Convert makes the same settings of them, but for masked secrets.
func Describe(settings []config.Setting) map[string]string {
	out := map[string]string{"connector.class": MySQLClass, "transforms": "outbox", "transforms.outbox.type": routerClass}
	flavor := false
	for _, s := range settings {
		value := settingText(s.Value)
		flavor = flavor || s.Path == "source.flavor"
		switch {
		case s.Path == "source.flavor" && value == string(config.FlavorMariaDB):
			out["connector.class"] = MariaDBClass
		case s.Path == "source.flavor" && value == string(config.FlavorMySQL):
		default:
			key, e := sameKey(s.Path)
			text, same := written(e, s.Value)
			if key == "" || !same {
				key, text = ownPrefix+s.Path, value
			}
			out[key] = text
		}
	}
	if !flavor {
		out[ownPrefix+"source.flavor"] = string(config.FlavorAuto)
	}
	// What Connect and Debezium take from elsewhere when nothing is said.
	defaults := config.NewConnector()
	for key, value := range map[string]string{
		"topic.prefix":                out["name"],
		ownPrefix + "source.start":    string(defaults.Source.Start),
		ownPrefix + "format.key.type": defaults.Format.Key.Type, ownPrefix + "format.value.type": defaults.Format.Value.Type,
	} {
		if _, given := out[key]; !given {
			out[key] = value
		}
	}
	return out
}

func settingText(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, key+"="+v[key])
		}
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(v)
	}
}

// KeyOf returns the key with which a connector JSON gives the setting at path
// within a connector.
func KeyOf(path string) string {
	switch path {
	case "source.table", "source.tables", "source.table_patterns":
		return "table.include.list"
	case "kafka.brokers":
		return "bootstrap.servers"
	}
	key, _ := sameKey(path)
	return cmp.Or(key, ownPrefix+path)
}

// IsSecretKey reports whether the value of a key of a connector JSON must not be
// shown.
func IsSecretKey(key string) bool {
	if path, own := strings.CutPrefix(key, ownPrefix); own {
		return config.IsSecret("connectors[0]." + path)
	}
	key = strings.ToLower(key)
	for _, word := range []string{"password", "secret", "jaas.config", "keystore.key", "credential", "token.value",
		"basic.auth.user.info"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// Shown returns value as it may be shown: the secrets of a connector are masked
// unless they are references, which give nothing away.
func Shown(key, value string) string {
	if IsSecretKey(key) {
		return config.NewSecret(value).Reference()
	}
	return value
}

// KnownKeys returns the keys of connectors that have a meaning here or in Debezium,
// in order.
func KnownKeys() []string { return slices.Clone(knownKeys()) }
