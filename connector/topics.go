package connector

import (
	"maps"
	"slices"
	"sync"
)

// maxTopics bounds the topics that are remembered: their names come from rows.
const maxTopics = 10_000

// Topics are those to which connectors have published on this node, at most 10,000.
// They are safe for concurrent use; the zero value is empty.
type Topics struct {
	mu   sync.Mutex
	seen map[string]bool
	last string
}

func (t *Topics) add(name string) {
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

// List returns them in order of their names.
func (t *Topics) List() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.seen))
}

// Reset forgets them.
func (t *Topics) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen, t.last = nil, ""
}
