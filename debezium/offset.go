package debezium

import (
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// offsets remembers where the worker kept the offsets of its connectors, so that a
// connector which Debezium has read for does not begin as if it were new.
func (c *connector) offsets() {
	if l, ok := c.worker.get("offset.storage.file.filename"); ok && l.value != "" && !c.own["source.debezium_offsets"] {
		c.set(l, "source.debezium_offsets", l.value)
	}
	if l, ok := c.worker.get("status.storage.topic"); ok && l.value != "" && !c.own["source.debezium_status_topic"] {
		c.set(l, "source.debezium_status_topic", l.value)
	}
	const setting = "source.debezium_topics"
	var topics []string // the connector's own first
	own, isOwn := c.get("offsets.storage.topic")
	workers, isWorkers := c.worker.get("offset.storage.topic")
	for _, l := range []located{own, workers} {
		if l.value != "" {
			topics = append(topics, l.value)
		}
	}
	switch {
	case isOwn && c.own[setting]:
		c.harmless(own, ownPrefix+setting+" is given")
	case isOwn:
		c.take(own, setting, topics, "")
	case isWorkers && len(topics) > 0 && !c.own[setting]:
		c.set(workers, setting, topics)
	}
}

// unknownProviders refuses what is taken and refers to configuration providers that
// are not here.
func (c *connector) unknownProviders() {
	for i, l := range c.lines {
		value := c.pairs.values[l.Key]
		if l.File == c.worker.file && l.File != c.file {
			value = c.worker.pairs.values[l.Key]
		}
		if provider := config.UnknownProvider(c.worker.providers(value)); l.Outcome == Taken && provider != "" {
			c.lines[i].Outcome, c.lines[i].Setting = Unsupported, ""
			c.lines[i].Text = fmt.Sprintf("refers to the configuration provider %s, which is not here: have an agent or a "+
				"driver write the secret to a file, and refer to that with ${file:PATH:KEY} or ${file:PATH}", provider)
		}
	}
}
