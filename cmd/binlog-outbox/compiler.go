package main

import (
	"encoding/json"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// compiler makes the configuration of one connector from the Debezium keys that
// the Connect REST API took. What the connector does not say comes, as on a Connect
// worker, from the worker's properties file of this node, and what the environment
// says of every connector counts here too.
type compiler struct {
	// worker is nil for none. It was read when the node started, as Connect does.
	worker   *debezium.File
	release  string
	tolerate bool
	// ignoreOffsets begins without positions that Debezium has left.
	ignoreOffsets bool
	environ       []string
	// resolver reads what this node's own files and variables refer to, remote what
	// the connectors do, within what the node permits.
	resolver, remote *config.Resolver
}

// ownSection begins the settings of the connector among those of a conversion.
const ownSection = "connectors[0]."

// compile builds the connector name from keys, a flat JSON object. The error is of
// type config.Problems; its origins hold the keys.
func (c *compiler) compile(name string, keys json.RawMessage) (*config.Connector, error) {
	conversion, err := c.convert(name, keys)
	if err != nil {
		return nil, err
	}
	return c.build(conversion, false)
}

func (c *compiler) convert(name string, keys json.RawMessage) (*debezium.Conversion, error) {
	if c.worker != nil && c.worker.Name == origin(name) {
		// What it says would count as written by whoever runs this node.
		return &debezium.Conversion{}, config.Problems{{Message: "has the name of the worker's file; choose another one"}}
	}
	conversion, err := debezium.Convert(debezium.Options{
		Worker: c.worker, Release: c.release, TolerateUnknown: c.tolerate,
		Connectors: []debezium.File{{Name: origin(name), Data: keys}},
	})
	if err != nil {
		return conversion, err
	}
	return conversion, c.nodeKeys(conversion)
}

// nodeKeys refuses settings of the node: a connector that comes over the network
// may not say where the node keeps its data or listens.
func (c *compiler) nodeKeys(conversion *debezium.Conversion) error {
	var problems config.Problems
	for _, s := range conversion.Settings {
		if !strings.HasPrefix(s.Path, ownSection) && (c.worker == nil || s.Origin.File != c.worker.Name) {
			problems = append(problems, config.Problem{Origin: s.Origin, Message: "is a setting of the node, not of a connector; take it out"})
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// origin stands for the file of a connector that has none.
func origin(name string) string { return "connector " + name }

// build makes the connector; blind looks for nothing on this node that its keys name.
func (c *compiler) build(conversion *debezium.Conversion, blind bool) (*config.Connector, error) {
	var own []config.Setting
	for _, s := range conversion.Settings {
		if strings.HasPrefix(s.Path, ownSection) {
			s.Remote = c.worker == nil || s.Origin.File != c.worker.Name
			own = append(own, s)
		}
	}
	b := &config.Builder{Resolver: c.resolver, Remote: c.remote, Blind: blind, Checks: []config.Check{checkRoute}}
	cfg, err := b.Build(config.Append(own...), config.Environ(c.everyConnector()))
	if err != nil {
		return nil, err
	}
	if c.ignoreOffsets {
		cfg.Connectors[0].Source.DebeziumOffsets = ""
	}
	return &cfg.Connectors[0], nil
}

// everyConnector is the environment without the variables that name a connector of
// the file by its number.
func (c *compiler) everyConnector() []string {
	var out []string
	for _, e := range c.environ {
		if !strings.HasPrefix(e, config.EnvPrefix+"CONNECTORS_") {
			out = append(out, e)
		}
	}
	return out
}
