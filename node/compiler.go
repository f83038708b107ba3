package node

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// Compiler makes the configuration of one connector from the Debezium keys that
// the Connect REST API took. What the connector does not say comes, as on a Connect
// worker, from the worker's properties file of this node, and what the environment
// says of every connector counts here too.
type Compiler struct {
	// Worker is nil for none. It was read when the node started, as Connect does.
	Worker *debezium.File
	// Release is Debezium's whose behaviour is wanted; empty for the newest.
	Release string
	// Tolerate passes over keys that are not known.
	Tolerate bool
	// Environ is the environment, as os.Environ has it.
	Environ []string
	// Resolver reads what this node's own files and variables refer to, Remote what
	// the connectors do, within what the node permits.
	Resolver, Remote *config.Resolver

	// ignoreOffsets begins without positions that Debezium has left.
	ignoreOffsets bool
}

// IgnoreDebeziumOffsets does not look at what Debezium has left of the connectors of
// cfg and of those that are compiled later.
func (c *Compiler) IgnoreDebeziumOffsets(cfg *config.Config) {
	for i := range cfg.Connectors {
		forgetDebezium(&cfg.Connectors[i].Source)
	}
	c.ignoreOffsets = true
}

func forgetDebezium(s *config.Source) { s.DebeziumOffsets, s.DebeziumTopics = "", nil }

// ownSection begins the settings of the connector among those of a conversion.
const ownSection = "connectors[0]."

// Compile builds the connector name from keys, a flat JSON object. The error is of
// type config.Problems; its origins hold the keys.
func (c *Compiler) Compile(name string, keys json.RawMessage) (*config.Connector, error) {
	conversion, err := c.convert(name, keys)
	if err != nil {
		return nil, err
	}
	return c.build(conversion, false)
}

func (c *Compiler) convert(name string, keys json.RawMessage) (*debezium.Conversion, error) {
	if c.Worker != nil && c.Worker.Name == origin(name) {
		// What it says would count as written by whoever runs this node.
		return &debezium.Conversion{}, config.Problems{{Message: "has the name of the worker's file; choose another one"}}
	}
	conversion, err := debezium.Convert(debezium.Options{
		Worker: c.Worker, Release: c.Release, TolerateUnknown: c.Tolerate,
		Connectors: []debezium.File{{Name: origin(name), Data: keys}},
	})
	if err != nil {
		return conversion, err
	}
	return conversion, c.nodeKeys(conversion)
}

// nodeKeys refuses settings of the node: a connector that comes over the network
// may not say where the node keeps its data or listens.
func (c *Compiler) nodeKeys(conversion *debezium.Conversion) error {
	var problems config.Problems
	for _, s := range conversion.Settings {
		if !strings.HasPrefix(s.Path, ownSection) && (c.Worker == nil || s.Origin.File != c.Worker.Name) {
			problems = append(problems, config.Problem{Origin: s.Origin,
				Message: "is a setting of the node, not of a connector; take it out"})
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
func (c *Compiler) build(conversion *debezium.Conversion, blind bool) (*config.Connector, error) {
	var own []config.Setting
	for _, s := range conversion.Settings {
		if strings.HasPrefix(s.Path, ownSection) {
			s.Remote = c.Worker == nil || s.Origin.File != c.Worker.Name
			own = append(own, s)
		}
	}
	b := &config.Builder{Resolver: c.Resolver, Remote: c.Remote, Blind: blind, Checks: []config.Check{CheckRouting}}
	cfg, err := b.Build(config.Append(own...), config.Environ(c.everyConnector()))
	if err != nil {
		return nil, err
	}
	if c.ignoreOffsets {
		forgetDebezium(&cfg.Connectors[0].Source)
	}
	return &cfg.Connectors[0], nil
}

// everyConnector is the environment without the variables that name a connector of
// the file by its number.
func (c *Compiler) everyConnector() []string {
	var out []string
	for _, e := range c.Environ {
		if !strings.HasPrefix(e, config.EnvPrefix+"CONNECTORS_") {
			out = append(out, e)
		}
	}
	return out
}

// CheckRouting lets the router and the converters look at their options.
func CheckRouting(c *config.Connector) error {
	if _, err := newRoute(c, nil); err != nil {
		return located(err)
	}
	return nil
}

// located says of each part of a router's error that it is about the section outbox.
func located(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, one := range many.Unwrap() {
			out = append(out, located(one))
		}
		return errors.Join(out...)
	}
	return &config.FieldError{Path: "outbox", Err: err}
}
