package connector

import (
	"maps"
	"slices"
	"sync"
)

// maxTopics bounds the topics that are remembered: their names come from rows.
const maxTopics = 10_000

// topics are those to which a connector has published on this node.
type topics struct {
	mu   sync.Mutex
	seen map[string]bool
	last string
}

func (t *topics) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name == t.last || len(t.seen) >= maxTopics {
		return
	}
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	t.seen[name] = true
	t.last = name
}

func (t *topics) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.seen))
}

func (t *topics) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen, t.last = nil, ""
}

// Topics returns the topics to which records were published on this node since it
// started, or since ResetTopics, in order of their names; at most 10,000.
func (c *Connector) Topics() []string { return c.topics.list() }

// ResetTopics forgets them.
func (c *Connector) ResetTopics() { c.topics.reset() }
