package config

import (
	"reflect"
	"strings"
)

// Kind says how the value of a setting is written in Debezium's and Kafka Connect's
// files.
type Kind int

// The kinds.
const (
	Text         Kind = iota // as it is, without blanks around it; numbers too
	Verbatim                 // as it is
	Enum                     // one of Equivalent.EnumValues, in any case
	Boolean                  // true or false
	Milliseconds             // a number of them, here a duration
	List                     // separated by commas
)

// Equivalent is a setting of a connector for which Debezium or Kafka Connect have a key
// whose value means the same.
type Equivalent struct {
	// Path is the setting's, within the connector.
	Path string
	// Key begins with "transforms.*." where it is an option of the router, with
	// "producer.override." where it is one of the producer.
	Key  string
	Kind Kind
	// EnumValues are those of a Enum.
	EnumValues []string
	// Since is the first release of Debezium that has the key; empty where all have.
	Since string
}

// Equivalents returns all of them, in the order of the table of settings.
func Equivalents() []Equivalent {
	var out []Equivalent
	for _, f := range fields() {
		path, ok := strings.CutPrefix(f.path, "connectors[].")
		if ok && f.key != "" {
			out = append(out, Equivalent{Path: path, Key: f.key, Kind: f.kind(), EnumValues: f.enum, Since: f.since})
		}
	}
	return out
}

func (f field) kind() Kind {
	t := typeOf(f.path)
	switch {
	case len(f.enum) > 0:
		return Enum
	case t == durationType:
		return Milliseconds
	case t == secretType || f.verbatim: // a password may begin or end with a blank
		return Verbatim
	case t.Kind() == reflect.Bool:
		return Boolean
	case t.Kind() == reflect.Slice:
		return List
	}
	return Text
}

// replaced are all the keys that the setting replaces.
func (f field) replaced() []string {
	all := strings.TrimPrefix(f.key+", "+f.replaces, ", ")
	if all = strings.TrimSuffix(all, ", "); all == "" {
		return nil
	}
	return strings.Split(all, ", ")
}
