// Package config is the one configuration tree: YAML, environment, defaults,
// validation and secret references. Defaults, validation and the reference text
// come from the same table, so they cannot disagree.
package config
